"""Validation of the arrays that rays are made of."""

from math import inf
from typing import Literal, NamedTuple

import numpy as np

from raybox import validation
from raybox.errors import InvalidInput
from raybox.validation import ArrayInput, Bools, Floats, finite_vectors

ZERO, ONE, INF, MINUS_INF = (np.array(number) for number in (0.0, 1.0, inf, -inf))
validation.freeze(ZERO, ONE, INF, MINUS_INF)
Invalid = Literal["raise", "miss"]
"""How to handle rays with NaN."""

_WAY_OUT = 'Drop those rows, or pass invalid="miss" and they hit nothing'


class RayArrays(NamedTuple):
    """Origins, directions (..., D) and ranges as float64, and their names for error texts."""

    origins: Floats
    directions: Floats
    t_min: Floats
    t_max: Floats
    o_name: str = "origins"
    d_name: str = "directions"


def small_vectors(origins: ArrayInput, directions: ArrayInput) -> tuple[Floats, Floats] | None:
    """Return copies of valid origins and directions that are small lists or arrays of one shape.

    None for all others, which take longer to check.
    """
    if isinstance(origins, list) and isinstance(directions, list):
        o, d = validation.floats(origins, "origins"), validation.floats(directions, "directions")
        return finite_vectors(o, d)
    return None if getattr(origins, "size", _LARGE) >= _LARGE else finite_vectors(origins, directions)


def points(value: ArrayInput, name: str) -> Floats:
    """Return `validation.points`, large arrays in memory that is reused."""
    if type(value) is np.ndarray and value.dtype in FLOATS and value.size >= _LARGE:
        copied: Floats = huge_pages.pooled(validation.with_width(value, name).shape, np.float64)
        np.copyto(copied, value)
        return copied
    return validation.points(value, name)


def validated(
    rays: RayArrays, invalid: Invalid, finite: bool = False
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return valid origins and directions of one shape, and t_min and t_max.

    t_min and t_max have one number for each ray, or are scalar arrays. invalid: "raise" raises `InvalidInput`
    for invalid rays; "miss" sets their range to an empty one. finite: whether origins and directions are
    known to be finite.
    """
    if invalid not in ("raise", "miss"):
        raise InvalidInput(f'invalid must be "raise" or "miss"; got {invalid!r}.')
    o, d, low, high = rays[:4]
    finite = finite or (validation.all_finite(o) and validation.all_finite(d))
    if o.shape != d.shape:
        shape = common_shape(rays)
        o, d = (np.array(np.broadcast_to(values, shape), order="C") for values in (o, d))
    if low.ndim == 0 and high.ndim == 0:
        ordered = low.item() <= high.item()
    else:
        low, high = _per_ray(low, "t_min", o.shape[:-1]), _per_ray(high, "t_max", o.shape[:-1])
        ordered = bool((low <= high).all())
    if not (finite and ordered):
        bad = _find_invalid(rays._replace(origins=o, directions=d, t_min=low, t_max=high), invalid)
        low, high = np.where(bad, inf, low), np.where(bad, -inf, high)
    return o, d, low, high


def common_shape(rays: RayArrays) -> tuple[int, ...]:
    """Return the broadcast shape of origins and directions."""
    o, d = rays.origins, rays.directions
    if o.shape == d.shape:
        return o.shape
    try:
        # D is 2 or 3, never 1, so it broadcasts only against itself.
        return np.broadcast_shapes(o.shape, d.shape)
    except ValueError:
        raise InvalidInput(
            f"{rays.o_name} and {rays.d_name} must broadcast against each other and have the same D; "
            f"got shapes {o.shape} and {d.shape}. Give one row for each ray, or one row for all."
        ) from None


def _per_ray(t: Floats, name: str, shape: tuple[int, ...]) -> Floats:
    """Return t as a scalar array, or with the shape of the rays."""
    if t.size == 1:
        return t.reshape(())
    try:
        return np.array(np.broadcast_to(t, shape), order="C")
    except ValueError:
        raise InvalidInput(
            f"{name} must be a scalar or one number for each ray, of shape {shape}; got shape {t.shape}. "
            f"Repeat the rays first to give each several ranges."
        ) from None


def _find_invalid(rays: RayArrays, invalid: Invalid) -> Bools:
    """Return a mask of invalid rays, or raise `InvalidInput` for the first broken rule."""
    shape = rays.origins.shape[:-1]
    ranges = {name: np.broadcast_to(t, shape) for name, t in (("t_min", rays.t_min), ("t_max", rays.t_max))}
    vectors = {rays.o_name: rays.origins, rays.d_name: rays.directions}
    t_min, t_max = ranges.values()
    broken = [
        *((f"{name} must be finite", ~np.isfinite(v).all(axis=-1), {name: v}) for name, v in vectors.items()),
        ("t_min and t_max must not be NaN", np.isnan(t_min) | np.isnan(t_max), ranges),
        ("t_min must not exceed t_max", t_min > t_max, ranges),
    ]
    if invalid == "raise":
        for rule, bad, shown in broken:
            if bad.any():
                validation.refuse_rows(bad, rule, shown, "ray", _WAY_OUT)
    return np.asarray(np.logical_or.reduce([bad for _, bad, _ in broken]))
