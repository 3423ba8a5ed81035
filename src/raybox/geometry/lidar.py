"""Rays of a spinning lidar: a direction for each elevation and azimuth."""

import numpy as np

from raybox import validation
from raybox.errors import InvalidInput
from raybox.geometry.camera import checked_rotation
from raybox.validation import ArrayInput, Floats


def directions(azimuths: ArrayInput, elevations: ArrayInput, rotation: ArrayInput | None) -> Floats:
    """Return unit vectors of angles in degrees, shape (elevations, azimuths, 3)."""
    angles = [_angles(azimuths, "azimuths"), _angles(elevations, "elevations")[:, None]]
    (sin_a, cos_a), (sin_e, cos_e) = map(sine_and_cosine, angles)
    found = np.stack(np.broadcast_arrays(cos_e * cos_a, cos_e * sin_a, sin_e), axis=-1)
    if rotation is None:
        return found
    x, y, z = np.moveaxis(found, -1, 0)
    matrix = checked_rotation(rotation, "rotation", "the sensor's axes in the world, as its columns")
    return np.stack([row[0] * x + row[1] * y + row[2] * z for row in matrix], axis=-1)


def sine_and_cosine(degrees: Floats) -> tuple[Floats, Floats]:
    """Return sines and cosines of degrees, exact at multiples of 90."""
    turned = np.remainder(degrees, 360.0)  # exact
    quarter = np.rint(turned / 90.0)
    rest = np.deg2rad(turned - 90.0 * quarter)
    quarter = quarter.astype(np.int64) % 4
    sine, cosine = np.sin(rest), np.cos(rest)
    first = np.choose(quarter, [sine, cosine, -sine, -cosine])
    second = np.choose(quarter, [cosine, -sine, -cosine, sine])
    return first + 0.0, second + 0.0  # no negative zeros


def _angles(value: ArrayInput, name: str) -> Floats:
    found = validation.floats(value, name)
    if found.ndim > 1:
        raise InvalidInput(
            f"{name} must be a list of degrees, of shape (n,); got shape {found.shape}. Flatten: x.ravel()."
        )
    found = found.reshape(-1)
    if not validation.all_finite(found):
        validation.refuse_rows(
            ~np.isfinite(found), f"{name} must be finite", {name: found}, "angle", "Drop those angles"
        )
    return found
