"""trimesh: twelve triangles for each box; ``mesh.ray`` over Embree, or over an R-tree of triangles."""

from typing import Any

import numpy as np
import trimesh
from trimesh.ray.ray_triangle import RayMeshIntersector

from raybox.bench.data import BoxSet
from raybox.bench.peers import Engine
from raybox_peers.common import box_of, corners, faces, times


def form(boxes: BoxSet) -> Any:
    """Return a mesh, without merging of vertices."""
    return trimesh.Trimesh(corners(boxes), faces(boxes, np.int64), process=False)


def build(mesh: Any, _threads: int, embree: bool = True) -> Engine:
    """Return a mesh whose tree the first query has built; trimesh uses one thread."""
    if embree:
        from trimesh.ray.ray_pyembree import RayMeshIntersector as WithEmbree

        caster = WithEmbree(mesh)
    else:
        caster = RayMeshIntersector(mesh)
    caster.intersects_first(np.zeros((1, 3)), np.ones((1, 3)))

    def locate(rays: Any, every: bool) -> Any:
        return rays, caster.intersects_location(*rays, multiple_hits=every)

    def read_nearest(results: Any) -> Any:
        (origins, directions), (points, ray, triangle) = results
        index, t = np.full(len(origins), -1), np.full(len(origins), np.inf)
        index[ray] = box_of(triangle)
        t[ray] = times(directions[ray], origins[ray], np.reshape(points, (-1, 3)))
        return index, t

    def read_all(results: Any) -> Any:
        _, (_, ray, triangle) = results
        return ray, box_of(triangle)

    return Engine(
        prepare=lambda rays: (rays.origins, rays.directions),
        run={
            "nearest": lambda rays: locate(rays, every=False),
            "occluded": lambda rays: caster.intersects_any(*rays),
            "all": lambda rays: locate(rays, every=True),
        },
        read={"nearest": read_nearest, "occluded": np.asarray, "all": read_all},
    )


def build_rtree(mesh: Any, threads: int) -> Engine:
    """Return trimesh's R-tree of triangles, its fallback without Embree."""
    return build(mesh, threads, embree=False)
