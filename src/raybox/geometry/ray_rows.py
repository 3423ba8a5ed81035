"""Rays as kernels read them: how many there are, and some of them by their numbers."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from raybox.geometry.rows import RayRows
from raybox.validation import Ints, freeze

N = TypeVar("N", bound=np.generic)

FROM_START, TO_INFINITY = np.zeros(1), np.full(1, np.inf)
NO_ROWS = RayRows(np.zeros((0, 3)), np.zeros((0, 3)), FROM_START, TO_INFINITY)
freeze(*NO_ROWS)


def ray_count(rays: RayRows) -> int:
    """Return the number of rays."""
    return len(rays.directions)


def select_rows(rays: RayRows, numbers: Ints | slice) -> RayRows:
    """Return some rays by their numbers; an array of one row stays that of all rays."""

    def some(values: NDArray[N]) -> NDArray[N]:
        return values[numbers] if len(values) > 1 else values

    o, d, low, high, starts, excluded = rays
    rows = RayRows(some(o), d[numbers], some(low), some(high), some(starts), some(excluded))
    freeze(*rows)
    return rows
