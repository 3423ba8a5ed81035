"""The definition of spatial queries: gaps between boxes, in whole numbers of the least float.

Nothing here imports raybox. Boxes are closed. Points are boxes without thickness. Two boxes are at the distance
of their nearest points; a box at infinity on an axis, beside one that is not, is at no distance.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from exact import quotient

INF = math.inf
_ROOT_BITS = 64  # of a root, beyond units of the least float


class BoxArrays(NamedTuple):
    """Lower and upper bounds, (M, D) each; ±inf: none on that side."""

    lower: np.ndarray
    upper: np.ndarray


class Gaps(NamedTuple):
    """What is between boxes (Q) and others (M), arrays of shape (Q, M)."""

    squares: np.ndarray  # whole numbers: squared distances in squares of the least float
    near: np.ndarray  # whether there is a distance at all
    overlap: np.ndarray
    touch: np.ndarray  # whether what they share is on the surface of both


def _whole(x: float) -> int:
    """Return a float in units of the least one, 2^-1074; 0 of infinity."""
    return int(Fraction(x) * 2**1074) if math.isfinite(x) else 0


whole = np.frompyfunc(_whole, 1, 1)


def _root(square: int) -> float:
    """Return the root of a square rounded once, ties to even; past the largest float it is infinite."""
    high = math.isqrt(square << 2 * _ROOT_BITS)
    beyond = high * high != square << 2 * _ROOT_BITS  # a root is whole or irrational: never between these
    return quotient(2 * high + beyond, 1 << (_ROOT_BITS + 1 + 1074))


roots = np.frompyfunc(_root, 1, 1)


def gaps(one: BoxArrays, other: BoxArrays) -> Gaps:
    """Return what is between all boxes of two lists; comparisons of floats are exact."""
    a, b = one.lower[:, None], one.upper[:, None]
    p, q = other.lower, other.upper
    meets = (a <= q) & (p <= b)
    high, low = np.where(meets, 0.0, np.where(p > b, p, a)), np.where(meets, 0.0, np.where(p > b, b, q))
    squares = ((whole(high) - whole(low)) ** 2).sum(axis=-1)
    overlap = meets.all(axis=-1)
    touch = overlap & ((a == q) | (p == b)).any(axis=-1)
    return Gaps(squares, (np.isfinite(high) & np.isfinite(low)).all(axis=-1), overlap, touch)


def within(found: Gaps, distance: np.ndarray) -> np.ndarray:
    """Return which boxes are at most so far away, (Q, M), for a distance of each of Q."""
    limit = distance[:, None]
    return found.near & ((limit == INF) | (found.squares <= whole(limit) ** 2))


class Nearest(NamedTuple):
    """The nearest boxes of queries, (Q, k); -1 and infinity where there are fewer."""

    numbers: np.ndarray
    distances: np.ndarray
    ties: int  # neighbours in the order, that number alone puts in order


def nearest(found: Gaps, allowed: np.ndarray, k: int) -> Nearest:
    """Return the k nearest of the allowed boxes, (Q, M), by distance, then by number."""
    numbers, distances, ties = np.full((len(allowed), k), -1), np.full((len(allowed), k), INF), 0
    for q, row in enumerate(allowed & found.near):
        ranked = sorted((found.squares[q, i], i) for i in np.flatnonzero(row).tolist())
        ties += sum(one[0] == two[0] for one, two in zip(ranked[:k], ranked[1 : k + 1], strict=False))
        for place, (square, i) in enumerate(ranked[:k]):
            numbers[q, place], distances[q, place] = i, _root(square)
    return Nearest(numbers, distances, ties)
