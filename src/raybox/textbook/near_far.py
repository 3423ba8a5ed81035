"""Near and far distance: slabs that answer with one signed number.

The stretch of the line inside the box runs from near to far. near says all of it: positive, the box lies
ahead; negative, the origin is inside; +inf, there is nothing to meet.
"""

from math import inf
from typing import NamedTuple

from numpy.typing import ArrayLike

from raybox.textbook._checks import AXES, number, parallel, ray_and_box


class NearFar(NamedTuple):
    """What `near_far` answers; true if the ray meets the box."""

    distance: float
    steps: tuple[str, ...]

    @property
    def hit(self) -> bool:
        """Whether the ray meets the box."""
        return self.distance < inf

    @property
    def inside(self) -> bool:
        """Whether the ray starts past the entry: everything in this box is to be tested too."""
        return self.distance < 0.0

    def __bool__(self) -> bool:
        return self.hit


def near_far(origin: ArrayLike, direction: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> NearFar:
    """Carry near and far through the axes; the signed near distance is the answer.

    Told by the source text on the distance to the first crossing, for walking through boxes within boxes.

    * Range: far >= 0, that is t in [0, inf), counted in lengths of the direction.
    * Miss: the distance is +inf.
    * Inside: the distance is **negative**, where the line entered; -inf if it never did (zero direction).
    * Zero component: the origin is compared with the planes, faces included, as for any other touch. (The
      text leaves the faces out here and only here, and takes almost zero for zero.)

    D = 2 or 3, in float64.

    Raises
    ------
    InvalidInput
        For NaN, an infinite ray, a box without a point, lower > upper, or shapes that do not fit.

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

        # Draw near and far together, and leave when far is behind the origin or before near.
        t_lower, t_upper = (a - p) / q, (b - p) / q
        near, far = max(near, min(t_lower, t_upper)), min(far, max(t_lower, t_upper))
        planes = f"planes at {number(t_lower)} and {number(t_upper)}"
        steps.append(f"{name}: {planes}; near {number(near)}, far {number(far)}")
        if far < 0.0:
            return NearFar(inf, (*steps, "far is behind the origin: +inf"))
        if near > far:
            return NearFar(inf, (*steps, "near is beyond far: +inf"))

    return NearFar(near, (*steps, f"distance {number(near)}"))
