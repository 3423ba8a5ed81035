"""The partition of a ray by the cells of a grid, from plane to plane (Amanatides and Woo 1987), exactly.

Cells are half-open on every axis, the last one closed. Between two crossing times that differ, a ray is in one
cell: on an axis along which it moves, in that between the planes crossed last and next; on the others, in that
of its origin. So the cells are those between the crossing times in exact order, and which end of a cell is open
matters only on axes without movement. Planes crossed at one time are crossed at once: no stretch is empty.

*Begin* is t_min, or the time at which the last axis enters the grid; *end* is t_max, or the time at which the
first axis leaves it. A time is computed as a product with 1/d, off by less than 2^-51 of itself. Those from
begin to end are at most as large as the larger of these two, M; so computed times of which one is larger than
the other by 2^-49 M (`slack`) are in exact order, and so is a time beyond 2 M behind one up to M. The loop goes
on while the least of the three next times is behind neither of the others, nor the end, by less than that;
otherwise `raybox.exact.predicate.order` decides. A crossed plane is before the end, so no place leaves the grid.

Rays that are not tame (`raybox.traversal.grid`), whose differences or quotients may overflow, have an infinite
slack: the predicate decides every step.
"""

from typing import Any, NamedTuple

import numpy as np

from raybox.compiler.decorators import device, exact_entry, inlined, whole
from raybox.exact.predicate import order, time
from raybox.primitives.ray import Ray, get_ray, is_empty
from raybox.traversal.grid import is_tame
from raybox.traversal.protocol import begin_segments, end_segments, has_exact_times, record_segment
from raybox.traversal.single import Job

_SLACK = 2.0**-49
_TINY = 2.0**-1000


class CrossingTime(NamedTuple):
    """The exact time (plane - origin)/direction, and what is computed of it."""

    plane: float
    origin: float
    direction: float
    computed: float


class GridAxis(NamedTuple):
    """One axis of a grid and of a ray."""

    edges: Any
    origin: float
    direction: float
    inverse: float  # of the direction; of a ray that is not tame, NaN
    stride: int  # of the numbers of cells


@device
def _compare(one: CrossingTime, other: CrossingTime) -> int:
    """Return the exact order of two times: -1, 0 or 1."""
    return order(one.plane, one.origin, one.direction, other.plane, other.origin, other.direction)


@inlined
def _computed(recorder: Any, axis: GridAxis, place: int) -> float:
    """Return the time of a plane: rounded once, if the query needs that."""
    plane = axis.edges[place]
    if has_exact_times(recorder) or axis.inverse != axis.inverse:
        return time(plane, axis.origin, axis.direction)
    return (plane - axis.origin) * axis.inverse


@inlined
def _crossing(recorder: Any, axis: GridAxis, place: int) -> CrossingTime:
    return CrossingTime(axis.edges[place], axis.origin, axis.direction, _computed(recorder, axis, place))


@inlined
def _clip(recorder: Any, axis: GridAxis, bounds: Any) -> tuple[CrossingTime, CrossingTime]:
    """Return begin and end, moved to where the ray enters and leaves the grid on one axis."""
    begin, end = bounds
    if axis.direction != 0.0:
        last = axis.edges.size - 1
        first = 0 if axis.direction > 0.0 else last
        enter, leave = _crossing(recorder, axis, first), _crossing(recorder, axis, last - first)
        if _compare(enter, begin) > 0:
            begin = enter
        if _compare(leave, end) < 0:
            end = leave
    return begin, end


@device
def _interval_of(edges: Any, x: float) -> int:
    """Return the place of the last edge up to x, in the range of cells; any, if x is NaN."""
    last = edges.size - 2
    if not x > edges[0]:
        return 0
    if not x < edges[last + 1]:
        return last
    low = min(int((x - edges[0]) / (edges[last + 1] - edges[0]) * (last + 1)), last)
    if edges[low] <= x < edges[low + 1]:
        return low
    low, high = 0, last + 1
    while high - low > 1:
        middle = (low + high) // 2
        if edges[middle] <= x:
            low = middle
        else:
            high = middle
    return low


@inlined
def _first_place(recorder: Any, axis: GridAxis, begin: CrossingTime, slack: float) -> int:
    """Return the place on one axis just after begin, -1 outside of the grid."""
    edges, o, d = axis.edges, axis.origin, axis.direction
    if d == 0.0:
        return _interval_of(edges, o) if edges[0] <= o <= edges[edges.size - 1] else -1
    place = _interval_of(edges, o + begin.computed * d)
    ahead = 1 if d > 0.0 else 0
    near, far = _computed(recorder, axis, place + 1 - ahead), _computed(recorder, axis, place + ahead)
    if near < begin.computed - slack and far > begin.computed + slack:
        return place
    step, last = (1 if ahead else -1), edges.size - 2
    while 0 <= place - step <= last and _compare(_crossing(recorder, axis, place + 1 - ahead), begin) > 0:
        place -= step
    while 0 <= place + step <= last and _compare(_crossing(recorder, axis, place + ahead), begin) <= 0:
        place += step
    return place


@inlined
def _next(recorder: Any, axis: GridAxis, place: int) -> float:
    """Return the computed time at which the ray leaves a place on one axis; +inf if never."""
    if axis.direction == 0.0:
        return np.inf
    return _computed(recorder, axis, place + (1 if axis.direction > 0.0 else 0))


@inlined
def _earliest(recorder: Any, axis: GridAxis, place: int, bit: int, found: Any) -> Any:
    """Return the earlier of the earliest time so far and that of an axis, and the bits of axes crossed then.

    found: such a time and such bits; 0 is the end of the ray.
    """
    if axis.direction == 0.0:
        return found
    earliest, bits = found
    crossing = _crossing(recorder, axis, place + (1 if axis.direction > 0.0 else 0))
    ahead = _compare(crossing, earliest)
    if ahead < 0:
        return crossing, bit
    return (earliest, bits | bit) if ahead == 0 and bits != 0 else found


@inlined
def _axis(edges: Any, o: float, d: float, tame: bool, stride: int) -> GridAxis:
    return GridAxis(edges, o, d, (1.0 / d if tame else np.nan) if d != 0.0 else 0.0, stride)


@inlined
def _is_recorded(job: Job, cell: int) -> bool:
    """Return whether a cell is occupied and allowed."""
    occupied, allowed = job.rows.occupied, job.allowed
    return (occupied.size == 0 or occupied[cell] != 0) and (allowed.size == 0 or allowed[cell])


@inlined
def cut_ray(job: Job, ray: Ray, recorder: Any, state: Any) -> Any:
    """Record the stretches of a ray in the cells of a grid, in order; return the query's state."""
    rows, o, d = job.rows, ray.origin, ray.direction
    tame = is_tame(rows, ray)
    x = _axis(rows.x_edges, o[0], d[0], tame, rows.shape[1] * rows.shape[2])
    y = _axis(rows.y_edges, o[1], d[1], tame, rows.shape[2])
    z = _axis(rows.z_edges, o[2], d[2], tame, 1)

    # Clip the range to the grid.
    if d[0] == 0.0 and d[1] == 0.0 and d[2] == 0.0:
        return state
    bounds = CrossingTime(ray.t_min, 0.0, 1.0, ray.t_min), CrossingTime(ray.t_max, 0.0, 1.0, ray.t_max)
    begin, end = _clip(recorder, z, _clip(recorder, y, _clip(recorder, x, bounds)))
    if _compare(begin, end) >= 0:
        return state
    slack = np.inf if not tame else max(abs(begin.computed), abs(end.computed)) * _SLACK + _TINY

    # Find the first cell, and the next planes.
    i = _first_place(recorder, x, begin, slack)
    j = _first_place(recorder, y, begin, slack)
    k = _first_place(recorder, z, begin, slack)
    if i < 0 or j < 0 or k < 0:
        return state
    next_x, next_y, next_z = _next(recorder, x, i), _next(recorder, y, j), _next(recorder, z, k)
    step_x, step_y, step_z = (1 if d[0] > 0.0 else -1), (1 if d[1] > 0.0 else -1), (1 if d[2] > 0.0 else -1)
    cell = i * x.stride + j * y.stride + k
    now, stop = begin.computed, end.computed - slack
    while True:
        lesser, greater = min(next_x, next_y), max(next_x, next_y)
        then, second = min(lesser, next_z), max(lesser, min(greater, next_z))
        if second - then > slack and then < stop:
            # One plane is next for certain: cross it.
            until = max(now, then)  # rounded, it may be before the last one
            if _is_recorded(job, cell):
                state = record_segment(recorder, state, ray, cell, now, until)
            if then == next_x:
                i += step_x
                cell += step_x * x.stride
                next_x = _next(recorder, x, i)
            elif then == next_y:
                j += step_y
                cell += step_y * y.stride
                next_y = _next(recorder, y, j)
            else:
                k += step_z
                cell += step_z
                next_z = _next(recorder, z, k)
            now = until
            continue

        # Decide exactly which planes are next, or whether the ray ends.
        earliest = _earliest(recorder, x, i, 1, (end, 0))
        earliest = _earliest(recorder, y, j, 2, earliest)
        crossing, axes = _earliest(recorder, z, k, 4, earliest)
        until = max(now, crossing.computed)
        if _is_recorded(job, cell):
            state = record_segment(recorder, state, ray, cell, now, until)
        if axes == 0:
            return state
        if axes & 1:
            i += step_x
            cell += step_x * x.stride
            next_x = _next(recorder, x, i)
        if axes & 2:
            j += step_y
            cell += step_y * y.stride
            next_y = _next(recorder, y, j)
        if axes & 4:
            k += step_z
            cell += step_z
            next_z = _next(recorder, z, k)
        now = until


@exact_entry
def cut_rays(job: Job, span: Any, recorder: Any) -> int:
    """Record the stretches of rays span[0] <= k < span[1]; return the first without room, or span[1]."""
    for k in range(span[0], span[1]):
        ray = get_ray(job.rays, k)
        state = begin_segments(recorder, k)
        if not is_empty(ray):
            state = cut_ray(job, ray, recorder, state)
        if not end_segments(recorder, state, k):
            return whole(k)
    return whole(span[1])
