"""Ranges of segments whose ends are left out: t from m to 1 - m, where m is margin / length, rounded once.

The length is that of the direction, which is end - start rounded to float64. Quotients are sums of two
floats, accurate to 2^-98 of themselves; integers decide where these do not prove the rounding.
"""

from functools import reduce
from math import inf, isqrt
from typing import NamedTuple

import numpy as np

from raybox import validation
from raybox.exact.definition import rounded, whole
from raybox.exact.splitter import SPLITTER
from raybox.geometry.ray_input import ONE, ZERO, per_ray
from raybox.validation import ArrayInput, Bools, Floats

OF_LENGTH, OF_COORDINATE = 1e-9, 1e-12
"""The margin None: the larger of these shares of a segment's length and of its largest coordinate."""

_NEAR = 0.002  # times the largest coordinate: of a longer segment, OF_LENGTH decides
_CHUNK = 1 << 15  # segments whose quotients fit into a core's second cache
_BOUND = 2.0**-90  # relative; more than the error of a quotient
_LOW, _HIGH = 2.0**-350, 2.0**350
_NORMAL = -1000  # exponents from here on are those of normal floats
_BITS = 128  # of an exact quotient, at least


class Ranges(NamedTuple):
    """t_min and t_max of segments: scalar arrays, or a number for each segment."""

    t_min: Floats
    t_max: Floats


def ranges_of(start: Floats, end: Floats, directions: Floats, margin: ArrayInput | None) -> Ranges:
    """Return the ranges of segments; +inf to +inf of those shorter than two margins.

    margin: a length in space, one for all or for each segment; None: as for `Scene.visible`. Segments that
    are not finite, which the caller refuses, get some range.
    """
    if type(margin) is float and margin == 0.0:
        return Ranges(ZERO, ONE)
    ways, shape = directions, directions.shape[:-1]
    if not validation.all_finite(directions):
        ways = np.where(np.isfinite(directions).all(axis=-1, keepdims=True), directions, 1.0)
    if margin is None:
        return _default_ranges(np.maximum(_largest(start), _largest(end)), ways)
    lengths = validation.floats(margin, "margin")
    wrong = ~(np.isfinite(lengths) & (lengths >= 0.0))
    if wrong.any():
        way_out = "Pass a length in space, or 0 to leave out nothing"
        rule = "margin must be finite and not negative"
        validation.refuse_rows(wrong, rule, {"margin": lengths}, "segment", way_out)
    lengths = np.broadcast_to(per_ray(lengths, "margin", shape), shape)
    low, high = _ranges(lengths.reshape(-1), ways.reshape(-1, ways.shape[-1]), 0.0)
    return Ranges(low.reshape(shape), high.reshape(shape))


def _largest(vectors: Floats) -> Floats:
    """Return the size of the largest coordinate of each vector; 0 of one that is not finite."""
    found: Floats = reduce(np.maximum, np.moveaxis(np.abs(vectors), -1, 0))  # faster than along an axis of 3
    return np.where(np.isfinite(found), found, 0.0)


def _default_ranges(largest: Floats, ways: Floats) -> Ranges:
    """Return the ranges without the margin None."""
    near = np.asarray(_NEAR * largest >= _largest(ways))
    if not near.any():
        return Ranges(np.array(OF_LENGTH), np.array(1.0 - OF_LENGTH))
    low, high = np.full(near.shape, OF_LENGTH), np.full(near.shape, 1.0 - OF_LENGTH)
    some = ways[near]
    least = np.where(some.any(axis=1), OF_LENGTH, 0.0)
    low[near], high[near] = _ranges(OF_COORDINATE * largest[near], some, least)
    return Ranges(low, high)


def _ranges(margins: Floats, ways: Floats, least: Floats | float) -> Ranges:
    """Return the ranges of segments without their margins, of which `least` are shares of the lengths.

    margins: (N,); ways: (N, D).
    """
    low = np.maximum(quotients(margins, ways), least)
    high, short = 1.0 - low, low > 0.5
    for k in np.flatnonzero(low == 0.5):
        above, below = _squares(margins[k], ways[k])
        short[k] = 4 * above > below
    low[short] = high[short] = inf
    return Ranges(low, high)


def quotients(margins: Floats, ways: Floats) -> Floats:
    """Return each margin / length of a direction, rounded once; of a zero direction inf, or 0 for 0.

    margins: (N,), finite and not negative. ways: (N, D), finite.
    """
    found = np.zeros(margins.size)
    for begin in range(0, margins.size, _CHUNK):
        part = slice(begin, begin + _CHUNK)
        found[part], proven = _rounded_quotients(margins[part], ways[part])
        for k in begin + np.flatnonzero(~proven):
            found[k] = _exact_quotient(margins[k], ways[k])
    return found


def _rounded_quotients(margins: Floats, ways: Floats) -> tuple[Floats, Bools]:
    """Return quotients, and which of them are proven to be rounded once."""
    # Scale by powers of two: what underflows is less than 2^-300 of the square of the largest component.
    largest, power = _largest(ways), np.zeros(len(ways), np.int32)
    share, columns = margins, np.ascontiguousarray(ways.T)
    if not (_is_moderate(largest).all() and _is_moderate(margins).all()):
        (share, shift), exponent = np.frexp(margins), np.frexp(largest)[1]
        columns, power = np.ldexp(columns, -exponent), shift - exponent
    total, rest = np.zeros(len(ways)), np.zeros(len(ways))
    for x in columns:
        square = x * x
        added = total + square
        part = added - total
        rest += ((total - (added - part)) + (square - part)) + _product_tail(x, x, square)
        total = added
    moves = total > 0.0
    total = np.where(moves, total, 1.0)
    # The length is root + correction, the quotient is head + tail.
    root = np.sqrt(total)
    square = root * root
    correction = ((total - square) - _product_tail(root, root, square) + rest) / (2.0 * root)
    first = share / root
    product = first * root
    left = ((share - product) - _product_tail(first, root, product)) - first * correction
    second = left / root
    head = first + second
    tail = second - (head - first)
    bound = head * _BOUND
    is_rounded = (head + (tail - bound) == head) & (head + (tail + bound) == head)
    with np.errstate(over="ignore", under="ignore"):
        found = np.where(moves | (margins == 0.0), np.ldexp(head, power), inf)
    return found, (is_rounded & (power > _NORMAL)) | ~moves | (margins == 0.0)


def _is_moderate(sizes: Floats) -> Bools:
    """Return whether squares of numbers and their last bits neither over- nor underflow."""
    found: Bools = (sizes == 0.0) | ((sizes > _LOW) & (sizes < _HIGH))
    return found


def _product_tail(a: Floats, b: Floats, product: Floats) -> Floats:
    """Return a * b - product, where the product is rounded."""
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    tail: Floats = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return tail


def _halves(x: Floats) -> tuple[Floats, Floats]:
    """Return the higher and the lower half of the bits of numbers."""
    high = SPLITTER * x
    high = high - (high - x)
    return high, x - high


def _squares(margin: float, way: Floats) -> tuple[int, int]:
    """Return the squares of a margin and of the length of a direction, times one number."""
    (first, *others), _ = whole([float(margin), *way.tolist()])
    return first * first, sum(x * x for x in others)


def _exact_quotient(margin: float, way: Floats) -> float:
    """Return a margin above 0 over the length of a direction that is not zero, rounded once."""
    above, below = _squares(margin, way)
    shift = max(0, _BITS + (below.bit_length() - above.bit_length()) // 2)
    square, left = divmod(above << 2 * shift, below)
    root = isqrt(square)
    # halfway between two integers, an inexact root is on the right side of every float
    twice = 2 * root + (left > 0 or root * root != square)
    return rounded((twice, 1 << (shift + 1)))
