"""Embree 4 through embreex: twelve triangles for each box, float32."""

from typing import Any

import numpy as np
from embreex import rtcore_scene
from embreex.mesh_construction import TriangleMesh

from raybox.bench.data import BoxSet, RaySet
from raybox.bench.peers import Engine
from raybox_peers.common import box_of, corners, faces, on_threads, singles


def form(boxes: BoxSet) -> Any:
    """Return triangles."""
    return corners(boxes), faces(boxes, np.int32)


def build(mesh: Any, threads: int) -> Engine:
    """Return a scene; rays are split over threads, as a call uses one and releases the GIL."""
    scene = rtcore_scene.EmbreeScene()
    mesh_reference = TriangleMesh(scene, *mesh)
    scene.run(
        np.zeros((1, 3), np.float32), np.ones((1, 3), np.float32)
    )  # the tree is built by the first query

    def run(rays: Any, **how: Any) -> list[Any]:
        origins, directions = rays
        return on_threads(lambda a, b: scene.run(origins[a:b], directions[a:b], **how), len(origins), threads)

    def read_nearest(parts: list[Any]) -> Any:
        triangle, t = (np.concatenate([part[name] for part in parts]) for name in ("primID", "tfar"))
        return box_of(triangle), np.where(triangle < 0, np.inf, t)

    def prepare(rays: RaySet) -> Any:
        assert mesh_reference is not None  # the mesh must live as long as the scene
        return singles(rays)

    return Engine(
        prepare,
        run={
            "nearest": lambda rays: run(rays, query="INTERSECT", output=True),
            "occluded": lambda rays: run(rays, query="OCCLUDED"),
        },
        read={"nearest": read_nearest, "occluded": lambda parts: np.concatenate(parts) >= 0},
    )
