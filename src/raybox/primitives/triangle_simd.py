"""Triangles, eight pairs with rays at a time: hits and misses that are certain in float64.

With A, B, C the corners less the origin (each rounded once), P = d x C and Q = d x B, the volumes of
`raybox.primitives.triangle` are U = B . P, V = -A . P and W = A . Q: six products of at most dm M^2 each,
where dm and M are the largest parts of d and of A, B, C. Roundings cost at most 40 of 2^-53 of that (33 where
operations are fused), so a volume beyond 2^-47 dm M^2 has its sign for certain.

The time is n . A / n . d with n = (b - a) x (c - a). With e the largest part of these two edges,
roundings cost the numerator at most 46, and the denominator at most 40, of 2^-53 e^2 M and e^2 dm (fused: 39
and 33): 2^-47 again.

M and dm are *tame*, 2^-200 to 2^200, or nothing is certain. A time needs e to be above 2^-200, too; it is at
most 2 M. So nothing overflows, and what underflows is less than 2^-200 of any bound.

At its exact time T a ray that hits its triangle is at a mean of the corners: abs(T) dm <= M. So the error of
the computed quotient is at most 86 (fused: 72) of 2^-53 e^2 M over the computed denominator, however small
that is; the bound is 96. For a ray that misses, no bound is needed.

First contacts are computed in double-double. Differences are exact in it; sums and products are off by less
than 2^-100 of the sizes of their terms (`raybox.exact.double_double`), 28 of these for the numerator, fewer
for the denominator, of sizes as above: the bound is 2^-95. Only hits have them, so dm and e are tame;
abs(A . P) is beyond 2^-47 dm M^2, so A is not below 2^-50 M; and the denominator, U + V + W, is beyond
2^-47 dm M^2 too, thus far from 0. Of a triangle in a plane across an axis, as floors and walls have them, the
time is that of a plane of a box: of rays along the axis it often lies halfway between two floats.
"""

from functools import partial, reduce
from operator import and_
from typing import NamedTuple

from raybox.compiler.decorators import inlined
from raybox.compiler.intrinsics import Fields, vector_code, void
from raybox.compiler.simd import I1, I64, Builder, Lanes, Scalar, constant, greater, multiply_add
from raybox.compiler.simd_arrays import Memory, Register, loop
from raybox.compiler.simd_transpose import transposed
from raybox.exact import double_double_simd
from raybox.exact.double_double_simd import Twofold, difference
from raybox.exact.error_free_simd import product_error
from raybox.geometry import TriangleRows
from raybox.primitives.box_simd import (
    LANES,
    Classified,
    Pairs,
    fill_up,
    inverse_of,
    load_rays,
    look_ahead,
    numbers,
    quotient,
    status_of,
    timed_status,
)
from raybox.validation import Floats

_OFF = 2.0**-47
_OFF_TWOFOLD = 2.0**-95
_ROUND = 2.0**-50
_ZIV = 2.0**-48  # bound of the roundings of a quotient's correction
_TAME = 2.0**200

Vector = list[Lanes]


class RayTriangles(NamedTuple):
    """Rays and triangles, lane by lane."""

    o: Vector
    d: Vector
    t_min: Lanes
    t_max: Lanes
    corners: list[Vector]


def intersect_triangles(pairs: RayTriangles, culled: Scalar) -> Classified:
    """Return the certain hits and misses. culled: whether back faces are culled."""
    o, d, t_min, t_max, corners = pairs
    a, b, c = (minus(corner, o) for corner in corners)
    p, q = cross(d, c), cross(d, b)
    volumes = dot(b, p), -dot(a, p), dot(a, q)
    size, step = largest(*a, *b, *c), largest(*d)
    slack = step * size * size * _OFF
    above = [volume > slack for volume in volumes]
    below = [volume < -slack for volume in volumes]
    front, back = above[0] & above[1] & above[2], below[0] & below[1] & below[2]
    some_above, some_below = above[0] | above[1] | above[2], below[0] | below[1] | below[2]
    culled_front = everywhere(front, culled)
    tame = _is_tame(size) & _is_tame(step)

    edges = minus(corners[1], corners[0]), minus(corners[2], corners[0])
    normal, side = cross(*edges), largest(*edges[0], *edges[1])
    den, off = dot(normal, d), side * side * _OFF
    time = dot(normal, a) / den
    known = tame & (side > 1 / _TAME)
    pad = (size + time.magnitude() * step) * off * 1.5 / den.magnitude() + time.magnitude() * _ROUND
    low, high = time - pad, time + pad
    out = known & ((high < t_min) | (low > t_max))
    return Classified(
        known & (front | (back & ~culled_front)) & (low > t_min) & (high < t_max),
        out | (tame & some_below & (some_above | culled_front)),
        low,
        high,
    )


def everywhere(like: Lanes, bit: Scalar) -> Lanes:
    """Return one bit in all lanes."""
    b = like.b
    kind = like.value.type
    mask = b.select(bit, kind([1] * like.count), kind([0] * like.count))
    return Lanes(b, mask)


def minus(p: Vector, q: Vector) -> Vector:
    """Return p - q."""
    return [x - y for x, y in zip(p, q, strict=True)]


def cross(p: Vector, q: Vector) -> Vector:
    """Return p x q."""
    return [multiply_add(p[k - 2], q[k - 1], -(p[k - 1] * q[k - 2])) for k in range(3)]


def dot(p: Vector, q: Vector) -> Lanes:
    """Return p . q."""
    return multiply_add(p[2], q[2], multiply_add(p[1], q[1], p[0] * q[0]))


def largest(*parts: Lanes) -> Lanes:
    """Return the largest magnitude."""
    sizes = [part.magnitude() for part in parts]
    largest = sizes[0]
    for size in sizes[1:]:
        largest = greater(size, largest)
    return largest


def sum_of(vector: Vector) -> Lanes:
    """Return the sum of the magnitudes of three parts."""
    x, y, z = (part.magnitude() for part in vector)
    return x + y + z


def _is_tame(size: Lanes) -> Lanes:
    return (size > 1 / _TAME) & (size < _TAME)


def _load(b: Builder, mesh: Fields, exact: Memory, pairs: Fields, at: Scalar) -> RayTriangles:
    """Load eight pairs."""
    rays, items = numbers(b, pairs.ray, at), numbers(b, pairs.item, at)
    return RayTriangles(*load_rays(b, exact, rays), load_corners(b, mesh, items))


def load_corners(b: Builder, mesh: Fields, items: list[Scalar]) -> list[Vector]:
    """Return the corners of eight triangles."""
    places = [b.mul(item, I64(9)) for item in items]
    first = transposed([mesh.corners.load(place, 8) for place in places])
    last = mesh.corners.gather([b.add(place, I64(8)) for place in places])
    return [first[:3], first[3:6], [*first[6:], last]]


def share_level(b: Builder, mesh: Fields, one: Scalar, other: Scalar) -> Scalar:
    """Return whether two triangles lie in one plane across an axis."""
    places = [b.add(b.mul(item, I64(9)), I64(3 * k)) for item in (one, other) for k in range(3)]
    first, *others = (mesh.corners.load(place, 3) for place in places)
    return reduce(and_, map(first.equals, others)).any()


@vector_code(void)
def _classify(b: Builder, mesh: Fields, exact: Memory, pairs: Fields, number: Scalar) -> None:
    with loop(b, number, LANES) as at:
        classified = intersect_triangles(_load(b, mesh, exact, pairs, at), mesh.cull_back)
        pairs.status.store(status_of(classified.hits, classified.misses), at)
        pairs.low.store(classified.low, at)
        pairs.high.store(classified.high, at)


@inlined
def classify(mesh: TriangleRows, exact: Floats, pairs: Pairs, number: int) -> None:
    """Write the status of pairs of rays and triangles, and bounds of their first contacts."""
    fill_up(pairs, number)
    _classify(mesh, exact, pairs, number)


class TimeRatios(NamedTuple):
    """Crossing times as ratios in double-double, and bounds of their errors."""

    num: Twofold
    den: Twofold
    num_error: Lanes
    den_error: Lanes
    size: Lanes  # M, the largest part of the first corner less the origin
    side: Lanes  # e, the largest part of two edges


def crossing_of(o: Vector, direction: Vector, corners: list[Vector]) -> TimeRatios:
    """Return the times at which rays cross the planes of triangles."""
    a, b, c = corners
    to_b, to_c, to_a = difference(b, a), difference(c, a), difference(a, o)
    normal = double_double_simd.cross(to_b, to_c)
    d = [Twofold(x, x * 0.0) for x in direction]
    num, den = double_double_simd.dot(normal, to_a), double_double_simd.dot(normal, d)
    side, size = largest(*(x.head for x in (*to_b, *to_c))), largest(*(x.head for x in to_a))
    off = side * side * _OFF_TWOFOLD
    return TimeRatios(num, den, size * off, largest(*direction) * off, size, side)


def time_of(o: Vector, direction: Vector, corners: list[Vector], hit: Lanes) -> tuple[Lanes, Lanes]:
    """Return (known, time rounded once) of hits; nothing of other lanes.

    Most triangles of buildings lie in planes across an axis: where all do, the rest is not computed.
    """
    level = [a.equals(b) & a.equals(c) for a, b, c in zip(*corners, strict=True)]
    p, origin, d = (level[0].choose(x, level[1].choose(y, z)) for x, y, z in (corners[0], o, direction))
    known_level, time = quotient(p, origin, d, inverse_of(d))
    known_level = known_level & (level[0] | level[1] | level[2])
    known, first = Register(p.b, known_level.value), Register(p.b, time.value)
    with p.b.if_then((hit & ~known_level).any()):
        sloping, t = _sloping_time_of(o, direction, corners)
        known.value, first.value = (known_level | sloping).value, known_level.choose(time, t).value
    return known.lanes, first.lanes


def _sloping_time_of(o: Vector, direction: Vector, corners: list[Vector]) -> tuple[Lanes, Lanes]:
    """Return the same, whichever way the planes of the triangles lie."""
    num, den, num_error, den_error, *_ = crossing_of(o, direction, corners)
    width = den.head.magnitude()

    # The remainder of the first quotient is exact in its first two terms.
    q = num.head / den.head
    product = q * den.head
    error = product_error(q, den.head, product)
    rest = ((num.head - product) - error) + num.tail - q * den.tail
    correction = rest / den.head
    slack = (num_error + q.magnitude() * den_error) * 1.1 / width + correction.magnitude() * _ZIV
    slack = slack + q.magnitude() * 2.0**-100
    t = q + (correction - slack)
    return t.equals(q + (correction + slack)), t + 0.0


@vector_code(void)
def _first_contacts(b: Builder, mesh: Fields, exact: Memory, pairs: Fields, number: Scalar) -> None:
    with loop(b, number, LANES) as at:
        look_ahead(b, pairs, at, number, partial(_prefetch, b, mesh))
        loaded = _load(b, mesh, exact, pairs, at)
        all_lanes = constant(b, I1, LANES, 1)
        known, time = time_of(loaded.o, loaded.d, loaded.corners, all_lanes)
        pairs.status.store(timed_status(known), at)
        pairs.low.store(time, at)


def _prefetch(b: Builder, mesh: Fields, item: Scalar) -> None:
    """Prefetch the corners of a triangle."""
    place = b.mul(item, I64(9))
    for number in (0, 8):
        mesh.corners.prefetch(b.add(place, I64(number)))


@inlined
def first_contacts(mesh: TriangleRows, exact: Floats, pairs: Pairs, number: int) -> None:
    """Write first contacts of hits, rounded once, to `low`, and the status: `HIT` or `UNDECIDED`."""
    fill_up(pairs, number)
    _first_contacts(mesh, exact, pairs, number)
