"""Triangles against sixteen rays at a time in float32: certain hits, certain misses, bounds of times.

All is in tree coordinates, which are the given ones less a point and times a power of two. Rays are o + t d,
o = e + s, where e is a point near the origins of all rays (`PacketWays`): the eye of a picture, where s = 0.
The largest part of d is in [1/2, 1). With A, B, C the corners less e, and m = d x s, the volumes of
`raybox.primitives.triangle` are::

    U = d . (C x B) + m . (C - B)      V = d . (A x C) + m . (A - C)      W = d . (B x A) + m . (B - A)

for (C - s) x (B - s) = C x B + s x (C - B), and d . (s x x) = m . x. The vectors C x B and so on are those of
a triangle, whatever the ray: they are computed once for a node, of which rays of many packets read them.

**Sizes.** u = 2^-24 and v = 2^-53 are the rounding errors of float32 and float64, ``|x|`` is the sum of the
magnitudes of the three parts of x, M the largest part of A, B, C, all as computed. Parts of d are at most 1.

**Vectors of a triangle** take float64. A part of A is off by v of itself: one subtraction; the scale is a
power of two. Parts of N = C x B are off by 8 v M^2: of each of two products 3 v M^2 (two differences, one
rounding; fused: no more), and 2 v M^2 for their sum. So d . N is off by 24 v M^2, which is 3/4 of 2^-48 M^2.
C - B is one difference of corners: off by v of itself.

**Volumes** take float32. The unit of a volume is ``S = 7 u |N| + 2^-48 M^2``, by which N and C - B are
divided: 1/S is one float32 number, off by 2 u of itself, and N/S is rounded once to float32. With d and N
rounded, and three roundings of a term of d . N (four, where operations are not fused and s is not 0), the
sum is off by 6 u ``|N|`` at most. So U is certainly positive above 1, and certainly negative below -1, where
s = 0: of 7 u one is left, and a quarter of 2^-48 M^2, for what is of second order, and for what underflows,
2^-120 of the unit. Where s is not 0, terms of m are rounded six times, and m and C - B before: 8 u. m is
computed in float64 from s and d: it is off by 6 v max(s), too. So the bound is ``1 + |C - B|/S (9 u max(m) +
2^-49 max(s))``; the largest ``|C - B|/S`` of the three edges serves all. Of an edge that two triangles
share, both have the same volume within these bounds: a ray near it is certain in neither, and float64
decides.

Of a triangle without area U + V + W = -d . n is 0: they have not all one sign, and no hit is certain.

**Times.** t = n . (A - s) / n . d with n = (b - a) x (c - a), and g the largest part of these edges. n is off
by 8 v g^2 in each part, and n . A by 46 v g^2 M (`raybox.primitives.triangle_simd`). The unit of the
denominator is ``D = 7 u |n| + 2^-47 g^2``, which bounds its error, as above. The numerator is off by 5 u of
n . A and 2^-47 g^2 M; with s by max(s) D more, for its terms have four roundings, and those of n and s. With
numbers over D, let p/q be the quotient of the computed ones, and T the exact one, so q is off by at most 1
and p by P. Then T - p/q = (T (error of q) - (error of p)) / q, which is also::

    abs(T - p/q) <= (P + abs(p/q)) / (abs(q) - 1) <= 8/7 (P + abs(p/q)) / abs(q)   for abs(q) >= 8

for any ray of the plane, hit or miss. 5/4 stands for 8/7, and 4 u abs(p/q) + 4 u abs(t) more for the
roundings: of the inverse of q and the product, of the difference with the ray's shift (one float32 number),
and of the bounds themselves. A denominator that is smaller leaves the pair undecided.

**Limits.** M is from 2^-30 to 2^30, g above 2^-36, s below 2^20: else no pair is certain. So no unit is above
2^62 or below 2^-120, no number here overflows, and what underflows is less than 2^-100 of its unit.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from raybox.compiler.simd import F32, F64, Builder, Lanes, Scalar, constant, greater, multiply_add
from raybox.primitives.triangle_decision import Ends, Times, TriangleHits, decided
from raybox.primitives.triangle_simd import Vector, cross, dot, largest, minus, sum_of

_ROUND = 2.0**-24
_VOLUME, _EDGE, _CORNER = 7.0 * _ROUND, 9.0 * _ROUND, 5.0 * _ROUND
_OFF_VOLUME, _OFF_MOMENT, _OFF_TIME = 2.0**-48, 2.0**-49, 2.0**-47
_LEAST, _MOST, _SHORT, _AWAY = 2.0**-30, 2.0**30, 2.0**-36, 2.0**20
_LARGE = 1.0 / 8.0  # of the inverse of a denominator: its error is known
_MORE = 1.25
_SLACK = 4.0 * _ROUND

NORMALS, EDGES, PLANE, FROM, ERROR, EDGE = 0, 9, 18, 21, 22, 23
TRIANGLE_WORDS = 24
"""Words of a triangle in a node: three vectors of volumes, three edges, the plane's normal, n . A, its error,
and the largest size of an edge."""


class Moves(NamedTuple):
    """Where sixteen rays start, beside the eye: float32."""

    away: Lanes  # bound of the parts of s
    twist: Lanes  # 9 u max(m) + 2^-49 max(s)
    m: Vector
    s: Vector

    def columns(self) -> list[Lanes]:
        """Return all columns."""
        return [self.away, self.twist, *self.m, *self.s]


class PacketWays(NamedTuple):
    """Sixteen rays of a packet, as triangles need them: float32."""

    d: Vector
    shift: Lanes  # where packed times begin
    off: Lanes  # `Ends.off`
    moves: Moves | None  # None where all start at the eye


AWAY, WAY_COLUMNS = 5, 13
"""The column of `Moves.away`, and how many columns there are: d, shift, off, and those of `Moves`."""


def ways_of(columns: list[Lanes]) -> PacketWays:
    """Return the rays with these columns: the first five, or all."""
    moves = columns[AWAY:] and Moves(columns[5], columns[6], columns[7:10], columns[10:13])
    return PacketWays(columns[:3], columns[3], columns[4], moves or None)


def moves_of(s: Vector, d: Vector) -> Moves:
    """Return where rays start. s, d: float64, in tree coordinates."""
    m = cross(d, s)
    away, turn = largest(*s), largest(*m)
    away = (away < _AWAY).choose(away, np.nan)
    twist = turn * _EDGE + away * _OFF_MOMENT
    away, twist = ((x * (1.0 + _SLACK)).to(F32) for x in (away, twist))
    return Moves(away, twist, [x.to(F32) for x in m], [x.to(F32) for x in s])


def node_triangles(corners: list[Vector], eye: Vector, scale: Lanes) -> list[Lanes]:
    """Return the words of triangles, one a lane, in float32. corners, eye: as given."""
    around = [[x * scale for x in minus(corner, eye)] for corner in corners]
    between = [[x * scale for x in minus(corners[k], corners[k - 1])] for k in range(3)]
    size = largest(*around[0], *around[1], *around[2])
    known = (size > _LEAST) & (size < _MOST)
    rows: list[Lanes] = []
    widths: list[Lanes] = []
    widest = size * 0.0
    for k in (2, 0, 1):  # U, V, W
        volume, edge = cross(around[k], around[k - 1]), between[k]
        unit = inverse(sum_of(volume) * _VOLUME + size * size * _OFF_VOLUME)
        rows += [known.choose(x * unit, 0.0).to(F32) for x in volume]
        widths += [known.choose(x * unit, 0.0).to(F32) for x in edge]
        widest = greater(sum_of(edge) * unit, widest)
    plane = _plane_words(between[1], [-x for x in between[0]], around[0], (size, known))
    return [*rows, *widths, *plane, (widest * (1.0 + _SLACK)).to(F32)]


def _plane_words(p: Vector, q: Vector, a: Vector, at: tuple[Lanes, Lanes]) -> list[Lanes]:
    """Return the normal p x q, n . a and its error, over the unit. at: M, and whether volumes are known."""
    size, known = at
    normal, side = cross(p, q), largest(*p, *q)
    square = side * side * _OFF_TIME
    unit = (known & (side > _SHORT)).choose(inverse(sum_of(normal) * _VOLUME + square), np.nan)
    start = dot(normal, a) * unit
    error = start.magnitude() * _CORNER + square * size * unit * (1.0 + _SLACK)
    return [*((x * unit).to(F32) for x in normal), start.to(F32), error.to(F32)]


def inverse(x: Lanes) -> Lanes:
    """Return 1/x, a float32 number, in float64."""
    return (constant(x.b, F32, x.count, 1.0) / x.to(F32)).to(F64)


def intersect(
    b: Builder, word: Callable[[int], Lanes], ways: PacketWays, ends: Ends, culled: Scalar
) -> tuple[Lanes, Callable[[], TriangleHits]]:
    """Return which rays do not certainly miss the triangle's sides, and what decides these.

    word: a word of the triangle, in all lanes.
    """
    volumes = [_volume(word, ways, at) for at in range(NORMALS, EDGES, 3)]
    one = constant(b, F32, ends.stop.count, 1.0)
    bound = multiply_add(word(EDGE), ways.moves.twist, one) if ways.moves else one
    return decided(volumes, bound, partial(_times, b, word, ways), ends, culled)


def _volume(word: Callable[[int], Lanes], ways: PacketWays, at: int) -> Lanes:
    """Return a volume of each ray, over its unit."""
    volume = [word(at + k) for k in range(3)]
    if ways.moves is None:
        return dot(ways.d, volume)
    value = dot(ways.moves.m, [word(at + EDGES + k) for k in range(3)])
    for x, y in zip(ways.d, volume, strict=True):
        value = multiply_add(x, y, value)
    return value


def _times(b: Builder, word: Callable[[int], Lanes], ways: PacketWays) -> Times:
    """Return bounds of the times at which rays cross the plane."""
    normal = [word(PLANE + k) for k in range(3)]
    start, error = word(FROM), word(ERROR)
    if ways.moves:
        for x, y in zip(normal, ways.moves.s, strict=True):
            start = multiply_add(-x, y, start)
        error = error + ways.moves.away
    part = constant(b, F32, start.count, 1.0) / dot(ways.d, normal)
    whole = start * part
    time, size = whole - ways.shift, whole.magnitude()
    pad = (error + size) * part.magnitude() * _MORE + (size + time.magnitude()) * _SLACK
    return Times(time - pad, time + pad, part.magnitude() <= _LARGE)
