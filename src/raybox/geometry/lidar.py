"""Rays of a spinning lidar: a direction for each elevation and azimuth."""

from typing import NamedTuple

import numpy as np

from raybox import validation
from raybox.errors import InvalidInput
from raybox.geometry.angles import check_degrees
from raybox.geometry.camera import checked_rotation
from raybox.validation import ArrayInput, Floats


class LidarAngles(NamedTuple):
    """Angles of a lidar's rays, and its axes."""

    elevations: Floats
    """(E, 2): cosine and sine"""
    azimuths: Floats
    """(A, 2): likewise"""
    rotation: Floats
    """(3, 3); (0, 3) without one"""


def angles_of(azimuths: ArrayInput, elevations: ArrayInput, rotation: ArrayInput | None) -> LidarAngles:
    """Return the angles of a lidar, from degrees."""
    across, up = (
        np.stack(sine_and_cosine(_angles(value, name))[::-1], axis=-1)
        for value, name in ((azimuths, "azimuths"), (elevations, "elevations"))
    )
    if rotation is None:
        return LidarAngles(up, across, np.zeros((0, 3)))
    meaning = "the sensor's axes in the world, as its columns"
    return LidarAngles(up, across, checked_rotation(rotation, "rotation", meaning))


def directions_of(angles: LidarAngles, elevations: Floats, azimuths: Floats) -> Floats:
    """Return unit vectors (N, 3) of cosines and sines (N, 2); `ray_blocks.write_lidar` has their bits."""
    x, y, z = elevations[:, 0] * azimuths[:, 0], elevations[:, 0] * azimuths[:, 1], elevations[:, 1]
    if not len(angles.rotation):
        return np.stack([x, y, z], axis=-1)
    return np.stack([row[0] * x + row[1] * y + row[2] * z for row in angles.rotation], axis=-1)


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
    check_degrees(found, name)
    return found
