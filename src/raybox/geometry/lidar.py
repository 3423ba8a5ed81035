"""Rays of a spinning lidar: a direction for each pose, elevation and azimuth."""

from typing import NamedTuple

import numpy as np

from raybox import validation
from raybox.errors import InvalidInput
from raybox.geometry.angles import check_degrees
from raybox.geometry.camera import are_rotations
from raybox.validation import ArrayInput, Floats


class LidarSweep(NamedTuple):
    """The parameters of a lidar's rays, which are numbered through poses, elevations and azimuths."""

    origins: Floats
    """(1, 3), or (N, 3)"""
    elevations: Floats
    """(E, 2): cosine and sine"""
    azimuths: Floats
    """(1, A, 2), or (E, A, 2): likewise"""
    rotations: Floats
    """(1, 3, 3), or (N, 3, 3); (0, 3, 3) without one"""


class ShapedSweep(NamedTuple):
    """A sweep, and the shape of its rays: (E, A), or (N, E, A) where an origin or a rotation has N."""

    sweep: LidarSweep
    shape: tuple[int, ...]


def sweep_of(
    origin: ArrayInput, azimuths: ArrayInput, elevations: ArrayInput, rotation: ArrayInput | None
) -> ShapedSweep:
    """Return the parameters of a lidar, from points, degrees and matrices."""
    origins = validation.points(origin, "origin", (3,))
    if origins.ndim > 2:
        raise InvalidInput(
            f"origin must have shape (3,), or (N, 3) for N poses; got shape {origins.shape}. "
            "Flatten: x.reshape(-1, 3)."
        )
    validation.require_finite(origins, "origin", "pose", "Give each pose 3 finite numbers")
    turns = None if rotation is None else _rotations(rotation)
    up, across = _angles(elevations, "elevations"), _angles(azimuths, "azimuths")
    rows = len(up)
    if up.ndim != 1 or across.ndim > 2 or (across.ndim == 2 and len(across) not in (1, rows)):
        raise InvalidInput(
            "elevations must have shape (E,), and azimuths (A,), or (E, A) for azimuths of each elevation; "
            f"got shapes {up.shape} and {across.shape}. Offsets of beams: azimuths + offsets[:, None]."
        )
    up, across = (np.stack(sine_and_cosine(values)[::-1], axis=-1) for values in (up, np.atleast_2d(across)))
    turned = np.zeros((0, 3, 3)) if turns is None else turns.reshape(-1, 3, 3)
    sweep = LidarSweep(np.atleast_2d(origins), up, across, turned)
    return ShapedSweep(sweep, (*_poses(origins, turns), rows, across.shape[1]))


def _poses(origins: Floats, rotations: Floats | None) -> tuple[int, ...]:
    """Return the shape of the poses: () of a single one, else (N,)."""
    given = [origins.shape[:-1]] if rotations is None else [origins.shape[:-1], rotations.shape[:-2]]
    try:
        return np.broadcast_shapes(*given)
    except ValueError:
        counts = " and ".join(str(shape[0]) for shape in given)
        raise InvalidInput(
            f"origin and rotation must have one of each pose, or a single one; got {counts}. "
            "Interpolate them to the same times."
        ) from None


def _rotations(value: ArrayInput) -> Floats:
    """Return rotations, (3, 3) or (N, 3, 3)."""
    found = validation.floats(value, "rotation")
    if found.shape[-2:] != (3, 3) or found.ndim > 3:
        raise InvalidInput(
            f"rotation must have shape (3, 3), or (N, 3, 3) for N poses; got shape {found.shape}. "
            "Pass the sensor's axes in the world, as its columns."
        )
    bad = ~are_rotations(found)
    if bad.any():
        rule = (
            "rotation must be a rotation: its columns are the sensor's axes, of length 1, perpendicular and "
        )
        way_out = "For a matrix from world to sensor, pass its transpose: np.swapaxes(x, -1, -2)"
        validation.refuse_rows(bad, f"{rule}right-handed", {"rotation": found}, "pose", way_out)
    return found


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
    """Return finite angles of any shape, of one at least one axis."""
    found = np.atleast_1d(validation.floats(value, name))
    if not validation.all_finite(found):
        validation.refuse_rows(
            ~np.isfinite(found), f"{name} must be finite", {name: found}, "angle", "Drop those angles"
        )
    check_degrees(found, name)
    return found
