"""A user's script, which mypy checks by its strict rules: results, indices and files have types."""

from pathlib import Path
from typing import assert_type

import numpy as np

import raybox as rb
from raybox.hits import RayHits


def pick(folder: Path) -> list[int]:
    """Return the boxes that the rays of two files hit."""
    scene = rb.Scene(rb.load(folder / "boxes.csv"), quality="fast")
    rays = assert_type(rb.load(str(folder / "rays.csv"), kind="rays"), rb.Rays)
    hits = assert_type(scene.nearest(rays), rb.Hits)
    assert_type(hits[1:][0], rb.Hits)
    return [int(hit.index) for hit in hits if hit]


def sweep_lengths(scene: rb.Scene, rays: rb.Rays) -> dict[int, float]:
    """Return the length inside boxes of each ray that hits any."""
    lengths: dict[int, float] = {}
    one: RayHits
    for number, one in enumerate(scene.all(rays)):
        if one:
            lengths[number] = float(one.lengths.sum())
    return lengths


def make() -> tuple[rb.Boxes, rb.Rays]:
    """Return boxes and rays of arrays."""
    bounds = [[2, -1, 3, 1], [5, -1, 7, 1]]
    boxes = assert_type(rb.Boxes.from_bounds(bounds, ids=["near", "far"]), rb.Boxes)
    rays = assert_type(rb.Rays.from_array(np.array([[0.0, 0, 1, 0], [0, 9, 1, 0], [4, 0, 1, 0]])), rb.Rays)
    return boxes[:2], rays[...]


def camera() -> rb.Rays:
    """Return the rays of a calibrated camera."""
    matrix = [[2, 0, 1], [0, 2, 1], [0, 0, 1]]
    return rb.Rays.from_camera(matrix, np.eye(3), [0, 0, 5], width=3, height=3, convention="opengl")


def named(boxes: rb.Boxes, rays: rb.Rays) -> list[str | None]:
    """Return the names of the nearest boxes."""
    hits = rb.Scene(boxes, quality="best").nearest(rays)
    return [None if name is None else str(name) for name in hits.ids]


def along_rays(scene: rb.Scene, rays: rb.Rays) -> dict[str, float]:
    """Return sums along rays."""
    hits = assert_type(scene.all(rays), rb.AllHits)
    return {
        "count": float(scene.count(rays).sum()),
        "first": float(scene.first(rays, 2).t[0, 0]),
        "length": float(scene.integrate(rays).sum()),
        "hits": float(scene.deposit(rays, per="hit").sum()),
        "lengths": float(hits.to_sparse("t_exit").sum()),
        "occluded": float(scene.occluded(rays, where=np.array([True, False])).sum()),
    }


def surfaces() -> tuple[float, int]:
    """Return t of a triangle from its front, and the number of hits of a plane from behind."""
    mesh = rb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], ids=["wall"])
    ray = rb.Rays([0.25, 0.25, 2], [0, 0, -1], invalid="miss")
    plane = rb.Planes([0, 0, -1], 0)
    front = assert_type(rb.intersect(ray, mesh, cull="back"), rb.Hits)
    return float(front.t[0]), int(rb.intersect(ray, plane, cull="back").hit.sum())


def objects() -> tuple[list[str], float, int]:
    """Return labels, the distance and the number of contacts of the objects that a ray hits."""
    square = [[0, 0, 0], [3, 0, 0], [0, 3, 0]]
    wall = rb.Mesh(square, [[0, 1, 2]], objects=[0], ids=["wall"], labels={"kind": ["stone"], "cost": [2.5]})
    assert_type(rb.concatenate([wall, wall]), rb.Mesh)
    assert rb.Mesh.from_trimesh(wall).equals(rb.Mesh(wall.vertices, wall.faces))
    rays = rb.Rays.lidar([1, 1, 2], [0], [-90])
    hits = rb.Scene(wall).nearest(rays, where="kind == 'stone' and cost > 1")
    names = [str(name) for name in hits.labels("kind").ravel()]
    rows = rb.Scene(wall).all(rays).by_object()
    costs = rows.labels("kind", "cost")["cost"]
    assert float(costs[0]) == wall.labels["cost"][0]
    return names, float(hits.distances[0, 0]), int(rows.contacts.sum())


def cast_a_file(scene: rb.Scene, rays: Path, out: Path) -> int:
    """Return the number of rays that were cast into a file."""
    return rb.stream.cast(scene, rays, out, query="count", invalid="miss").rays


def of_files(path: Path) -> tuple[int, int]:
    """Return how many boxes and primitives a file holds."""
    boxes = assert_type(rb.load(path, boxes=True), rb.Boxes)
    scene = rb.Scene(rb.load(path, kind="scene"))
    return len(boxes.lower), len(scene)
