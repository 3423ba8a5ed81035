"""Boxes of instances: the slab test with bounds of every time, in the instance's coordinates.

Near and far times of a slab are intervals here. The ray hits the box for certain if no near time's interval
reaches beyond a far one's of another axis (on the same axis, near is never after far, however flat the box
is), and misses it for certain if one lies beyond. Between the two it is undecided.
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from raybox.compiler.decorators import device, inlined
from raybox.exact import double_double
from raybox.exact.double_double import DD, Vector3, is_small, with_underflow
from raybox.geometry import BoxRows, InstanceRows
from raybox.primitives import box
from raybox.primitives.instance_ray import InstanceRay, order, twofold_direction, twofold_origin
from raybox.primitives.status import HIT, MISS, UNDECIDED
from raybox.validation import Floats

_TINY = 1e-300  # more than underflow can lose


class SlabBounds(NamedTuple):
    """Bounds of the times at which a ray enters one slab and leaves it."""

    near_low: float
    near_high: float
    far_low: float
    far_high: float


@device
def _corner(rows: Floats, i: int) -> Vector3:
    return rows[i, 0], rows[i, 1], rows[i, 2]


_Slabs3: TypeAlias = tuple[SlabBounds, SlabBounds, SlabBounds]


@inlined
def _slab(boxes: BoxRows, ray: InstanceRay, i: int, k: int) -> SlabBounds:
    """Return the bounds of the times of one axis."""
    low, up = boxes.lower[i, k], boxes.upper[i, k]
    o, d = ray.local_origin[k], ray.local_direction[k]
    o_error, d_error = ray.origin_error[k], ray.direction_error[k]
    if not abs(d) > 2.0 * d_error:
        if d_error == 0.0:  # the direction is 0 on this axis, exactly
            if o + o_error < low or o - o_error > up:
                return SlabBounds(np.inf, np.inf, -np.inf, -np.inf)
            if low <= o - o_error and o + o_error <= up:
                return SlabBounds(-np.inf, -np.inf, np.inf, np.inf)
        return SlabBounds(-np.inf, np.inf, -np.inf, np.inf)
    # with abs(d) at least twice its error, the relative error of 1/d is at most 2 d_error/abs(d)
    inverse = 1.0 / d
    relative = 2.1 * d_error * abs(inverse) + 2.0**-49
    absolute = 2.1 * o_error * abs(inverse)
    a, b = (low - o) * inverse, (up - o) * inverse
    near, far = (a, b) if d > 0.0 else (b, a)
    near_slack = abs(near) * relative + absolute + _TINY
    far_slack = abs(far) * relative + absolute + _TINY
    return SlabBounds(near - near_slack, near + near_slack, far - far_slack, far + far_slack)


@inlined
def _slabs(boxes: BoxRows, ray: InstanceRay, i: int) -> _Slabs3:
    return _slab(boxes, ray, i, 0), _slab(boxes, ray, i, 1), _slab(boxes, ray, i, 2)


@device
def _classify(x: SlabBounds, y: SlabBounds, z: SlabBounds, low: float, high: float) -> int:
    """Return the status: whether slabs and range have a time in common."""
    start = max(x.near_low, y.near_low, z.near_low, low)
    if start > min(x.far_high, y.far_high, z.far_high, high):
        return MISS
    latest = max(x.near_high, y.near_high, z.near_high)
    hit = (
        latest <= high
        and max(y.near_high, z.near_high, low) <= x.far_low
        and max(x.near_high, z.near_high, low) <= y.far_low
        and max(x.near_high, y.near_high, low) <= z.far_low
    )
    return HIT if hit else UNDECIDED


@device
def _plane(boxes: BoxRows, ray: InstanceRay, i: int, k: int, far: bool) -> float:
    """Return the near or far plane of a slab."""
    return boxes.upper[i, k] if (ray.local_direction[k] > 0.0) == far else boxes.lower[i, k]


@device
def _ratio(rows: InstanceRows, ray: InstanceRay, plane: float, k: int) -> tuple[DD, DD]:
    """Return the time of a plane as a numerator and a denominator, in double-double."""
    num = double_double.sub(double_double.lift(plane), twofold_origin(rows, ray, ray.instance, k))
    return with_underflow(num), with_underflow(twofold_direction(rows, ray, ray.instance, k))


@device
def _time(rows: InstanceRows, ray: InstanceRay, plane: float, k: int) -> float:
    """Return the time of a plane rounded once, or NaN."""
    num, den = _ratio(rows, ray, plane, k)
    return double_double.divide(num, den)


@device
def decide(boxes: BoxRows, rows: InstanceRows, ray: InstanceRay, i: int) -> tuple[int, float]:
    """Return (status, first contact rounded once)."""
    if not is_small(_corner(boxes.lower, i)) or not is_small(_corner(boxes.upper, i)):
        return UNDECIDED, np.nan
    x, y, z = _slabs(boxes, ray, i)
    status = _classify(x, y, z, ray.t_min, ray.t_max)
    if status != HIT:
        return status, np.inf
    if max(x.near_high, y.near_high, z.near_high) <= ray.t_min:
        return HIT, ray.t_min
    # rounding is monotone: the greatest rounded time is the greatest time, rounded
    t = _entry_time(boxes, rows, ray, i, (x, y, z))
    return (UNDECIDED if np.isnan(t) else HIT), max(ray.t_min, t)


@device
def _later(one: float, other: float) -> float:
    """Return the later of two times, NaN if either is."""
    return np.nan if np.isnan(one) or np.isnan(other) else max(one, other)


@device
def _entry_time(boxes: BoxRows, rows: InstanceRows, ray: InstanceRay, i: int, slabs: _Slabs3) -> float:
    """Return the time at which the line enters the last slab, rounded once, or NaN."""
    x, y, z = slabs
    bound = max(x.near_low, y.near_low, z.near_low)
    t = -np.inf
    for k in range(3):
        high = x.near_high if k == 0 else (y.near_high if k == 1 else z.near_high)
        if high >= bound and high > -np.inf:
            t = _later(t, _time(rows, ray, _plane(boxes, ray, i, k, False), k))
    return t


@device
def _entered_axis(slabs: _Slabs3) -> int:
    """Return the axis whose slab is entered last for certain; -1 if several may be."""
    x, y, z = slabs
    if x.near_low > max(y.near_high, z.near_high):
        return 0
    if y.near_low > max(x.near_high, z.near_high):
        return 1
    return 2 if z.near_low > max(x.near_high, y.near_high) else -1


@device
def tie(
    boxes: BoxRows, rows: InstanceRows, one: InstanceRay, i: int, other: InstanceRay, j: int
) -> tuple[bool, int]:
    """Return (certain, order of the first contacts with two boxes that are hit: -1, 0 or 1)."""
    slabs_i, slabs_j = _slabs(boxes, one, i), _slabs(boxes, other, j)
    high_i = max(slabs_i[0].near_high, slabs_i[1].near_high, slabs_i[2].near_high)
    high_j = max(slabs_j[0].near_high, slabs_j[1].near_high, slabs_j[2].near_high)
    inside_i, inside_j = high_i <= one.t_min, high_j <= one.t_min
    if inside_i and inside_j:
        return True, 0
    axis_i, axis_j = _entered_axis(slabs_i), _entered_axis(slabs_j)
    if axis_i < 0 or axis_j < 0 or inside_i or inside_j:
        return False, 0
    low_i = max(slabs_i[0].near_low, slabs_i[1].near_low, slabs_i[2].near_low)
    low_j = max(slabs_j[0].near_low, slabs_j[1].near_low, slabs_j[2].near_low)
    if not (low_i > one.t_min and low_j > one.t_min):
        return False, 0
    num_i, den_i = _ratio(rows, one, _plane(boxes, one, i, axis_i, False), axis_i)
    num_j, den_j = _ratio(rows, other, _plane(boxes, other, j, axis_j, False), axis_j)
    first = order(num_i, den_i, num_j, den_j)
    return first != 0, first


@device
def span(boxes: BoxRows, rows: InstanceRows, ray: InstanceRay, i: int) -> tuple[float, float]:
    """Return where the whole line enters and leaves box i, which it hits; NaN if undecided."""
    near, far = -np.inf, np.inf
    for k in range(3):
        if abs(ray.local_direction[k]) > 2.0 * ray.direction_error[k]:
            first = _time(rows, ray, _plane(boxes, ray, i, k, False), k)
            last = _time(rows, ray, _plane(boxes, ray, i, k, True), k)
            near, far = _later(near, first), -_later(-far, -last)
        elif ray.direction_error[k] != 0.0:
            return np.nan, np.nan
    return near, far


@device
def normal(boxes: BoxRows, rows: InstanceRows, ray: InstanceRay, i: int) -> Vector3:
    """Return the outward normal of the face entered, in the instance's coordinates; NaN if undecided."""
    slabs = _slabs(boxes, ray, i)
    x, y, z = slabs
    if max(x.near_high, y.near_high, z.near_high) < ray.t_min:
        return 0.0, 0.0, 0.0
    axis = _entered_axis(slabs)
    if axis < 0 or max(x.near_low, y.near_low, z.near_low) < ray.t_min:
        return np.nan, np.nan, np.nan
    return box.against(axis, ray.local_direction[axis])


@device
def weights(_boxes: BoxRows, _rows: InstanceRows, _local: InstanceRay, _i: int) -> tuple[float, float]:
    """Return NaN: a box has no barycentric coordinates."""
    return np.nan, np.nan
