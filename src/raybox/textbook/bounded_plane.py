"""A ray of bounded length against one plane, seen from its front.

A point p is on the plane where normal . p = offset. With the ray's point for p, one division gives t. The
side to which the normal points is the front; a ray that travels along the normal comes from behind.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from numpy.typing import ArrayLike

from raybox.compiler.float_environment import in_default_environment
from raybox.textbook._checks import Vector, end, number, numbers, scalar, vector


class BoundedPlane(NamedTuple):
    """The result of `bounded_plane`; true if the bounded ray crosses the plane from its front."""

    hit: bool
    t: float
    steps: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.hit


@in_default_environment
def bounded_plane(
    origin: ArrayLike,
    direction: ArrayLike,
    normal: ArrayLike,
    offset: float,
    *,
    length: float,
) -> BoundedPlane:
    """Return the share of the ray's length at which it crosses the plane.

    Source: the first half of the text on bounded rays, which writes p . n = -d; offset is that -d.

    * Range: t in [0, 1] **of the length**; the ray ends at origin + length * direction.
    * Miss: hit is False and t is +inf. A ray from behind, or along the plane even within it, is a miss.
    * Inside: a plane has none.

    D = 2 or 3, in float64.

    Raises
    ------
    InvalidInput
        For NaN or infinite numbers, length < 0, or shapes that do not match.

    Examples
    --------
    >>> floor = {"normal": (0, 0, 1), "offset": 0}
    >>> bounded_plane((0, 0, 3), (0, 0, -1), **floor, length=4).t
    0.75
    >>> bounded_plane((0, 0, 3), (0, 0, -1), **floor, length=2).hit
    False
    """
    o = vector("origin", origin)
    d = vector("direction", direction, len(o))
    n = vector("normal", normal, len(o))
    offset, length = scalar("offset", offset), end("length", scalar("length", length))
    way = vector("length * direction", [length * x for x in d])

    towards = _dot(n, way)
    steps = [f"the whole way is {numbers(way)}, and goes {number(towards)} along the normal"]
    if towards >= 0.0:
        reason = "along the plane" if towards == 0.0 else "from behind"
        return BoundedPlane(False, inf, (*steps, f"the ray comes {reason}; miss"))
    t = (offset - _dot(n, o)) / towards
    hit = 0.0 <= t <= 1.0
    steps.append(f"the plane is crossed at {number(t)} of the way; {'hit' if hit else 'not in 0 to 1, miss'}")
    return BoundedPlane(hit, t if hit else inf, tuple(steps))


def _dot(a: Vector, b: Vector) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))
