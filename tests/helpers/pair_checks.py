"""Kernels for many pairs, callable from tests; near planes of boxes in Fractions."""

from fractions import Fraction

from loops import loop
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


def near_planes(o, d, lower, upper) -> list[tuple[Fraction, int]]:
    """Return the times and numbers of the near planes of each axis, the latest first."""
    found = []
    for axis, (p, q) in enumerate(zip(o, d, strict=True)):
        plane = (upper if q < 0 else lower)[axis]
        if q != 0 and abs(plane) < float("inf"):
            found.append(((Fraction(plane) - Fraction(p)) / Fraction(q), axis + 3 * (q < 0)))
    return sorted(found, reverse=True)
