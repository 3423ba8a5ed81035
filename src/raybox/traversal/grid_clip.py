"""Where a ray is on each axis of a grid when it begins and ends, if computed times prove it.

See `raybox.traversal.segments` for the slack: computed times that differ by more than it are in exact order
if one of them is between begin and end.
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from raybox.compiler.decorators import device, inlined
from raybox.primitives.ray import Ray
from raybox.traversal.grid_axes import SLACK, TINY, GridAxes, GridAxis, exact_time, interval_of, product_time
from raybox.traversal.job import Recorder
from raybox.traversal.protocol import has_exact_times
from raybox.validation import Floats

UNDECIDED, OUTSIDE, INSIDE = 0, 1, 2


class AxisScale(NamedTuple):
    """What is the same for all rays on one axis of a grid."""

    low: float
    high: float
    cells: int
    density: float  # cells in a unit of length, on average; 0 if it is out of range


AxisScales: TypeAlias = tuple[AxisScale, AxisScale, AxisScale]


class AxisSpan(NamedTuple):
    """The computed times at which a ray enters and leaves the grid on one axis."""

    enter: float
    leave: float


class Range(NamedTuple):
    """The computed times at which a ray begins and ends in a grid, and the slack."""

    begin: float
    end: float
    slack: float


class AxisCourse(NamedTuple):
    """Where a ray begins on one axis, and how many planes it crosses; of an undecided ray, any."""

    first: int
    crossed: int
    certain: bool


class Course(NamedTuple):
    """A ray's way through a grid."""

    status: int  # `UNDECIDED`, `OUTSIDE`, `INSIDE`
    begin: float
    end: float
    slack: float
    x: AxisCourse
    y: AxisCourse
    z: AxisCourse


@device
def scale_of(edges: Floats) -> AxisScale:
    """Return what is the same for all rays on one axis."""
    low, high, cells = edges[0], edges[edges.size - 1], edges.size - 1
    density = cells / (high - low)
    return AxisScale(low, high, cells, density if density < np.inf else 0.0)


@inlined
def span_of(axis: GridAxis, scale: AxisScale) -> AxisSpan:
    """Return when a ray is in the grid on one axis: on one without movement always, or never."""
    if axis.direction == 0.0:
        outside = axis.origin < scale.low or axis.origin > scale.high
        return AxisSpan(np.inf if outside else -np.inf, np.inf)
    low, high = (scale.low - axis.origin) * axis.inverse, (scale.high - axis.origin) * axis.inverse
    return AxisSpan(min(low, high), max(low, high))


@inlined
def _is_at(axis: GridAxis, place: int, t: float, slack: float) -> bool:
    """Return whether a ray is in a place for certain at a time."""
    near = product_time(axis, place + 1 - axis.ahead)
    far = product_time(axis, place + axis.ahead)
    return near < t - slack and far > t + slack


@inlined
def place_at(axis: GridAxis, scale: AxisScale, t: float, slack: float) -> int:
    """Return the place of a ray at a time; -1 if it is not certain."""
    x = axis.origin + t * axis.direction
    cells = (x - scale.low) * scale.density
    place = int(cells) if 0.0 < cells < scale.cells else (scale.cells - 1 if cells > 0.0 else 0)
    if _is_at(axis, place, t, slack):
        return place
    place = interval_of(axis.edges, x)
    return place if _is_at(axis, place, t, slack) else -1


@inlined
def _course(axis: GridAxis, scale: AxisScale, span: AxisSpan, limits: Range) -> AxisCourse:
    """Return the way on one axis; where it enters or leaves the grid last or first, by an outer plane."""
    begin, end, slack = limits
    if axis.direction == 0.0:
        return AxisCourse(interval_of(axis.edges, axis.origin), 0, True)
    outer = 0 if axis.ahead == 1 else scale.cells - 1
    first = outer if span.enter >= begin - slack else place_at(axis, scale, begin, slack)
    last = scale.cells - 1 - outer if span.leave <= end + slack else place_at(axis, scale, end, slack)
    crossed = (last - first) * axis.step
    return AxisCourse(first, crossed, first >= 0 and last >= 0 and crossed >= 0)


@inlined
def _exact_bounds(
    ray: Ray, axes: GridAxes, spans: tuple[AxisSpan, AxisSpan, AxisSpan], limits: Range
) -> tuple[float, float]:
    """Return the times of begin and end, rounded once."""
    begin, end, slack = limits
    if not ray.t_min >= begin - slack:
        late = begin - slack
        axis = axes[0] if spans[0].enter >= late else (axes[1] if spans[1].enter >= late else axes[2])
        begin = exact_time(axis, 0 if axis.ahead == 1 else axis.edges.size - 1)
    if not ray.t_max <= end + slack:
        early = end + slack
        axis = axes[0] if spans[0].leave <= early else (axes[1] if spans[1].leave <= early else axes[2])
        end = exact_time(axis, 0 if axis.ahead == 0 else axis.edges.size - 1)
    return begin, end


@inlined
def course_of(recorder: Recorder, ray: Ray, axes: GridAxes, scales: AxisScales) -> Course:
    """Return `computed_course`, with begin and end rounded once if the query needs that."""
    course = computed_course(ray, axes, scales)
    if not has_exact_times(recorder) or course.status != INSIDE:
        return course
    spans = span_of(axes[0], scales[0]), span_of(axes[1], scales[1]), span_of(axes[2], scales[2])
    begin, end = _exact_bounds(ray, axes, spans, Range(course.begin, course.end, course.slack))
    return Course(course.status, begin, end, course.slack, course.x, course.y, course.z)


@inlined
def computed_course(ray: Ray, axes: GridAxes, scales: AxisScales) -> Course:
    """Return the way of a tame ray that moves through a tame grid."""
    x, y, z = span_of(axes[0], scales[0]), span_of(axes[1], scales[1]), span_of(axes[2], scales[2])
    begin = max(ray.t_min, x.enter, y.enter, z.enter)
    end = min(ray.t_max, x.leave, y.leave, z.leave)
    slack = max(abs(begin), abs(end)) * SLACK + TINY
    limits = Range(begin, end, slack)
    late, early = begin - slack, end + slack
    # If one of four times alone is that late, it is the exact begin; likewise the end.
    last = (ray.t_min >= late) + (x.enter >= late) + (y.enter >= late) + (z.enter >= late)
    first = (ray.t_max <= early) + (x.leave <= early) + (y.leave <= early) + (z.leave <= early)
    if begin == np.inf or begin > early:
        status = OUTSIDE
    elif not end > begin + slack or last != 1 or first != 1:
        status = UNDECIDED
    else:
        status = INSIDE
    if status != INSIDE:
        none = AxisCourse(0, 0, False)
        return Course(status, begin, end, slack, none, none, none)
    a = _course(axes[0], scales[0], x, limits)
    b = _course(axes[1], scales[1], y, limits)
    c = _course(axes[2], scales[2], z, limits)
    if not (a.certain and b.certain and c.certain):
        status = UNDECIDED
    return Course(status, begin, end, slack, a, b, c)
