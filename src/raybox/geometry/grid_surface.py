"""Which cells of a grid a picture needs: those with a face that no other occupied cell shares."""

import numpy as np

from raybox.geometry.grid import Grid
from raybox.validation import Ints


def visible_cells(grid: Grid, most: int, most_of_full: int) -> Ints | None:
    """Return the numbers of the cells to draw; None if they are too many, so that an outline has to do.

    Of a grid in 2D all occupied cells are visible. most_of_full: cells of a grid that is full, whose inside
    shows only through translucent faces.
    """
    if not grid._rows().blocks.size:
        return np.arange(len(grid)) if len(grid) <= most_of_full else None
    cells = exposed_cells(grid) if grid.ndim_space == 3 else np.flatnonzero(grid.occupied)
    return cells if len(cells) <= most else None


def exposed_cells(grid: Grid) -> Ints:
    """Return the numbers of the occupied cells with a face that no other occupied cell shares."""
    mask = grid.occupied
    covered = np.array(mask)
    for axis in range(mask.ndim):
        inner, there = np.moveaxis(covered, axis, 0), np.moveaxis(mask, axis, 0)
        inner[1:] &= there[:-1]
        inner[:-1] &= there[1:]
        inner[[0, -1]] = False
    return np.flatnonzero(mask & ~covered)
