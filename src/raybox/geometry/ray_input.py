"""Validation of the arrays that rays are made of."""

from math import inf
from typing import Literal, NamedTuple

import numpy as np

from raybox import validation
from raybox.compiler import huge_pages
from raybox.errors import InvalidInput
from raybox.geometry.ray_blocks import copy_finite, goes_past_caches
from raybox.validation import ArrayInput, Bools, Floats

ZERO, ONE, INF, MINUS_INF = (np.array(number) for number in (0.0, 1.0, inf, -inf))
validation.freeze(ZERO, ONE, INF, MINUS_INF)
Invalid = Literal["raise", "miss"]
"""How to handle rays with NaN."""

FLOATS = np.dtype(np.float64), np.dtype(np.float32)
LARGE = 1 << 17  # numbers of an array for which memory is reused
_WAY_OUT = 'Drop those rows, or pass invalid="miss" and they hit nothing'


class RayArrays(NamedTuple):
    """Origins, directions (..., D) and ranges as float64, and names and the way out for error texts."""

    origins: Floats
    directions: Floats
    t_min: Floats
    t_max: Floats
    o_name: str = "origins"
    d_name: str = "directions"
    way_out: str = _WAY_OUT


def points(value: ArrayInput, name: str) -> tuple[Floats, bool]:
    """Return `validation.points`, and whether they are known to be finite.

    Large arrays are copied to memory that is reused, and checked in the same pass.
    """
    if not (type(value) is np.ndarray and value.dtype in FLOATS and value.size >= LARGE):
        return validation.points(value, name), False
    copied: Floats = huge_pages.pooled_input(validation.with_width(value, name).shape, np.float64)
    if value.flags.c_contiguous and value.flags.aligned:
        flat = value.reshape(-1)  # a view
        validation.freeze(flat)
        return copied, copy_finite(flat, copied.reshape(-1), goes_past_caches(copied))
    np.copyto(copied, value)
    return copied, False


def validated(
    rays: RayArrays, invalid: Invalid, finite: bool = False
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return valid origins and directions of one shape, and t_min and t_max.

    A single origin of many directions is (D,). t_min and t_max have one number for each ray, or are scalar
    arrays. invalid: "raise" raises `InvalidInput` for invalid rays; "miss" sets their range to an empty one.
    finite: whether origins and directions are known to be finite.
    """
    if invalid not in ("raise", "miss"):
        raise InvalidInput(f'invalid must be "raise" or "miss"; got {invalid!r}.')
    o, d, low, high = rays[:4]
    finite = finite or validation.all_below(inf, o, d)
    if o.shape != d.shape:
        shape = common_shape(rays)
        o, d = o.reshape(-1) if o.size == shape[-1] else _repeated(o, shape), _repeated(d, shape)
    low, high = ranges_of(rays, d.shape[:-1])
    ordered = low.item() <= high.item() if low.ndim == 0 == high.ndim else bool((low <= high).all())
    if not (finite and ordered):
        checked = rays._replace(origins=o, directions=d, t_min=low, t_max=high)
        if invalid == "raise":
            refuse_invalid(checked)
        low, high = without_invalid(checked)
    return o, d, low, high


def _repeated(values: Floats, shape: tuple[int, ...]) -> Floats:
    return values if values.shape == shape else np.array(np.broadcast_to(values, shape), order="C")


def ranges_of(rays: RayArrays, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return t_min and t_max: both as scalar arrays, or each as one or with the shape of the rays."""
    if rays.t_min.ndim == 0 and rays.t_max.ndim == 0:
        return rays.t_min, rays.t_max
    return per_ray(rays.t_min, "t_min", shape), per_ray(rays.t_max, "t_max", shape)


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


def per_ray(t: Floats, name: str, shape: tuple[int, ...]) -> Floats:
    """Return t as a scalar array, or with the shape of the rays, in C order."""
    if t.size == 1:
        return t.reshape(())
    try:
        return np.ascontiguousarray(np.broadcast_to(t, shape))
    except ValueError:
        raise InvalidInput(
            f"{name} must be a scalar or one number for each ray, of shape {shape}; got shape {t.shape}. "
            f"Repeat the rays first to give each several ranges."
        ) from None


class _Rule(NamedTuple):
    """A rule that rays may break: its text, which do, and arrays to show."""

    text: str
    broken: Bools
    shown: dict[str, Floats]


def _rules(rays: RayArrays) -> list[_Rule]:
    full = rays.directions.shape
    shape = full[:-1]
    ranges = {name: np.broadcast_to(t, shape) for name, t in (("t_min", rays.t_min), ("t_max", rays.t_max))}
    vectors = {rays.o_name: np.broadcast_to(rays.origins, full), rays.d_name: rays.directions}
    t_min, t_max = ranges.values()
    return [
        *(
            _Rule(f"{name} must be finite", np.asarray(~np.isfinite(v).all(axis=-1)), {name: v})
            for name, v in vectors.items()
        ),
        _Rule("t_min and t_max must not be NaN", np.asarray(np.isnan(t_min) | np.isnan(t_max)), ranges),
        _Rule("t_min must not exceed t_max", np.asarray(t_min > t_max), ranges),
    ]


def refuse_invalid(rays: RayArrays) -> None:
    """Raise `InvalidInput` for the first rule that a ray breaks."""
    for rule in _rules(rays):
        if rule.broken.any():
            validation.refuse_rows(rule.broken, rule.text, rule.shown, "ray", rays.way_out)


def without_invalid(rays: RayArrays) -> tuple[Floats, Floats]:
    """Return t_min and t_max of each ray, empty for those that are invalid."""
    bad = np.logical_or.reduce([rule.broken for rule in _rules(rays)])
    low, high = np.where(bad, inf, rays.t_min), np.where(bad, -inf, rays.t_max)
    return low, high
