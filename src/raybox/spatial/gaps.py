"""Decide whether a box is found: exactly, of the floats given."""

import math

import numpy as np

from raybox.compiler.decorators import device, inlined
from raybox.exact.squares import Gaps, order
from raybox.spatial.query_boxes import Corners

_OUT = 2.0**-52  # of a bound: more than rounding of its sum with a distance


@inlined
def overlap(one: Corners, other: Corners) -> bool:
    """Return whether two closed boxes share a point, by comparison of their bounds."""
    return (
        one.lower[0] <= other.upper[0]
        and one.upper[0] >= other.lower[0]
        and one.lower[1] <= other.upper[1]
        and one.upper[1] >= other.lower[1]
        and one.lower[2] <= other.upper[2]
        and one.upper[2] >= other.lower[2]
    )


@inlined
def _gap(low: float, up: float, other_low: float, other_up: float) -> tuple[float, float]:
    """Return the ends of the gap between two intervals, the upper one first; (0, 0) where they meet."""
    if other_low > up:
        return other_low, up
    if low > other_up:
        return low, other_up
    return 0.0, 0.0


@inlined
def gaps_between(one: Corners, other: Corners) -> Gaps:
    """Return the gaps between two boxes."""
    x, u = _gap(one.lower[0], one.upper[0], other.lower[0], other.upper[0])
    y, v = _gap(one.lower[1], one.upper[1], other.lower[1], other.upper[1])
    z, w = _gap(one.lower[2], one.upper[2], other.lower[2], other.upper[2])
    return Gaps((x, y, z), (u, v, w))


@inlined
def are_finite(gaps: Gaps) -> bool:
    """Return whether two boxes are at a distance: not if one of them is at infinity on an axis."""
    total = abs(gaps.high[0]) + abs(gaps.high[1]) + abs(gaps.high[2])
    return total + abs(gaps.low[0]) + abs(gaps.low[1]) + abs(gaps.low[2]) < np.inf or _are_finite(gaps)


@device
def _are_finite(gaps: Gaps) -> bool:
    high, low = gaps.high, gaps.low
    infinite = math.isinf(high[0]) or math.isinf(high[1]) or math.isinf(high[2])
    return not (infinite or math.isinf(low[0]) or math.isinf(low[1]) or math.isinf(low[2]))


@device
def is_within(gaps: Gaps, distance: float) -> bool:
    """Return whether gaps are those of boxes at most so far apart, exactly."""
    if not are_finite(gaps):
        return False
    return distance == np.inf or order(gaps, Gaps((distance, 0.0, 0.0), (0.0, 0.0, 0.0))) <= 0


@inlined
def _outward(x: float, sign: float) -> float:
    """Return a bound moved outward by more than its last rounding; an infinite one stays."""
    return x + sign * abs(x) * _OUT if abs(x) < np.inf else x


@device
def grown(box: Corners, distance: float) -> Corners:
    """Return a box that contains all points at most so far from another."""
    low, up = box
    x, y, z = low[0] - distance, low[1] - distance, low[2] - distance
    u, v, w = up[0] + distance, up[1] + distance, up[2] + distance
    return Corners(
        (_outward(x, -1.0), _outward(y, -1.0), _outward(z, -1.0)),
        (_outward(u, 1.0), _outward(v, 1.0), _outward(w, 1.0)),
    )
