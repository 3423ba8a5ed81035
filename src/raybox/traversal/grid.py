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
from typing import Any

import numpy as np

from raybox.bvh.cell_tree import FIRST, MASK, CellTree
from raybox.compiler.decorators import device, inlined
from raybox.compiler.intrinsics import lowest_bit, popcount
from raybox.geometry import GridRows
from raybox.primitives.ray import Ray, get_ray, is_empty
from raybox.traversal.grid_nodes import enter_near, hit_near, hit_tame, hit_wild
from raybox.traversal.grid_rays import (
    DEPTH,
    END,
    FLIP,
    INVERSE,
    KIND,
    LEFT,
    LEVEL,
    LIMIT,
    MOVES,
    NEAR,
    NODE_FIRST,
    NODE_LEVEL,
    NODE_MASK,
    ORIGIN,
    PLACE,
    RAY,
    TURNS,
    WILD,
    GridScratch,
    later,
    put_ray,
)
from raybox.traversal.job import Job
from raybox.traversal.protocol import resolve, start, takes_turns
from raybox.traversal.single import RAY_TRAVERSALS, SPAN_TRAVERSALS, Scratch, is_allowed, traverse_one_by_one
from raybox.validation import Ints

_ROWS = (0, 0x1, 0x11, 0x111, 0x1111)  # so many rows of four bits
_SLICES = (0, 0x1, 0x10001, 0x100010001, 0x1000100010001)  # so many slices of sixteen bits
_LATER = 2.0**-20
_TINY = 2.0**-140


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
def _sides(flip: int) -> tuple[int, int, int]:
    """Return 1 for each axis on which a ray goes down, else 0."""
    return flip >> 4 & 1, flip >> 2 & 1, flip & 1


@inlined
def _enter(job: Job, grid: GridScratch, turn: int) -> int:
    """Enter the nearest node left of the stack; return the bits of its cells that the ray may hit, if any.

    It goes to the stack itself if nodes are below it. Without branches that depend on what is hit.
    """
    tree = job.tree
    if tree.nodes.size > 0 and grid.marks[turn, KIND] == NEAR:
        return enter_near(tree, grid, turn)
    return _enter_any(job, grid, turn)


@device
def _enter_any(job: Job, grid: GridScratch, turn: int) -> int:
    tree, marks, stack = job.tree, grid.marks[turn], grid.stack[turn]
    shape: Ints = job.rows.shape  # type: ignore[attr-defined]  # its rows are `GridRows`
    depth = marks[DEPTH] - 1
    entry, flip = stack[depth], marks[FLIP]
    left, level = entry[LEFT], entry[NODE_LEVEL]
    up = 2 * (level - marks[LEVEL])
    bit = lowest_bit(left)
    child, left = bit ^ flip, left & (left - 1)
    a = ((marks[PLACE] >> up & ~3) + (bit >> 4)) << 2
    b = ((marks[PLACE + 1] >> up & ~3) + (bit >> 2 & 3)) << 2
    c = ((marks[PLACE + 2] >> up & ~3) + (bit & 3)) << 2
    number = entry[NODE_FIRST] + popcount(entry[NODE_MASK] & ((1 << child) - 1))
    entry[LEFT] = left
    depth += left != 0
    level -= 1
    marks[PLACE], marks[PLACE + 1], marks[PLACE + 2], marks[LEVEL] = a, b, c, level

    down = _sides(flip)
    starts = tree.starts
    places = (
        starts[level, 0, down[0]] + a,
        starts[level, 1, down[1]] + b,
        starts[level, 2, down[2]] + c,
    )
    if tree.nodes.size > 0:
        mask, first = tree.nodes[number, MASK], tree.nodes[number, FIRST]
    else:
        last = (1 << 2 * (starts.shape[0] - level)) - 1
        sides = -down[0] & last, -down[1] & last, -down[2] & last
        mask, first = _mask_within(shape, level, ((a ^ sides[0]) & ~3, (b ^ sides[1]) & ~3, (c ^ sides[2]) & ~3)), 0
    found = flipped(mask, flip)
    if marks[KIND] == NEAR:
        found &= hit_near(tree.planes, places, grid.numbers, turn)
    elif marks[KIND] == WILD:
        found &= hit_wild(tree.planes, places, grid.numbers, turn)
    else:
        found &= hit_tame(tree.planes, places, grid.numbers, turn)
    entry = stack[depth]
    entry[LEFT], entry[NODE_LEVEL], entry[NODE_MASK], entry[NODE_FIRST] = found, level, mask, first
    marks[DEPTH] = depth + (1 if found != 0 and level > 0 else 0)
    return found if level == 0 else 0


@inlined
def _begins_late(tree: CellTree, grid: GridScratch, turn: int, level: int, place: Any) -> bool:
    """Return whether a child begins so late that neither it nor what is behind it matters."""
    numbers, down, near = grid.numbers[turn], _sides(grid.marks[turn, FLIP]), -np.inf
    for axis in range(3):
        inverse = numbers[INVERSE + axis]
        if inverse != 0.0 and not math.isinf(inverse):
            plane = tree.planes[tree.starts[level, axis, down[axis]] + place[axis]]
            near = max(near, (plane - numbers[ORIGIN + axis]) * inverse)
    end = numbers[END]
    return near > end + (abs(end) * _LATER + _TINY)


@inlined
def _drop_late(tree: CellTree, grid: GridScratch, turn: int) -> None:
    """Drop the nodes of the stack that do not matter any more."""
    marks, stack = grid.marks[turn], grid.stack[turn]
    if marks[KIND] == WILD:
        return
    depth = 0
    for k in range(marks[DEPTH]):
        entry = stack[k]
        left, level = entry[LEFT], entry[NODE_LEVEL]
        up = 2 * (level - marks[LEVEL])
        while left != 0:
            bit = lowest_bit(left)
            place = (
                (marks[PLACE] >> up & ~3) + (bit >> 4),
                (marks[PLACE + 1] >> up & ~3) + (bit >> 2 & 3),
                (marks[PLACE + 2] >> up & ~3) + (bit & 3),
            )
            if not _begins_late(tree, grid, turn, level, place):
                break
            left = 0 if marks[MOVES] != 0 else left & (left - 1)
        if left != 0:
            kept = stack[depth]
            kept[LEFT], kept[NODE_LEVEL] = left, level
            kept[NODE_MASK], kept[NODE_FIRST] = entry[NODE_MASK], entry[NODE_FIRST]
            depth += 1
    marks[DEPTH] = depth


@inlined
def _resolve_cells(job: Job, rows: Any, ray: Ray, recorder: Any, scratch: Scratch, turn: int, found: int) -> None:
    """Resolve the allowed cells of a node that a ray may hit, nearest first, until none matters."""
    grid, tree = scratch.grid, job.tree
    numbers, marks = grid.numbers[turn], grid.marks[turn]
    down, last = _sides(marks[FLIP]), (1 << 2 * tree.starts.shape[0]) - 1
    limit = numbers[LIMIT]
    while found != 0:
        bit = lowest_bit(found)
        found &= found - 1
        a, b, c = marks[PLACE] + (bit >> 4), marks[PLACE + 1] + (bit >> 2 & 3), marks[PLACE + 2] + (bit & 3)
        if numbers[LIMIT] < np.inf and marks[KIND] != WILD and _begins_late(tree, grid, turn, 0, (a, b, c)):
            if marks[MOVES] != 0:
                break
            continue
        a, b, c = a ^ (-down[0] & last), b ^ (-down[1] & last), c ^ (-down[2] & last)
        cell = (a * rows.shape[1] + b) * rows.shape[2] + c
        if is_allowed(job.allowed, ~cell):
            scratch.visited[1] += 1
            time = resolve(recorder, rows, ray, job.base + cell)
            if math.isnan(time):
                marks[DEPTH] = 0
                return
            if time < numbers[LIMIT]:
                numbers[LIMIT] = time
                numbers[END] = min(numbers[END], later(later(time)))
    if numbers[LIMIT] < limit:
        _drop_late(tree, grid, turn)


@inlined
def traverse_grid(rows: Any, job: Job, ray: Ray, recorder: Any, scratch: Scratch) -> None:
    """Resolve every allowed cell that the ray may hit, nearest first, until none matters; each once."""
    put_ray(scratch.grid, 0, rows, job.tree.starts.shape[0], ray)
    while scratch.grid.marks[0, DEPTH] != 0:
        scratch.visited[0] += 1
        found = _enter(job, scratch.grid, 0)
        if found != 0:
            _resolve_cells(job, rows, ray, recorder, scratch, 0, found)


@inlined
def _next_ray(rows: Any, job: Job, span: Any, scratch: Scratch, turn: int) -> int:
    """Begin with the next ray that has a range, if there is one; return where the others begin."""
    for k in range(span[0], span[1]):
        ray = get_ray(job.rays, k)
        if not is_empty(ray):
            scratch.grid.marks[turn, RAY] = k
            put_ray(scratch.grid, turn, rows, job.tree.starts.shape[0], ray)
            return k + 1
    return span[1]


@inlined
def _take_turns(rows: Any, job: Job, span: Any, scratch: Scratch, recorder: Any) -> int:
    """Traverse with several rays, a node each in turn."""
    grid, begin = scratch.grid, span[0]
    for turn in range(TURNS):
        grid.marks[turn, DEPTH] = 0
    working = True
    while working:
        working = False
        for turn in range(TURNS):
            if grid.marks[turn, DEPTH] == 0:
                if begin >= span[1]:
                    continue
                begin = _next_ray(rows, job, (begin, span[1]), scratch, turn)
                if grid.marks[turn, DEPTH] == 0:
                    continue
            working = True
            scratch.visited[0] += 1
            found = _enter(job, grid, turn)
            if found != 0:
                k = grid.marks[turn, RAY]
                _resolve_cells(job, rows, get_ray(job.rays, k), start(recorder, k), scratch, turn, found)
    return span[1]


@inlined
def traverse_grid_rays(rows: Any, job: Job, span: Any, scratch: Scratch, recorder: Any) -> int:
    """Write the results of rays span[0] <= k < span[1]; return the first without room, or span[1]."""
    if takes_turns(recorder):
        return _take_turns(rows, job, span, scratch, recorder)
    return traverse_one_by_one(rows, job, span, scratch, recorder)


RAY_TRAVERSALS[GridRows] = traverse_grid
SPAN_TRAVERSALS[GridRows] = traverse_grid_rays
