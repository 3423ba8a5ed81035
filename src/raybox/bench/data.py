"""Boxes and rays of the benchmarks: uniform, clustered and mixed boxes, files; kinds of rays.

Every number is a float32 stored as float64, so that peers in float32 get the same numbers.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from raybox.validation import Floats

UNIT = np.array([[0.0] * 3, [1.0] * 3])
BOX_KINDS = ("uniform", "clustered", "mixed")
RAY_KINDS = ("incoherent", "inside", "camera")
SCENE_KINDS = ("oblique", "camera", "incoherent", "inside")  # of real scenes, whose z points up
_VIEW = np.array([0.3, -1.6, 0.9])  # the eye of oblique rays from the scene's centre, in its longest sides
_CLUSTER = 1000  # boxes in a cluster
_RUN = 1024  # consecutive rays of one kind where two kinds alternate


class BoxSet(NamedTuple):
    """Corners (N, 3), bounds of the scene (2, 3), and its former position before it was moved."""

    lower: Floats
    upper: Floats
    around: Floats = UNIT
    corner: Floats = UNIT[0]


class RaySet(NamedTuple):
    """Origins (R, 3) and unit directions (R, 3); t in [0, inf)."""

    origins: Floats
    directions: Floats

    def spread(self, count: int) -> "RaySet":
        """Return this many rays, evenly spread over all."""
        total = len(self.origins)
        chosen = slice(None) if count >= total else (np.arange(count) * total) // count
        return RaySet(
            np.ascontiguousarray(self.origins[chosen]), np.ascontiguousarray(self.directions[chosen])
        )


def boxes(kind: str, size: int, seed: int = 0) -> BoxSet:
    """Return boxes of a kind, or of a file if the kind is a path.

    A tenth of the unit cube is filled.

    uniform: centres uniform in the unit cube, half sizes uniform in [0, 0.01] (100,000 / size)^(1/3).
    clustered: the same boxes, in clusters of 1000 round uniform points (normal, deviation 0.02).
    mixed: half sizes of each axis log-uniform over a factor of 300: sticks, slabs, cubes, grains.
    """
    if kind not in BOX_KINDS:
        return _from_file(Path(kind))
    random = np.random.default_rng(seed)
    centres = random.random((size, 3))
    scale = 0.01 * (1e5 / size) ** (1 / 3)
    halves = random.random((size, 3)) * scale
    if kind == "clustered":
        clusters = random.random((-(-size // _CLUSTER), 3))
        centres = clusters[np.arange(size) % len(clusters)] + random.normal(0.0, 0.02, (size, 3))
    if kind == "mixed":
        halves = scale * 3.0 * 300.0 ** (random.random((size, 3)) - 1.0)
    return BoxSet(_single(centres - halves), _single(centres + halves))


def _from_file(path: Path) -> BoxSet:
    """Return a file's boxes, moved to the origin for float32.

    Of .ifc and .city.json the box of each object, of other meshes that of each triangle.
    """
    from raybox.geometry import Boxes, Mesh
    from raybox.io.formats import read

    geometry = read(path, kind="scene", boxes=path.suffix.lower() in (".ifc", ".json")).geometry
    if isinstance(geometry, Mesh):
        geometry = Boxes.of_triangles(geometry.vertices, geometry.faces)
    assert isinstance(geometry, Boxes)
    rows = geometry._rows()
    corner = rows.lower.min(axis=0)
    lower, upper = _single(rows.lower - corner), _single(rows.upper - corner)
    return BoxSet(lower, upper, np.stack([lower.min(axis=0), upper.max(axis=0)]), corner)


def rays(kind: str, count: int, scene: BoxSet, seed: int = 1) -> RaySet:
    """Return rays of a kind for a scene, or of a file if the kind is a path.

    incoherent: origins uniform in twice the scene's box, directions uniform on the sphere.
    inside: the same with origins in the scene's box.
    camera: a square pinhole picture, 40 degrees wide, along the scene's thinnest axis (z of the unit cube).
    oblique: such a picture from in front, from the left and from above, z up.
    joined, lines: half camera and half inside, one after the other or in turns of 1024 rays.
    """
    if kind in ("joined", "lines"):
        camera, inside = (rays(half, count // 2, scene, seed) for half in ("camera", "inside"))
        return _mixed(camera, inside, alternate=kind == "lines")
    if kind in ("camera", "oblique"):
        return (_camera if kind == "camera" else _oblique)(count, scene.around)
    if kind not in RAY_KINDS:
        return _rays_of(Path(kind), scene.corner).spread(count)
    random = np.random.default_rng(seed)
    low, size = scene.around[0], scene.around[1] - scene.around[0]
    where = random.random((count, 3)) * (1.0 if kind == "inside" else 2.0)
    origins = low + (where if kind == "inside" else where - 0.5) * size
    return RaySet(_single(origins), _single(_unit(random.standard_normal((count, 3)))))


def _rays_of(path: Path, corner: Floats) -> RaySet:
    """Return a file's rays without their ranges, which not every peer supports."""
    from raybox.geometry import Rays
    from raybox.io.formats import load

    loaded = load(path, kind="rays")
    assert isinstance(loaded, Rays)
    rows = loaded._rows()
    origins = np.broadcast_to(rows.origins - corner, rows.directions.shape).copy()
    return RaySet(_single(origins), _single(_unit(rows.directions)))


def _camera(count: int, around: Floats) -> RaySet:
    size = around[1] - around[0]
    axis = 2 - int(np.argmin(size[::-1]))
    along, across, up = np.eye(3)[[axis, (axis + 1) % 3, (axis + 2) % 3]]
    return _picture(count, around.mean(axis=0) - 2.0 * size.max() * along, np.array([along, across, up]))


def _oblique(count: int, around: Floats) -> RaySet:
    along = -_unit(_VIEW[None])[0]
    across = _unit(np.cross(along, [0.0, 0.0, 1.0])[None])[0]
    eye = around.mean(axis=0) + (around[1] - around[0]).max() * _VIEW
    return _picture(count, eye, np.array([along, across, np.cross(across, along)]))


def _picture(count: int, eye: Floats, axes: Floats) -> RaySet:
    """Return a square picture's rays; `axes` are the unit vectors along, across and up, row by row."""
    width = max(1, int(count**0.5))
    x = ((np.arange(width) + 0.5) / width * 2.0 - 1.0) * np.tan(np.radians(20.0))
    across, up = np.tile(x, width), -np.repeat(x, width)
    directions = axes[0] + across[:, None] * axes[1] + up[:, None] * axes[2]
    return RaySet(_single(np.tile(eye, (width * width, 1))), _single(_unit(directions)))


def _mixed(first: RaySet, second: RaySet, alternate: bool) -> RaySet:
    """Return two sets of rays one after the other, or in alternating runs of `_RUN`."""
    both = [np.concatenate(pair) for pair in zip(first, second, strict=True)]
    if alternate:
        turn = [np.arange(len(part.origins)) // _RUN for part in (first, second)]
        order = np.argsort(np.concatenate(turn), kind="stable")
        both = [array[order] for array in both]
    return RaySet(*both)


def _unit(vectors: Floats) -> Floats:
    result: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return result


def _single(array: Floats) -> Floats:
    return array.astype(np.float32).astype(np.float64)
