"""The traversal of a grid: through the nodes of a `CellTree`, nearest first; the predicate decides each cell.

The children of a node that the ray may hit are bits of one integer (`raybox.traversal.grid_nodes`), numbered
in the order of travel: each axis counts from its near end. A ray that moves on every axis passes
the children that it hits in this order, so the lowest bit is the nearest: nothing is sorted.

**Why a ray may end.** After a hit at t (the exact time rounded once), cells matter only up to its exact time.
`end` is that time, moved by `later` twice. Let child X be among the bits, and its near time later than `end`.
Let Y be behind it in the order of travel, and hit at a time y that matters. On the first axis on which they
differ, X ends where Y begins, or earlier. That far time of X is at most y; computed and moved, it is at most
`end`; and X's near time was not later. So there is no such Y, and the rest of the bits is dropped. Of rays
that stand still on some axis, children may begin in another order: only X is dropped.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from raybox.bvh.cell_tree import CellTree
from raybox.compiler import simd_single
from raybox.compiler.decorators import device, inlined
from raybox.compiler.intrinsics import popcount
from raybox.geometry import GridRows
from raybox.primitives.ray import Ray
from raybox.traversal.grid_nodes import GridRay, hit_children, hit_moving, hit_wild, is_tame, later
from raybox.traversal.protocol import resolve
from raybox.traversal.single import RAY_TRAVERSALS, Job, Scratch, is_allowed

LEFT, MASK, FIRST, PLACE = 0, 1, 2, 3  # columns of `Scratch.cells`: a node's children that are left, ...
_ROWS = (0, 0x1, 0x11, 0x111, 0x1111)  # so many rows of four bits
_SLICES = (0, 0x1, 0x10001, 0x100010001, 0x1000100010001)  # so many slices of sixteen bits


class GridRaySetup(NamedTuple):
    """A ray in a grid, and how it goes."""

    ray: GridRay
    flip: int  # the bits in which a child's number and its number in the order of travel differ
    moves: bool  # whether it moves on every axis
    tame: bool  # whether differences and products neither over- nor underflow, other than to 2^-1074


class CellNode(NamedTuple):
    """A node of a `CellTree`, and the place of its first child on each axis of its level."""

    level: int
    number: int
    a: int
    b: int
    c: int


@device
def _swap(mask: int, low: int, shift: int) -> int:
    return (mask >> shift & low) | (mask & low) << shift


@device
def flipped(mask: int, flip: int) -> int:
    """Return a mask with each bit moved to its number xor `flip`, which has both bits of an axis or none."""
    if flip & 3:
        mask = _swap(_swap(mask, 0x5555555555555555, 1), 0x3333333333333333, 2)
    if flip & 12:
        mask = _swap(_swap(mask, 0x0F0F0F0F0F0F0F0F, 4), 0x00FF00FF00FF00FF, 8)
    if flip & 48:
        mask = _swap(_swap(mask, 0x0000FFFF0000FFFF, 16), 0x00000000FFFFFFFF, 32)
    return mask


@device
def _children_within(cells: int, level: int, first: int) -> int:
    """Return how many of a node's children on an axis of so many cells are in the grid."""
    return min(4, ((cells + (1 << 2 * level) - 1) >> 2 * level) - first)


@device
def _mask_within(shape: Any, node: CellNode) -> int:
    """Return the mask of a node's children that are in the grid."""
    a = _children_within(shape[0], node.level, node.a)
    b = _children_within(shape[1], node.level, node.b)
    c = _children_within(shape[2], node.level, node.c)
    return ((1 << c) - 1) * _ROWS[b] * _SLICES[a]


@inlined
def _enter(rows: Any, tree: CellTree, setup: GridRaySetup, end: float, node: CellNode, stack: Any) -> bool:
    """Push a node's children that the ray may hit before `end`; return whether there are any."""
    level, starts = node.level, tree.starts
    mask = tree.masks[node.number] if tree.masks.size > 0 else _mask_within(rows.shape, node)
    places = starts[level, 0] + node.a, starts[level, 1] + node.b, starts[level, 2] + node.c
    if not setup.tame:
        found = mask & hit_wild(tree.planes, places, setup.ray, end)
    elif setup.moves:
        found = mask & hit_moving(tree.planes, places, setup.ray, end)
    else:
        found = mask & hit_children(tree.planes, places, setup.ray, end)
    if found == 0:
        return False
    stack[level, LEFT], stack[level, MASK] = flipped(found, setup.flip), mask
    stack[level, FIRST] = tree.first[node.number] if tree.masks.size > 0 else 0
    stack[level, PLACE], stack[level, PLACE + 1], stack[level, PLACE + 2] = node.a, node.b, node.c
    return True


@inlined
def _begins(tree: CellTree, ray: GridRay, child: CellNode) -> float:
    """Return the computed near time of a child, of a tame ray; the place is its own."""
    near = -np.inf
    for axis in range(3):
        d = ray.direction[axis]
        if d != 0.0:
            place = child.a if axis == 0 else (child.b if axis == 1 else child.c)
            plane = tree.planes[tree.starts[child.level, axis] + place + (1 if d < 0.0 else 0)]
            near = max(near, (plane - ray.origin[axis]) * ray.inverse[axis])
    return near


@device
def _inverse(d: float) -> float:
    return 1.0 / d if d != 0.0 else 0.0


@inlined
def _set_up(rows: Any, ray: Ray) -> GridRaySetup:
    d = ray.direction
    flip = (48 if d[0] < 0.0 else 0) | (12 if d[1] < 0.0 else 0) | (3 if d[2] < 0.0 else 0)
    moves = d[0] != 0.0 and d[1] != 0.0 and d[2] != 0.0
    inverse = _inverse(d[0]), _inverse(d[1]), _inverse(d[2])
    return GridRaySetup(GridRay(ray.origin, d, inverse, ray.t_min), flip, moves, is_tame(rows, ray))


@inlined
def traverse_grid(rows: Any, job: Job, ray: Ray, recorder: Any, scratch: Scratch) -> None:
    """Resolve every allowed cell that the ray may hit, nearest first, until none matters; each once."""
    tree, stack, shape = job.tree, scratch.cells, rows.shape
    setup = _set_up(rows, ray)
    limit, end, ended = np.inf, later(later(ray.t_max)), False
    level = top = tree.starts.shape[0] - 1
    scratch.visited[0] += 1
    if not _enter(rows, tree, setup, end, CellNode(level, 0, 0, 0, 0), stack):
        return
    while level <= top:
        # Choose the nearest child that is left; the ray may end before it by now.
        left = stack[level, LEFT]
        if left == 0:
            level += 1
            continue
        stack[level, LEFT] = left & (left - 1)
        child = simd_single.lowest_bit(left) ^ setup.flip
        a = stack[level, PLACE] + (child >> 4)
        b = stack[level, PLACE + 1] + (child >> 2 & 3)
        c = stack[level, PLACE + 2] + (child & 3)
        if ended and setup.tame and _begins(tree, setup.ray, CellNode(level, 0, a, b, c)) > end:
            if setup.moves:
                stack[level, LEFT] = 0
            continue

        # Enter a node.
        if level > 0:
            number = stack[level, FIRST] + popcount(stack[level, MASK] & ((1 << child) - 1))
            scratch.visited[0] += 1
            if _enter(rows, tree, setup, end, CellNode(level - 1, number, 4 * a, 4 * b, 4 * c), stack):
                level -= 1
            continue

        # Resolve a cell.
        cell = (a * shape[1] + b) * shape[2] + c
        if is_allowed(job.allowed, ~cell):
            scratch.visited[1] += 1
            time = resolve(recorder, rows, ray, job.base + cell)
            if math.isnan(time):
                return
            if time < limit:
                limit, ended = time, True
                end = min(end, later(later(time)))


RAY_TRAVERSALS[GridRows] = traverse_grid
