"""Meshes as binary PLY of raybox: float64 vertices, triangles, and the property `object` of each triangle."""

from typing import BinaryIO

import numpy as np

from raybox.errors import InvalidInput
from raybox.geometry import Mesh
from raybox.geometry.mesh import stored_objects
from raybox.io.formats.common import Loaded, ReadOptions, file_error
from raybox.io.formats.mesh_parts import check_end
from raybox.io.formats.object_boxes import boxes_of

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
_COUNT = "([0-9]{1,12})"
_START = re.compile((_HEADER.replace(".", r"\.") % (_COUNT, _COUNT, f"({_OBJECTS}|)")).encode())
_LONGEST = 400  # bytes of a header, at most


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


def read(path: Path, options: ReadOptions) -> Loaded | None:
    """Return a mesh that raybox wrote; None for another file, or to read points."""
    with path.open("rb") as file:
        found = _START.match(file.read(_LONGEST))
    if found is None or options.origin is not None or options.kind == "rays":
        return None
    vertices, faces, face = int(found[1]), int(found[2]), _face_type(bool(found[3]))
    start, data = found.end() + 24 * vertices, path.read_bytes()
    end = start + face.itemsize * faces
    if end > len(data):
        problem = f"has {len(data):,} bytes, its header announces {end:,}"
        raise file_error(path, problem, "copy or save it again")
    check_end(path, data[end:])
    points = np.frombuffer(data, "<f8", 3 * vertices, found.end()).reshape(-1, 3)
    rows = np.frombuffer(data, face, faces, start)
    wrong = np.flatnonzero(rows["size"] != 3)
    if wrong.size:
        problem = f"has {rows['size'][wrong[0]]} corners, not 3"
        raise file_error(path, problem, "copy or save it again", f"face {wrong[0]}")
    objects = rows["object"].astype(np.int64) if found[3] else None
    mesh = Mesh(points.astype(np.float64), rows["corners"].astype(np.int64), objects=objects)
    return Loaded(boxes_of(mesh, path) if options.boxes else mesh)
