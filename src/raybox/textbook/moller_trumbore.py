"""Ray against triangle: Moeller and Trumbore 1997, "Fast, minimum storage ray/triangle intersection".

Every point of the triangle is a + u (b - a) + v (c - a) with u, v >= 0 and u + v <= 1. Equated with a point
of the ray, this gives three linear equations in t, u and v, which Cramer's rule solves with two cross
products. The box tests of the other texts serve to avoid this more expensive test.
"""

from __future__ import annotations

from math import inf, nan
from typing import NamedTuple

from numpy.typing import ArrayLike

from raybox.compiler.float_environment import in_default_environment
from raybox.textbook._checks import Vector, number, vector


class MollerTrumbore(NamedTuple):
    """The result of `moller_trumbore`; true if the ray hits the triangle."""

    hit: bool
    t: float
    u: float
    v: float
    steps: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.hit


@in_default_environment
def moller_trumbore(
    origin: ArrayLike,
    direction: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
) -> MollerTrumbore:
    """Return t and the weights u of b and v of c.

    Not in the source texts, which name it as the next step; as published by its authors, without culling. It
    returns as soon as a value is out of bounds.

    * Range: t in [0, inf), counted in lengths of the direction.
    * Miss: hit is False, t is +inf, u and v are NaN.
    * Edges and corners belong to the triangle. Both sides count.
    * A determinant of exactly zero is a miss: the ray is parallel to the plane, or the triangle has no area.
      (The authors treat a small determinant as zero, and so lose small triangles.)

    D = 3, in float64.

    Raises
    ------
    InvalidInput
        For NaN or infinite numbers, or shapes other than (3,).

    Examples
    --------
    >>> found = moller_trumbore((1, 2, 5), (0, 0, -1), a=(0, 0, 0), b=(4, 0, 0), c=(0, 4, 0))
    >>> found.t, found.u, found.v
    (5.0, 0.25, 0.5)
    """
    o, d = vector("origin", origin, 3), vector("direction", direction, 3)
    corner = vector("a", a, 3)
    to_b, to_c = _minus(vector("b", b, 3), corner), _minus(vector("c", c, 3), corner)
    steps: list[str] = []

    def miss(reason: str) -> MollerTrumbore:
        return MollerTrumbore(False, inf, nan, nan, (*steps, f"{reason}; miss"))

    across = _cross(d, to_c)
    determinant = _dot(to_b, across)
    steps.append(f"determinant {number(determinant)}")
    if determinant == 0.0:
        return miss("parallel to the plane, or no area")

    start = _minus(o, corner)
    u = _dot(start, across) / determinant
    steps.append(f"u = {number(u)}, the weight of b")
    if not 0.0 <= u <= 1.0:
        return miss("u is not in 0 to 1")

    around = _cross(start, to_b)
    v = _dot(d, around) / determinant
    steps.append(f"v = {number(v)}, the weight of c")
    if not (v >= 0.0 and u + v <= 1.0):
        return miss("v is negative, or u + v is more than 1")

    t = _dot(to_c, around) / determinant
    steps.append(f"t = {number(t)}")
    if not t >= 0.0:
        return miss("the triangle lies behind the origin")
    return MollerTrumbore(True, t, u, v, (*steps, "hit"))


def _minus(a: Vector, b: Vector) -> Vector:
    return tuple(x - y for x, y in zip(a, b, strict=True))


def _dot(a: Vector, b: Vector) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _cross(a: Vector, b: Vector) -> Vector:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
