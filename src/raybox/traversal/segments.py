"""The partition of a ray by the cells of a grid, from plane to plane (Amanatides and Woo 1987), exactly.

Cells are half-open on every axis, the last one closed. Between two crossing times that differ, a ray is in
one cell: on an axis on which it moves, in that between the planes crossed last and next; on the others, in
that of its origin. So the order of crossing times decides the cells, and which end of a cell is open matters
only on axes without movement. Planes crossed at one time are crossed at once: no stretch is empty.

*Begin* is t_min, or the time at which the last axis enters the grid; *end* is t_max, or the time at which the
first axis leaves it. A time is computed as a product with 1/d, off by less than 2^-51 of itself. Times from
begin to end are at most as large as the larger of these two, M. So computed times that differ by more than
2^-49 M, the slack, are in exact order if one of them is of such a size, whatever the other is.

In grids of even planes, most rays are cut slab by slab (`raybox.traversal.plane_slabs`). Most others are cut
in two steps: computed times are merged (`raybox.traversal.plane_merge`), then tested: if begin, the planes'
times and end follow each other by more than the slack, their order is exact.

The rest is cut step by step. A loop goes on while the earliest of three next times is earlier by the slack
than the two others, and than the end; otherwise `raybox.exact.predicate.order` decides. A plane is crossed
before the end, so no place is outside. Of rays that are not tame (`raybox.traversal.grid_rays`), whose
differences or quotients may overflow, the slack is infinite: the predicate decides every step.
"""

from typing import NamedTuple, TypeVar

import numpy as np

from raybox.bvh.cell_tree import FIRST, MASK
from raybox.compiler.decorators import inlined, whole
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import popcount
from raybox.geometry import GridRows
from raybox.primitives.ray import Ray, get_ray, is_empty
from raybox.traversal.grid_axes import (
    SLACK,
    TINY,
    CrossingTime,
    GridAxes,
    GridAxis,
    axes_of,
    clip,
    compare,
    earliest_of,
    first_place,
    next_tame,
    next_time,
)
from raybox.traversal.grid_clip import INSIDE, OUTSIDE, AxisScales, course_of, scale_of
from raybox.traversal.grid_rays import is_tame, is_tame_grid, is_tame_ray
from raybox.traversal.job import Job, RaySpan, Recorder, grid_of
from raybox.traversal.plane_merge import MergeMemory, has_room, is_certain, make_memory, merge
from raybox.traversal.plane_slabs import Way, has_even_planes
from raybox.traversal.protocol import (
    begin_segments,
    end_segments,
    record_ray,
    record_segment,
    record_way,
)
from raybox.traversal.time_keys import get, time_of


@inlined
def is_occupied(rows: GridRows, cell: int) -> bool:
    """Return whether rays may hit a cell of a grid; not all cells may be occupied."""
    if rows.words.size == 32 * rows.blocks.size:  # all are stored
        return rows.words[cell >> 6] >> (cell & 63) & 1 != 0
    block, bit = cell >> 12, 1 << (cell >> 6 & 63)
    stored = rows.blocks[block, MASK]
    if stored & bit == 0:
        return False
    word = rows.words[rows.blocks[block, FIRST] + popcount(stored & (bit - 1))]
    return word >> (cell & 63) & 1 != 0


S = TypeVar("S")  # the state of a ray, as a query has it


class CutJob(NamedTuple):
    """What is cut, and what records it."""

    job: Job
    ray: Ray
    recorder: Recorder


class GridSetup(NamedTuple):
    """What is the same for all rays through a grid, and memory for one of them."""

    scales: AxisScales
    tame: bool
    masked: bool  # whether some cells are not recorded
    is_even: bool  # whether `record_way` may be called
    memory: MergeMemory


class GridPosition(NamedTuple):
    """The cell in which a ray is, the planes by which it leaves it on each axis, and their computed times."""

    i: int
    j: int
    k: int
    cell: int
    now: float  # when it entered the cell
    next_x: float
    next_y: float
    next_z: float


class Limits(NamedTuple):
    """The end of a ray, and how far times must be apart to be in exact order."""

    end: CrossingTime
    stop: float  # a computed time up to this one is before the end
    slack: float
    masked: bool  # whether some cells are not recorded


@inlined
def _is_recorded(job: Job, cell: int) -> bool:
    """Return whether a cell is occupied and allowed."""
    rows = grid_of(job)
    allowed = job.allowed
    return (rows.blocks.size == 0 or is_occupied(rows, cell)) and (allowed.size == 0 or allowed[cell])


@inlined
def _record(cut: CutJob, masked: bool, state: S, at: GridPosition, until: float) -> S:
    """Record the stretch in a cell up to a time, if the cell is occupied and allowed."""
    if masked and not _is_recorded(cut.job, at.cell):
        return state
    return record_segment(cut.recorder, state, cut.ray, at.cell, at.now, until)


@inlined
def _cross_x(recorder: Recorder, x: GridAxis, at: GridPosition, until: float) -> GridPosition:
    i, j, k, cell, _, _, y, z = at
    i += x.step
    return GridPosition(i, j, k, cell + x.stride, until, next_tame(recorder, x, i), y, z)


@inlined
def _cross_y(recorder: Recorder, y: GridAxis, at: GridPosition, until: float) -> GridPosition:
    i, j, k, cell, _, x, _, z = at
    j += y.step
    return GridPosition(i, j, k, cell + y.stride, until, x, next_tame(recorder, y, j), z)


@inlined
def _cross_z(recorder: Recorder, z: GridAxis, at: GridPosition, until: float) -> GridPosition:
    i, j, k, cell, _, x, y, _ = at
    k += z.step
    return GridPosition(i, j, k, cell + z.stride, until, x, y, next_tame(recorder, z, k))


@inlined
def _cross_certain(
    cut: CutJob, axes: GridAxes, limits: Limits, state: S, at: GridPosition
) -> tuple[GridPosition, S]:
    """Cross planes while the next one is certain; return where the ray is then, and the query's state."""
    _, stop, slack, masked = limits
    x, y, z = axes
    recorder = cut.recorder
    while True:
        if at.next_x < at.next_y:
            if at.next_x < at.next_z:
                if not (min(at.next_y, at.next_z) - at.next_x > slack and at.next_x < stop):
                    return at, state
                until = at.next_x
                state = _record(cut, masked, state, at, until)
                at = _cross_x(recorder, x, at, until)
                continue
        elif at.next_y < at.next_z:
            if not (min(at.next_x, at.next_z) - at.next_y > slack and at.next_y < stop):
                return at, state
            until = at.next_y
            state = _record(cut, masked, state, at, until)
            at = _cross_y(recorder, y, at, until)
            continue
        if not (min(at.next_x, at.next_y) - at.next_z > slack and at.next_z < stop):
            return at, state
        until = at.next_z
        state = _record(cut, masked, state, at, until)
        at = _cross_z(recorder, z, at, until)


@inlined
def _cross_exact(
    recorder: Recorder, axes: GridAxes, at: GridPosition, end: CrossingTime
) -> tuple[float, GridPosition, bool]:
    """Return when planes are crossed next, or the ray ends, where it is then, and whether it ends.

    Rounded, one of the next times may be earlier, by less than the slack: then the next stretch begins there.
    """
    x, y, z = axes
    earliest = earliest_of(recorder, x, at.i, 1, (end, 0))
    earliest = earliest_of(recorder, y, at.j, 2, earliest)
    crossing, crossed = earliest_of(recorder, z, at.k, 4, earliest)
    i, j, k, cell, now, next_x, next_y, next_z = at
    until = max(now, crossing.computed)
    if crossed & 1:
        i, cell = i + x.step, cell + x.stride
        next_x = next_time(recorder, x, i)
    if crossed & 2:
        j, cell = j + y.step, cell + y.stride
        next_y = next_time(recorder, y, j)
    if crossed & 4:
        k, cell = k + z.step, cell + z.stride
        next_z = next_time(recorder, z, k)
    now = min(until, next_x, next_y, next_z)
    return until, GridPosition(i, j, k, cell, now, next_x, next_y, next_z), crossed == 0


@inlined
def _cut_exact(job: Job, ray: Ray, recorder: Recorder, state: S) -> S:
    """Record the stretches of a ray that moves, step by step; return the query's state."""
    tame = is_tame(grid_of(job), ray)
    x, y, z = axes = axes_of(grid_of(job), ray, tame)

    # Clip the range to the grid.
    bounds = CrossingTime(ray.t_min, 0.0, 1.0, ray.t_min), CrossingTime(ray.t_max, 0.0, 1.0, ray.t_max)
    begin, end = clip(recorder, z, clip(recorder, y, clip(recorder, x, bounds)))
    if compare(begin, end) >= 0:
        return state
    slack = np.inf if not tame else max(abs(begin.computed), abs(end.computed)) * SLACK + TINY

    # Find the first cell, and the next planes.
    a = first_place(recorder, x, begin, slack)
    b = first_place(recorder, y, begin, slack)
    c = first_place(recorder, z, begin, slack)
    if a < 0 or b < 0 or c < 0:
        return state
    cell = a * abs(x.stride) + b * abs(y.stride) + c
    i, j, k = a + x.ahead, b + y.ahead, c + z.ahead
    next_x, next_y, next_z = next_time(recorder, x, i), next_time(recorder, y, j), next_time(recorder, z, k)
    now = min(begin.computed, next_x, next_y, next_z)  # rounded, one of them may be earlier
    at = GridPosition(i, j, k, cell, now, next_x, next_y, next_z)

    # Cross plane after plane.
    rows = grid_of(job)
    masked = rows.blocks.size > 0 or job.allowed.size > 0
    cut, limits = CutJob(job, ray, recorder), Limits(end, end.computed - slack, slack, masked)
    while True:
        at, state = _cross_certain(cut, axes, limits, state, at)
        until, then, ended = _cross_exact(recorder, axes, at, end)
        state = _record(cut, masked, state, at, until)
        if ended:
            return state
        at = then


@inlined
def _cut_certain(job: Job, ray: Ray, recorder: Recorder, state: S, grid: GridSetup) -> tuple[bool, S]:
    """Record the stretches of a tame ray if computed times prove their order.

    Return whether they do, and the query's state.
    """
    axes = axes_of(grid_of(job), ray, True)
    course = course_of(recorder, ray, axes, grid.scales)
    if course.status != INSIDE or not has_room(grid.memory, course):
        return course.status == OUTSIDE, state
    if grid.is_even:
        done, state = record_way(recorder, state, Way(axes, grid.scales, course, grid.memory))
        if done:
            return True, state
    stretches = merge(recorder, axes, course, grid.memory)
    if not is_certain(stretches, course.slack):
        return False, state
    if not grid.masked:
        return True, record_ray(recorder, state, ray, stretches)
    for s in range(stretches.cell_count):
        cell = get(stretches.cells, s)
        if _is_recorded(job, cell):
            begin, end = time_of(get(stretches.keys, s)), time_of(get(stretches.keys, s + 1))
            state = record_segment(recorder, state, ray, cell, begin, end)
    return True, state


@inlined
def _cut_ray(job: Job, ray: Ray, recorder: Recorder, state: S, grid: GridSetup) -> S:
    """Record the stretches of a ray in the cells of a grid, in order; return the query's state."""
    d = ray.direction
    if d[0] == 0.0 and d[1] == 0.0 and d[2] == 0.0:
        return state
    if grid.tame and is_tame_ray(ray):
        done, state = _cut_certain(job, ray, recorder, state, grid)
        if done:
            return state
    return _cut_exact(job, ray, recorder, state)


@entry
def _cut_rays(job: Job, span: RaySpan, recorder: Recorder, memory: MergeMemory) -> int:
    """Record the stretches of rays; see `cut_rays`."""
    rows = grid_of(job)
    scales = scale_of(rows.x_edges), scale_of(rows.y_edges), scale_of(rows.z_edges)
    masked = rows.blocks.size > 0 or job.allowed.size > 0
    grid = GridSetup(scales, is_tame_grid(rows), masked, not masked and has_even_planes(rows), memory)
    for k in range(span.begin, span.end):
        ray = get_ray(job.rays, k)
        state = begin_segments(recorder, k)
        if not is_empty(ray):
            state = _cut_ray(job, ray, recorder, state, grid)
        if not end_segments(recorder, state, k):
            return whole(k)
    return whole(span.end)


def cut_rays(job: Job, span: RaySpan, recorder: Recorder) -> int:
    """Record the stretches of a span of rays; return the first without room, or its end."""
    rows = job.rows
    assert isinstance(rows, GridRows)
    return _cut_rays(job, span, recorder, make_memory(rows))
