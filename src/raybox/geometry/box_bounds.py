"""Lower and upper bounds of boxes, (M, D) each: checks and constructors."""

from typing import NoReturn

import numpy as np

from raybox import validation
from raybox.errors import InvalidInput
from raybox.geometry import grid_cells, grid_edges, table_columns
from raybox.geometry.mesh import Mesh
from raybox.geometry.table_columns import TableInput
from raybox.validation import Array, ArrayInput, Floats, Ints

Bounds = tuple[Floats, Floats]


def refuse(lower: Floats, upper: Floats) -> NoReturn:
    """Raise `InvalidInput` for NaN among bounds, else for lower > upper."""
    shown = {"lower": lower, "upper": upper}
    nan = (np.isnan(lower) | np.isnan(upper)).any(axis=1)
    if nan.any():
        way_out = "Drop those boxes; for no bound, pass -inf or inf"
        validation.refuse_rows(nan, "lower and upper must not be NaN", shown, "box", way_out)
    crossed = (lower > upper).any(axis=1)
    way_out = "If corners are in any order, pass np.minimum(lower, upper) and np.maximum(lower, upper)"
    validation.refuse_rows(crossed, "lower must not exceed upper on any axis", shown, "box", way_out)


def from_centers(centers: ArrayInput, sizes: ArrayInput) -> Bounds:
    """Return the bounds of boxes from centres and edge lengths."""
    c = validation.rows(centers, "centers")
    validation.require_finite(c, "centers", "box", "Drop those boxes")
    s = _like_rows(sizes, "sizes", c)
    if not (s >= 0).all():
        bad = ~(s >= 0).all(axis=1)
        validation.refuse_rows(
            bad, "sizes must not be negative or NaN", {"sizes": s}, "box", "Drop those boxes"
        )
    with np.errstate(over="ignore"):
        return c - s / 2, c + s / 2


def checked(lower: Floats, upper: Floats) -> Bounds:
    """Return bounds, or raise `InvalidInput` for NaN or lower > upper."""
    if not (lower <= upper).all():
        refuse(lower, upper)
    return lower, upper


def from_bounds(bounds: TableInput) -> Bounds:
    """Return the bounds of boxes from rows of 2 * D numbers, or from a table with these columns."""
    names = validation.names_of(bounds)
    if names is not None:
        bounds = table_columns.stacked(bounds, names, ("min_", "max_"), "boxes")
    rows = validation.rows(bounds, "bounds", (4, 6))  # type: ignore[arg-type]  # no Mapping
    return checked(*validation.halves(rows))


def expanded(bounds: Bounds, margin: ArrayInput) -> Bounds:
    """Return bounds moved outwards by a margin."""
    lower, upper = bounds
    m = _like_rows(margin, "margin", lower)
    validation.require_finite(m, "margin", "box", "Pass a finite number")
    with np.errstate(over="ignore"):
        low, high = lower - m, upper + m
    inverted = (low > high).any(axis=1)
    if inverted.any():
        rule, shown = "margin must not turn a box inside out", {"margin": m, "lower": lower, "upper": upper}
        validation.refuse_rows(inverted, rule, shown, "box", "Pass no less than -boxes.sizes / 2")
    return low, high


def translated(bounds: Bounds, offset: ArrayInput) -> Bounds:
    """Return bounds moved by an offset."""
    lower, upper = bounds
    by = _like_rows(offset, "offset", lower)
    validation.require_finite(by, "offset", "box", "Pass finite numbers")
    with np.errstate(over="ignore"):
        low, high = lower + by, upper + by
    lost = ((np.isinf(low) & np.isfinite(lower)) | (np.isinf(high) & np.isfinite(upper))).any(axis=1)
    if lost.any():
        shown = {"offset": by, "lower": lower, "upper": upper}
        rule = "moved bounds must be within float64"
        validation.refuse_rows(lost, rule, shown, "box", "Move them by less")
    return low, high


def around(points: Floats, groups: Ints) -> Bounds:
    """Return the bounds of each group of finite points."""
    if groups.shape != points.shape[:1]:
        raise InvalidInput(
            f"groups must have shape ({len(points)},), one whole number for each point; got shape "
            f"{groups.shape} for points of shape {points.shape}."
        )
    if not len(groups):
        return np.empty_like(points), np.empty_like(points)
    _check_groups(groups)

    # Sort points by group, and reduce from each group's start to the next.
    order = np.argsort(groups, kind="stable")
    counts = np.bincount(groups)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    sorted_points = points[order]
    return np.minimum.reduceat(sorted_points, starts, axis=0), np.maximum.reduceat(
        sorted_points, starts, axis=0
    )


def of_triangles(vertices: ArrayInput, faces: ArrayInput) -> Bounds:
    """Return the bounds of each triangle."""
    corners = Mesh(vertices, faces).triangles
    return corners.min(axis=1), corners.max(axis=1)


def of_voxels(occupancy: ArrayInput, origin: ArrayInput, pitch: ArrayInput) -> Bounds:
    """Return the bounds of each occupied cell, in C order."""
    cells = _occupied(occupancy)
    start = validation.floats(origin, "origin")
    step = validation.floats(pitch, "pitch")
    grid_edges.check_start("origin", start, step, f"occupancy has {cells.ndim} dimensions", cells.ndim)

    # Compute every plane of the grid once, for the cells on both of its sides.
    edges = grid_edges.spaced("origin", start, step, (0,) * cells.ndim, cells.shape)
    return grid_cells.bounds_of(edges, np.nonzero(cells))


def _check_groups(groups: Ints) -> None:
    if groups.min() < 0:
        rule = "groups must be numbered from 0"
        validation.refuse_rows(
            groups < 0, rule, {"groups": groups}, "point", "Drop points that belong to no group"
        )
    # Each of G groups has a point, so group numbers are less than the number of points.
    last = int(groups.max())
    present = np.zeros(min(last, len(groups)) + 1, dtype=np.bool_)
    present[groups[groups < len(present)]] = True
    if last >= len(groups) or not present.all():
        raise InvalidInput(
            f"groups must use every number from 0 to {last}, since a box needs at least one point; "
            f"number {int(present.argmin())} is the first without a point. "
            f"Renumber them: np.unique(groups, return_inverse=True)[1]."
        )


def _occupied(occupancy: ArrayInput) -> Array:
    cells = validation.array(occupancy, "occupancy")
    if cells.dtype.kind not in "biu" and cells.size:
        raise InvalidInput(
            f"occupancy must be of bools or integers, where 0 is empty; got {cells.dtype}. "
            f"Compare with a threshold: grid > threshold."
        )
    if cells.ndim not in (2, 3):
        raise InvalidInput(
            f"occupancy must have 2 or 3 dimensions; got shape {cells.shape}. Reshape it to the grid."
        )
    return cells


def _like_rows(value: ArrayInput, name: str, rows: Floats) -> Floats:
    """Return numbers broadcast to the shape of ``rows``."""
    found = validation.axis_floats(value, name)
    try:
        return np.broadcast_to(found, rows.shape)
    except ValueError:
        raise InvalidInput(
            f"{name} must be a scalar, or have shape ({rows.shape[1]},) for each axis, or {rows.shape} for "
            f"each box and axis; got shape {found.shape}. "
            f"One number for each box goes in as shape ({len(rows)}, 1)."
        ) from None
