"""Near and far distance: the slab method with one signed number as its result.

The line is inside the box from near to far. The sign of near is the result: positive, the box lies ahead;
negative, the origin is inside; +inf, a miss.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from numpy.typing import ArrayLike

from raybox.compiler.float_environment import in_default_environment
from raybox.textbook._checks import AXES, number, parallel, ray_and_box


class NearFar(NamedTuple):
    """The result of `near_far`; true if the ray hits the box."""

    distance: float
    steps: tuple[str, ...]

    @property
    def hit(self) -> bool:
        """Whether the ray hits the box."""
        return self.distance < inf

    @property
    @in_default_environment
    def inside(self) -> bool:
        """Whether the ray starts inside: everything in this box has to be tested too."""
        return self.distance < 0.0

    def __bool__(self) -> bool:
        return self.hit


@in_default_environment
def near_far(origin: ArrayLike, direction: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> NearFar:
    """Return the signed near distance of the box.

    Source: the text on the distance to the first crossing, for traversing nested boxes.

    * Range: far >= 0, that is t in [0, inf), counted in lengths of the direction.
    * Miss: the distance is +inf.
    * Inside: the distance is **negative**, where the line entered; -inf if it never did (zero direction).
    * Zero component: the origin is compared with the planes, faces included, as for any other touch. (The
      text excludes the faces here and only here, and treats small components as zero.)

    D = 2 or 3, in float64.

    Raises
    ------
    InvalidInput
        For NaN, an infinite ray, a box without a point, lower > upper, or shapes that do not match.

    Examples
    --------
    >>> near_far((0, 0), (1, 0), lower=(3, -1), upper=(5, 1)).distance
    3.0
    >>> near_far((4, 0), (1, 0), lower=(3, -1), upper=(5, 1)).distance
    -1.0
    >>> near_far((6, 0), (1, 0), lower=(3, -1), upper=(5, 1)).distance
    inf
    """
    o, d, low, high = ray_and_box(origin, direction, lower, upper)
    near, far = -inf, inf
    steps: list[str] = []

    for name, p, q, a, b in zip(AXES, o, d, low, high, strict=False):
        if q == 0.0:
            steps.append(parallel(name, p, a, b))
            if not a <= p <= b:
                return NearFar(inf, (*steps, "miss: +inf"))
            continue

        # Narrow near and far; return when far is behind the origin or before near.
        t_lower, t_upper = (a - p) / q, (b - p) / q
        near, far = max(near, min(t_lower, t_upper)), min(far, max(t_lower, t_upper))
        planes = f"planes at {number(t_lower)} and {number(t_upper)}"
        steps.append(f"{name}: {planes}; near {number(near)}, far {number(far)}")
        if far < 0.0:
            return NearFar(inf, (*steps, "far is behind the origin: +inf"))
        if near > far:
            return NearFar(inf, (*steps, "near is beyond far: +inf"))

    return NearFar(near, (*steps, f"distance {number(near)}"))
