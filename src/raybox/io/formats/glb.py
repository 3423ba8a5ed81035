"""Binary glTF (`.glb`), through trimesh: the scene's meshes where their nodes put them."""

import json
from pathlib import Path

import numpy as np

from raybox.io.formats.common import Loaded, Want, broken, require
from raybox.io.formats.mesh_parts import Part, cut_off, to_scene


def read(path: Path, want: Want) -> Loaded:
    """Read the triangles of a GLB file; a part is one node that shows a mesh."""
    order = _node_order(path.read_bytes(), path)
    trimesh = require("trimesh", "mesh", ".glb")
    scene = trimesh.load_scene(path, file_type="glb", process=False, skip_materials=True)
    parts = []
    for node in scene.graph.nodes_geometry:
        matrix, name = scene.graph[node]
        mesh = scene.geometry[name]
        vertices = np.asarray(mesh.vertices, dtype=np.float64) @ matrix[:3, :3].T + matrix[:3, 3]
        parts.append(
            Part(str(node), vertices, np.asarray(getattr(mesh, "faces", np.zeros((0, 3))), dtype=np.int64))
        )
    parts.sort(
        key=lambda part: order.get(part.name, len(order))
    )  # trimesh walks the nodes in an order of its own
    return to_scene(parts, path, want)


def _node_order(data: bytes, path: Path) -> dict[str, int]:
    """Give the nodes' numbers by name.

    On the way, hold the sizes in the headers against the file's, before trimesh reserves memory for them.
    """
    announced = int.from_bytes(data[8:12], "little")
    if len(data) < 20 or announced > len(data):
        raise cut_off(path, f"byte {len(data)} of {announced}")
    document = json.loads(data[20 : 20 + int.from_bytes(data[12:16], "little")])
    for number, accessor in enumerate(document.get("accessors", [])):
        if not 0 <= accessor["count"] <= len(data):
            problem = f"announces {accessor['count']} items in {len(data)} bytes"
            raise broken(path, problem, "copy or download it again", f"accessor {number}")
    return {node["name"]: number for number, node in enumerate(document.get("nodes", [])) if "name" in node}
