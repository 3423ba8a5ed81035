"""Boxes in moved copies: the slab test with bounds of every time, in the copy's own coordinates.

Near and far times of a slab are intervals here. The box is met for sure if no near time's interval reaches
beyond a far one's of another axis (on the same axis, near is never after far, however flat the box is), and
missed for sure if one lies beyond. Between the two nobody knows: 0.
"""

from typing import Any, NamedTuple

import numpy as np

from raybox.compiler.decorators import device, inlined
from raybox.exact import double_double
from raybox.exact.double_double import DD, is_small, with_underflow
from raybox.primitives import box
from raybox.primitives.instance_ray import Seen, order, sharp_heading, sharp_origin

_TINY = 1e-300  # more than underflow can lose


class Slab(NamedTuple):
    """When a ray enters one slab and when it leaves it: bounds of either."""

    near_low: float
    near_high: float
    far_low: float
    far_high: float


@device
def _corner(rows: Any, i: int) -> tuple[float, float, float]:
    return rows[i, 0], rows[i, 1], rows[i, 2]


@inlined
def _slab(boxes: Any, seen: Seen, i: int, k: int) -> Slab:
    """Return the bounds of the times of one axis."""
    low, up = boxes.lower[i, k], boxes.upper[i, k]
    o, d, blur, sway = seen.local[k], seen.heading[k], seen.blur[k], seen.sway[k]
    if not abs(d) > 2.0 * sway:
        if sway == 0.0:  # the ray stands still on this axis, exactly
            if o + blur < low or o - blur > up:
                return Slab(np.inf, np.inf, -np.inf, -np.inf)
            if low <= o - blur and o + blur <= up:
                return Slab(-np.inf, -np.inf, np.inf, np.inf)
        return Slab(-np.inf, np.inf, -np.inf, np.inf)
    # with abs(d) at least twice what it may be off, 1/d is off by at most 2 sway/abs(d) of itself
    inverse = 1.0 / d
    relative = 2.1 * sway * abs(inverse) + 2.0**-49
    absolute = 2.1 * blur * abs(inverse)
    a, b = (low - o) * inverse, (up - o) * inverse
    near, far = (a, b) if d > 0.0 else (b, a)
    near_slack = abs(near) * relative + absolute + _TINY
    far_slack = abs(far) * relative + absolute + _TINY
    return Slab(near - near_slack, near + near_slack, far - far_slack, far + far_slack)


@inlined
def _slabs(boxes: Any, seen: Seen, i: int) -> tuple[Slab, Slab, Slab]:
    return _slab(boxes, seen, i, 0), _slab(boxes, seen, i, 1), _slab(boxes, seen, i, 2)


@device
def _judge(x: Slab, y: Slab, z: Slab, low: float, high: float) -> int:
    """Return 1 where slabs and range surely have a time in common, -1 where surely not, else 0."""
    start = max(x.near_low, y.near_low, z.near_low, low)
    if start > min(x.far_high, y.far_high, z.far_high, high):
        return -1
    latest = max(x.near_high, y.near_high, z.near_high)
    met = (
        latest <= high
        and max(y.near_high, z.near_high, low) <= x.far_low
        and max(x.near_high, z.near_high, low) <= y.far_low
        and max(x.near_high, y.near_high, low) <= z.far_low
    )
    return 1 if met else 0


@device
def _plane(boxes: Any, seen: Seen, i: int, k: int, far: bool) -> float:
    """Return the plane by which the ray enters a slab, or leaves it."""
    return boxes.upper[i, k] if (seen.heading[k] > 0.0) == far else boxes.lower[i, k]


@device
def _ratio(rows: Any, seen: Seen, plane: float, k: int) -> tuple[DD, DD]:
    """Return the time of a plane as a numerator and a denominator, in double-double."""
    num = double_double.sub(double_double.lift(plane), sharp_origin(rows, seen, seen.copy, k))
    return with_underflow(num), with_underflow(sharp_heading(rows, seen, seen.copy, k))


@device
def _time(rows: Any, seen: Seen, plane: float, k: int) -> float:
    """Return the time of a plane rounded once, or NaN."""
    num, den = _ratio(rows, seen, plane, k)
    return double_double.divide(num, den)


@device
def decide(boxes: Any, rows: Any, seen: Seen, i: int) -> tuple[int, float]:
    """Return (1 met, -1 missed, 0 not sure; first contact rounded once)."""
    if not is_small(_corner(boxes.lower, i)) or not is_small(_corner(boxes.upper, i)):
        return 0, np.nan
    x, y, z = _slabs(boxes, seen, i)
    status = _judge(x, y, z, seen.t_min, seen.t_max)
    if status <= 0:
        return status, np.inf
    if max(x.near_high, y.near_high, z.near_high) <= seen.t_min:
        return 1, seen.t_min
    # rounding is monotone: the greatest rounded time is the greatest time, rounded
    t = _latest(boxes, rows, seen, i, (x, y, z))
    return (0 if np.isnan(t) else 1), max(seen.t_min, t)


@device
def _later(one: float, other: float) -> float:
    """Return the later of two times, NaN if either is."""
    return np.nan if np.isnan(one) or np.isnan(other) else max(one, other)


@device
def _latest(boxes: Any, rows: Any, seen: Seen, i: int, slabs: Any) -> float:
    """Return when the line has entered all slabs, rounded once, or NaN."""
    x, y, z = slabs
    bound = max(x.near_low, y.near_low, z.near_low)
    t = -np.inf
    for k in range(3):
        high = x.near_high if k == 0 else (y.near_high if k == 1 else z.near_high)
        if high >= bound and high > -np.inf:
            when = _time(rows, seen, _plane(boxes, seen, i, k, False), k)
            t = _later(t, when)
    return t


@device
def _entered(slabs: Any) -> int:
    """Return the axis whose slab is surely entered last, -1 where several may be."""
    x, y, z = slabs
    if x.near_low > max(y.near_high, z.near_high):
        return 0
    if y.near_low > max(x.near_high, z.near_high):
        return 1
    return 2 if z.near_low > max(x.near_high, y.near_high) else -1


@device
def tie(boxes: Any, rows: Any, one: Seen, i: int, other: Seen, j: int) -> tuple[bool, int]:
    """Return (is it sure, which of two boxes that are met is met first: -1, 0 for both or 1)."""
    slabs_i, slabs_j = _slabs(boxes, one, i), _slabs(boxes, other, j)
    high_i = max(slabs_i[0].near_high, slabs_i[1].near_high, slabs_i[2].near_high)
    high_j = max(slabs_j[0].near_high, slabs_j[1].near_high, slabs_j[2].near_high)
    inside_i, inside_j = high_i <= one.t_min, high_j <= one.t_min
    if inside_i and inside_j:
        return True, 0
    axis_i, axis_j = _entered(slabs_i), _entered(slabs_j)
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
def span(boxes: Any, rows: Any, seen: Seen, i: int) -> tuple[float, float]:
    """Return where the whole line enters and leaves box i, which it meets; NaN where floats cannot tell."""
    near, far = -np.inf, np.inf
    for k in range(3):
        if abs(seen.heading[k]) > 2.0 * seen.sway[k]:
            first = _time(rows, seen, _plane(boxes, seen, i, k, False), k)
            last = _time(rows, seen, _plane(boxes, seen, i, k, True), k)
            near, far = _later(near, first), -_later(-far, -last)
        elif seen.sway[k] != 0.0:
            return np.nan, np.nan
    return near, far


@device
def normal(boxes: Any, rows: Any, seen: Seen, i: int) -> tuple[float, float, float]:
    """Return the outward normal of the face entered, in the copy's coordinates; NaN where nobody knows."""
    slabs = _slabs(boxes, seen, i)
    x, y, z = slabs
    if max(x.near_high, y.near_high, z.near_high) < seen.t_min:
        return 0.0, 0.0, 0.0
    axis = _entered(slabs)
    if axis < 0 or max(x.near_low, y.near_low, z.near_low) < seen.t_min:
        return np.nan, np.nan, np.nan
    return box.against(axis, seen.heading[axis])


@device
def weights(_boxes: Any, _rows: Any, _seen: Seen, _i: int) -> tuple[float, float]:
    """Return NaN: a box has no barycentric coordinates."""
    return np.nan, np.nan
