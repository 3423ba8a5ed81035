"""Kernels for many pairs, callable from tests; near planes of boxes in Fractions."""

import math
from collections import Counter
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from loops import loop
from raybox.primitives.box_simd import make_pairs
from raybox.primitives.status import HIT, MISS, UNDECIDED
from raybox.primitives.table import classify, entry_times, first_contacts


@loop
def call_classify(rows, rays64, pairs, number):
    classify(rows, rays64, pairs, number)


@loop
def call_entry_times(rows, rays64, pairs, number):
    entry_times(rows, rays64, pairs, number)


@loop
def call_first_contacts(rows, rays64, pairs, number):
    first_contacts(rows, rays64, pairs, number)


class Classified(NamedTuple):
    """The status of pairs and bounds of their times; of the hits, which these are, and times in float64."""

    status: np.ndarray
    low: np.ndarray
    high: np.ndarray
    hits: np.ndarray
    timed: np.ndarray
    t: np.ndarray

    def counts(self) -> Counter:
        """Return how many pairs are of each kind."""
        misses, undecided = (int((self.status == kind).sum()) for kind in (MISS, UNDECIDED))
        untimed = int((self.timed != HIT).sum())
        return Counter(hits=self.hits.size, misses=misses, undecided=undecided, untimed=untimed)


def classified(rows, pairs) -> Classified:
    """Classify each ray and the primitive of its row; then time the hits."""
    n = len(pairs.origins)
    rays64, jobs = np.column_stack([*pairs[:2], pairs.t_min + 0.0, pairs.t_max]), make_pairs(n)
    jobs.ray[:n] = jobs.item[:n] = jobs.source[:n] = np.arange(n)
    call_classify(rows, rays64, jobs, n)
    status, low, high = (x[:n].copy() for x in jobs[2:5])
    (hits,) = np.nonzero(status == HIT)
    again = make_pairs(hits.size)
    again.ray[: hits.size] = again.item[: hits.size] = again.source[: hits.size] = hits
    if hits.size:
        call_first_contacts(rows, rays64, again, hits.size)
    return Classified(status, low, high, hits, again.status[: hits.size], again.low[: hits.size])


def near_planes(o, d, lower, upper) -> list[tuple[Fraction, int]]:
    """Return the times and numbers of the near planes of each axis, the latest first."""
    found = []
    for axis, (p, q) in enumerate(zip(o, d, strict=True)):
        plane = (upper if q < 0 else lower)[axis]
        if q != 0 and abs(plane) < float("inf"):
            found.append(((Fraction(plane) - Fraction(p)) / Fraction(q), axis + 3 * (q < 0)))
    return sorted(found, reverse=True)


def halfway(when: Fraction) -> bool:
    """Return whether a number lies halfway between two floats."""
    near = Fraction(float(when))
    return abs(when - near) * 2 == Fraction(math.ulp(float(near)))
