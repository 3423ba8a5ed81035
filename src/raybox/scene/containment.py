"""Which points boxes contain, and which a closed mesh, by the exact parity of the triangles above them.

The rays go up, and a little to the side: by (e, e^2, 0), where e is positive and as small as one likes. They
hit no edge, and cross a closed mesh each time that they hit a triangle. Signs of e decide where a ray that
goes straight up hits an edge or a corner.
"""

import numpy as np

from raybox.errors import InvalidInput
from raybox.exact.plane_signs import Signs, turn_signs
from raybox.geometry import Boxes, Mesh, Rays
from raybox.geometry.mesh_edges import open_edges
from raybox.scene.scene import Scene
from raybox.validation import Bools, Floats, Ints

_BLOCK = 1 << 16  # points whose hits are in memory together


def contains(mesh: Mesh, points: Floats, scene: Scene | None = None, workers: int = -1) -> Bools:
    """Return which points (n, 3) are inside of a mesh or on it; `scene` is one of this mesh.

    Raise `InvalidInput` if the mesh is not closed.
    """
    _require_closed(mesh)
    scene = Scene(mesh, workers=workers) if scene is None else scene
    lower, upper = mesh.bounds
    near = np.flatnonzero(((points >= lower) & (points <= upper)).all(axis=1))
    found = np.zeros(len(points), dtype=np.bool_)
    for start in range(0, len(near), _BLOCK):
        block = near[start : start + _BLOCK]
        found[block] = on_surface = _on_surface(scene, points[block], workers)
        rest = block[~on_surface]
        found[rest] = _crossings(scene, mesh, points[rest], workers) % 2 == 1
    return found


def contains_each(boxes: Boxes, points: Floats) -> Bools:
    """Return which boxes contain which points (..., D): shape (..., M)."""
    found = Scene(boxes).containing(points)
    inside = np.zeros((len(found.offsets) - 1, len(boxes)), dtype=np.bool_)
    inside[found.row, found.index] = True
    return inside.reshape(*points.shape[:-1], len(boxes))


def _require_closed(mesh: Mesh) -> None:
    edges = open_edges(mesh)
    if len(edges):
        start, end = edges[0]
        raise InvalidInput(
            "contains needs a closed mesh: each edge in two triangles, in opposite directions; "
            f"{len(edges):,} edges are not, the first from vertex {start} to vertex {end}. Close its holes, "
            "and turn its triangles to one side."
        )


def _on_surface(scene: Scene, points: Floats, workers: int) -> Bools:
    """Return which points are on triangles: a triangle with an area is parallel to two axes at most."""
    found = np.zeros(len(points), dtype=np.bool_)
    for direction in np.eye(3):
        found |= scene.occluded(Rays(points, direction, t_min=0.0, t_max=0.0), workers=workers)
    return found


def _crossings(scene: Scene, mesh: Mesh, points: Floats, workers: int) -> Ints:
    """Return how many triangles are above each point, seen a little to the side."""
    hits = scene.all(Rays(points, [0.0, 0.0, 1.0]), workers=workers)
    corners, sources = mesh.triangles[hits.index, :, :2], points[hits.ray, :2]
    sides = np.stack([_sides(corners[:, k - 1], corners[:, k], sources) for k in range(3)])
    return np.bincount(hits.ray[np.abs(sides.sum(axis=0)) == 3], minlength=len(points))


def _sides(start: Floats, end: Floats, points: Floats) -> Signs:
    """Return 1 where points, moved by (e, e^2), are to the left of edges, -1 to the right.

    0 where start and end are one point.
    """
    sides = turn_signs(start, end, points)
    (x, y), (x1, y1) = start.T, end.T
    moved = np.where(y == y1, np.sign((x1 > x) * 1 - (x1 < x)), (y1 < y) * 1 - (y1 > y))
    return np.where(sides == 0, moved, sides).astype(np.int8)
