"""The slab method: Kay and Kajiya 1986, "Ray tracing complex scenes".

A slab is the space between two parallel planes, and a box is the intersection of its slabs. The method rests
on three properties:

1. a point is in the box exactly if it is in every slab;
2. a ray hits the box exactly if its intervals inside the slabs have a point in common, that is, if the last
   of the near planes comes no later than the first of the far planes;
3. of the near planes, the *candidate faces*, the one reached last is the face through which the ray enters.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from numpy.typing import ArrayLike

from raybox.compiler.float_environment import in_default_environment
from raybox.textbook._checks import AXES, Vector, along, end, number, numbers, parallel, ray_and_box


class Face(NamedTuple):
    """A face of the box: its axis, its coordinate, and t of the line in its plane."""

    axis: int
    at: float
    t: float


class Slab(NamedTuple):
    """The result of `slab`; true if the ray hits the box."""

    hit: bool
    t: float
    point: Vector | None
    faces: tuple[Face, ...]
    steps: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.hit


@in_default_environment
def slab(
    origin: ArrayLike,
    direction: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    t_max: float = inf,
) -> Slab:
    """Return the hit of the ray clipped by one slab after the other.

    Clipping stops when nothing of the ray is left. Source: two of the texts, "candidate faces", which culls
    objects before their triangles are tested and returns the hit point, and "slabs in Python", which picks
    objects and tests segments.

    * Range: t in [0, t_max], counted in lengths of the direction. (One text cuts every ray at 10000.)
    * Miss: hit is False, t is +inf and there is no point.
    * Inside: hit at once, at the origin, with t = 0.
    * Zero component: only an exact zero is parallel; the origin is compared with the slab, faces included.
      (The texts treat everything under 1e-6 as zero, and fail for rays that cross a slab far away.)

    faces are the candidate faces found; steps are the steps as text. D = 2 or 3, in float64.

    Raises
    ------
    InvalidInput
        For NaN, an infinite ray, a box without a point, lower > upper, t_max < 0, or mismatched shapes.

    Examples
    --------
    >>> found = slab((0, 0, 0), (1, 2, 1), lower=(1, 1, 1), upper=(4, 4, 4))
    >>> found.hit, found.t, found.point
    (True, 1.0, (1.0, 2.0, 1.0))
    >>> print(found.steps[1])
    y: inside its slab for t in 0.5 to 2; common to all so far: 1 to 2
    """
    o, d, low, high = ray_and_box(origin, direction, lower, upper)
    t_near, t_far = 0.0, end("t_max", t_max)
    faces: list[Face] = []
    steps: list[str] = []

    for axis, (p, q, a, b) in enumerate(zip(o, d, low, high, strict=True)):
        name = AXES[axis]

        # The origin of a parallel ray decides: it is inside this slab for every t, or for none.
        if q == 0.0:
            steps.append(parallel(name, p, a, b))
            if not a <= p <= b:
                return Slab(False, inf, None, tuple(faces), (*steps, "miss"))
            continue

        # Intersect both planes; the nearer one is the candidate face.
        near, far = ((a - p) / q, (b - p) / q) if q > 0.0 else ((b - p) / q, (a - p) / q)
        faces.append(Face(axis, a if q > 0.0 else b, near))

        # Intersect with the slabs before.
        t_near, t_far = max(t_near, near), min(t_far, far)
        common = f"{number(t_near)} to {number(t_far)}" if t_near <= t_far else "nothing"
        own = f"{number(near)} to {number(far)}"
        steps.append(f"{name}: inside its slab for t in {own}; common to all so far: {common}")
        if t_near > t_far:
            return Slab(False, inf, None, tuple(faces), (*steps, "miss"))

    point = along(o, d, t_near)
    steps.append(f"hit at t = {number(t_near)}, point {numbers(point)}")
    return Slab(True, t_near, point, tuple(faces), tuple(steps))
