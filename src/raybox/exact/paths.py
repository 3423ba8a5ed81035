"""Lengths of paths and points of rays, by exact times: where no float64 holds the times.

A time may be beyond the largest float, or below the smallest one, while the path has an ordinary length.
"""

from math import inf, isqrt

from raybox.exact.definition import Ratio, Ray1, Vector, box_time, order, ratio_of, rounded, whole

_BITS = 256  # of a square root, at least


def length(ray: Ray1, enter: Ratio, leave: Ratio) -> float:
    """Return the length of a ray's path between two times, within its range.

    Half a unit in the last place off, and 2^-255 of itself; infinite beyond the largest float.

    Examples
    --------
    >>> length(Ray1((0.0, 0.0), (3e-320, 4e-320)), (10**330, 3), (2 * 10**330, 3))
    16666481119.711384
    """
    begin, end = (ratio_of(t) for t in (ray.t_min, ray.t_max))
    begin, end = (enter if order(begin, enter) < 0 else begin), (leave if order(leave, end) < 0 else end)
    if not any(ray.direction):
        return 0.0
    if begin[1] == 0 or end[1] == 0:
        return inf
    span = end[0] * begin[1] - begin[0] * end[1]
    if span <= 0:
        return 0.0
    parts, scale = whole(ray.direction)
    square = span * span * sum(part * part for part in parts)
    shift = max(0, _BITS - square.bit_length() // 2)
    root = isqrt(square << 2 * shift)
    # halfway between two integers, an inexact root is on the right side of every float
    twice = 2 * root + (root * root != square << 2 * shift)
    return rounded((twice, (end[1] * begin[1] * scale) << (shift + 1)))


def contact(ray: Ray1, lower: Vector, upper: Vector) -> Vector | None:
    """Return the point of first contact with a box, each coordinate rounded once.

    None for a miss, and where the contact is at infinity.

    Examples
    --------
    >>> contact(Ray1((0.0, 0.0), (3.0, 1.0)), (0.1, 0.0), (1.0, 1.0))
    (0.1, 0.03333333333333333)
    """
    time = box_time(ray, lower, upper)
    return time and point(ray, time)


def point(ray: Ray1, time: Ratio) -> Vector | None:
    """Return the point of a ray at a time, each coordinate rounded once; None at infinity."""
    if time[1] == 0:
        return None if any(ray.direction) else ray.origin
    return tuple(moved(o, d, time) for o, d in zip(ray.origin, ray.direction, strict=True))


def moved(o: float, d: float, time: Ratio) -> float:
    """Return o + time * d, rounded once."""
    n, n_scale = o.as_integer_ratio()
    m, m_scale = d.as_integer_ratio()
    return rounded((n * m_scale * time[1] + m * time[0] * n_scale, n_scale * m_scale * time[1]))
