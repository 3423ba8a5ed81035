"""The traversal of a grid: through the nodes of a `CellTree`, nearest first; the predicate decides each cell.

The children of a node that the ray may hit are bits of one integer (`raybox.traversal.grid_nodes`), numbered
in the order of travel: each axis counts from its near end. A ray that moves on every axis passes
the children that it hits in this order, so the lowest bit is the nearest: nothing is sorted. Several rays
take turns, a step each (`raybox.traversal.grid_steps`).

**Why a ray may end.** After a hit at t (the exact time rounded once), cells matter only up to its exact time.
`END` is that time, moved by `later` twice. Let child X be among the bits, and its near time later than `END`
by more than `_MUCH` of it. Let Y be behind it in the order of travel, and hit at a time y that matters. On
the first axis on which they differ, X ends where Y begins, or earlier. That far time of X is at most y;
computed and moved, it is at most `END`, but for 2^-48 of it; and X's near time was not later, but for 2^-22,
which float32 does not tell. So there is no such Y, and the rest of the bits is dropped. Of rays that stand
still on some axis, children may begin in another order: only X is dropped.
"""

import math
from typing import NamedTuple

import numpy as np

from raybox.bvh.cell_tree import CellTree
from raybox.compiler.decorators import inlined
from raybox.compiler.intrinsics import lowest_bit
from raybox.geometry import GridRows
from raybox.primitives.ray import Ray, excluded_by, get_ray, is_empty
from raybox.traversal.grid_first import MISS, UNDECIDED, FullGrid, first_cell, full_grid
from raybox.traversal.grid_rays import (
    DEPTH,
    DIRECTION,
    END,
    ENTRY,
    EXCLUDED,
    FLIP,
    INVERSE,
    KIND,
    LEFT,
    LIMIT,
    MOVES,
    NODE_LEVEL,
    ORIGIN,
    PLACE,
    RAY,
    STARTS,
    TURNS,
    WILD,
    GridScratch,
    later,
    put_ray,
)
from raybox.traversal.grid_scan import ScannedGrid, scan_cells, scanned_grid
from raybox.traversal.grid_steps import place_of, step, upward
from raybox.traversal.job import Job, RaySpan, Recorder, cells_of, grid_of
from raybox.traversal.protocol import first_only, number_only, record_number, resolve, start, takes_turns
from raybox.traversal.tree import (
    Scratch,
    count_node,
    count_primitive,
    excluded_in,
    is_allowed,
    is_excluded,
    traverse_one_by_one,
)

_MUCH = 2.0**-20
_TINY = 2.0**-140  # more than float32 loses where it underflows


class FirstCells(NamedTuple):
    """How the first cells of rays may be found without the tree."""

    full: FullGrid
    scanned: ScannedGrid


@inlined
def _begins_late(
    tree: CellTree, grid: GridScratch, turn: int, level: int, place: tuple[int, int, int]
) -> bool:
    """Return whether a child begins so late that neither it nor what is behind it matters."""
    numbers, marks, near = grid.numbers[turn], grid.marks[turn], -np.inf
    if marks[KIND] == WILD:
        return False
    starts = tree.starts.reshape(-1)[6 * level :]
    for axis in range(3):
        if numbers[DIRECTION + axis] != 0.0:
            plane = tree.planes[starts[marks[STARTS + axis]] + place[axis]]
            near = max(near, (plane - numbers[ORIGIN + axis]) * numbers[INVERSE + axis])
    end = numbers[END]
    return near > end + (abs(end) * _MUCH + _TINY)


@inlined
def _without_late(tree: CellTree, grid: GridScratch, turn: int, level: int, left: int) -> int:
    """Return the bits of the children of a node that still matter."""
    while left != 0:
        place = place_of(grid.marks[turn], level, lowest_bit(left))
        if not _begins_late(tree, grid, turn, level, place):
            break
        left = 0 if grid.marks[turn, MOVES] != 0 else left & (left - 1)
    return left


@inlined
def _drop_late(tree: CellTree, grid: GridScratch, turn: int) -> None:
    """Drop the nodes of the stack that do not matter any more."""
    marks, stack, depth = grid.marks[turn], grid.stack[turn], 0
    for k in range(marks[DEPTH]):
        left = _without_late(tree, grid, turn, stack[k, NODE_LEVEL], stack[k, LEFT])
        if left != 0:
            for word in range(ENTRY):
                stack[depth, word] = stack[k, word]
            stack[depth, LEFT] = left
            depth += 1
    marks[DEPTH] = depth


@inlined
def _resolve_cells(job: Job, ray: Ray, recorder: Recorder, scratch: Scratch, turn: int, found: int) -> None:
    """Resolve the allowed cells of the node entered last, nearest first, until none matters.

    found: the bits of those that the ray may hit.
    """
    rows = grid_of(job)
    grid, tree = scratch.grid, cells_of(job)
    numbers, marks = grid.numbers[turn], grid.marks[turn]
    before, first_place = numbers[LIMIT], (marks[PLACE], marks[PLACE + 1], marks[PLACE + 2])
    a, b, c = upward(marks, tree.starts.shape[0], 0, first_place)
    first = ((a & ~3) * rows.shape[1] + (b & ~3)) * rows.shape[2] + (c & ~3)
    while found != 0:
        child = lowest_bit(found) ^ marks[FLIP]
        found &= found - 1
        cell = first + ((child >> 4) * rows.shape[1] + (child >> 2 & 3)) * rows.shape[2] + (child & 3)
        if is_allowed(job.allowed, ~cell) and not is_excluded(job, marks[EXCLUDED], cell):
            count_primitive(scratch)
            time = resolve(recorder, rows, ray, job.base + cell)
            if math.isnan(time):
                marks[DEPTH] = 0
                return
            if time < numbers[LIMIT]:
                numbers[LIMIT] = time
                numbers[END] = min(numbers[END], later(later(time)))
        if numbers[LIMIT] < np.inf:
            found = _without_late(tree, grid, turn, 0, found)
    if numbers[LIMIT] < before:
        _drop_late(tree, grid, turn)


@inlined
def traverse_grid(rows: GridRows, job: Job, ray: Ray, recorder: Recorder, scratch: Scratch) -> None:
    """Resolve every allowed cell that the ray may hit, nearest first, until none matters; each once."""
    put_ray(scratch.grid, 0, rows, cells_of(job).starts.shape[0], ray)
    scratch.grid.marks[0, EXCLUDED] = excluded_in(scratch)
    while scratch.grid.marks[0, DEPTH] != 0:
        count_node(scratch)
        found = step(job, scratch.grid, 0)
        if found != 0:
            _resolve_cells(job, ray, recorder, scratch, 0, found)


@inlined
def _resolve_first(job: Job, ray: Ray, recorder: Recorder, k: int, ways: FirstCells) -> bool:
    """Resolve the first cell of ray k alone, if no other matters; return whether that is certain.

    Or record the number of its cells, if the query needs no more.
    """
    if number_only(recorder):
        counts = ways.scanned.is_counted and excluded_by(job.rays, k) < 0
        count = scan_cells(grid_of(job), ray, ways.scanned.scales, True) if counts else UNDECIDED
        if count != UNDECIDED:
            record_number(recorder, k, count)
        return count != UNDECIDED
    if not first_only(recorder):
        return False
    if ways.full.is_direct:
        cell = first_cell(grid_of(job), ray, ways.full.scales)
    elif ways.scanned.is_scanned:
        cell = scan_cells(grid_of(job), ray, ways.scanned.scales, False)
    else:
        return False
    if cell >= 0 and is_excluded(job, excluded_by(job.rays, k), cell):
        return False
    if cell >= 0 and is_allowed(job.allowed, ~cell):
        resolve(start(recorder, k), job.rows, ray, job.base + cell)
        return True
    return cell == MISS


@inlined
def _begin_next(
    job: Job, span: RaySpan, scratch: Scratch, recorder: Recorder, turn: int, ways: FirstCells
) -> int:
    """Begin with the first ray of a span that must be traversed, if any; return where the others begin."""
    for k in range(span.begin, span.end):
        ray = get_ray(job.rays, k)
        if not is_empty(ray) and not _resolve_first(job, ray, recorder, k, ways):
            scratch.grid.marks[turn, RAY] = k
            scratch.grid.marks[turn, EXCLUDED] = excluded_by(job.rays, k)
            put_ray(scratch.grid, turn, grid_of(job), cells_of(job).starts.shape[0], ray)
            return k + 1
    return span.end


@inlined
def _take_turns(job: Job, span: RaySpan, scratch: Scratch, recorder: Recorder) -> None:
    """Write the results of rays that take turns, a step each (three quarters of the time)."""
    grid, begin = scratch.grid, span.begin
    ways = FirstCells(full_grid(grid_of(job)), scanned_grid(job))
    grid.marks[:, DEPTH] = 0
    active = True
    while active:
        active = False
        for turn in range(TURNS):
            if grid.marks[turn, DEPTH] == 0 and begin < span.end:
                begin = _begin_next(job, RaySpan(begin, span.end), scratch, recorder, turn, ways)
            if grid.marks[turn, DEPTH] == 0:
                continue
            active = True
            count_node(scratch)
            found = step(job, grid, turn)
            if found != 0:
                k = grid.marks[turn, RAY]
                _resolve_cells(job, get_ray(job.rays, k), start(recorder, k), scratch, turn, found)


@inlined
def traverse_grid_rays(rows: GridRows, job: Job, span: RaySpan, scratch: Scratch, recorder: Recorder) -> int:
    """Write the results of a span of rays; return the first without room, or its end."""
    if takes_turns(recorder):
        _take_turns(job, span, scratch, recorder)
        return span.end
    return traverse_one_by_one(rows, job, span, scratch, recorder)
