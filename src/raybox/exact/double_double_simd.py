"""Double-double arithmetic of float64 vectors, lane by lane.

Differences of floats are exact; other sums and products are off by less than 2^-100 of the sizes of their
terms. Nothing over- or underflows if products of factors are within the limits of
`raybox.exact.error_free_simd`.

Source: as `raybox.exact.double_double`.
"""

from typing import NamedTuple

from raybox.compiler.simd import Lanes, multiply_add
from raybox.exact.error_free_simd import product_error


class Twofold(NamedTuple):
    """Numbers as sums of a head and a tail: double-double, lane by lane."""

    head: Lanes
    tail: Lanes


def _sum(x: Lanes, y: Lanes) -> Twofold:
    """Return x + y, exactly (Knuth)."""
    s = x + y
    z = s - x
    return Twofold(s, (x - (s - z)) + (y - z))


def _fast_sum(x: Lanes, y: Lanes) -> Twofold:
    """Return x + y, exactly, where x is the larger (Dekker)."""
    s = x + y
    return Twofold(s, y - (s - x))


def plus(x: Twofold, y: Twofold) -> Twofold:
    """Return x + y."""
    s, t = _sum(x.head, y.head), _sum(x.tail, y.tail)
    s = _fast_sum(s.head, s.tail + t.head)
    return _fast_sum(s.head, s.tail + t.tail)


def times(x: Twofold, y: Twofold) -> Twofold:
    """Return x * y."""
    p = x.head * y.head
    e = product_error(x.head, y.head, p)
    return _fast_sum(p, e + multiply_add(x.head, y.tail, x.tail * y.head))


def negative(x: Twofold) -> Twofold:
    """Return -x."""
    return Twofold(-x.head, -x.tail)


def difference(p: list[Lanes], q: list[Lanes]) -> list[Twofold]:
    """Return p - q, exactly."""
    return [_sum(x, -y) for x, y in zip(p, q, strict=True)]


def dot(p: list[Twofold], q: list[Twofold]) -> Twofold:
    """Return p . q."""
    first, second, third = (times(x, y) for x, y in zip(p, q, strict=True))
    return plus(plus(first, second), third)


def cross(p: list[Twofold], q: list[Twofold]) -> list[Twofold]:
    """Return p x q."""
    return [plus(times(p[k - 2], q[k - 1]), negative(times(p[k - 1], q[k - 2]))) for k in range(3)]
