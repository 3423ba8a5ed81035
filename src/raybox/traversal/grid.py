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
from raybox.compiler.decorators import device, inlined
from raybox.compiler.intrinsics import lowest_bit, popcount
from raybox.geometry import GridRows
from raybox.primitives.ray import Ray
from raybox.traversal.grid_nodes import GridRay, hit_children, hit_moving, hit_wild, is_tame, later
from raybox.traversal.job import Job
from raybox.traversal.protocol import resolve
from raybox.traversal.single import RAY_TRAVERSALS, Scratch, is_allowed
from raybox.validation import Ints

_ROWS = (0, 0x1, 0x11, 0x111, 0x1111)  # so many rows of four bits
_SLICES = (0, 0x1, 0x10001, 0x100010001, 0x1000100010001)  # so many slices of sixteen bits


class GridRaySetup(NamedTuple):
    """A ray in a grid, and how it goes."""

    ray: GridRay
    flip: int  # the bits in which a child's number and its number in the order of travel differ
    moves: bool  # whether it moves on every axis
    tame: bool  # whether differences and products neither over- nor underflow, other than to 2^-1074


class CellNode(NamedTuple):
    """A node of a `CellTree`, whose children that the ray may hit are left to be entered."""

    left: int  # their bits, in the order of travel
    level: int
    mask: int  # the bits of all children
    first: int  # the number of the first child
    a: int  # the place of the first child on each axis of its level
    b: int
    c: int


@device
def _swap(mask: int, low: int, shift: int) -> int:
    return (mask >> shift & low) | (mask & low) << shift


@device
def flipped(mask: int, flip: int) -> int:
    """Return a mask with each bit moved to its number xor `flip`, which has both bits of an axis or none."""
    # Without branches: the direction of incoherent rays cannot be predicted.
    swapped = _swap(_swap(mask, 0x5555555555555555, 1), 0x3333333333333333, 2)
    mask ^= (mask ^ swapped) & -(flip & 1)
    swapped = _swap(_swap(mask, 0x0F0F0F0F0F0F0F0F, 4), 0x00FF00FF00FF00FF, 8)
    mask ^= (mask ^ swapped) & -(flip >> 2 & 1)
    swapped = _swap(_swap(mask, 0x0000FFFF0000FFFF, 16), 0x00000000FFFFFFFF, 32)
    mask ^= (mask ^ swapped) & -(flip >> 4 & 1)
    return mask


@device
def _children_within(cells: int, level: int, first: int) -> int:
    """Return how many of a node's children on an axis of so many cells are in the grid."""
    return min(4, ((cells + (1 << 2 * level) - 1) >> 2 * level) - first)


@device
def _mask_within(shape: Any, level: int, place: tuple[int, int, int]) -> int:
    """Return the mask of the children that are in the grid; place: of the first of them."""
    a = _children_within(shape[0], level, place[0])
    b = _children_within(shape[1], level, place[1])
    c = _children_within(shape[2], level, place[2])
    return ((1 << c) - 1) * _ROWS[b] * _SLICES[a]


@inlined
def _enter(job: Job, setup: GridRaySetup, end: float, level: int, at: Any) -> CellNode:
    """Return a node and its children that the ray may hit before `end`, not yet in the order of travel.

    at: the number of the node, and the place of its first child.
    """
    tree, (number, a, b, c) = job.tree, at
    shape: Ints = job.rows.shape  # type: ignore[attr-defined]  # its rows are `GridRows`
    starts, stored = tree.starts, tree.masks.size > 0
    mask = tree.masks[number] if stored else _mask_within(shape, level, (a, b, c))
    places = starts[level, 0] + a, starts[level, 1] + b, starts[level, 2] + c
    if not setup.tame:
        found = mask & hit_wild(tree.planes, places, setup.ray, end)
    elif setup.moves:
        found = mask & hit_moving(tree.planes, places, setup.ray, end)
    else:
        found = mask & hit_children(tree.planes, places, setup.ray, end)
    first = tree.first[number] if stored else 0
    return CellNode(found, level, mask, first, a, b, c)


@inlined
def _with_left(node: CellNode, left: int) -> CellNode:
    """Return a node with other children left."""
    _, level, mask, first, a, b, c = node
    return CellNode(left, level, mask, first, a, b, c)


@inlined
def _push(stack: Any, depth: int, node: CellNode) -> int:
    """Store a node, unless none of its children is left; return the number of nodes in the stack."""
    if node.left == 0:
        return depth
    for k in range(len(node)):
        stack[depth, k] = node[k]
    return depth + 1


@inlined
def _pop(stack: Any, depth: int) -> CellNode:
    """Return the last node of the stack."""
    left, level, mask, first = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
    return CellNode(left, level, mask, first, stack[depth, 4], stack[depth, 5], stack[depth, 6])


@inlined
def _begins(tree: CellTree, ray: GridRay, level: int, place: tuple[int, int, int]) -> float:
    """Return the computed near time of a child, of a tame ray."""
    near = -np.inf
    for axis in range(3):
        d = ray.direction[axis]
        if d != 0.0:
            plane = tree.planes[tree.starts[level, axis] + place[axis] + (1 if d < 0.0 else 0)]
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
    tree, stack, depth = job.tree, scratch.cells, 0
    setup = _set_up(rows, ray)
    limit, end, ended = np.inf, later(later(ray.t_max)), False
    node = CellNode(1 << setup.flip, tree.starts.shape[0], 1, 0, 0, 0, 0)  # above the root, its only child
    while True:
        # Choose the nearest child that is left; the ray may end before it by now.
        if node.left == 0:
            if depth == 0:
                return
            depth -= 1
            node = _pop(stack, depth)
        child = lowest_bit(node.left) ^ setup.flip
        place = node.a + (child >> 4), node.b + (child >> 2 & 3), node.c + (child & 3)
        node = _with_left(node, node.left & (node.left - 1))
        if ended and setup.tame and _begins(tree, setup.ray, node.level, place) > end:
            node = _with_left(node, 0 if setup.moves else node.left)
            continue

        # Enter a node.
        if node.level > 0:
            scratch.visited[0] += 1
            number = node.first + popcount(node.mask & ((1 << child) - 1))
            first_place = number, 4 * place[0], 4 * place[1], 4 * place[2]
            below = _enter(job, setup, end, node.level - 1, first_place)
            if below.left != 0:
                depth = _push(stack, depth, node)
                node = _with_left(below, flipped(below.left, setup.flip))
            continue

        # Resolve a cell.
        cell = (place[0] * rows.shape[1] + place[1]) * rows.shape[2] + place[2]
        if is_allowed(job.allowed, ~cell):
            scratch.visited[1] += 1
            time = resolve(recorder, rows, ray, job.base + cell)
            if math.isnan(time):
                return
            if time < limit:
                limit, ended = time, True
                end = min(end, later(later(time)))


RAY_TRAVERSALS[GridRows] = traverse_grid
