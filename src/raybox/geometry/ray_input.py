"""What makers of rays were given: made to fit together, and checked."""

from math import inf
from typing import NamedTuple

import numpy as np

from raybox import validation
from raybox.errors import InvalidInput
from raybox.validation import Bools, Floats

_WAY_OUT = 'Drop those rows, or pass invalid="miss" and they meet nothing'


class Given(NamedTuple):
    """Origins, directions (..., D) and ranges as float64; and the names their giver knows them by."""

    origins: Floats
    directions: Floats
    t_min: Floats
    t_max: Floats
    o_name: str = "origins"
    d_name: str = "directions"


def settle(given: Given, invalid: str, finite: bool = False) -> tuple[Floats, Floats, Floats, Floats]:
    """Return origins and directions of one shape, and t_min and t_max of that shape or scalar, all sound.

    Unsound rays are raised for; or, if ``invalid`` is "miss", given an empty range.
    finite: whether origins and directions are known to be.
    """
    if invalid not in ("raise", "miss"):
        raise InvalidInput(f'invalid must be "raise" or "miss"; got {invalid!r}.')
    o, d, low, high = given[:4]
    finite = finite or (validation.all_finite(o) and validation.all_finite(d))
    if o.shape != d.shape:
        shape = fit(given)
        o, d = (np.array(np.broadcast_to(values, shape), order="C") for values in (o, d))
    if low.ndim == 0 and high.ndim == 0:
        ordered = low.item() <= high.item()
    else:
        low, high = _per_ray(low, "t_min", o.shape[:-1]), _per_ray(high, "t_max", o.shape[:-1])
        ordered = bool((low <= high).all())
    if not (finite and ordered):
        bad = _unsound(given._replace(origins=o, directions=d, t_min=low, t_max=high), invalid)
        low, high = np.where(bad, inf, low), np.where(bad, -inf, high)
    return o, d, low, high


def fit(given: Given) -> tuple[int, ...]:
    """Return the shape that origins and directions have together."""
    o, d = given.origins, given.directions
    if o.shape == d.shape:
        return o.shape
    try:
        # D is 2 or 3, never 1, so that it broadcasts only against itself.
        return np.broadcast_shapes(o.shape, d.shape)
    except ValueError:
        raise InvalidInput(
            f"{given.o_name} and {given.d_name} must broadcast against each other and have the same D; "
            f"got shapes {o.shape} and {d.shape}. Give one row for each ray, or one row for all."
        ) from None


def _per_ray(t: Floats, name: str, shape: tuple[int, ...]) -> Floats:
    """Return t as a scalar array, or with one number for each ray."""
    if t.size == 1:
        return t.reshape(())
    try:
        return np.array(np.broadcast_to(t, shape), order="C")
    except ValueError:
        raise InvalidInput(
            f"{name} must be a scalar or one number for each ray, of shape {shape}; got shape {t.shape}. "
            f"Repeat the rays first if each shall have several ranges."
        ) from None


def _unsound(given: Given, invalid: str) -> Bools:
    """Mark the rays that break a rule, or raise for the first rule broken."""
    shape = given.origins.shape[:-1]
    ranges = {name: np.broadcast_to(t, shape) for name, t in (("t_min", given.t_min), ("t_max", given.t_max))}
    vectors = {given.o_name: given.origins, given.d_name: given.directions}
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
