"""The arrays of containers as kernels read them: read-only, C-ordered, of three coordinates."""

from typing import NamedTuple, Protocol

import numpy as np

from raybox.compiler import huge_pages
from raybox.validation import Floats, Ints, Ints32, freeze


class PrimitiveRows(Protocol):
    """Arrays of any container: a `NamedTuple`, whose class chooses the kernels."""

    def _asdict(self) -> dict[str, object]: ...


NO_STARTS, NO_EXCLUDED = np.empty(0, np.int32), np.empty(0, np.int64)
freeze(NO_STARTS, NO_EXCLUDED)


class RayRows(NamedTuple):
    """Arrays of rays, flat; in 2D the third column is zero."""

    origins: Floats
    """(1, 3), one point of all rays, or (N, 3)"""
    directions: Floats
    """(N, 3)"""
    t_min: Floats
    """(1,) or (N,)"""
    t_max: Floats
    """(1,) or (N,)"""
    starts: Ints32 = NO_STARTS
    """(0,), (1,) or (N,): the row of `Tree.starts` at which a ray starts, beside row 0; none: there alone"""
    excluded: Ints = NO_EXCLUDED
    """(0,), (1,) or (N,): the primitive, or its owner (`Job.owners`), that a ray does not hit; -1: none"""


class BoxRows(NamedTuple):
    """Arrays of boxes; in 2D the third column is zero."""

    lower: Floats
    """(M, 3)"""
    upper: Floats
    """(M, 3)"""


class MovingBoxRows(NamedTuple):
    """Arrays of moving boxes; in 2D the third column is zero."""

    lower: Floats
    """(M, 3)"""
    upper: Floats
    """(M, 3)"""
    directions: Floats
    """(M, 3)"""


class GridRows(NamedTuple):
    """Arrays of a grid; in 2D the third axis is one flat cell at zero."""

    x_edges: Floats
    """(shape[0] + 1,)"""
    y_edges: Floats
    """(shape[1] + 1,)"""
    z_edges: Floats
    """(shape[2] + 1,)"""
    shape: Ints
    """(3,): cells along each axis"""
    blocks: Ints
    """(K, 2): those of `raybox.geometry.cell_bits`; (0, 2) if rays may hit all cells"""
    words: Ints
    """(W,): a bit for each cell that rays may hit"""


class PlaneRows(NamedTuple):
    """Arrays of planes; in 2D the third column is zero."""

    normals: Floats
    """(M, 3)"""
    offsets: Floats
    """(M,)"""
    cull_back: bool = False
    """Drop rays that come from behind, or are parallel to the plane."""


class TriangleRows(NamedTuple):
    """Arrays of triangles."""

    corners: Floats
    """(F, 3, 3): triangle, corner, coordinate"""
    cull_back: bool = False
    """Drop rays that come from behind: along the normal (b - a) x (c - a)."""


def in_space(values: Floats) -> Floats:
    """Return vectors of 2 or 3 coordinates as rows of three.

    In 3D without a copy; in 2D a frozen copy whose third column is zero.
    """
    if values.shape[-1] == 3:
        return values if values.ndim == 2 else values.reshape(-1, 3)
    flat = values.reshape(-1, 2)
    rows: Floats = huge_pages.pooled_input((len(flat), 3), np.float64)
    rows[:, 0], rows[:, 1], rows[:, 2] = flat[:, 0], flat[:, 1], 0.0  # by columns: in a quarter of the time
    freeze(rows)
    return rows
