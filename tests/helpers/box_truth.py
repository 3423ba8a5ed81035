"""The definition of spatial queries: gaps between boxes, in whole numbers.

Nothing here imports raybox. Boxes are closed, and points are boxes without thickness. Two boxes are at the
distance of their nearest points; a box at infinity on an axis is at none, if they are apart there.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from exact import quotient

INF = math.inf
_ROOT_BITS = 64  # of a root, beyond the unit
ratio = np.frompyfunc(lambda x: x.as_integer_ratio() if math.isfinite(x) else (0, 1), 1, 1)


class BoxArrays(NamedTuple):
    """Lower and upper bounds, (M, D) each; ±inf: none on that side."""

    lower: np.ndarray
    upper: np.ndarray


class Gaps(NamedTuple):
    """What is between boxes (Q) and others (M), arrays of shape (Q, M)."""

    squares: np.ndarray
    """squared distances, whole numbers in squares of 1 / unit"""
    unit: int
    near: np.ndarray
    """whether there is a distance at all"""
    overlap: np.ndarray
    touch: np.ndarray
    """whether what they share is on the surface of both"""


def common_unit(values: np.ndarray) -> int:
    """Return the least power of two of which all finite values are multiples, as its inverse."""
    return max((d for _, d in ratio(np.unique(values)).tolist()), default=1)


def whole(values: np.ndarray, unit: int) -> np.ndarray:
    """Return values times a unit, in whole numbers; 0 of infinity."""
    distinct, places = np.unique(values, return_inverse=True)
    made = np.array([n * (unit // d) for n, d in ratio(distinct).tolist()], object)
    return made[places].reshape(np.shape(values))


def root(square: int, unit: int) -> float:
    """Return the root of a whole number in squares of 1 / unit, rounded once, or infinite."""
    high = math.isqrt(square << 2 * _ROOT_BITS)
    beyond = high * high != square << 2 * _ROOT_BITS  # a root is whole or irrational: never between these
    return quotient(2 * high + beyond, unit << (_ROOT_BITS + 1))


def gaps(one: BoxArrays, other: BoxArrays) -> Gaps:
    """Return what is between all boxes of two lists; comparisons of floats are exact."""
    a, b = one.lower[:, None], one.upper[:, None]
    p, q = other.lower, other.upper
    meets = (a <= q) & (p <= b)
    high, low = np.where(meets, 0.0, np.where(p > b, p, a)), np.where(meets, 0.0, np.where(p > b, b, q))
    unit = max(map(common_unit, (*one, *other)))
    squares = ((whole(high, unit) - whole(low, unit)) ** 2).sum(axis=-1)
    overlap = meets.all(axis=-1)
    touch = overlap & ((a == q) | (p == b)).any(axis=-1)
    return Gaps(squares, unit, (np.isfinite(high) & np.isfinite(low)).all(axis=-1), overlap, touch)


def order(found: Gaps, distance: np.ndarray) -> np.ndarray:
    """Return the sign of each distance less one of each of Q, (Q, M); 1 where there is none."""
    n, d = (np.array(x, object)[:, None] for x in zip(*ratio(distance).tolist(), strict=True))
    rest = found.squares * d**2 - (n * found.unit) ** 2
    signs = np.where(distance[:, None] == INF, -1, (rest > 0).astype(int) - (rest < 0).astype(int))
    return np.where(found.near, signs, 1)


class Nearest(NamedTuple):
    """The nearest boxes of queries, (Q, k); -1 and infinity where there are fewer."""

    numbers: np.ndarray
    distances: np.ndarray
    ties: int
    """neighbours in the order of which number alone decides"""


def nearest(found: Gaps, allowed: np.ndarray, k: int) -> Nearest:
    """Return the k nearest of the allowed boxes, (Q, M), by distance, then by number."""
    numbers, distances, ties = np.full((len(allowed), k), -1), np.full((len(allowed), k), INF), 0
    for q, row in enumerate(allowed & found.near):
        ranked = sorted((found.squares[q, i], i) for i in np.flatnonzero(row).tolist())
        ties += sum(one[0] == two[0] for one, two in pairwise(ranked[: k + 1]))
        for place, (square, i) in enumerate(ranked[:k]):
            numbers[q, place], distances[q, place] = i, root(square, found.unit)
    return Nearest(numbers, distances, ties)
