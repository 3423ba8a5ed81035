"""Sums of primitives in fixed point: the same bits in any order of additions.

A term x = weight * length of primitive i is at most X_i, the largest weight times the longest path in its
bounds or in the range of a ray. Scaled by a power of two, 2^s X_i <= 2^B, it is the sum of a whole number
and a rest, which is scaled by 2^B and cut to a whole number: two int64 words. n terms, at most one of each
ray (and each primitive of a copy), leave room for n 2^B <= 2^62 in either word, so B = 62 - ceil(log2 n),
and integers are added without loss.

**Error.** A cut loses less than 2^-B of a unit, which is at most 2^(1 - B) X_i: in all n 2^(1 - 2 B) X_i,
less than n^3 2^-120 X_i; or n 2^-1000, where 2^s is limited. The final sum of both words is off by 2^-52 of
itself.

**Memory.** Two words a primitive, in whose memory the sums are written in the end. All cells of a grid have
one bound, that of its largest cell, and so one shift.
"""

from typing import Any, NamedTuple

import numpy as np

from raybox.compiler import huge_pages
from raybox.compiler.entry_points import entry
from raybox.errors import InvalidInput
from raybox.geometry import GridRows, InstanceRows, RayRows
from raybox.geometry.ray_rows import ray_count
from raybox.traversal.job import Job
from raybox.validation import Floats, Ints

BITS = 62
_MORE = 1.0 + 2.0**-40  # than a bound that was rounded
_LARGEST_SHIFT = 1000
_LOST = 1e-322  # more than is rounded off a length below the normal floats, before it is multiplied
_FAR = 2.0**500


class TermLimits(NamedTuple):
    """What limits the terms of all rays that are added together, in one call or in several."""

    rays: int
    """how many there are at most"""
    weight: float
    """the largest size of a weight"""
    length: float
    """the longest range of a ray, as a length in space; inf: boxes limit the terms alone"""


def limits_of(rays: RayRows, weights: Floats, per_hit: bool) -> TermLimits:
    """Return the limits of the terms of rays; weights: (N, C), or (0, C) for ones."""
    weight = float(np.abs(weights).max(initial=0.0)) if len(weights) else 1.0
    length = np.inf if per_hit or weight == 0.0 else _longest_range(rays)
    return TermLimits(ray_count(rays), weight, length)


class FixedPoint(NamedTuple):
    """How sums of a geometry's primitives are stored."""

    shifts: Ints
    """(M,), or (1,) for all: terms are scaled by 2 to the power of it"""
    bits: int
    """the B of the module's docstring"""


class FixedSums(NamedTuple):
    """Sums of primitives in fixed point, of all rays or of some."""

    words: Ints
    """(M, C, 2)"""
    fixed: FixedPoint

    def to_floats(self) -> Floats:
        """Return the sums (M, C) as float64, in the memory of the words."""
        return sums_of(self.words, self.fixed)


def fixed_point(job: Job, limits: TermLimits, per_hit: bool) -> FixedPoint:
    """Return the fixed point for terms within limits."""
    terms, weight = max(1, limits.rays), limits.weight
    rows: Any = job.rows  # of boxes, or of their instances
    lower, upper = _largest_cell(rows) if isinstance(rows, GridRows) else (rows.lower, rows.upper)
    if isinstance(rows, InstanceRows):
        terms *= max(1, rows.size)
    bits = BITS - (terms - 1).bit_length()
    bounds = np.full(len(lower), weight)
    if not per_hit and weight > 0.0:
        bounds = np.minimum(_longest(lower, upper), limits.length) * weight * _MORE
        if job.allowed.size and not isinstance(rows, GridRows):
            bounds = np.where(job.allowed, bounds, 0.0)
        _check_finite(bounds, rows)
    exponents = np.frexp(bounds)[1].astype(np.int64)
    return FixedPoint(np.minimum(bits - exponents, _LARGEST_SHIFT), bits)


def _largest_cell(rows: GridRows) -> tuple[Floats, Floats]:
    """Return the bounds (1, 3) of a box as large as any cell of a grid."""
    with np.errstate(over="ignore"):
        sizes = [np.diff(axis).max() for axis in (rows.x_edges, rows.y_edges, rows.z_edges)]
    return np.zeros((1, 3)), np.array([sizes])


def _longest(lower: Floats, upper: Floats) -> Floats:
    """Return the longest path in each box."""
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = upper - lower
        x, y, z = np.where(np.isnan(sizes), 0.0, sizes).T  # of inf - inf: no ray hits such a box
    return _norms(x, y, z)


def _norms(x: Floats, y: Floats, z: Floats) -> Floats:
    """Return the lengths of vectors, and a little more below the normal floats."""
    with np.errstate(over="ignore"):
        norms: Floats = np.hypot(np.hypot(x, y), z) + _LOST
    return norms


def _longest_range(rays: RayRows) -> float:
    """Return the longest path that the range of any ray allows."""
    if (rays.t_max == np.inf).all() and rays.t_min.size == 1 and rays.directions.any():
        return np.inf  # without the lengths of all directions, which take longer than the query
    low, high = (np.broadcast_to(t, ray_count(rays)) for t in (rays.t_min, rays.t_max))
    some = (low <= high) & (low < np.inf) & (high > -np.inf) & (rays.directions != 0.0).any(axis=1)
    with np.errstate(over="ignore"):
        spans = (high[some] - low[some]) * _norms(*rays.directions[some].T)
        left = ~np.isfinite(spans)
        if left.any():
            spans[left] = _scaled_spans(low[some][left], high[some][left], rays.directions[some][left])
    return float(spans.max(initial=0.0))


def _scaled_spans(low: Floats, high: Floats, directions: Floats) -> Floats:
    """Return the longest path of each range, where a factor alone overflows."""
    shorter = np.where(np.maximum(np.abs(low), np.abs(high)) > _FAR, 0.5, 1.0)
    slower = np.where(np.abs(directions).max(axis=1) > _FAR, 0.25, 1.0)
    spans: Floats = (high * shorter - low * shorter) * _norms(*(directions.T * slower)) / shorter / slower
    return spans


def _check_finite(bounds: Floats, rows: Any) -> None:
    """Raise `InvalidInput` if a term may be of any size."""
    bad = ~np.isfinite(bounds)
    if bad.any():
        found = f"{np.count_nonzero(bad)} of {bad.size} boxes break this, first box {bad.argmax()}"
        if isinstance(rows, GridRows):
            found = "the largest cells of the grid break this"
        raise InvalidInput(
            "deposit with reproducible=True needs a bound of each weight * length: boxes with finite bounds, "
            f"or rays with finite ranges, and no weight near the largest float; {found}. Give the rays a "
            "t_max, mask such boxes by `where`, or leave out reproducible=True."
        )


def scales_of(fixed: FixedPoint) -> Floats:
    """Return the powers of two that terms are scaled by."""
    return np.ldexp(1.0, fixed.shifts)


def sums_of(words: Any, fixed: FixedPoint) -> Floats:
    """Return sums (M, C) as float64, in the memory of their words (M, C, 2)."""
    memory = words.reshape(-1).view(np.float64)
    size, shape = words.size // 2, words.shape[:-1]
    units, grain = np.ldexp(1.0, -fixed.shifts), 2.0**-fixed.bits
    _write_sums(words, (units, grain), fixed.bits, memory[:size].reshape(shape))
    sums: Floats = huge_pages.shortened(memory, size).reshape(shape)
    return sums


@entry
def _write_sums(words: Any, scale: Any, bits: int, sums: Any) -> None:
    """Write sums, which may begin where their words do: what is written was read before.

    scale: what the first word counts of each primitive, and the second word of the first.
    """
    units, grain = scale
    for i in range(words.shape[0]):
        unit = units[i if units.size > 1 else 0]
        for c in range(words.shape[1]):
            high, low = words[i, c, 0], words[i, c, 1]
            carry = low >> bits if low >= 0 else -(-low >> bits)
            high, low = high + carry, low - (carry << bits)
            # Both words get one sign, so that no digits cancel when they are added.
            if high > 0 and low < 0:
                high, low = high - 1, low + (1 << bits)
            elif high < 0 and low > 0:
                high, low = high + 1, low - (1 << bits)
            sums[i, c] = high * unit + low * (unit * grain)
