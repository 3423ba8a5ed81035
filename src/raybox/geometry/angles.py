"""Units of angles: a yaw is in radians, all other angles are in degrees.

An angle out of range is refused; a warning names the unit of angles that look like radians.
"""

import sys
import warnings
from math import isfinite, pi

import numpy as np

from raybox import validation
from raybox.errors import AngleWarning, InvalidInput
from raybox.validation import Bools, Floats

MAX_YAW = 4 * pi
"""Radians: two full turns. An angle of more is one in degrees."""

_TURNS = np.array([0.5, 1.0, 1.5, 2.0]) * pi
_NEAR = 1e-3  # relative: 3.14 is pi, 6.28 is 2 pi
_EQUAL = 1e-9  # relative: what sums and conversions of angles may have rounded
_NARROW = 0.1  # degrees: below it, a field of view is of a telescope


def checked_fov(fov: float) -> float:
    """Return a field of view in degrees; warn of one that looks like radians."""
    try:
        degrees = float(fov)
    except (TypeError, ValueError):
        degrees = 0.0
    if not (isfinite(degrees) and 0 < degrees < 180):
        raise InvalidInput(
            f"fov must be an angle between 0 and 180 degrees, without either; got {fov!r}. "
            f"If it is in radians, pass math.degrees(fov)."
        )
    if _NARROW <= degrees < pi:
        _warn(f"fov is in degrees, and {degrees:g} looks like radians. If it is, pass math.degrees(fov)")
    return degrees


def check_degrees(angles: Floats, name: str) -> None:
    """Warn of angles in degrees that look like radians; raise `InvalidInput` for elevations beyond 90."""
    if name == "elevations" and (beyond := np.abs(angles) > 90.0).any():
        rule, way_out = "elevations must be from -90 to 90 degrees", "For a lidar on its side, pass rotation="
        validation.refuse_rows(beyond, rule, {name: angles}, "angle", way_out)
    if look_like_radians(angles):
        low, high = angles.min(), angles.max()
        _warn(
            f"{name} are in degrees, and these, from {low:g} to {high:g}, look like radians. "
            f"If they are, pass numpy.degrees({name})"
        )


def is_beyond_yaw(yaw: Floats) -> Bools:
    """Return which angles are too large for a yaw in radians."""
    return np.asarray(np.abs(yaw) > MAX_YAW)


def check_yaw(yaw: Floats) -> None:
    """Raise `InvalidInput` for a yaw of more than two turns."""
    beyond = is_beyond_yaw(yaw)
    if beyond.any():
        rule = "yaw must be an angle in radians, from -4 pi to 4 pi"
        way_out = "If it is in degrees, pass numpy.radians(yaw)"
        validation.refuse_rows(beyond, rule, {"yaw": yaw}, "instance", way_out)


def look_like_radians(angles: Floats) -> bool:
    """Return whether angles that should be in degrees are in radians, as far as one can tell.

    They are where all are hundredths of degrees converted to radians, or where they end at a multiple of a
    quarter turn, or would do so one step later.
    """
    values = angles[angles != 0.0]
    if not values.size or np.abs(values).max() > _TURNS[-1] * (1 + _NEAR):
        return False
    hundredths = 100.0 * np.degrees(values)
    whole = np.rint(hundredths)
    if (np.abs(hundredths - whole) < _EQUAL * np.abs(whole)).all():
        return True
    low, high = float(angles.min()), float(angles.max())
    step = (high - low) / max(1, angles.size - 1)
    return _ends_turn((low, high), _NEAR) or _ends_turn((low - step, high + step), _EQUAL)


def _ends_turn(ends: tuple[float, float], tolerance: float) -> bool:
    """Return whether one of two angles is a multiple of a quarter turn in radians."""
    off = np.abs(np.abs(ends)[:, None] - _TURNS)
    return bool((off < tolerance * _TURNS).any())


def _warn(text: str) -> None:
    """Warn at the line outside of raybox that passed the angles."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "raybox":
        frame, level = frame.f_back, level + 1
    silence = "warnings.simplefilter('ignore', raybox.errors.AngleWarning)"
    warnings.warn(f"{text}; if not: {silence}.", AngleWarning, stacklevel=level)
