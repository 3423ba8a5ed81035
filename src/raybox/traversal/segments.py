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
from raybox.exact.predicate import order, sign, time
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
    ahead: int  # from a place to the plane by which the ray leaves it: 0 or 1
    step: int  # from a place to the next: -1 or 1
    stride: int  # from a cell's number to the next one's


class Position(NamedTuple):
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


@device
def _compare(one: CrossingTime, other: CrossingTime) -> int:
    """Return the exact order of two times: -1, 0 or 1."""
    gap = one.computed - other.computed
    if abs(gap) > (abs(one.computed) + abs(other.computed)) * _SLACK + _TINY:
        return sign(gap)
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
    place, before = _interval_of(edges, o + begin.computed * d), 1 - axis.ahead
    near, far = _computed(recorder, axis, place + before), _computed(recorder, axis, place + axis.ahead)
    if near < begin.computed - slack and far > begin.computed + slack:
        return place
    last = edges.size - 2
    while 0 <= place - axis.step <= last and _compare(_crossing(recorder, axis, place + before), begin) > 0:
        place -= axis.step
    while (
        0 <= place + axis.step <= last and _compare(_crossing(recorder, axis, place + axis.ahead), begin) <= 0
    ):
        place += axis.step
    return place


@inlined
def _next(recorder: Any, axis: GridAxis, plane: int) -> float:
    """Return the computed time of a plane; +inf if the ray does not move on this axis."""
    return _computed(recorder, axis, plane) if axis.direction != 0.0 else np.inf


@inlined
def _next_tame(recorder: Any, axis: GridAxis, plane: int) -> float:
    """Return `_next` of a tame ray on an axis on which it moves."""
    if has_exact_times(recorder):
        return time(axis.edges[plane], axis.origin, axis.direction)
    return (axis.edges[plane] - axis.origin) * axis.inverse


@inlined
def _earliest(recorder: Any, axis: GridAxis, plane: int, bit: int, found: Any) -> Any:
    """Return the earlier of the earliest time so far and that of an axis, and the bits of axes crossed then.

    found: such a time and such bits; 0 is the end of the ray.
    """
    if axis.direction == 0.0:
        return found
    earliest, bits = found
    crossing = _crossing(recorder, axis, plane)
    compared = _compare(crossing, earliest)
    if compared < 0:
        return crossing, bit
    return (earliest, bits | bit) if compared == 0 and bits != 0 else found


@inlined
def _axis(edges: Any, o: float, d: float, tame: bool, stride: int) -> GridAxis:
    inverse = (1.0 / d if tame else np.nan) if d != 0.0 else 0.0
    return GridAxis(edges, o, d, inverse, 1, 1, stride) if d > 0.0 else GridAxis(edges, o, d, inverse, 0, -1, -stride)


@inlined
def _axes(rows: Any, ray: Ray, tame: bool) -> tuple[GridAxis, GridAxis, GridAxis]:
    o, d = ray.origin, ray.direction
    return (
        _axis(rows.x_edges, o[0], d[0], tame, rows.shape[1] * rows.shape[2]),
        _axis(rows.y_edges, o[1], d[1], tame, rows.shape[2]),
        _axis(rows.z_edges, o[2], d[2], tame, 1),
    )


@inlined
def _is_recorded(job: Job, cell: int) -> bool:
    """Return whether a cell is occupied and allowed."""
    occupied, allowed = job.rows.occupied, job.allowed
    return (occupied.size == 0 or occupied[cell] != 0) and (allowed.size == 0 or allowed[cell])


@inlined
def _record(what: Any, masked: bool, state: Any, at: Position, until: float) -> Any:
    """Record the stretch in a cell up to a time, if the cell is occupied and allowed.

    what: job, ray, recorder.
    """
    job, ray, recorder = what
    if masked and not _is_recorded(job, at.cell):
        return state
    return record_segment(recorder, state, ray, at.cell, at.now, until)


@inlined
def _cross_x(recorder: Any, x: GridAxis, at: Position, until: float) -> Position:
    i, j, k, cell, _, _, y, z = at
    i += x.step
    return Position(i, j, k, cell + x.stride, until, _next_tame(recorder, x, i), y, z)


@inlined
def _cross_y(recorder: Any, y: GridAxis, at: Position, until: float) -> Position:
    i, j, k, cell, _, x, _, z = at
    j += y.step
    return Position(i, j, k, cell + y.stride, until, x, _next_tame(recorder, y, j), z)


@inlined
def _cross_z(recorder: Any, z: GridAxis, at: Position, until: float) -> Position:
    i, j, k, cell, _, x, y, _ = at
    k += z.step
    return Position(i, j, k, cell + z.stride, until, x, y, _next_tame(recorder, z, k))


@inlined
def _cross_certain(
    what: Any, axes: Any, limits: Limits, state: Any, at: Position
) -> tuple[Position, Any]:
    """Cross planes while the next one is certain; return where the ray is then, and the query's state."""
    _, stop, slack, masked = limits
    x, y, z = axes
    recorder = what[2]
    while True:
        if at.next_x < at.next_y:
            if at.next_x < at.next_z:
                if not (min(at.next_y, at.next_z) - at.next_x > slack and at.next_x < stop):
                    return at, state
                until = at.next_x
                state = _record(what, masked, state, at, until)
                at = _cross_x(recorder, x, at, until)
                continue
        elif at.next_y < at.next_z:
            if not (min(at.next_x, at.next_z) - at.next_y > slack and at.next_y < stop):
                return at, state
            until = at.next_y
            state = _record(what, masked, state, at, until)
            at = _cross_y(recorder, y, at, until)
            continue
        if not (min(at.next_x, at.next_y) - at.next_z > slack and at.next_z < stop):
            return at, state
        until = at.next_z
        state = _record(what, masked, state, at, until)
        at = _cross_z(recorder, z, at, until)


@inlined
def _cross_exact(recorder: Any, axes: Any, at: Position, end: CrossingTime) -> tuple[float, Position, bool]:
    """Return when planes are crossed next, or the ray ends, where it is then, and whether it ends.

    Rounded, one of the next times may be earlier, by less than the slack: then the next stretch begins there.
    """
    x, y, z = axes
    earliest = _earliest(recorder, x, at.i, 1, (end, 0))
    earliest = _earliest(recorder, y, at.j, 2, earliest)
    crossing, crossed = _earliest(recorder, z, at.k, 4, earliest)
    i, j, k, cell, now, next_x, next_y, next_z = at
    until = max(now, crossing.computed)
    if crossed & 1:
        i, cell = i + x.step, cell + x.stride
        next_x = _next(recorder, x, i)
    if crossed & 2:
        j, cell = j + y.step, cell + y.stride
        next_y = _next(recorder, y, j)
    if crossed & 4:
        k, cell = k + z.step, cell + z.stride
        next_z = _next(recorder, z, k)
    now = min(until, next_x, next_y, next_z)
    return until, Position(i, j, k, cell, now, next_x, next_y, next_z), crossed == 0


@inlined
def cut_ray(job: Job, ray: Ray, recorder: Any, state: Any) -> Any:
    """Record the stretches of a ray in the cells of a grid, in order; return the query's state."""
    d = ray.direction
    if d[0] == 0.0 and d[1] == 0.0 and d[2] == 0.0:
        return state
    tame = is_tame(job.rows, ray)
    x, y, z = axes = _axes(job.rows, ray, tame)

    # Clip the range to the grid.
    bounds = CrossingTime(ray.t_min, 0.0, 1.0, ray.t_min), CrossingTime(ray.t_max, 0.0, 1.0, ray.t_max)
    begin, end = _clip(recorder, z, _clip(recorder, y, _clip(recorder, x, bounds)))
    if _compare(begin, end) >= 0:
        return state
    slack = np.inf if not tame else max(abs(begin.computed), abs(end.computed)) * _SLACK + _TINY

    # Find the first cell, and the next planes.
    a = _first_place(recorder, x, begin, slack)
    b = _first_place(recorder, y, begin, slack)
    c = _first_place(recorder, z, begin, slack)
    if a < 0 or b < 0 or c < 0:
        return state
    cell = a * abs(x.stride) + b * abs(y.stride) + c
    i, j, k = a + x.ahead, b + y.ahead, c + z.ahead
    next_x, next_y, next_z = _next(recorder, x, i), _next(recorder, y, j), _next(recorder, z, k)
    now = min(begin.computed, next_x, next_y, next_z)  # rounded, one of them may be earlier
    at = Position(i, j, k, cell, now, next_x, next_y, next_z)

    # Cross plane after plane.
    masked = job.rows.occupied.size > 0 or job.allowed.size > 0
    what, limits = (job, ray, recorder), Limits(end, end.computed - slack, slack, masked)
    while True:
        at, state = _cross_certain(what, axes, limits, state, at)
        until, then, ended = _cross_exact(recorder, axes, at, end)
        state = _record(what, masked, state, at, until)
        if ended:
            return state
        at = then


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
