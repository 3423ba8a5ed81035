"""Boxes: the slab test (Kay and Kajiya 1986) in float64, decided exactly.

Closed boxes, closed ranges: touching is a hit. A bound may be infinite. On an axis where the
direction is 0 the origin must lie between the faces. On the others the line is between them from
the near face's time to the far face's. It hits the box if these ranges and its own have a time in common.
"""

import math
from typing import NamedTuple

import numpy as np

from raybox.compiler.decorators import device, inlined
from raybox.compiler.intrinsics import larger, prefetch, smaller
from raybox.exact.double_double import Vector3
from raybox.exact.predicate import order, time
from raybox.geometry import BoxRows
from raybox.primitives.box_lengths import write_lengths
from raybox.primitives.box_planes import certain_order, entry_planes, entry_times, plane_order
from raybox.primitives.box_simd import classify, first_contacts
from raybox.primitives.ray import Mover, Ray, extent
from raybox.validation import Floats

__all__ = [
    "bounds",
    "certain_order",
    "classify",
    "entry",
    "entry_planes",
    "entry_times",
    "first_contacts",
    "hits",
    "intersect",
    "normal",
    "plane_order",
    "prefetch_rows",
    "span",
    "tie",
    "weights",
    "write_lengths",
]

FILLS_BOXES = True

_PAD = 2.0**-50  # four times the relative error of a quotient of a difference
_UNDERFLOW = 1e-300
_HUGE = 1e300


def bounds(boxes: BoxRows) -> tuple[Floats, Floats]:
    """Return the lower and upper corners of the boxes."""
    return boxes.lower, boxes.upper


@inlined
def prefetch_rows(boxes: BoxRows, i: int) -> None:
    """Prefetch the corners of box i."""
    for end_of_row in (0, 2):
        prefetch(boxes.lower, 3 * i + end_of_row)
        prefetch(boxes.upper, 3 * i + end_of_row)


@device
def _faces(lower: float, upper: float, d: float) -> tuple[float, float]:
    """Return the near and far plane for this direction."""
    return (lower, upper) if d > 0.0 else (upper, lower)


@device
def _starts(ray: Ray | Mover, k: int) -> tuple[float, float]:
    """Return the coordinates that cross the near and the far plane: of a ray, its origin twice."""
    low, high = extent(ray)
    return (high[k], low[k]) if ray.direction[k] > 0.0 else (low[k], high[k])


@device
def _slab(lower: float, upper: float, ray: Ray | Mover, k: int) -> tuple[float, float]:
    """Return where the line enters and leaves one slab, rounded; a miss enters at +inf, leaves at -inf."""
    d = ray.direction[k]
    if d == 0.0:
        low, high = extent(ray)
        return (-np.inf, np.inf) if lower <= high[k] and low[k] <= upper else (np.inf, -np.inf)
    near, far = _faces(lower, upper, d)
    first, last = _starts(ray, k)
    return (near - first) / d, (far - last) / d


@device
def _down(t: float) -> float:
    """Return a bound below every exact time that may have been rounded to t."""
    return min(t * (1.0 - _PAD), t * (1.0 + _PAD)) - _UNDERFLOW


@device
def _up(t: float) -> float:
    """Return a bound above every exact time that may have been rounded to t."""
    return max(t * (1.0 - _PAD), t * (1.0 + _PAD)) + _UNDERFLOW


class _SlabTimes(NamedTuple):
    """Where a line enters and leaves three slabs, rounded."""

    near: Vector3
    far: Vector3
    bounded: bool  # whether `_down` and `_up` bound the exact times: no finite one overflows


@device
def _hits_exact(lower: Vector3, upper: Vector3, ray: Ray | Mover, times: _SlabTimes) -> bool:
    """Return whether the slabs and the range have a time in common: exactly, where bounds cannot tell."""
    d = ray.direction
    for i in range(3):
        if d[i] == 0.0:
            if _slab(lower[i], upper[i], ray, i)[0] > 0.0:
                return False
            continue
        near, far = _faces(lower[i], upper[i], d[i])
        first, last = _starts(ray, i)
        if near == far and math.isinf(near):
            return False  # both faces at the same infinity: no point at all
        if not _is_before(times, i, ray.t_max) and order(near, first, d[i], ray.t_max, 0.0, 1.0) > 0:
            return False
        early = times.bounded and ray.t_min < _down(times.far[i])
        if not early and order(ray.t_min, 0.0, 1.0, far, last, d[i]) > 0:
            return False
        for j in range(3):
            if j != i and d[j] != 0.0 and not _is_before(times, i, _down(times.far[j])):
                other = _faces(lower[j], upper[j], d[j])[1]
                if order(near, first, d[i], other, _starts(ray, j)[1], d[j]) > 0:
                    return False
    return True


@device
def _is_before(times: _SlabTimes, axis: int, limit: float) -> bool:
    """Return whether a slab is entered before a time for certain."""
    return times.bounded and _up(times.near[axis]) < limit


@device
def _entry_order(one: tuple[int, float], other: tuple[int, float], ray: Ray | Mover) -> int:
    """Compare the times of two near planes, (axis, plane) each, exactly."""
    (i, p), (j, q) = one, other
    return order(p, _starts(ray, i)[0], ray.direction[i], q, _starts(ray, j)[0], ray.direction[j])


@device
def entry(lower: Vector3, upper: Vector3, ray: Ray | Mover) -> tuple[int, float]:
    """Return (axis, plane) of the face where the line enters a box that it hits, exactly.

    The lowest axis where several tie (an edge, a corner); (-1, -inf) where the line was always inside.
    """
    axis = -1
    plane = -np.inf
    for i in range(3):
        d = ray.direction[i]
        if d == 0.0:
            continue
        near = _faces(lower[i], upper[i], d)[0]
        if math.isinf(near):
            continue
        if axis < 0 or _entry_order((i, near), (axis, plane), ray) > 0:
            axis = i
            plane = near
    return axis, plane


@device
def _overflows(lower: Vector3, upper: Vector3, ray: Ray | Mover) -> bool:
    """Return whether the rounded time of a finite plane is (nearly) infinite: no bound holds then."""
    for k in range(3):
        d = ray.direction[k]
        low, high = extent(ray)
        for plane, start in ((lower[k], high[k]), (upper[k], low[k])):
            if d != 0.0 and not math.isinf(plane) and not abs((plane - start) / d) < _HUGE:
                return True
    return False


@device
def _corner(rows: Floats, i: int) -> Vector3:
    return rows[i, 0], rows[i, 1], rows[i, 2]


@device
def intersect(boxes: BoxRows, ray: Ray | Mover, i: int) -> tuple[bool, float]:
    """Return (hit, first contact rounded once) of box i; the ray's range is not empty."""
    return intersect_corners(_corner(boxes.lower, i), _corner(boxes.upper, i), ray)


@device
def hits(boxes: BoxRows, ray: Ray | Mover, i: int) -> bool:
    """Return whether a ray hits box i; the ray's range is not empty."""
    return _hits(_corner(boxes.lower, i), _corner(boxes.upper, i), ray)[0]


@inlined
def _hits(lower: Vector3, upper: Vector3, ray: Ray | Mover) -> tuple[bool, _SlabTimes]:
    """Return whether a ray hits the box with these corners, and its slab times."""
    near0, far0 = _slab(lower[0], upper[0], ray, 0)
    near1, far1 = _slab(lower[1], upper[1], ray, 1)
    near2, far2 = _slab(lower[2], upper[2], ray, 2)
    start = max(near0, near1, near2, ray.t_min)
    stop = min(far0, far1, far2, ray.t_max)
    widest = max(abs(near0), abs(near1), abs(near2), abs(far0), abs(far1), abs(far2))
    bounded = not (widest > _HUGE and _overflows(lower, upper, ray))
    times = _SlabTimes((near0, near1, near2), (far0, far1, far2), bounded)
    if bounded and _down(start) > _up(stop):
        return False, times
    return (bounded and _up(start) < _down(stop)) or _hits_exact(lower, upper, ray, times), times


@inlined
def intersect_corners(lower: Vector3, upper: Vector3, ray: Ray | Mover) -> tuple[bool, float]:
    """Return `intersect` of the box with these corners."""
    hit, times = _hits(lower, upper, ray)
    if not hit:
        return False, np.inf
    # rounding is monotone: the greatest rounded time is the greatest time, rounded
    d, near, t = ray.direction, times.near, ray.t_min
    bound = max(_down(max(near[0], near[1], near[2])), ray.t_min)
    for k in range(3):
        if d[k] != 0.0 and (not times.bounded or _up(near[k]) >= bound):
            t = max(t, time(_faces(lower[k], upper[k], d[k])[0], _starts(ray, k)[0], d[k]))
    return True, t


@device
def tie(boxes: BoxRows, ray: Ray | Mover, i: int, j: int) -> int:
    """Compare first contacts with boxes i and j, both hit, exactly: -1, 0 or 1."""
    one = entry(_corner(boxes.lower, i), _corner(boxes.upper, i), ray)
    return contact_order(one, entry(_corner(boxes.lower, j), _corner(boxes.upper, j), ray), ray)


@device
def contact_order(one: tuple[int, float], other: tuple[int, float], ray: Ray | Mover) -> int:
    """Compare first contacts with two boxes, given by `entry`, exactly: -1, 0 or 1."""
    late, other_late = _after_start(ray, one[0], one[1]), _after_start(ray, other[0], other[1])
    if not (late and other_late):
        return int(late) - int(other_late)
    return _entry_order(one, other, ray)


@device
def _after_start(ray: Ray | Mover, axis: int, plane: float) -> bool:
    """Return whether the line enters strictly after t_min."""
    return axis >= 0 and _beside_start(ray, axis, plane) > 0


@device
def _beside_start(ray: Ray | Mover, axis: int, plane: float) -> int:
    """Compare the time of a near plane with t_min, exactly."""
    return order(plane, _starts(ray, axis)[0], ray.direction[axis], ray.t_min, 0.0, 1.0)


@device
def span(boxes: BoxRows, ray: Ray | Mover, i: int) -> tuple[float, float]:
    """Return where the whole line enters and leaves box i, which it hits: each rounded once."""
    return span_corners(_corner(boxes.lower, i), _corner(boxes.upper, i), ray)


@inlined
def span_corners(lower: Vector3, upper: Vector3, ray: Ray | Mover) -> tuple[float, float]:
    """Return `span` of the box with these corners."""
    near = -np.inf
    far = np.inf
    for k in range(3):
        d = ray.direction[k]
        if d != 0.0:
            first, last = _faces(lower[k], upper[k], d)
            near = max(near, time(first, _starts(ray, k)[0], d))
            far = min(far, time(last, _starts(ray, k)[1], d))
    return near, far


@device
def against(axis: int, d: float) -> Vector3:
    """Return the outward normal of the face of this axis that a direction enters by."""
    outward = -1.0 if d > 0.0 else 1.0
    return outward if axis == 0 else 0.0, outward if axis == 1 else 0.0, outward if axis == 2 else 0.0


@inlined
def _near_time(boxes: BoxRows, ray: Ray | Mover, i: int, axis: int) -> float:
    """Return when the line enters the slab of an axis, within 2^-52 of it and an underflow.

    -inf: never; inf: beyond float64's range, on either side.
    """
    d = ray.direction[axis]
    near, _ = _faces(boxes.lower[i, axis], boxes.upper[i, axis], d)
    if d == 0.0 or math.isinf(near):
        return -np.inf
    t = (near - _starts(ray, axis)[0]) / d
    return t if abs(t) < np.inf else np.inf


@inlined
def _certain_axis(boxes: BoxRows, ray: Ray | Mover, i: int) -> int:
    """Return the axis by which the ray enters box i after t_min, alone and for certain; -1: undecided."""
    x, y, z = _near_time(boxes, ray, i, 0), _near_time(boxes, ray, i, 1), _near_time(boxes, ray, i, 2)
    later, first = larger(x, y), larger(larger(x, y), z)
    second = larger(larger(smaller(x, y), smaller(later, z)), ray.t_min)
    if not first - second > (abs(first) + abs(second)) * _PAD + _UNDERFLOW:
        return -1
    return 0 if x == first else (1 if y == first else 2)


@device
def normal(boxes: BoxRows, ray: Ray | Mover, i: int) -> Vector3:
    """Return the outward normal of the face entered at or after t_min; zero where the ray starts inside."""
    certain = _certain_axis(boxes, ray, i)
    if certain >= 0:
        return against(certain, ray.direction[certain])
    axis, plane = entry(_corner(boxes.lower, i), _corner(boxes.upper, i), ray)
    return entry_normal(axis, plane, ray)


@device
def entry_normal(axis: int, plane: float, ray: Ray | Mover) -> tuple[float, float, float]:
    """Return the outward normal of a face that is entered, given by `entry`; see `normal`."""
    if axis < 0 or _beside_start(ray, axis, plane) < 0:
        return 0.0, 0.0, 0.0
    return against(axis, ray.direction[axis])


@device
def weights(_boxes: BoxRows, _ray: Ray | Mover, _i: int) -> tuple[float, float]:
    """Return NaN: a box has no barycentric coordinates."""
    return np.nan, np.nan
