"""Rays as kernels read them: how many there are, and some of them by their numbers."""

import numpy as np

from raybox.geometry.rows import RayRows
from raybox.validation import Ints, freeze

FROM_START, TO_INFINITY = np.zeros(1), np.full(1, np.inf)
NO_ROWS = RayRows(np.zeros((0, 3)), np.zeros((0, 3)), FROM_START, TO_INFINITY)
freeze(*NO_ROWS)


def ray_count(rays: RayRows) -> int:
    """Return the number of rays."""
    return len(rays.directions)


def select_rows(rays: RayRows, numbers: Ints | slice) -> RayRows:
    """Return some rays by their numbers; an array of one row stays that of all rays."""
    o, low, high = (
        values if len(values) == 1 else values[numbers] for values in (rays.origins, rays.t_min, rays.t_max)
    )
    rows = RayRows(o, rays.directions[numbers], low, high)
    freeze(*rows)
    return rows
