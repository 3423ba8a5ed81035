"""One axis of a grid and of a ray: crossing times, exactly ordered, and the first place on it."""

from typing import NamedTuple, TypeAlias

import numpy as np

from raybox.compiler.decorators import device, inlined
from raybox.compiler.intrinsics import Fields
from raybox.compiler.simd import Builder, Lanes, splat
from raybox.exact.predicate import order, sign, time
from raybox.geometry import GridRows
from raybox.primitives.box_simd import quotient
from raybox.primitives.ray import Ray
from raybox.traversal.job import Recorder
from raybox.traversal.protocol import has_exact_times
from raybox.validation import Floats

SLACK = 2.0**-49  # of computed times: more than twice what both are off by together
TINY = 2.0**-1000


class CrossingTime(NamedTuple):
    """The exact time (plane - origin)/direction, and what is computed of it."""

    plane: float
    origin: float
    direction: float
    computed: float


class GridAxis(NamedTuple):
    """One axis of a grid and of a ray."""

    edges: Floats
    origin: float
    direction: float
    inverse: float  # of the direction; of a ray that is not tame, NaN
    ahead: int  # from a place to the plane by which the ray leaves it: 0 or 1
    step: int  # from a place to the next: -1 or 1
    stride: int  # from a cell's number to the next one's


GridAxes: TypeAlias = tuple[GridAxis, GridAxis, GridAxis]
Earliest: TypeAlias = tuple[CrossingTime, int]
"""A time at which planes are crossed, and a bit for each of their axes; 0 is the end of the ray."""


@device
def compare(one: CrossingTime, other: CrossingTime) -> int:
    """Return the exact order of two times: -1, 0 or 1."""
    gap = one.computed - other.computed
    if abs(gap) > (abs(one.computed) + abs(other.computed)) * SLACK + TINY:
        return sign(gap)
    return order(one.plane, one.origin, one.direction, other.plane, other.origin, other.direction)


@inlined
def exact_time(axis: GridAxis, number: int) -> float:
    """Return the time of a plane, rounded once."""
    return time(axis.edges[number], axis.origin, axis.direction)


@inlined
def product_time(axis: GridAxis, number: int) -> float:
    """Return the computed time of a plane, of a tame ray that moves on this axis."""
    return (axis.edges[number] - axis.origin) * axis.inverse


def product_times(b: Builder, axis: Fields, planes: Lanes) -> Lanes:
    """Return `product_time` of several planes."""
    return (planes - splat(b, axis.origin, planes.count)) * splat(b, axis.inverse, planes.count)


def exact_times(b: Builder, axis: Fields, planes: Lanes) -> tuple[Lanes, Lanes]:
    """Return which times are known, and `exact_time` of several planes, of a tame ray."""
    numbers = axis.origin, axis.direction, axis.inverse
    return quotient(planes, *(splat(b, number, planes.count) for number in numbers))


@inlined
def _computed(recorder: Recorder, axis: GridAxis, number: int) -> float:
    """Return the time of a plane: rounded once, if the query needs that."""
    plane = axis.edges[number]
    if has_exact_times(recorder) or axis.inverse != axis.inverse:
        return time(plane, axis.origin, axis.direction)
    return (plane - axis.origin) * axis.inverse


@inlined
def _crossing(recorder: Recorder, axis: GridAxis, number: int) -> CrossingTime:
    return CrossingTime(axis.edges[number], axis.origin, axis.direction, _computed(recorder, axis, number))


@inlined
def clip(
    recorder: Recorder, axis: GridAxis, bounds: tuple[CrossingTime, CrossingTime]
) -> tuple[CrossingTime, CrossingTime]:
    """Return begin and end, moved to where the ray enters and leaves the grid on one axis."""
    begin, end = bounds
    if axis.direction != 0.0:
        last = axis.edges.size - 1
        first = 0 if axis.direction > 0.0 else last
        enter, leave = _crossing(recorder, axis, first), _crossing(recorder, axis, last - first)
        if compare(enter, begin) > 0:
            begin = enter
        if compare(leave, end) < 0:
            end = leave
    return begin, end


@device
def interval_of(edges: Floats, x: float) -> int:
    """Return the place of the last edge up to x, in the range of cells; any, if x is NaN."""
    last = edges.size - 2
    if not x > edges[0]:
        return 0
    if not x < edges[last + 1]:
        return last
    share = (x - edges[0]) / (edges[last + 1] - edges[0])  # NaN if both differences overflow
    low = min(int(share * (last + 1)), last) if share < 1.0 else last
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
def first_place(recorder: Recorder, axis: GridAxis, begin: CrossingTime, slack: float) -> int:
    """Return the place on one axis just after begin, -1 outside of the grid."""
    edges, o, d = axis.edges, axis.origin, axis.direction
    if d == 0.0:
        return interval_of(edges, o) if edges[0] <= o <= edges[edges.size - 1] else -1
    place, before = interval_of(edges, o + begin.computed * d), 1 - axis.ahead
    near, far = _computed(recorder, axis, place + before), _computed(recorder, axis, place + axis.ahead)
    if near < begin.computed - slack and far > begin.computed + slack:
        return place
    last = edges.size - 2
    while 0 <= place - axis.step <= last and compare(_crossing(recorder, axis, place + before), begin) > 0:
        place -= axis.step
    while (
        0 <= place + axis.step <= last and compare(_crossing(recorder, axis, place + axis.ahead), begin) <= 0
    ):
        place += axis.step
    return place


@inlined
def next_time(recorder: Recorder, axis: GridAxis, plane: int) -> float:
    """Return the computed time of a plane; +inf if the ray does not move on this axis."""
    return _computed(recorder, axis, plane) if axis.direction != 0.0 else np.inf


@inlined
def next_tame(recorder: Recorder, axis: GridAxis, plane: int) -> float:
    """Return `next_time` of a tame ray on an axis on which it moves."""
    if has_exact_times(recorder):
        return time(axis.edges[plane], axis.origin, axis.direction)
    return (axis.edges[plane] - axis.origin) * axis.inverse


@inlined
def earliest_of(recorder: Recorder, axis: GridAxis, plane: int, bit: int, found: Earliest) -> Earliest:
    """Return the earlier of the earliest time so far and that of an axis, and the bits of axes crossed then.

    found: such a time and such bits.
    """
    if axis.direction == 0.0:
        return found
    earliest, bits = found
    crossing = _crossing(recorder, axis, plane)
    compared = compare(crossing, earliest)
    if compared < 0:
        return crossing, bit
    return (earliest, bits | bit) if compared == 0 and bits != 0 else found


@inlined
def _axis(edges: Floats, o: float, d: float, tame: bool, stride: int) -> GridAxis:
    inverse = (1.0 / d if tame else np.nan) if d != 0.0 else 0.0
    if d > 0.0:
        return GridAxis(edges, o, d, inverse, 1, 1, stride)
    return GridAxis(edges, o, d, inverse, 0, -1, -stride)


@inlined
def axes_of(rows: GridRows, ray: Ray, tame: bool) -> GridAxes:
    """Return the three axes of a grid and a ray."""
    o, d = ray.origin, ray.direction
    return (
        _axis(rows.x_edges, o[0], d[0], tame, rows.shape[1] * rows.shape[2]),
        _axis(rows.y_edges, o[1], d[1], tame, rows.shape[2]),
        _axis(rows.z_edges, o[2], d[2], tame, 1),
    )
