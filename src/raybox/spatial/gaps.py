"""Decide whether a box is found: exactly, of the floats given."""

import numpy as np

from raybox.compiler.decorators import device, inlined
from raybox.exact.squares import Gaps, order
from raybox.spatial.query_boxes import Corners


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
    high, low = gaps.high, gaps.low
    upper_ends = max(abs(high[0]), abs(high[1]), abs(high[2]))
    return max(upper_ends, abs(low[0]), abs(low[1]), abs(low[2])) < np.inf


@device
def is_within(gaps: Gaps, distance: float) -> bool:
    """Return whether gaps are those of boxes at most so far apart, exactly."""
    if not are_finite(gaps):
        return False
    return distance == np.inf or order(gaps, Gaps((distance, 0.0, 0.0), (0.0, 0.0, 0.0))) <= 0


@inlined
def grown(box: Corners, distance: float) -> Corners:
    """Return a box that overlaps all boxes at most so far from another.

    A bound b >= x - d is at least that difference rounded, too, as rounding is monotone.
    """
    low, up = box
    return Corners(
        (low[0] - distance, low[1] - distance, low[2] - distance),
        (up[0] + distance, up[1] + distance, up[2] + distance),
    )
