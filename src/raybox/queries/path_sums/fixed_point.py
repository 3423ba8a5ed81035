"""Sums of primitives in fixed point: the same bits in any order of additions.

A term x = weight * length of primitive i is at most X_i, the largest weight times the longest path in its
bounds or in the range of a ray. Scaled by a power of two, 2^s X_i <= 2^B, it is the sum of a whole number
and a rest, which is scaled by 2^B and cut to a whole number: two int64 words. n terms, at most one of each
ray (and each primitive of a copy), leave room for n 2^B <= 2^62 in either word, so B = 62 - ceil(log2 n),
and integers are added without loss.

**Error.** A cut loses less than 2^-B of a unit, which is at most 2^(1 - B) X_i: in all n 2^(1 - 2 B) X_i,
less than n^3 2^-120 X_i; or n 2^-1000, where 2^s is limited. The final sum of both words is off by 2^-52 of
itself.
"""

from typing import Any, NamedTuple

import numpy as np

from raybox.errors import InvalidInput
from raybox.geometry import GridRows, InstanceRows
from raybox.traversal.job import Job
from raybox.validation import Floats, Ints

_BITS = 62
_MORE = 1.0 + 2.0**-40  # than a bound that was rounded
_LARGEST_SHIFT = 1000
_ROWS = 1 << 20  # primitives whose sums are converted at once: temporaries are several times as large


class FixedPoint(NamedTuple):
    """How sums of a geometry's primitives are stored."""

    shifts: Ints
    """(M,): terms are scaled by 2 to the power of it"""
    bits: int
    """the B of the module's docstring"""


def fixed_point(job: Job, weight: float, per_hit: bool) -> FixedPoint:
    """Return the fixed point for terms of weights up to this size."""
    terms = max(1, len(job.rays.origins))
    rows: Any = job.rows  # of boxes, or of their instances
    lower, upper = _largest_cell(rows) if isinstance(rows, GridRows) else (rows.lower, rows.upper)
    primitives = int(np.prod(rows.shape)) if isinstance(rows, GridRows) else len(lower)
    if isinstance(rows, InstanceRows):
        terms *= max(1, rows.size)
    bits = _BITS - (terms - 1).bit_length()
    bounds = np.broadcast_to(weight, primitives)
    if not per_hit and weight > 0.0:
        bounds = np.minimum(_longest(lower, upper), _longest_range(job)) * weight * _MORE
        bounds = np.broadcast_to(bounds, primitives)
        if job.allowed.size:
            bounds = np.where(job.allowed, bounds, 0.0)
        _check_finite(bounds)
    exponents = np.frexp(bounds)[1].astype(np.int64)
    return FixedPoint(np.minimum(bits - exponents, _LARGEST_SHIFT), bits)


def _largest_cell(rows: GridRows) -> tuple[Floats, Floats]:
    """Return bounds (1, 3) of a box as large as any cell of a grid."""
    sizes = [np.diff(axis).max() for axis in (rows.x_edges, rows.y_edges, rows.z_edges)]
    return np.zeros((1, 3)), np.array([sizes])


def _longest(lower: Floats, upper: Floats) -> Floats:
    """Return the longest path in each box."""
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = upper - lower
        x, y, z = np.where(np.isnan(sizes), 0.0, sizes).T  # of inf - inf: no ray hits such a box
        longest: Floats = np.hypot(np.hypot(x, y), z)
    return longest


def _longest_range(job: Job) -> float:
    """Return the longest path that the range of any ray allows."""
    rays = job.rays
    low, high = (np.broadcast_to(t, len(rays.origins)) for t in (rays.t_min, rays.t_max))
    some = (low <= high) & (rays.directions != 0.0).any(axis=1)
    with np.errstate(over="ignore"):
        x, y, z = rays.directions[some].T
        spans = (high[some] - low[some]) * np.hypot(np.hypot(x, y), z)
    return float(spans.max(initial=0.0))


def _check_finite(bounds: Floats) -> None:
    """Raise `InvalidInput` if a term may be of any size."""
    bad = ~np.isfinite(bounds)
    if bad.any():
        raise InvalidInput(
            "deposit with reproducible=True needs a bound of each weight * length: boxes with finite bounds, "
            f"or rays with finite ranges, and no weight near the largest float; {np.count_nonzero(bad)} of "
            f"{bad.size} boxes break this, first box {int(bad.argmax())}. Give the rays a t_max, mask such "
            "boxes by `where`, or leave out reproducible=True."
        )


def scales_of(fixed: FixedPoint) -> Floats:
    """Return the powers of two that terms are scaled by."""
    return np.ldexp(1.0, fixed.shifts)


def sums_of(words: Any, fixed: FixedPoint) -> Floats:
    """Return sums (M, C) as float64, of words (M, C, 2), which are changed."""
    sums = np.empty(words.shape[:-1])
    for begin in range(0, len(words), _ROWS):
        some = slice(begin, begin + _ROWS)
        sums[some] = _floats_of(words[some], fixed.shifts[some, None], fixed.bits)
    return sums


def _floats_of(words: Any, shifts: Ints, bits: int) -> Floats:
    """Return the sums of some words."""
    high, low = words[..., 0], words[..., 1]
    carry = np.sign(low) * (np.abs(low) >> bits)
    high += carry
    low -= carry << bits
    # both words get one sign, so that no digits cancel when they are added
    opposed = np.sign(high) * np.sign(low) < 0
    sign = np.sign(high) * opposed
    high -= sign
    low += sign << bits
    sums: Floats = np.ldexp(high.astype(np.float64), -shifts) + np.ldexp(
        low.astype(np.float64), -shifts - bits
    )
    return sums
