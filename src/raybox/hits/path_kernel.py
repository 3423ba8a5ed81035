"""Lengths of many paths, in compiled code: eight at a time."""

from __future__ import annotations

import numpy as np

from raybox.compiler.decorators import inlined
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import Fields, vector_code, void
from raybox.compiler.simd import F64, I64, Builder, Lanes, Scalar, constant, greater, lesser, square_root
from raybox.compiler.simd_arrays import Memory, loop
from raybox.exact.error_free_simd import halves
from raybox.geometry import RayRows
from raybox.hits import path_length as scalar
from raybox.hits.path_length import HIGH, LOW, MODERATE, NEAR_OVERFLOW, NORMAL
from raybox.validation import Floats, Ints

LANES = 8
path_length = inlined(scalar.path_length)


@entry
def write_lengths(rays: RayRows, ray_of: Ints, t_enter: Floats, t_exit: Floats, lengths: Floats) -> bool:
    """Write the length of each path from t_enter to t_exit within the range of its ray.

    Return whether the times of some path are beyond float64's range.
    """
    some = False
    eights = lengths.size // LANES * LANES
    _write_usual_lengths(rays, ray_of, (t_enter, t_exit), lengths, eights)
    for k in range(lengths.size):
        if k >= eights or np.isnan(lengths[k]):
            r = ray_of[k]
            near = max(t_enter[k], rays.t_min[r if rays.t_min.size > 1 else 0])
            far = min(t_exit[k], rays.t_max[r if rays.t_max.size > 1 else 0])
            x, y, z = rays.directions[r, 0], rays.directions[r, 1], rays.directions[r, 2]
            lengths[k] = path_length(near, far, (x, y, z))
            latest = max(abs(near), abs(far))
            some |= latest == np.inf or (latest < NORMAL and max(abs(x), abs(y), abs(z)) > MODERATE)
    return some


@vector_code(void)
def _write_usual_lengths(
    b: Builder, rays: Fields, ray_of: Memory, times: list[Memory], lengths: Memory, number: Scalar
) -> None:
    """Write a multiple of eight lengths; NaN where numbers are so large or small that they must be scaled.

    The operations are those of `path_length` without its scales.
    """
    with loop(b, number, LANES) as at:
        numbers = [ray_of.get(b.add(at, I64(k))) for k in range(LANES)]
        ends = list[Lanes]()
        for memory, limit, later in zip(times, (rays.t_min, rays.t_max), (greater, lesser), strict=True):
            many = b.icmp_signed(">", limit.size, I64(1))
            limits = limit.gather([b.select(many, n, I64(0)) for n in numbers])
            ends.append(later(memory.load(at, LANES), limits))
        axes = [rays.directions.gather([b.add(b.mul(n, I64(3)), I64(k)) for n in numbers]) for k in range(3)]
        near, far = ends
        lengths.store(_usual_lengths(near, far, axes), at)


def _usual_lengths(near: Lanes, far: Lanes, axes: list[Lanes]) -> Lanes:
    """Return lengths of eight paths; NaN where they need a scale."""
    none = constant(near.b, F64, LANES, 0.0)
    largest = none
    for axis in axes:
        largest = greater(axis.magnitude(), largest)
    span = far - near
    usual = (largest >= LOW) & (largest <= MODERATE) & (span <= HIGH) & ((span >= LOW) | (span <= 0.0))
    for end in (near, far):
        usual = usual & (end.magnitude() <= NEAR_OVERFLOW)
    x, y, z = axes
    root = square_root(x * x + y * y + z * z)
    total = rest = none
    for factor, sign in ((root, -1.0), (x, 1.0), (y, 1.0), (z, 1.0)):
        high, low = halves(factor)
        square = factor * factor
        tail = ((high * high - square) + (high * low) * 2.0) + low * low
        added = total + square * sign
        part = added - total
        rest = rest + (((total - (added - part)) + (square * sign - part)) + tail * sign)
        total = added
    correction = (total + rest) / (root * 2.0)
    part = span - far
    tail = (far - (span - part)) - (near + part)
    (high, low), (root_high, root_low) = halves(span), halves(root)
    length = span * root
    lost = ((high * root_high - length) + high * root_low + low * root_high) + low * root_low
    length = length + (lost + (span * correction + tail * root))
    return usual.choose((far < near).choose(none, length), np.nan)
