"""A private primitive that fills its boxes: closed cubes by centre and half edge, kernels of boxes."""

from typing import NamedTuple

import numpy as np

from raybox.geometry import BoxRows
from raybox.primitives import exact_table
from raybox.primitives.box import (
    bounds,
    certain_order,
    classify,
    first_contacts,
    intersect,
    normal,
    prefetch_rows,
    span,
    tie,
    weights,
)

__all__ = [
    "bounds",
    "certain_order",
    "classify",
    "first_contacts",
    "intersect",
    "normal",
    "prefetch_rows",
    "span",
    "tie",
    "weights",
]

FILLS_BOXES = True
EXACT = exact_table.TABLE[BoxRows]


class CubeRows(NamedTuple):
    """Cubes as the kernels read them."""

    lower: np.ndarray
    upper: np.ndarray


class Cubes:
    """Closed cubes; centres and half edges whose sums are floats."""

    ndim_space = 3

    def __init__(self, centers, halves):
        self._centers, self._halves = np.array(centers), np.array(halves)[:, None]
        lower, upper = self._rows()
        assert (self._centers - lower == self._halves).all()
        assert (upper - self._centers == self._halves).all()

    def _rows(self) -> CubeRows:
        return CubeRows(self._centers - self._halves, self._centers + self._halves)

    def __len__(self) -> int:
        return len(self._halves)
