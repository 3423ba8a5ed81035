"""Arrays of the rays of cameras and lidars, in memory that is reused."""

import numpy as np

from raybox.compiler import huge_pages
from raybox.geometry.camera import Calibration
from raybox.geometry.lidar import LidarSweep
from raybox.geometry.ray_blocks import goes_past_caches, write_lidar, write_pinhole
from raybox.validation import Floats, freeze


def _make(*shape: int) -> Floats:
    vectors: Floats = huge_pages.pooled_input((*shape, 3), np.float64)
    return vectors


def pinhole_directions(rows: Floats, columns: Floats) -> Floats:
    """Return the directions (height, width, 3): each the sum of a row's vector and a column's."""
    made = _make(len(rows), len(columns))
    freeze(rows, columns)
    write_pinhole(rows, columns, made.reshape(-1, 3), goes_past_caches(made))
    return made


def calibrated_directions(camera: Calibration) -> Floats:
    """Return the directions (height, width, 3) of a calibrated camera; some may overflow."""
    _, rows, across, skewed, focal, right = camera
    with np.errstate(over="ignore", invalid="ignore"):  # `Rays.from_camera` refuses what is not finite
        if not skewed.any():
            return pinhole_directions(rows, (across / focal)[:, None] * right)
        x = (across - skewed[:, None]) / focal
        directions: Floats = rows[:, None] + x[..., None] * right
    return directions


def lidar_vectors(sweep: LidarSweep, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return the origins of a lidar's rays, or the one of all, and their directions (*shape, 3)."""
    directions = _make(*shape)
    freeze(*sweep)
    write_lidar(sweep, directions.reshape(-1, 3))
    if len(sweep.origins) == 1:
        return sweep.origins[0], directions
    origins = _make(*shape)
    origins[...] = sweep.origins[:, None, None]
    return origins, directions
