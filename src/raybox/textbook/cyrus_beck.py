"""Clipping against the planes of a convex body.

Cyrus and Beck 1978, "Generalized two- and three-dimensional clipping".

The line crosses every plane of the body. Inward crossings bound its interval inside the body from below,
outward crossings from above: the largest inward and the smallest outward t remain. The planes of a box come
in pairs, and the smaller t of each pair is the inward crossing.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from numpy.typing import ArrayLike

from raybox.compiler.float_environment import in_default_environment
from raybox.textbook._checks import AXES, Vector, along, number, numbers, parallel, ray_and_box

MISS = -1.0


class CyrusBeck(NamedTuple):
    """The result of `cyrus_beck`: whether the ray hits, t and the point; true for a hit."""

    t: float
    point: Vector | None
    steps: tuple[str, ...]

    @property
    def hit(self) -> bool:
        """Whether the ray hits the box."""
        return self.t != MISS

    def __bool__(self) -> bool:
        return self.hit


@in_default_environment
def cyrus_beck(origin: ArrayLike, direction: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> CyrusBeck:
    """Return the hit by the last inward and the first outward crossing of planes.

    Source: "Raycast AABB", which has one overload each for the bool, t and the point.

    * Range: t in [0, inf), counted in lengths of the direction.
    * Miss: t is -1 and there is no point.
    * Inside: t of the **exit**, the first time the ray passes the surface. A ray that never leaves (a zero
      direction, an endless box) leaves at +inf, and has no point.
    * Zero component: the origin is compared with the two planes, faces included. (The text divides by zero,
      and an origin on a face then makes NaN.)

    D = 2 or 3, in float64.

    Raises
    ------
    InvalidInput
        For NaN, an infinite ray, a box without a point, lower > upper, or shapes that do not match.

    Examples
    --------
    >>> cyrus_beck((-2, -2, -2), (2, 2, 2), lower=(0.5, 0.5, 0.5), upper=(2, 2, 2)).t
    1.25
    >>> from_inside = cyrus_beck((1, 1, 1), (1, 1, 0), lower=(0.5, 0.5, 0.5), upper=(2, 2, 2))
    >>> from_inside.t, from_inside.point
    (1.0, (2.0, 2.0, 1.0))
    """
    o, d, low, high = ray_and_box(origin, direction, lower, upper)
    inward, outward = [-inf], [inf]
    steps: list[str] = []

    # Sort the crossings of each pair of planes into inward and outward.
    for name, p, q, a, b in zip(AXES, o, d, low, high, strict=False):
        if q == 0.0:
            steps.append(parallel(name, p, a, b))
            if not a <= p <= b:
                return CyrusBeck(MISS, None, (*steps, "miss: -1"))
            continue
        t_lower, t_upper = (a - p) / q, (b - p) / q
        inward.append(min(t_lower, t_upper))
        outward.append(max(t_lower, t_upper))
        steps.append(f"{name}: in at t = {number(inward[-1])}, out at t = {number(outward[-1])}")

    t_enter, t_exit = max(inward), min(outward)
    steps.append(f"last way in {number(t_enter)}, first way out {number(t_exit)}")
    if t_exit < 0.0:
        return CyrusBeck(MISS, None, (*steps, "the box lies behind the origin: -1"))
    if t_enter > t_exit:
        return CyrusBeck(MISS, None, (*steps, "out before in, so the line misses: -1"))

    t = t_exit if t_enter < 0.0 else t_enter
    point = along(o, d, t)
    counts = "inside, so the way out counts" if t_enter < 0.0 else "not past the way in, which counts"
    return CyrusBeck(t, point, (*steps, f"the origin is {counts}: t = {number(t)}, point {numbers(point)}"))
