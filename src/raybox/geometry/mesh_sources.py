"""The arrays of meshes of other libraries, without importing them."""

from typing import Any

import numpy as np

from raybox.errors import InvalidInput


def of_trimesh(mesh: Any) -> dict[str, Any]:
    """Return the arguments of `Mesh` for a mesh or a scene of trimesh."""
    if hasattr(mesh, "vertices") and hasattr(mesh, "faces"):
        return {"vertices": mesh.vertices, "faces": mesh.faces}
    if not (hasattr(mesh, "graph") and hasattr(mesh, "geometry")):
        raise InvalidInput(
            f"mesh must be a Trimesh or a Scene of trimesh; got {type(mesh).__name__}. Pass its arrays: "
            "Mesh(vertices, faces)."
        )
    parts = [part for part in map(_placed, *_nodes(mesh)) if len(part[1])]
    counts = [len(vertices) for vertices, _, _ in parts]
    starts = np.cumsum([0, *counts])[:-1] if parts else np.zeros(0, np.int64)
    faces = [faces + start for (_, faces, _), start in zip(parts, starts, strict=True)]
    return {
        "vertices": np.concatenate([np.zeros((0, 3)), *(vertices for vertices, _, _ in parts)]),
        "faces": np.concatenate([np.zeros((0, 3), np.int64), *faces]),
        "objects": np.repeat(np.arange(len(parts)), [len(faces) for _, faces, _ in parts]),
        "ids": [name for _, _, name in parts],
    }


def _nodes(scene: Any) -> tuple[list[Any], list[str]]:
    names = list(scene.graph.nodes_geometry)
    return [scene] * len(names), names


def _placed(scene: Any, name: str) -> tuple[Any, Any, str]:
    """Return vertices and faces of a node in the world, and its name."""
    matrix, key = scene.graph[name]
    mesh = scene.geometry[key]
    faces = np.asarray(getattr(mesh, "faces", np.zeros((0, 3))), dtype=np.int64)
    vertices = np.asarray(mesh.vertices, dtype=np.float64) @ matrix[:3, :3].T + matrix[:3, 3]
    # a mirroring matrix turns triangles round
    return vertices, faces[:, ::-1] if np.linalg.det(matrix[:3, :3]) < 0 else faces, str(name)
