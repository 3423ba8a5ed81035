"""Meshes as binary PLY of raybox: float64 vertices, triangles, and the property `object` of each triangle."""

from typing import BinaryIO

import numpy as np

from raybox.errors import InvalidInput
from raybox.geometry import Mesh
from raybox.geometry.mesh import stored_objects

_HEADER = """ply
format binary_little_endian 1.0
comment triangles by raybox
element vertex %s
property double x
property double y
property double z
element face %s
property list uchar int vertex_indices
%send_header
"""
_OBJECTS = "property int object\n"


def _face_type(has_objects: bool) -> np.dtype[np.void]:
    fields = [("size", "u1"), ("corners", "<i4", (3,)), ("object", "<i4")]
    return np.dtype(fields if has_objects else fields[:2])


def write(file: BinaryIO, mesh: Mesh) -> None:
    """Write a mesh, without ids and labels."""
    objects = stored_objects(mesh)
    if max(len(mesh.vertices), int(mesh.objects.max(initial=0))) >= 2**31:
        raise InvalidInput("PLY holds numbers of vertices and objects below 2**31. Save the mesh as .npz.")
    rows = np.empty(len(mesh), _face_type(objects is not None))
    rows["size"], rows["corners"] = 3, mesh.faces
    if objects is not None:
        rows["object"] = objects
    counts = len(mesh.vertices), len(mesh)
    file.write((_HEADER % (*counts, "" if objects is None else _OBJECTS)).encode())
    file.write(mesh.vertices.astype("<f8").tobytes())
    file.write(rows.tobytes())
