"""Meshes as binary PLY of raybox: float64 vertices, triangles, and the property `object` of each triangle."""

from typing import BinaryIO

import numpy as np

from raybox.errors import InvalidInput
from raybox.geometry import Mesh
from raybox.geometry.labels import HasAttributes
from raybox.geometry.mesh import stored_objects
from raybox.hits.tables import Columns

_HEADER = (
    "ply\n"
    "format binary_little_endian 1.0\n"
    "comment triangles by raybox\n"
    "element vertex {vertices}\n"
    "property double x\n"
    "property double y\n"
    "property double z\n"
    "element face {faces}\n"
    "property list uchar int vertex_indices\n"
    "{objects}"
    "end_header\n"
)
_OBJECTS = "property int object\n"


def _face_type(has_objects: bool) -> np.dtype[np.void]:
    fields = [("size", "u1"), ("corners", "<i4", (3,)), *([("object", "<i4")] if has_objects else [])]
    return np.dtype(fields)


def write(file: BinaryIO, mesh: Mesh) -> None:
    """Write a mesh, without ids and labels."""
    objects = stored_objects(mesh)
    if max(len(mesh.vertices), int(mesh.objects.max(initial=0))) >= 2**31:
        raise InvalidInput("PLY holds numbers of vertices and objects below 2**31. Save the mesh as .npz.")
    counts = {"vertices": len(mesh.vertices), "faces": len(mesh)}
    file.write(_HEADER.format(**counts, objects="" if objects is None else _OBJECTS).encode())
    file.write(mesh.vertices.astype("<f8").tobytes())
    rows = np.empty(len(mesh), _face_type(objects is not None))
    rows["size"], rows["corners"] = 3, mesh.faces
    if objects is not None:
        rows["object"] = objects
    file.write(rows.tobytes())


def attribute_table(mesh: HasAttributes) -> Columns:
    """Return the table of ids and labels that PLY does not hold: a row for each object."""
    named = ({} if mesh.ids is None else {"id": mesh.ids}) | dict(mesh.labels)
    if not named:
        return {}
    clash = next((name for name in mesh.labels if name in ("object", "id")), None)
    if clash is not None:
        raise InvalidInput(f"the label {clash!r} has the name of a column of the table. Rename it.")
    return {"object": np.arange(len(next(iter(named.values()))))} | named
