"""Compiled code that judges pairs of rays and primitives, called as tests call it; planes by Fractions."""

from fractions import Fraction

import numba

from raybox.compiler.decorators import FLAGS
from raybox.primitives.table import classify, entry_times, first_contacts

loop = numba.njit(**(FLAGS | {"_nrt": True}))


@loop
def screen_of(rows, exactly, pairs, number):
    classify(rows, exactly, pairs, number)


@loop
def enter_of(rows, exactly, pairs, number):
    entry_times(rows, exactly, pairs, number)


@loop
def settle_of(rows, exactly, pairs, number):
    first_contacts(rows, exactly, pairs, number)


def planes_entered(o, d, lower, upper) -> list[tuple[Fraction, int]]:
    """When a line crosses the near plane of each axis, and which one that is; the latest first."""
    found = []
    for axis, (p, q) in enumerate(zip(o, d, strict=True)):
        plane = (upper if q < 0 else lower)[axis]
        if q != 0 and abs(plane) < float("inf"):
            found.append(((Fraction(plane) - Fraction(p)) / Fraction(q), axis + 3 * (q < 0)))
    return sorted(found, reverse=True)
