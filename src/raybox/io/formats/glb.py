"""Binary glTF (`.glb`), through trimesh: the meshes of a scene, placed by their nodes."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from raybox.io.formats.common import Loaded, ReadOptions, file_error, quoted, require
from raybox.io.formats.mesh_parts import MeshPart, cut_off, to_scene
from raybox.io.formats.tables import Announced


def read(path: Path, options: ReadOptions) -> Loaded:
    """Return the triangles of a GLB file.

    A part is one node that shows a mesh.
    """
    data = path.read_bytes()
    document = _document(data, path)
    _check_references(document, path)
    trimesh = require("trimesh", "mesh", ".glb")
    # bytes have no folder, in which trimesh would look for other files
    scene = trimesh.load_scene(io.BytesIO(data), file_type="glb", process=False, skip_materials=True)
    parts = []
    for node in scene.graph.nodes_geometry:
        matrix, name = scene.graph[node]
        mesh = scene.geometry[name]
        vertices = np.asarray(mesh.vertices, dtype=np.float64) @ matrix[:3, :3].T + matrix[:3, 3]
        parts.append(
            MeshPart(
                str(node), vertices, np.asarray(getattr(mesh, "faces", np.zeros((0, 3))), dtype=np.int64)
            )
        )
    nodes = document.get("nodes", [])
    order = {node["name"]: number for number, node in enumerate(nodes) if "name" in node}
    parts.sort(key=lambda part: order.get(part.name, len(order)))  # trimesh has an order of its own
    return to_scene(parts, path, options)


def _document(data: bytes, path: Path) -> dict[str, Any]:
    """Return the JSON chunk of a file.

    Also checks the sizes in the headers against the file's, before trimesh allocates memory for them.
    """
    announced = int.from_bytes(data[8:12], "little")
    if len(data) < 20 or announced > len(data):
        raise cut_off(path, f"byte {len(data)} of {announced}")
    document: dict[str, Any] = json.loads(data[20 : 20 + int.from_bytes(data[12:16], "little")])
    for number, accessor in enumerate(document.get("accessors", [])):
        if not 0 <= accessor["count"] <= len(data):
            problem = f"announces {accessor['count']} items in {len(data)} bytes"
            raise file_error(path, problem, "copy or download it again", f"accessor {number}")
    return document


def _check_references(document: dict[str, Any], path: Path) -> None:
    """Raise `FileFormatError` if a buffer or an image lies outside of the file.

    Content in a ``data:`` URI is inside of it.
    """
    for kind in ("buffers", "images"):
        for number, one in enumerate(document.get(kind, [])):
            uri = one.get("uri", "data:")
            if not str(uri).startswith("data:"):
                problem = f"refers to another file, {quoted(uri)}, which raybox does not read"
                raise file_error(path, problem, "export it as one file", f"{kind[:-1]} {number}")


def announced(path: Path) -> Announced:
    """Return the number of triangles of all nodes: several may show one mesh."""
    document = _document(path.read_bytes(), path)
    counts: list[int] = [accessor["count"] for accessor in document.get("accessors", [])]

    def corners(primitive: dict[str, Any]) -> int:
        used: list[int] = [primitive["attributes"]["POSITION"]]
        used += [primitive["indices"]] if "indices" in primitive else []
        return max(counts[k] for k in used)

    sizes = [sum(map(corners, mesh["primitives"])) for mesh in document.get("meshes", [])]
    return Announced(sum(sizes[node["mesh"]] for node in document.get("nodes", []) if "mesh" in node) // 3)
