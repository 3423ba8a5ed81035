"""Triangles in the slots of nodes against rays in float32: certain hits, certain misses, bounds of times.

All is in tree coordinates, which are the given ones less a point and times a power of two. A ray is o + t d,
where o is the point at which its packed times begin, and the largest part of d is in [1/2, 1). A node stores,
for each of its triangles, the corner a, the edges p = b - a and q = c - a, and the largest part E of these.
With s = a - o, the volumes of `raybox.primitives.triangle`, their sum D and the time are::

    V = -s . (d x q)     W = d . (p x s)     D = p . (d x q)     U = D - V - W     t = q . (p x s) / D

**Sizes.** u = 2^-24 is the rounding error of float32. Parts are at most 1 of d, E of p and q, S of s, as
computed, and r of o: the *reach* of a ray, with what float64 rounds off o, over u. So parts of a are at most
S + r. Parts of d, p, q, a and o are rounded once from float64, and s once more: it is off by 2u (S + r).

**Errors**, of rounded products (fused: no more). Parts of d x q are at most 2E, and off by 8u E: of each of
two products 2u E, 1u E for its rounding, and 2u E for their sum. Parts of p x s are at most 2E S, and off by
10u E S + 4u E r: of two products 6u E S and 4u E r, 2u E S for their roundings, 2u E S for their sum. ::

    V    52u E S + 12u E r     24 of d x q, 12 of s (and r), 6 of products, 10 of sums
    W    52u E S + 12u E r     30 of p x s (and r), 6 of d, 6, 10
    D    46u E^2               24 of d x q, 6 of p, 6, 10
    U    58u E^2 + 122u E S + 24u E r     these, and differences of at most 6 (E^2 + E S), 6 E^2 + 12 E S
    q . (p x s)    52u E^2 S + 12u E^2 r

U/2, V and W are compared with 13u E (5S + r + 2.5E): of 65u E S, four are left, and of 13u E r, one, for what
is of second order, for the roundings of the bound, and for what underflows, less than 2^-140.

**Times.** Let X and Y bound the errors of x = q . (p x s) and y = D, as computed; T is the exact time. Then
T - x/y = (T (error of y) - (error of x)) / y, for any ray of the plane, hit or miss; where abs(y) >= 8Y::

    abs(T - x/y) <= (X + abs(x/y) Y) / (abs(y) - Y) <= 8/7 (X + abs(x/y) Y) / abs(y)
                 <= 8/7 (52u E^2 (S + r) + 46u E^2 abs(x/y)) / abs(y) < 60u E^2 (S + r + abs(x/y)) / abs(y)

80u stands for 60u: as abs(y) is at most 6E^2, and so 20u E^2 / abs(y) more than 3u, this leaves room for the
roundings of the inverse of y, of the product, and of the bounds.

**Limits.** E is above 2^-30 and corners are below 2^20: else E is stored as infinite, and no pair is certain.
Origins are below 2^61, so nothing else overflows before a bound does.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from raybox.bvh.node import WIDTH
from raybox.compiler.simd import F32, Lanes, Scalar, constant, multiply_add
from raybox.primitives.triangle_decision import Ends, Times, TriangleHits, decided
from raybox.primitives.triangle_simd import Vector, cross, dot, largest, minus

_VOLUME = 13 * 2.0**-24
_TIME = 80 * 2.0**-24
_KNOWN = 5.0  # times 80u E^2: more than 8 times 46u E^2
_UNIT = 2.0**24  # 1/u
_SHORT, _FAR = 2.0**-30, 2.0**20
_UP = 1.0 + 2.0**-20

CORNER, FIRST, SECOND, SIDE = 0, 3, 6, 9
SLOT_WORDS = 10
"""Words of a triangle in a node: a, p, q and E."""
ROOM = SLOT_WORDS * WIDTH
"""Words of the triangles of a node."""
ORIGIN, WAY, REACH, BEFORE = 0, 3, 6, 7
WAY_WORDS = 8
"""Words of a ray at triangles: o, d, r, and the time before which certain hits come first."""


class RayWays(NamedTuple):
    """Rays at triangles, lane by lane."""

    o: Vector
    d: Vector
    reach: Lanes


def way_of(words: list[Lanes]) -> RayWays:
    """Return the rays with these words."""
    return RayWays(words[ORIGIN:WAY], words[WAY:REACH], words[REACH])


def reach_of(o: Vector, slack: Lanes) -> Lanes:
    """Return r of rays that start at o, in float32. slack: what float64 rounds off o."""
    return (largest(*o) + slack * _UNIT) * _UP


def slot_words(corners: list[Vector], center: Vector, scale: Lanes) -> list[Lanes]:
    """Return the words of triangles, one a lane, in float32. corners, center: as given, in float64."""
    around = [[x * scale for x in minus(corner, center)] for corner in corners]
    p, q = ([x * scale for x in minus(corners[k], corners[0])] for k in (1, 2))
    size, side = largest(*around[0], *around[1], *around[2]), largest(*p, *q)
    known = (size < _FAR) & (side > _SHORT)
    vectors = [known.choose(x, 0.0).to(F32) for x in (*around[0], *p, *q)]
    return [*vectors, known.choose(side * _UP, np.inf).to(F32)]


class Measured(NamedTuple):
    """What is computed of rays and triangles, lane by lane."""

    volumes: Vector  # U/2, V and W
    bound: Lanes  # of their errors
    num: Lanes  # q . (p x s)
    den: Lanes  # D
    unit: Lanes  # 80u E^2
    away: Lanes  # S + r


def measure(word: Callable[[int], Lanes], way: RayWays) -> Measured:
    """Return volumes and times of rays at triangles. word: a word of the triangles, lane by lane."""
    a, p, q = ([word(at + k) for k in range(3)] for at in (CORNER, FIRST, SECOND))
    s, side = minus(a, way.o), word(SIDE)
    across, around, near = cross(way.d, q), cross(p, s), largest(*s)
    v, w, total = -dot(s, across), dot(way.d, around), dot(p, across)
    away = near + way.reach
    four, more = (constant(side.b, F32, side.count, x) for x in (4.0, 2.5))
    bound = side * _VOLUME * multiply_add(side, more, multiply_add(near, four, away))
    volumes = [(total - v - w) * 0.5, v, w]
    return Measured(volumes, bound, dot(q, around), total, side * side * _TIME, away)


def times(measured: Measured) -> Times:
    """Return bounds of the times at which rays cross the planes of triangles."""
    den, unit = measured.den, measured.unit
    part = constant(den.b, F32, den.count, 1.0) / den
    time = measured.num * part
    pad = (measured.away + time.magnitude()) * unit * part.magnitude()
    return Times(time - pad, time + pad, den.magnitude() >= unit * _KNOWN)


def intersect(
    word: Callable[[int], Lanes], way: RayWays, ends: Ends, culled: Scalar
) -> tuple[Lanes, Callable[[], TriangleHits]]:
    """Return which rays do not certainly miss the triangles' sides, and what decides these."""
    measured = measure(word, way)
    return decided(measured.volumes, measured.bound, partial(times, measured), ends, culled)
