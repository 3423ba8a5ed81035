"""Pinhole camera: a direction through the centre of every pixel."""

from math import hypot, isfinite, radians, tan
from operator import index
from typing import Any

import numpy as np

from raybox import validation
from raybox.errors import InvalidInput
from raybox.validation import Floats

# radians between up and the view, below which rounding would decide the direction to the right
_PARALLEL = 1e-9


def pinhole(eye: Any, target: Any, up: Any, fov: float, size: tuple[int, int]) -> tuple[Floats, Floats]:
    """Return the eye, and directions ``(height, width, 3)`` of depth 1 along the view."""
    width, height = _pixels(size[0], "width"), _pixels(size[1], "height")
    half = tan(radians(_field(fov)) / 2)
    origin, forward, right, above = _frame(eye, target, up)

    # Count pixel centres from the middle of the picture, in half pixels, so that the middle is exactly 0.
    x = (2.0 * np.arange(width) + 1 - width) * (half / height)
    y = (height - 1 - 2.0 * np.arange(height)) * (half / height)
    return origin, forward + y[:, None, None] * above + x[:, None] * right


def _frame(eye: Any, target: Any, up: Any) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the eye, and unit vectors forward, right and up."""
    origin, goal, vertical = (_vector(v, name) for v, name in ((eye, "eye"), (target, "target"), (up, "up")))
    with np.errstate(over="ignore"):
        view = goal - origin
    if not (view.any() and np.isfinite(view).all()):
        raise InvalidInput(
            f"eye and target must be different points, at a finite distance; got eye = {origin.tolist()} and "
            f"target = {goal.tolist()}. The camera looks from eye towards target."
        )
    forward = _unit(view)
    right = np.cross(forward, _unit(vertical)) if vertical.any() else np.zeros(3)
    if hypot(*right) < _PARALLEL:
        raise InvalidInput(
            f"up must not be zero or parallel to the view; got up = {vertical.tolist()} and the view "
            f"{forward.tolist()}. Choose another up, such as one of the axes across the view."
        )
    right = _unit(right)
    return origin, forward, right, np.cross(right, forward)


def _vector(value: Any, name: str) -> Floats:
    vector = validation.points(value, name, (3,))
    if vector.shape != (3,):
        raise InvalidInput(
            f"{name} must be one point of 3 numbers; got shape {vector.shape}. Make one camera each."
        )
    validation.require_finite(vector, name, "point", f"Give {name} as 3 finite numbers")
    return vector


def _unit(vector: Floats) -> Floats:
    vector = vector / np.abs(vector).max()  # so that squares neither over- nor underflow
    return vector / hypot(*vector)


def _pixels(value: Any, name: str) -> int:
    try:
        count = index(value)
    except TypeError:
        count = 0
    if count < 1:
        raise InvalidInput(
            f"{name} must be a whole number of pixels, at least 1; got {value!r}. Pass an int."
        )
    return count


def _field(fov: Any) -> float:
    try:
        degrees = float(fov)
    except (TypeError, ValueError):
        degrees = 0.0
    if not (isfinite(degrees) and 0 < degrees < 180):
        raise InvalidInput(
            f"fov must be an angle between 0 and 180 degrees, without either; got {fov!r}. "
            f"If it is in radians, pass math.degrees(fov)."
        )
    return degrees
