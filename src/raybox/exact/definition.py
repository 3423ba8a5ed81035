"""The definition of every answer: one ray against one box, plane or triangle, in whole numbers.

A float64 is a whole number over a power of two, so everything asked here is a ratio of whole numbers, and
Python's integers hold it without rounding. Decisions are therefore exact; a reported number is the exact one
rounded once, to the nearest float64 (ties to even), or an infinity where it is too large for a float64.
The fast kernels are held against this module, and a handful of pairs are answered by it directly.

Inside, a time is a pair ``(n, d)`` with ``d >= 0`` that stands for n / d; ``(-1, 0)`` and ``(1, 0)`` are the
two infinities. `_before` orders any two of these, except that it takes the infinities for equal.
"""

from collections.abc import Iterable, Sequence
from math import inf, isinf
from typing import NamedTuple

Vector = tuple[float, ...]
Ratio = tuple[int, int]

_NEVER_BEGAN: Ratio = (-1, 0)
_NEVER_ENDS: Ratio = (1, 0)


class Ray1(NamedTuple):
    """One ray: the points origin + t * direction for every real t in the closed range t_min to t_max.

    t counts in lengths of the direction, which may have any length; a zero direction is the point origin.
    """

    origin: Vector
    direction: Vector
    t_min: float = 0.0
    t_max: float = inf


class Crossing(NamedTuple):
    """Where one ray meets one thing: t on the ray, t_enter and t_exit on the whole line.

    t is the first contact, max(t_min, t_enter). axis belongs to the face entered at t_enter (the lowest one
    at an edge or a corner); it is -1 where the ray starts past t_enter, and where no face is entered.
    """

    t: float
    t_enter: float
    t_exit: float
    axis: int


def box(ray: Ray1, lower: Vector, upper: Vector) -> Crossing | None:
    """Where the ray meets the closed box, or None: touching a face, an edge or a corner counts.

    Bounds may be infinite. A box without a real point (both bounds +inf, say) and a ray without one
    (an empty range) meet nothing. Kay and Kajiya 1986, slabs, in ratios of whole numbers.

    Examples
    --------
    >>> box(Ray1((0.0, 0.0), (2.0, 1.0)), (1.0, 0.0), (4.0, 1.0))
    Crossing(t=0.5, t_enter=0.5, t_exit=1.0, axis=0)
    """
    span = _span(ray, lower, upper)
    if span is None:
        return None
    enter, leave, axis = span
    if _before(enter, _ratio(ray.t_min)):
        start = ray.t_min + 0.0  # the number zero has one sign: -0.0 reads 0.0
        return Crossing(start, rounded(enter), rounded(leave), -1)
    t = rounded(enter)
    return Crossing(t, t, rounded(leave), axis)


def box_order(ray: Ray1, first: tuple[Vector, Vector], second: tuple[Vector, Vector]) -> int:
    """Which box the ray meets first: -1 the first, 1 the second, 0 a true tie (or both are missed).

    Compares the exact t of `box`, before rounding; each box is a pair (lower, upper). A missed box comes
    after every box that is met.

    Examples
    --------
    >>> box_order(Ray1((0.0,), (1.0,)), ((2.0,), (3.0,)), ((1.0,), (9.0,)))
    1
    """
    a, b = box_time(ray, *first), box_time(ray, *second)
    if a is None or b is None:
        return (a is None) - (b is None)
    return _before(b, a) - _before(a, b)


def contact(ray: Ray1, lower: Vector, upper: Vector) -> Vector | None:
    """Give the point of the first contact with the box, each coordinate rounded once; None at infinity too.

    Examples
    --------
    >>> contact(Ray1((0.0, 0.0), (3.0, 1.0)), (0.1, 0.0), (1.0, 1.0))
    (0.1, 0.03333333333333333)
    """
    time = box_time(ray, lower, upper)
    if time is None or time[1] == 0:
        return None if time is None or any(ray.direction) else ray.origin
    return tuple(_moved(o, d, time) for o, d in zip(ray.origin, ray.direction, strict=True))


def plane(ray: Ray1, normal: Vector, offset: float, cull_back: bool = False) -> Crossing | None:
    """Where the ray crosses the plane of points p with normal . p = offset, or None.

    A ray along the plane is a miss even when it lies in it: there is no single crossing. cull_back also
    drops rays that come from behind, that is, travel along the normal.

    Examples
    --------
    >>> plane(Ray1((0.0, 0.0, 3.0), (0.0, 0.0, -2.0)), (0.0, 0.0, 1.0), 2.0)
    Crossing(t=0.5, t_enter=0.5, t_exit=0.5, axis=-1)
    """
    time = plane_time(ray, normal, offset, cull_back)
    return time and _single(time)


def triangle(
    ray: Ray1, a: Vector, b: Vector, c: Vector, cull_back: bool = False
) -> tuple[Crossing, float, float] | None:
    """Where the ray crosses the closed triangle, with the weights of b and c there, or None.

    Both sides count, unless cull_back drops rays that come from behind, that is, travel along the normal
    (b - a) x (c - a). A ray along the triangle's plane and a triangle without area are misses.
    Moeller and Trumbore 1997, equation 6, in whole numbers.

    Examples
    --------
    >>> triangle(Ray1((0.25, 0.5, 1.0), (0.0, 0.0, -1.0)), (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    (Crossing(t=1.0, t_enter=1.0, t_exit=1.0, axis=-1), 0.25, 0.5)
    """
    met = _triangle(ray, a, b, c, cull_back)
    return met and (_single(met[0]), rounded(met[1]), rounded(met[2]))


def box_time(ray: Ray1, lower: Vector, upper: Vector) -> Ratio | None:
    """Give the exact first contact of the ray with the box, or None; a whole number over another.

    Examples
    --------
    >>> box_time(Ray1((0.0,), (3.0,)), (1.0,), (2.0,))
    (1, 3)
    """
    span = _span(ray, lower, upper)
    if span is None:
        return None
    start = _ratio(ray.t_min)
    return start if _before(span[0], start) else span[0]


def triangle_time(ray: Ray1, a: Vector, b: Vector, c: Vector, cull_back: bool = False) -> Ratio | None:
    """Give the exact t of `triangle`, or None; a whole number over another."""
    met = _triangle(ray, a, b, c, cull_back)
    return met and met[0]


def plane_time(ray: Ray1, normal: Vector, offset: float, cull_back: bool = False) -> Ratio | None:
    """Give the exact t of `plane`, or None; a whole number over another."""
    if _is_empty(ray):
        return None
    n, n_scale = whole(normal)
    o, o_scale = whole(ray.origin)
    d, d_scale = whole(ray.direction)
    (c,), c_scale = whole((offset,))
    along = dot(n, d)
    if along == 0 or (cull_back and along > 0):
        return None
    missing = c * n_scale * o_scale - dot(n, o) * c_scale
    time = upright(missing * d_scale, along * o_scale * c_scale)
    return time if _in_range(time, ray) else None


def order(a: Ratio, b: Ratio) -> int:
    """Compare two exact times: negative, zero or positive, as `functools.cmp_to_key` wants."""
    return a[0] * b[1] - b[0] * a[1]


def _triangle(
    ray: Ray1, a: Vector, b: Vector, c: Vector, cull_back: bool
) -> tuple[Ratio, Ratio, Ratio] | None:
    """Give t and the weights of b and c, exactly, or None."""
    if _is_empty(ray):
        return None
    points, p_scale = whole((*ray.origin, *a, *b, *c))
    d, d_scale = whole(ray.direction)
    corner = points[3:6]
    to_b, to_c = _minus(points[6:9], corner), _minus(points[9:12], corner)
    start = _minus(points[0:3], corner)
    across, around = cross(d, to_c), cross(start, to_b)

    # The three weights and t share one denominator, whose sign says from which side the ray comes.
    det = dot(to_b, across)
    sign = 1 if det > 0 else -1
    det, u, v = sign * det, sign * dot(start, across), sign * dot(d, around)
    if det == 0 or u < 0 or v < 0 or u + v > det or (cull_back and sign < 0):
        return None
    time = (sign * dot(to_c, around) * d_scale, det * p_scale)
    return (time, (u, det), (v, det)) if _in_range(time, ray) else None


def _span(ray: Ray1, lower: Vector, upper: Vector) -> tuple[Ratio, Ratio, int] | None:
    """Where the whole line enters and leaves the box, and through which axis; None if the ray misses it."""
    if _is_empty(ray):
        return None
    enter, leave, axis = _NEVER_BEGAN, _NEVER_ENDS, -1
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
    if _before(leave, enter) or _before(_ratio(ray.t_max), enter) or _before(leave, _ratio(ray.t_min)):
        return None
    return enter, leave, axis


def _time(plane_at: float, o: float, d: float) -> Ratio:
    """(plane_at - o) / d, for finite numbers and d != 0."""
    p, p_scale = plane_at.as_integer_ratio()
    n, n_scale = o.as_integer_ratio()
    m, m_scale = d.as_integer_ratio()
    return upright((p * n_scale - n * p_scale) * m_scale, p_scale * n_scale * m)


def _moved(o: float, d: float, time: Ratio) -> float:
    """Give o + time * d."""
    n, n_scale = o.as_integer_ratio()
    m, m_scale = d.as_integer_ratio()
    return rounded((n * m_scale * time[1] + m * time[0] * n_scale, n_scale * m_scale * time[1]))


def _is_empty(ray: Ray1) -> bool:
    """Whether no real t is in range. Asked first: a ray marked as bad may hold NaN, but has no range."""
    return not (ray.t_min <= ray.t_max and ray.t_min < inf and ray.t_max > -inf)


def _in_range(time: Ratio, ray: Ray1) -> bool:
    return not (_before(time, _ratio(ray.t_min)) or _before(_ratio(ray.t_max), time))


def _before(a: Ratio, b: Ratio) -> bool:
    return a[0] * b[1] < b[0] * a[1]


def _ratio(t: float) -> Ratio:
    if isinf(t):
        return _NEVER_ENDS if t > 0.0 else _NEVER_BEGAN
    return t.as_integer_ratio()


def upright(numerator: int, denominator: int) -> Ratio:
    """Give the same ratio with a positive denominator, so that comparing and rounding need not look."""
    return (numerator, denominator) if denominator > 0 else (-numerator, -denominator)


def rounded(time: Ratio) -> float:
    """Round to the nearest float64: Python divides whole numbers with one correct rounding."""
    try:
        return time[0] / time[1]
    except (OverflowError, ZeroDivisionError):
        return inf if time[0] > 0 else -inf


def _single(time: Ratio) -> Crossing:
    t = rounded(time)
    return Crossing(t, t, t, -1)


def whole(values: Iterable[float]) -> tuple[list[int], int]:
    """Write the values as whole numbers over one power of two."""
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
