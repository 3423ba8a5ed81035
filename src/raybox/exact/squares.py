"""Exact order of distances between boxes and points, and a distance rounded once.

A distance is the root of a sum of three squares, of *gaps*: exact differences of two floats, one for each
axis. Orders of distances are those of the sums. As in `raybox.exact.predicate`, a filter in float64 decides
nearly all, double-double numbers most of the others and most ties, and big integers the rest.

**Filter.** A gap is rounded once, its square carries three roundings and the sum two more: 5 * 2^-53 of it.
**Root.** With y = fl(sqrt(x)) and c = (x - y^2)/(2 y), sqrt(x) = y + c - c^2/(2 y) + ... As c is at most
2^-52 of y, the terms left out are below 2^-104 of it.
"""

import math
from typing import NamedTuple

import numpy as np

from raybox.compiler.decorators import allocating, apart, device
from raybox.compiler.intrinsics import Signature, float64
from raybox.exact.bigint import Big, difference, even, leading, middle, mul, sub
from raybox.exact.bigint import add as big_add
from raybox.exact.double_double import DD, Vector3, add, diff, signed, tame3
from raybox.exact.double_double import mul as times
from raybox.exact.double_double import sub as minus
from raybox.exact.error_free import two_prod
from raybox.exact.predicate import sign

_FILTER = 2.0**-49  # four times the relative error of a sum of three squares of differences, each rounded
_UNDERFLOW = 1e-300  # far more than squares lose below it
_OVERFLOW = 1e300  # sums from here on may be infinite
_ZIV = 2.0**-48
_EPS = 2.0**-99
_LARGEST = 1.7976931348623157e308


class Gaps(NamedTuple):
    """The gaps between two boxes: high - low of each axis, at least 0; both 0 where they meet."""

    high: Vector3
    low: Vector3


@device
def squared(gaps: Gaps) -> float:
    """Return the squared distance, to 2^-51 of itself, unless it is below 1e-300 or overflows."""
    x, y, z = gaps.high[0] - gaps.low[0], gaps.high[1] - gaps.low[1], gaps.high[2] - gaps.low[2]
    return x * x + y * y + z * z


@device
def certain_order(a: float, b: float) -> int:
    """Return the order of two distances by what `squared` returns; 0 where it is undecided."""
    if abs(a - b) > (a + b) * _FILTER + _UNDERFLOW and max(a, b) < _OVERFLOW:
        return sign(a - b)
    return 0


@device
def order(one: Gaps, other: Gaps) -> int:
    """Return the exact order of two distances: -1, 0 or 1. All numbers are finite."""
    certain = certain_order(squared(one), squared(other))
    if certain != 0:
        return certain
    if _is_tame(one) and _is_tame(other):
        rest = minus(_sum(one), _sum(other))
        if signed(rest):
            return sign(rest.head)
    return _big_order(one, other)


@device
def distance(gaps: Gaps) -> float:
    """Return the distance rounded once, or infinite; all numbers are finite."""
    if _is_tame(gaps):
        total = _sum(gaps)
        if total.head == 0.0:
            return 0.0
        root = math.sqrt(total.head)
        head, tail = two_prod(root, root)
        correction = (((total.head - head) - tail) + total.tail) / (2.0 * root)
        slack = abs(correction) * _ZIV + root * _EPS + total.slack / root
        low = root + (correction - slack)
        if low == root + (correction + slack):
            return low
    return big_distance(gaps.high[0], gaps.high[1], gaps.high[2], gaps.low[0], gaps.low[1], gaps.low[2])


@device
def _is_tame(gaps: Gaps) -> bool:
    return tame3(gaps.high) and tame3(gaps.low)


@device
def _square(high: float, low: float) -> DD:
    gap = diff(high, low)
    return times(gap, gap)


@device
def _sum(gaps: Gaps) -> DD:
    """Return the squared distance of tame numbers."""
    x, y = _square(gaps.high[0], gaps.low[0]), _square(gaps.high[1], gaps.low[1])
    return add(add(x, y), _square(gaps.high[2], gaps.low[2]))


@allocating
def _big_sum(high: Vector3, low: Vector3) -> Big:
    x, y, z = difference(high[0], low[0]), difference(high[1], low[1]), difference(high[2], low[2])
    return big_add(big_add(mul(x, x), mul(y, y)), mul(z, z))


@allocating
def _big_order(one: Gaps, other: Gaps) -> int:
    """Return the order of two distances: -1, 0 or 1."""
    return sub(_big_sum(one.high, one.low), _big_sum(other.high, other.low)).sign


@apart(Signature(float64, (float64,) * 6))
def big_distance(x: float, y: float, z: float, u: float, v: float, w: float) -> float:
    """Return the distance of gaps x - u, y - v and z - w, rounded once, or infinite."""
    total = _big_sum((x, y, z), (u, v, w))
    if total.sign == 0:
        return 0.0
    leads, exponent = leading(total)
    odd = exponent & 1
    root = math.ldexp(math.sqrt(math.ldexp(leads, odd)), (exponent - odd) // 2)
    return _nearest(total, min(root, _LARGEST))


@allocating
def _nearest(total: Big, root: float) -> float:
    """Return the square root rounded once, given one that is a little off."""
    side = _beside_middle(total, root, np.nextafter(root, np.inf))
    while side > 0 and root < _LARGEST:
        root = np.nextafter(root, np.inf)
        side = _beside_middle(total, root, np.nextafter(root, np.inf))
    if side >= 0:
        above = np.nextafter(root, np.inf)
        return above if side > 0 else even(root, above)
    side = _beside_middle(total, np.nextafter(root, 0.0), root)
    while side < 0:
        root = np.nextafter(root, 0.0)
        side = _beside_middle(total, np.nextafter(root, 0.0), root)
    return even(np.nextafter(root, 0.0), root) if side == 0 else root


@allocating
def _beside_middle(total: Big, low: float, high: float) -> int:
    """Return the order of a squared distance and the square of the middle of two neighbours."""
    between = middle(low, high)
    return sub(total, mul(between, between)).sign
