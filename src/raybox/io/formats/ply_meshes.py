"""Meshes as binary PLY of raybox: float64 vertices, triangles, and the property `object` of each triangle."""

import re
from pathlib import Path
from typing import BinaryIO

import numpy as np

from raybox.errors import InvalidInput
from raybox.geometry import Mesh
from raybox.geometry.labels import HasAttributes
from raybox.geometry.mesh import stored_objects
from raybox.hits.tables import Columns
from raybox.io.formats.common import Loaded, ReadOptions, file_error
from raybox.io.formats.mesh_parts import check_end
from raybox.io.formats.object_boxes import boxes_of

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
_START = re.compile(
    re.escape(_HEADER)
    .replace(r"\{vertices\}", "([0-9]{1,12})")
    .replace(r"\{faces\}", "([0-9]{1,12})")
    .replace(r"\{objects\}", f"({re.escape(_OBJECTS)}|)")
    .encode()
)
_LONGEST = 400  # bytes of a header, at most


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


def read(path: Path, options: ReadOptions) -> Loaded | None:
    """Return a mesh that raybox wrote; None for another file, or to read points."""
    with path.open("rb") as file:
        found = _START.match(file.read(_LONGEST))
    if found is None or options.origin is not None or options.kind == "rays":
        return None
    vertices, faces = int(found[1]), int(found[2])
    face = _face_type(bool(found[3]))
    wanted, size = found.end() + 24 * vertices + face.itemsize * faces, path.stat().st_size
    if wanted < size:
        with path.open("rb") as file:
            file.seek(wanted)
            check_end(path, file.read())
    if wanted > size:
        problem = f"has {size:,} bytes, its header announces {wanted:,}"
        raise file_error(path, problem, "copy or save it again")
    points = np.fromfile(path, "<f8", 3 * vertices, offset=found.end()).reshape(-1, 3)
    rows = np.fromfile(path, face, faces, offset=found.end() + 24 * vertices)
    if (rows["size"] != 3).any():
        row = int((rows["size"] != 3).argmax())
        raise file_error(
            path, f"has {rows['size'][row]} corners, not 3", "copy or save it again", f"face {row}"
        )
    objects = rows["object"].astype(np.int64) if found[3] else None
    mesh = Mesh(points.astype(np.float64), rows["corners"].astype(np.int64), objects=objects)
    return Loaded(boxes_of(mesh, path) if options.boxes else mesh)
