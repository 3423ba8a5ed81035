"""Embree 4 through Open3D's RaycastingScene: twelve triangles for each box, float32."""

from typing import Any

import numpy as np
import open3d as o3d

from raybox.bench.data import BoxSet, RaySet
from raybox.bench.peers import Engine
from raybox_peers.common import box_of, corners, faces, singles

Results = dict[str, Any]


def form(boxes: BoxSet) -> Any:
    """Return triangles as tensors."""
    return o3d.core.Tensor(corners(boxes)), o3d.core.Tensor(faces(boxes, np.uint32))


def build(mesh: Any, threads: int) -> Engine:
    """Return a scene; ``nthreads`` limits the threads of build and queries."""
    scene = o3d.t.geometry.RaycastingScene(nthreads=threads)
    scene.add_triangles(*mesh)
    how = {"nthreads": threads}
    scene.cast_rays(o3d.core.Tensor(np.ones((1, 6), np.float32)), **how)  # builds the tree

    def prepare(rays: RaySet) -> Any:
        return o3d.core.Tensor(np.concatenate(singles(rays), axis=1))

    def read_nearest(found: Results) -> Any:
        t = found["t_hit"].numpy()
        return box_of(np.where(np.isfinite(t), found["primitive_ids"].numpy().astype(np.int64), -1)), t

    def read_all(found: Results) -> Any:
        return found["ray_ids"].numpy().astype(np.int64), box_of(found["primitive_ids"].numpy())

    return Engine(
        prepare,
        run={
            "nearest": lambda rays: scene.cast_rays(rays, **how),
            "occluded": lambda rays: scene.test_occlusions(rays, **how),
            "count": lambda rays: scene.count_intersections(rays, **how),
            "all": lambda rays: scene.list_intersections(rays, **how),
        },
        read={
            "nearest": read_nearest,
            "occluded": lambda hit: hit.numpy(),
            "count": lambda number: number.numpy().astype(np.int64),
            "all": read_all,
        },
    )
