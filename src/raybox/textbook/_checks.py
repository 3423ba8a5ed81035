"""What every textbook function asks of its arguments, and how it writes numbers into its steps."""

from collections.abc import Iterable
from math import inf, isfinite

from numpy.typing import ArrayLike

from raybox import validation
from raybox.errors import InvalidInput
from raybox.geometry import Boxes

Vector = tuple[float, ...]
AXES = "xyz"


def vector(name: str, values: ArrayLike, size: int | None = None) -> Vector:
    """Take one finite point or vector, of `size` numbers where given, else two or three."""
    found = validation.points(values, name, (2, 3) if size is None else (size,))
    if found.ndim != 1:
        raise InvalidInput(
            f"{name} must be one row of numbers; got shape {found.shape}. "
            f"The textbook takes one at a time; raybox.intersect takes many."
        )
    validation.require_finite(found, name, "vector", "Pass finite numbers")
    return tuple(found.tolist())


def scalar(name: str, value: float) -> float:
    """Take one finite number."""
    if not isfinite(value):
        raise InvalidInput(f"{name} must be finite; got {value!r}.")
    return float(value)


def end(name: str, value: float) -> float:
    """Take the end of a range that begins at zero."""
    if not value >= 0.0:
        raise InvalidInput(f"{name} must not be negative or NaN, for the range begins at 0; got {value!r}.")
    return float(value)


def ray_and_box(
    origin: ArrayLike, direction: ArrayLike, lower: ArrayLike, upper: ArrayLike
) -> tuple[Vector, Vector, Vector, Vector]:
    """Take a ray and a box of the same dimension; bounds may be infinite where that leaves a real point."""
    o = vector("origin", origin)
    d = vector("direction", direction, len(o))
    box = Boxes(lower, upper)
    if box.lower.shape != (1, len(o)):
        rule = f"lower and upper must be one row of {len(o)} numbers, as many as origin has"
        raise InvalidInput(f"{rule}; got shape {box.lower.shape}. raybox.intersect takes many boxes.")
    low, high = tuple(box.lower[0].tolist()), tuple(box.upper[0].tolist())
    if reason := no_point(low, high):
        raise InvalidInput(f"the box must hold a point; {reason}. For no bound pass -inf and inf.")
    return o, d, low, high


def no_point(lower: Vector, upper: Vector) -> str:
    """Say why the box holds no real point; empty if it does."""
    for name, low, high in zip(AXES, lower, upper, strict=False):
        if low == inf or high == -inf:
            return f"on {name} both its bounds are {number(low)}"
    return ""


def along(origin: Vector, direction: Vector, t: float) -> Vector | None:
    """Give the point at t; there is none at infinity."""
    return tuple(p + t * q for p, q in zip(origin, direction, strict=True)) if isfinite(t) else None


def number(x: float) -> str:
    """Write a float with all its digits, without the trailing .0 and without a negative zero."""
    return repr(x + 0.0).removesuffix(".0")


def numbers(values: Iterable[float] | None) -> str:
    """Write a point or a vector."""
    return f"({', '.join(map(number, values))})" if values is not None else "at infinity"


def parallel(name: str, p: float, low: float, high: float) -> str:
    """Write what a ray parallel to the two planes of an axis comes to."""
    is_inside = "is" if low <= p <= high else "is not"
    return f"{name}: parallel, and {number(p)} {is_inside} between {number(low)} and {number(high)}"
