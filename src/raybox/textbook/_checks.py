"""Shared by the textbook functions: checks of arguments, numbers as text."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isfinite

from numpy.typing import ArrayLike

from raybox import validation
from raybox.errors import InvalidInput
from raybox.exact.definition import Ray1
from raybox.geometry import Boxes

Vector = tuple[float, ...]
AXES = "xyz"


def vector(name: str, values: ArrayLike, size: int | None = None) -> Vector:
    """Return one finite point or vector of `size` numbers; None: two or three."""
    found = validation.points(values, name, (2, 3) if size is None else (size,))
    if found.ndim != 1:
        raise InvalidInput(
            f"{name} must be one row of numbers; got shape {found.shape}. "
            f"Textbook functions take one at a time; raybox.intersect takes many."
        )
    validation.require_finite(found, name, "vector", "Pass finite numbers")
    return tuple(found.tolist())


def scalar(name: str, value: float) -> float:
    """Return one finite number."""
    if not isfinite(value):
        raise InvalidInput(f"{name} must be finite; got {value!r}.")
    return float(value)


def end(name: str, value: float) -> float:
    """Return the end of a range that begins at zero."""
    if not value >= 0.0:
        raise InvalidInput(f"{name} must not be negative or NaN, as the range begins at 0; got {value!r}.")
    return float(value)


def ray_and_box(
    origin: ArrayLike, direction: ArrayLike, lower: ArrayLike, upper: ArrayLike
) -> tuple[Vector, Vector, Vector, Vector]:
    """Return a ray and a box of one dimension: origin, direction, lower, upper.

    Bounds may be infinite if the box still contains a finite point.
    """
    o = vector("origin", origin)
    d = vector("direction", direction, len(o))
    box = Boxes(lower, upper)
    if box.lower.shape != (1, len(o)):
        rule = f"lower and upper must be one row of {len(o)} numbers, as many as in origin"
        raise InvalidInput(f"{rule}; got shape {box.lower.shape}. raybox.intersect takes many boxes.")
    low, high = tuple(box.lower[0].tolist()), tuple(box.upper[0].tolist())
    if reason := no_point(low, high):
        raise InvalidInput(f"the box must contain a point; {reason}. For no bound pass -inf and inf.")
    return o, d, low, high


def no_point(lower: Vector, upper: Vector) -> str:
    """Return why the box contains no finite point; empty if it does."""
    for name, low, high in zip(AXES, lower, upper, strict=False):
        if low == inf or high == -inf:
            return f"on {name} both its bounds are {number(low)}"
    return ""


def along(origin: Vector, direction: Vector, t: float) -> Vector | None:
    """Return the point at t; None at infinity."""
    return tuple(p + t * q for p, q in zip(origin, direction, strict=True)) if isfinite(t) else None


def number(x: float) -> str:
    """Return all digits of a float, without a trailing .0 or a negative zero."""
    return repr(x + 0.0).removesuffix(".0")


def numbers(values: Iterable[float] | None) -> str:
    """Return the text of a point or vector; None: "at infinity"."""
    return f"({', '.join(map(number, values))})" if values is not None else "at infinity"


def parallel(name: str, p: float, low: float, high: float) -> str:
    """Return the step of a ray parallel to the two planes of an axis."""
    is_inside = "is" if low <= p <= high else "is not"
    return f"{name}: parallel, and {number(p)} {is_inside} between {number(low)} and {number(high)}"


def nothing_in(ray: Ray1) -> str:
    """Return why a ray contains no point; empty if it does.

    A ray without a point may contain NaN: nothing else is computed for it.
    """
    if not (ray.t_min <= ray.t_max and ray.t_min < inf and ray.t_max > -inf):
        return f"the ray holds no point: no t lies in {number(ray.t_min)} to {number(ray.t_max)}"
    return ""
