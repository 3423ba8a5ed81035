"""Shapes to draw, as arrays: edges and faces of boxes and triangles, paths of rays."""

from typing import NamedTuple

import numpy as np

from raybox.geometry import Bounded, Boxes, Rays
from raybox.hits import Hits
from raybox.validation import Bools, Floats, Ints

_MAX = np.finfo(np.float64).max
MARGIN = 0.08  # round everything drawn, as a share of the longest side

# Corner k of a box has its upper bound on each axis whose bit is set in k: (edges, faces) by dimension.
_CORNERS = {
    2: (np.array([[0, 1], [1, 3], [3, 2], [2, 0]]), np.array([[0, 1, 3, 2]])),
    3: (
        np.array([[k, k | bit] for bit in (1, 2, 4) for k in range(8) if not k & bit]),
        np.array([[0, 2, 6, 4], [1, 3, 7, 5], [0, 1, 5, 4], [2, 3, 7, 6], [0, 1, 3, 2], [4, 5, 7, 6]]),
    ),
}


class Paths(NamedTuple):
    """The drawn parts of rays; rays without any point are left out."""

    starts: Floats
    """(N, D)"""
    ends: Floats
    """(N, D): the hit point, bit for bit; of a miss, just past the scene or the ray's own end"""
    hit: Bools
    """(N,)"""
    normals: Floats
    """(N, D)"""
    begins: Bools
    """(N,): whether the ray begins at its path's start, and not at infinity"""


def view_of(geometry: Bounded, rays: Rays | None, hits: Hits | None) -> Floats:
    """Return the corners of the picture, (2, D): all finite points, and a margin."""
    points = [geometry.vertices] if not isinstance(geometry, Boxes) else [geometry.lower, geometry.upper]
    if rays is not None and hits is not None:
        points += [_anchors(rays), hits.points.reshape(-1, rays.ndim_space)]
    cloud = np.concatenate(points)
    finite = [column[np.isfinite(column)] for column in cloud.T]
    lower = np.array([column.min(initial=np.inf) for column in finite])
    upper = np.array([column.max(initial=-np.inf) for column in finite])
    empty = lower > upper
    lower[empty], upper[empty] = 0.0, 0.0
    margin = MARGIN * (upper - lower).max() or 1.0
    return np.array([lower - margin, upper + margin])


def outlines(geometry: Bounded, view: Floats) -> tuple[Floats, Floats]:
    """Return edges ``(N, E, 2, D)`` and faces ``(N, P, K, D)``, clipped to the view."""
    if not isinstance(geometry, Boxes):
        corners = geometry.triangles
        return corners[:, [[0, 1], [1, 2], [2, 0]]], corners[:, None]
    lower, upper = np.clip(geometry.lower, *view), np.clip(geometry.upper, *view)
    dims = geometry.ndim_space
    bits = (np.arange(2**dims)[:, None] >> np.arange(dims)) & 1
    corners = np.where(bits == 1, upper[:, None], lower[:, None])
    edges, faces = _CORNERS[dims]
    return corners[:, edges], corners[:, faces]


def solid(geometry: Bounded) -> Ints:
    """Return the rows that contain a point; a box from inf to inf contains none."""
    if not isinstance(geometry, Boxes):
        return np.arange(len(geometry))
    return np.flatnonzero(((geometry.lower < np.inf) & (geometry.upper > -np.inf)).all(axis=1))


def paths_of(rays: Rays, hits: Hits, view: Floats) -> Paths:
    """Return each ray's path, from its start to its hit, its end or the view's edge."""
    dims = rays.ndim_space
    flat = rays.reshape(-1)
    low, high = np.array(flat.t_min), np.array(flat.t_max)
    nonempty = (low <= high) & (low < np.inf) & (high > -np.inf)
    origins, directions = flat.origins[nonempty], flat.directions[nonempty]
    enter, leave = crossing(origins, directions, view)
    begins = low[nonempty] > -np.inf
    first = np.where(begins, low[nonempty], enter)
    last = np.maximum(first, np.minimum(high[nonempty], leave))
    hit = hits.hit.reshape(-1)[nonempty]
    points = hits.points.reshape(-1, dims)[nonempty]
    ends = np.where(hit[:, None], points, origins + last[:, None] * directions)
    starts = origins + first[:, None] * directions
    return Paths(starts, ends, hit, hits.normals.reshape(-1, dims)[nonempty], begins)


def _anchors(rays: Rays) -> Floats:
    """Return the point of each ray that the picture must show.

    Its start, or its origin if t_min is infinite.
    """
    low = rays.t_min.reshape(-1, 1)
    origins, directions = (a.reshape(-1, rays.ndim_space) for a in (rays.origins, rays.directions))
    with np.errstate(invalid="ignore", over="ignore"):
        return origins + np.where(np.isfinite(low), low, 0.0) * directions


def crossing(origins: Floats, directions: Floats, view: Floats) -> tuple[Floats, Floats]:
    """Return the t at which lines enter and leave the view; 0 and 0 without a direction."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        planes = (view[:, None] - origins) / directions
    near = np.where(directions == 0.0, -np.inf, planes.min(axis=0)).max(axis=1)
    far = np.where(directions == 0.0, np.inf, planes.max(axis=0)).min(axis=1)
    zero = ~directions.any(axis=1)
    near, far = (np.where(zero, 0.0, np.clip(t, -_MAX, _MAX)) for t in (near, far))
    return near, far
