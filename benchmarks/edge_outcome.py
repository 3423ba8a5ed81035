"""What a check found, row by row, and comparisons that make it."""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from exact import Real, rounded
from path_truth import LARGEST, Sum


class Outcome(NamedTuple):
    """Results of one query, row by row."""

    query: str
    wrong: np.ndarray  # of each ray; of `deposit`, of each primitive
    got: list
    want: list


def equal(query: str, got, want) -> Outcome:
    """Return which rows differ; NaN equals NaN."""
    got, want = list(got), list(want)
    wrong = [not is_same(a, b) for a, b in zip(got, want, strict=True)]
    return Outcome(query, np.array(wrong, bool), got, want)


def is_same(a, b) -> bool:
    a, b = np.asarray(a, float), np.asarray(b, float)
    return a.shape == b.shape and bool(((a == b) | (np.isnan(a) & np.isnan(b))).all())


def within(query: str, got, want: list[Sum]) -> Outcome:
    """Return which numbers are beyond their bounds, or not finite where they should be."""
    got = np.asarray(got, float).reshape(-1).tolist()
    wrong = [not is_within(mine, true) for mine, true in zip(got, want, strict=True)]
    return Outcome(query, np.array(wrong, bool), got, [rounded(true.value) for true in want])


def is_within(mine: float, true: Sum) -> bool:
    if isinstance(true.value, float):
        return true.is_infinite(mine)
    if true.size + true.bound > LARGEST:
        return True
    return math.isfinite(mine) and abs(Fraction(mine) - true.value) <= true.bound


def all_within(query: str, got: list, want: list[list[Sum]]) -> Outcome:
    """Return which rows have another length, or a number beyond its bound."""
    wrong = [
        len(a) != len(b) or not all(is_within(x, y) for x, y in zip(a, b, strict=True))
        for a, b in zip(got, want, strict=True)
    ]
    return Outcome(query, np.array(wrong, bool), got, [[rounded(x.value) for x in row] for row in want])


class Placed(NamedTuple):
    """A point o + t d; t is exact, None for a miss."""

    origin: list[float]
    direction: list[float]
    t: Real | None

    def coordinates(self) -> list[Sum]:
        """Return the exact coordinates, and how far off roundings may take them."""
        return [self._coordinate(Fraction(o), d) for o, d in zip(self.origin, self.direction, strict=True)]

    def _coordinate(self, o: Fraction, d: float) -> Sum:
        if self.t is None:
            return Sum(math.nan, Fraction(0))
        if d == 0.0:
            return Sum(o, Fraction(0))
        if isinstance(self.t, float):
            return Sum(self.t * d, Fraction(0))
        move = self.t * Fraction(d)
        roundings = Fraction(4, 1 << 52) * (abs(o) + abs(move)) + (1 + abs(Fraction(d))) / (1 << 1074)
        return Sum(o + move, roundings, abs(o + move))


def points_within(query: str, got: list, points: list[Placed]) -> Outcome:
    """Return which points are off by more than roundings."""
    return all_within(query, got, [one.coordinates() for one in points])
