"""Cells of a grid: boxes, formed of the edges when they are tested; see `raybox.primitives.box`.

A cell is found by its number in C order, up to 2^62. Cells are closed here, as all boxes are.
"""

import numpy as np

from raybox.bvh import cell_tree
from raybox.compiler.decorators import device, inlined
from raybox.exact.double_double import Vector3
from raybox.geometry import GridRows
from raybox.primitives.box import contact_order, entry, entry_normal, intersect_corners, span_corners
from raybox.primitives.ray import Ray
from raybox.validation import Floats

__all__ = ["TREE", "bounds", "intersect", "normal", "span", "tie", "weights"]

TREE = cell_tree


def bounds(grid: GridRows) -> tuple[Floats, Floats]:
    """Return the bounds of the whole grid, as those of one box; of none if it has no cells."""
    if not grid.shape.all():
        return np.empty((0, 3)), np.empty((0, 3))
    edges = grid.x_edges, grid.y_edges, grid.z_edges
    return np.array([[one[0] for one in edges]]), np.array([[one[-1] for one in edges]])


@inlined
def _corners(grid: GridRows, i: int) -> tuple[Vector3, Vector3]:
    """Return the lower and the upper corner of cell i."""
    rest = i // grid.shape[2]
    c = i - rest * grid.shape[2]
    a = rest // grid.shape[1]
    b = rest - a * grid.shape[1]
    return (grid.x_edges[a], grid.y_edges[b], grid.z_edges[c]), (
        grid.x_edges[a + 1],
        grid.y_edges[b + 1],
        grid.z_edges[c + 1],
    )


@device
def intersect(grid: GridRows, ray: Ray, i: int) -> tuple[bool, float]:
    """Return (hit, first contact rounded once) of cell i; the ray's range is not empty."""
    lower, upper = _corners(grid, i)
    return intersect_corners(lower, upper, ray)


@device
def tie(grid: GridRows, ray: Ray, i: int, j: int) -> int:
    """Compare first contacts with cells i and j, both hit, exactly: -1, 0 or 1."""
    lower, upper = _corners(grid, i)
    one = entry(lower, upper, ray)
    lower, upper = _corners(grid, j)
    return contact_order(one, entry(lower, upper, ray), ray)


@device
def span(grid: GridRows, ray: Ray, i: int) -> tuple[float, float]:
    """Return where the whole line enters and leaves cell i, which it hits: each rounded once."""
    lower, upper = _corners(grid, i)
    return span_corners(lower, upper, ray)


@device
def normal(grid: GridRows, ray: Ray, i: int) -> Vector3:
    """Return the outward normal of the face entered at or after t_min; zero where the ray starts inside."""
    lower, upper = _corners(grid, i)
    axis, plane = entry(lower, upper, ray)
    return entry_normal(axis, plane, ray)


@device
def weights(_grid: GridRows, _ray: Ray, _i: int) -> tuple[float, float]:
    """Return NaN: a cell has no barycentric coordinates."""
    return np.nan, np.nan
