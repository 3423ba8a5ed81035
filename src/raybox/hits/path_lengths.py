"""Lengths of paths inside of boxes, from additions, products, quotients and square roots alone.

IEEE 754 defines these to the last bit; functions of the platform's mathematical library differ by machine.
"""

from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from raybox.exact.splitter import SPLITTER
from raybox.geometry import BoxRows, RayRows
from raybox.primitives import small_batch
from raybox.validation import Bools, Floats, Ints

# Between these limits squares and products, their last bits included, neither over- nor underflow.
LOW, HIGH = 2.0**-400, 2.0**500
NEAR_OVERFLOW = 2.0**1000
_UP, _DOWN = 2.0**600, 2.0**-600
# Directions up to here make lengths less than 2^-1000 of what underflow takes from times.
MODERATE = 2.0**60
NORMAL = 2.0**-1022


class PathLengths(NamedTuple):
    """Lengths by rounded times, and the paths whose times are beyond float64's range, either way."""

    lengths: Floats
    lost: Ints


def path_lengths(rays: RayRows, ray_of: Ints, t_enter: Floats, t_exit: Floats) -> PathLengths:
    """Return the length of each path from t_enter to t_exit within its ray's range.

    Path k is of ray ray_of[k]. `write_exactly` computes those that are lost.
    """
    from raybox.hits.path_kernel import write_lengths

    lengths = np.empty(t_enter.size)
    if not write_lengths(rays, ray_of, t_enter, t_exit, lengths):
        return PathLengths(lengths, np.empty(0, np.int64))
    t_min, t_max = (np.broadcast_to(t, len(rays.origins))[ray_of] for t in (rays.t_min, rays.t_max))
    near, far, directions = np.maximum(t_enter, t_min), np.minimum(t_exit, t_max), rays.directions[ray_of]
    largest, latest = np.abs(directions).max(axis=1, initial=0.0), np.maximum(np.abs(near), np.abs(far))
    lost = ((latest == inf) & (largest > 0.0)) | ((latest < NORMAL) & (largest > MODERATE))
    return PathLengths(lengths, np.flatnonzero(lost))


def write_exactly(rays: RayRows, rows: Any, hits: tuple[Ints, Ints], lengths: Floats) -> None:
    """Write the lengths of paths by exact times; those of primitives without exact times stay.

    hits: numbers of rays and of primitives.
    """
    endless = _endless(rays, rows, *hits) if isinstance(rows, BoxRows) else np.zeros(lengths.size, np.bool_)
    lengths[endless] = inf
    for k in np.flatnonzero(~endless):
        length = small_batch.path_length(rows, small_batch.ray_at(rays, hits[0][k]), int(hits[1][k]))
        if length is not None:
            lengths[k] = length


def _endless(rays: RayRows, boxes: BoxRows, ray_of: Ints, index: Ints) -> Bools:
    """Return which rays stay in their boxes forever, in either direction of time."""
    d, lower, upper = rays.directions[ray_of], boxes.lower[index], boxes.upper[index]
    near, far = np.where(d > 0.0, lower, upper), np.where(d > 0.0, upper, lower)
    early, late = (((d == 0.0) | np.isinf(planes)).all(axis=1) for planes in (near, far))
    t_min, t_max = (np.broadcast_to(t, len(rays.origins))[ray_of] for t in (rays.t_min, rays.t_max))
    endless: Bools = (early & (t_min == -inf)) | (late & (t_max == inf))
    return endless


def path_length(near: float, far: float, direction: tuple[float, float, float]) -> float:
    """Return (far - near) * |direction|, rounded; 0 where far < near.

    Infinite or NaN where far - near is, except for a zero direction. Python and compiled code return the
    same bits. The difference and the length of the direction are sums of two floats, accurate to 2^-100, as
    is their product: one rounding is left, and another one below the normal floats.
    """
    x, y, z = direction
    largest = max(abs(x), abs(y), abs(z))
    if largest == 0.0 or far < near:
        return 0.0
    if abs(near) == inf or abs(far) == inf or near != near or far != far:
        return far - near
    scale = _DOWN if largest > HIGH else _UP if largest < LOW else 1.0
    x, y, z = x * scale, y * scale, z * scale
    root = sqrt(x * x + y * y + z * z)
    # x^2 + y^2 + z^2 - root^2 as total + rest: each square is a float and its tail
    total = rest = 0.0
    for factor, sign in ((root, -1.0), (x, 1.0), (y, 1.0), (z, 1.0)):
        high = SPLITTER * factor
        high = high - (high - factor)
        low = factor - high
        square = factor * factor
        tail = ((high * high - square) + 2.0 * (high * low)) + low * low
        added = total + sign * square
        part = added - total
        rest += ((total - (added - part)) + (sign * square - part)) + sign * tail
        total = added
    correction = (total + rest) / (2.0 * root)
    # the difference as span + tail
    shrink = _DOWN if max(abs(near), abs(far)) > NEAR_OVERFLOW else 1.0
    near, far = near * shrink, far * shrink
    span = far - near
    part = span - far
    tail = (far - (span - part)) - (near + part)
    grow = _DOWN if span > HIGH else _UP if span < LOW else 1.0
    span, tail = span * grow, tail * grow
    # their product
    high, root_high = SPLITTER * span, SPLITTER * root
    high, root_high = high - (high - span), root_high - (root_high - root)
    low, root_low = span - high, root - root_high
    length = span * root
    lost = ((high * root_high - length) + high * root_low + low * root_high) + low * root_low
    length += lost + (span * correction + tail * root)
    grow *= shrink  # one of them is 1
    return length if scale * grow == 1.0 else length / scale / grow
