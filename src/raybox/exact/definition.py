"""The definition of every result: one ray against one box, plane or triangle, in integers.

A float64 is an integer over a power of two, so every time and weight is a ratio of integers, which Python
represents without rounding. Decisions are therefore exact; a reported number is the exact one rounded once,
to the nearest float64 (ties to even), or an infinity where it is too large. The compiled kernels are tested
against this module; it decides what they leave undecided.

A time is a pair ``(n, d)`` with ``d >= 0`` that stands for n / d; ``(-1, 0)`` and ``(1, 0)`` are the two
infinities. `_before` orders any two times, except that the infinities compare as equal.
"""

from collections.abc import Iterable, Sequence
from math import inf, isinf
from typing import NamedTuple

Vector = tuple[float, ...]
Ratio = tuple[int, int]

_MINUS_INFINITY: Ratio = (-1, 0)
_PLUS_INFINITY: Ratio = (1, 0)


class Ray1(NamedTuple):
    """One ray: the points origin + t * direction, t_min <= t <= t_max.

    t counts in lengths of the direction, which may have any length; a zero direction is the point origin.
    """

    origin: Vector
    direction: Vector
    t_min: float = 0.0
    t_max: float = inf


class Crossing(NamedTuple):
    """The hit of a ray and a primitive.

    t is on the ray, t_enter and t_exit on the whole line. t is the first contact, max(t_min, t_enter). axis
    is that of the face entered at t_enter (the lowest one at an edge or a corner); -1 where the ray starts
    past t_enter, and where no face is entered.
    """

    t: float
    t_enter: float
    t_exit: float
    axis: int


class TriangleHit(NamedTuple):
    """The hit of a ray and a triangle, with the weights of its second and third corner."""

    crossing: Crossing
    u: float
    v: float


def box(ray: Ray1, lower: Vector, upper: Vector) -> Crossing | None:
    """Return the hit of a ray and a closed box, or None.

    Touching is a hit. Bounds may be infinite. A box without a real point (both bounds +inf, for example) and
    a ray with an empty range hit nothing. Slabs after Kay and Kajiya 1986, in ratios of integers.

    Examples
    --------
    >>> box(Ray1((0.0, 0.0), (2.0, 1.0)), (1.0, 0.0), (4.0, 1.0))
    Crossing(t=0.5, t_enter=0.5, t_exit=1.0, axis=0)
    """
    span = box_span(ray, lower, upper)
    if span is None:
        return None
    enter, leave, axis = span
    if _before(enter, ratio_of(ray.t_min)):
        start = ray.t_min + 0.0  # -0.0 becomes 0.0
        return Crossing(start, rounded(enter), rounded(leave), -1)
    t = rounded(enter)
    return Crossing(t, t, rounded(leave), axis)


def box_order(ray: Ray1, first: tuple[Vector, Vector], second: tuple[Vector, Vector]) -> int:
    """Return which box a ray hits first: -1, 1, or 0 for a tie.

    -1 is the first box, 1 the second; both are missed, too, at 0. Compares the exact t of `box`, before
    rounding; each box is a pair (lower, upper). A missed box comes after every box that is hit.

    Examples
    --------
    >>> box_order(Ray1((0.0,), (1.0,)), ((2.0,), (3.0,)), ((1.0,), (9.0,)))
    1
    """
    a, b = box_time(ray, *first), box_time(ray, *second)
    if a is None or b is None:
        return (a is None) - (b is None)
    return _before(b, a) - _before(a, b)


def plane(ray: Ray1, normal: Vector, offset: float, cull_back: bool = False) -> Crossing | None:
    """Return the hit of a ray and a plane, or None.

    The plane is normal . p = offset. A ray parallel to the plane misses, also within it: there is no single
    crossing. cull_back also drops rays from behind, that is, along the normal.

    Examples
    --------
    >>> plane(Ray1((0.0, 0.0, 3.0), (0.0, 0.0, -2.0)), (0.0, 0.0, 1.0), 2.0)
    Crossing(t=0.5, t_enter=0.5, t_exit=0.5, axis=-1)
    """
    time = plane_time(ray, normal, offset, cull_back)
    return time and _single(time)


def triangle(ray: Ray1, a: Vector, b: Vector, c: Vector, cull_back: bool = False) -> TriangleHit | None:
    """Return the hit of a ray and a closed triangle, or None.

    Both sides count, unless cull_back drops rays from behind, that is, along the normal (b - a) x (c - a). A
    ray parallel to the triangle's plane and a triangle without area are misses. Moeller and Trumbore 1997,
    equation 6, in integers.

    Examples
    --------
    >>> triangle(Ray1((0.25, 0.5, 1.0), (0.0, 0.0, -1.0)), (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    TriangleHit(crossing=Crossing(t=1.0, t_enter=1.0, t_exit=1.0, axis=-1), u=0.25, v=0.5)
    """
    hit = triangle_ratios(ray, a, b, c, cull_back)
    return hit and TriangleHit(_single(hit.time), rounded(hit.u), rounded(hit.v))


def triangle_normal(a: Vector, b: Vector, c: Vector) -> tuple[float, float, float]:
    """Return (b - a) x (c - a) over a power of two, each part rounded once and at most 1."""
    points, _ = whole((*a, *b, *c))
    return shrunk(cross(_minus(points[3:6], points[:3]), _minus(points[6:], points[:3])))


def box_time(ray: Ray1, lower: Vector, upper: Vector) -> Ratio | None:
    """Return the exact time of first contact with a box, or None.

    Examples
    --------
    >>> box_time(Ray1((0.0,), (3.0,)), (1.0,), (2.0,))
    (1, 3)
    """
    span = box_span(ray, lower, upper)
    if span is None:
        return None
    start = ratio_of(ray.t_min)
    return start if _before(span.enter, start) else span.enter


def plane_time(ray: Ray1, normal: Vector, offset: float, cull_back: bool = False) -> Ratio | None:
    """Return the exact t of `plane`, or None."""
    if _is_empty(ray):
        return None
    n, n_scale = whole(normal)
    o, o_scale = whole(ray.origin)
    d, d_scale = whole(ray.direction)
    (c,), c_scale = whole((offset,))
    along = dot(n, d)
    if along == 0 or (cull_back and along > 0):
        return None
    distance = c * n_scale * o_scale - dot(n, o) * c_scale
    time = positive_denominator(distance * d_scale, along * o_scale * c_scale)
    return time if _in_range(time, ray) else None


def order(a: Ratio, b: Ratio) -> int:
    """Return the order of two exact times, as for `functools.cmp_to_key`."""
    return a[0] * b[1] - b[0] * a[1]


class TriangleRatios(NamedTuple):
    """The exact time of a triangle's hit, and the weights of its second and third corner."""

    time: Ratio
    u: Ratio
    v: Ratio


def triangle_ratios(ray: Ray1, a: Vector, b: Vector, c: Vector, cull_back: bool) -> TriangleRatios | None:
    """Return the exact time and weights of a hit, or None."""
    if _is_empty(ray):
        return None
    points, p_scale = whole((*ray.origin, *a, *b, *c))
    d, d_scale = whole(ray.direction)
    corner = points[3:6]
    to_b, to_c = _minus(points[6:9], corner), _minus(points[9:12], corner)
    start = _minus(points[0:3], corner)
    across, around = cross(d, to_c), cross(start, to_b)

    # The weights and t share one denominator; its sign is the side that the ray comes from.
    det = dot(to_b, across)
    sign = 1 if det > 0 else -1
    det, u, v = sign * det, sign * dot(start, across), sign * dot(d, around)
    if det == 0 or u < 0 or v < 0 or u + v > det or (cull_back and sign < 0):
        return None
    time = (sign * dot(to_c, around) * d_scale, det * p_scale)
    return TriangleRatios(time, (u, det), (v, det)) if _in_range(time, ray) else None


class BoxSpan(NamedTuple):
    """The exact times at which a line enters and leaves a primitive, and the axis as in `Crossing`."""

    enter: Ratio
    leave: Ratio
    axis: int


def box_span(ray: Ray1, lower: Vector, upper: Vector) -> BoxSpan | None:
    """Return where the line of a ray enters and leaves a box that the ray hits, or None."""
    if _is_empty(ray):
        return None
    enter, leave, axis = _MINUS_INFINITY, _PLUS_INFINITY, -1
    for k, (o, d, low, high) in enumerate(zip(ray.origin, ray.direction, lower, upper, strict=True)):
        if low == inf or high == -inf:
            return None
        if d == 0.0:
            if not low <= o <= high:
                return None
            continue
        near, far = (low, high) if d > 0.0 else (high, low)
        if abs(near) != inf and _before(enter, time := _time(near, o, d)):
            enter, axis = time, k
        if abs(far) != inf and _before(time := _time(far, o, d), leave):
            leave = time
    if _before(leave, enter) or _before(ratio_of(ray.t_max), enter) or _before(leave, ratio_of(ray.t_min)):
        return None
    return BoxSpan(enter, leave, axis)


def _time(plane_at: float, o: float, d: float) -> Ratio:
    """Return (plane_at - o) / d, for finite numbers and d != 0."""
    p, p_scale = plane_at.as_integer_ratio()
    n, n_scale = o.as_integer_ratio()
    m, m_scale = d.as_integer_ratio()
    return positive_denominator((p * n_scale - n * p_scale) * m_scale, p_scale * n_scale * m)


def _is_empty(ray: Ray1) -> bool:
    """Return whether no real t is in range; such a ray may contain NaN."""
    return not (ray.t_min <= ray.t_max and ray.t_min < inf and ray.t_max > -inf)


def _in_range(time: Ratio, ray: Ray1) -> bool:
    return not (_before(time, ratio_of(ray.t_min)) or _before(ratio_of(ray.t_max), time))


def _before(a: Ratio, b: Ratio) -> bool:
    return a[0] * b[1] < b[0] * a[1]


def ratio_of(t: float) -> Ratio:
    """Return an end of a ray's range as a time."""
    if isinf(t):
        return _PLUS_INFINITY if t > 0.0 else _MINUS_INFINITY
    return t.as_integer_ratio()


def positive_denominator(numerator: int, denominator: int) -> Ratio:
    """Return the same ratio with a positive denominator, as `_before` and `rounded` require."""
    return (numerator, denominator) if denominator > 0 else (-numerator, -denominator)


def rounded(time: Ratio) -> float:
    """Return the nearest float64: Python rounds a quotient of integers once."""
    try:
        return time[0] / time[1]
    except (OverflowError, ZeroDivisionError):
        return inf if time[0] > 0 else -inf


def _single(time: Ratio) -> Crossing:
    t = rounded(time)
    return Crossing(t, t, t, -1)


def whole(values: Iterable[float]) -> tuple[list[int], int]:
    """Return integers and one power of two, whose quotients are the values."""
    ratios = [value.as_integer_ratio() for value in values]
    scale = max(denominator for _, denominator in ratios)
    return [numerator * (scale // denominator) for numerator, denominator in ratios], scale


def dot(a: Sequence[int], b: Sequence[int]) -> int:
    """Return the scalar product."""
    return sum(x * y for x, y in zip(a, b, strict=True))


def _minus(a: Sequence[int], b: Sequence[int]) -> list[int]:
    return [x - y for x, y in zip(a, b, strict=True)]


def cross(a: Sequence[int], b: Sequence[int]) -> list[int]:
    """Return the vector product."""
    (ax, ay, az), (bx, by, bz) = a, b
    return [ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx]


def shrunk(vector: Sequence[int]) -> tuple[float, float, float]:
    """Return a vector over a power of two, each part rounded once and at most 1."""
    x, y, z = vector
    largest = 2 ** max(x.bit_length(), y.bit_length(), z.bit_length())
    return rounded((x, largest)), rounded((y, largest)), rounded((z, largest))
