"""The box around everything finite of a scene, which the camera and unbounded things go by."""

from collections.abc import Sequence

import numpy as np

from raybox.geometry import Boxes, Grid, Instances, Mesh, Planes
from raybox.validation import Floats

Solid = Boxes | Grid | Mesh | Instances | Planes
"""What the viewer shows."""


def finite_bounds(geometries: Sequence[Solid]) -> tuple[Floats, Floats]:
    """Return the corners of the box around all finite bounds of geometries in 3D; zeros without any.

    Planes count only where there is nothing else: then by their points nearest to the origin.
    """
    corners = [_corners(one) for one in geometries]
    if not any(np.isfinite(one).any() for one in corners):
        corners += [_padded(foot_points(one)) for one in geometries if isinstance(one, Planes) and len(one)]
    both = np.concatenate([np.zeros((0, 3)), *corners])
    finite = np.isfinite(both)
    low = np.min(both, axis=0, initial=np.inf, where=finite)
    high = np.max(both, axis=0, initial=-np.inf, where=finite)
    known = low <= high
    return np.where(known, low, 0.0), np.where(known, high, 0.0)


def foot_points(planes: Planes) -> Floats:
    """Return the point of each plane that is nearest to the origin, shape (n, 3), rounded."""
    size = np.abs(planes.normals).max(axis=1, keepdims=True)
    unit = planes.normals / size
    return np.asarray(unit * (planes.offsets[:, None] / size / (unit * unit).sum(axis=1, keepdims=True)))


def _corners(geometry: Solid) -> Floats:
    """Return points whose bounds are those of a geometry; infinite coordinates are no bounds."""
    if isinstance(geometry, Boxes):
        return np.concatenate([geometry.lower, geometry.upper])
    if isinstance(geometry, Mesh):
        return geometry.vertices[np.unique(geometry.faces)]
    return np.zeros((0, 3)) if isinstance(geometry, Planes) else geometry.bounds


def _padded(points: Floats) -> Floats:
    """Return points, and those at the corners of a box twice as large, at least 2 wide."""
    low, high = points.min(axis=0), points.max(axis=0)
    pad = max(1.0, float((high / 2 - low / 2).max()))
    return np.stack([low - pad, high + pad])
