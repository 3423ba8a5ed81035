"""Wavefront OBJ: vertices and polygons; ``o`` and ``g`` lines begin a new part.

Triangles keep the order of the polygons in the file. All statements but ``v f o g`` (normals, texture,
materials, curves) are skipped, and so is what follows a ``#``. trimesh is not used: it drops faces of two
corners and the names of parts silently, and its errors name no line.
"""

from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from raybox.io.formats.common import Loaded, ReadOptions, file_error, quoted
from raybox.io.formats.mesh_parts import Ints, MeshPart, to_scene, triangulate
from raybox.io.formats.tables import Announced, count_in

NAMES = (b"o", b"g")  # of parts: a # may be in them
COMMENT = ord("#")  # a number is found in bytes seven times as fast as bytes are


class _Polygons:
    """The polygons read so far of one part."""

    def __init__(self, name: str) -> None:
        self.name, self.sizes, self.corners = name, array("q"), array("q")

    def triangles(self) -> Ints:
        return triangulate(np.array(self.sizes, dtype=np.int64), np.array(self.corners, dtype=np.int64))


def read(path: Path, options: ReadOptions) -> Loaded:
    """Return the triangles of an OBJ file."""
    numbers, parts = array("d"), [_Polygons(path.stem)]
    for line, key, fields in _statements(path):
        try:
            if key == b"v":
                numbers.extend(_vertex(fields))
            elif key == b"f":
                corners = _face(fields, len(numbers) // 3)
                parts[-1].sizes.append(len(corners))
                parts[-1].corners.extend(corners)
            elif key in NAMES:
                parts.append(_Polygons(b" ".join(fields).decode(errors="replace") or path.stem))
        except (ValueError, OverflowError) as error:
            statement = quoted((key + b" " + b" ".join(fields)).decode(errors="replace"))
            raise file_error(
                path,
                f"{statement}: {_reason(key, fields, error)}",
                "the file may be cut off, or is no OBJ",
                f"line {line}",
            ) from error
    vertices = np.array(numbers).reshape(-1, 3)
    return to_scene([MeshPart(part.name, vertices, part.triangles()) for part in parts], path, options)


def _statements(path: Path) -> Iterator[tuple[int, bytes, list[bytes]]]:
    """Yield line number, key and fields of each statement.

    A backslash continues a line.
    """
    with path.open("rb") as file:
        pending = b""
        for number, raw in enumerate(file, 1):
            line = pending + raw
            if COMMENT in line and not line.lstrip().startswith(NAMES):
                line = line.partition(b"#")[0]
            if line.endswith((b"\\\n", b"\\\r\n")):
                pending = line.rstrip(b"\\\r\n") + b" "
                continue
            pending = b""
            fields = line.split()
            if fields:
                yield number, fields[0], fields[1:]


def _vertex(fields: list[bytes]) -> Iterator[float]:
    if len(fields) < 3:
        raise ValueError(f"a vertex has 3 coordinates, this one {len(fields)}")
    return map(float, fields[:3])


def _face(fields: list[bytes], vertices: int) -> list[int]:
    """Return the corners of a face, from 0.

    Negative numbers in the file count back from the last vertex.
    """
    corners = [int(field.partition(b"/")[0]) for field in fields]
    if len(corners) < 3:
        raise ValueError(f"a face has at least 3 corners, this one {len(corners)}")
    if 0 in corners or min(corners) < -vertices:
        raise ValueError(f"no such vertex; there are {vertices} so far, counted from 1")
    return [corner - 1 if corner > 0 else vertices + corner for corner in corners]


def _reason(key: bytes, fields: list[bytes], error: Exception) -> str:
    """Return what is wrong with a statement: its first field that is no number, else the error's text."""
    if isinstance(error, OverflowError):
        return "a number is too large"
    for field in fields[:3] if key == b"v" else fields:
        number: bytes = field if key == b"v" else field.partition(b"/")[0]
        try:
            float(number) if key == b"v" else int(number)
        except ValueError:
            rule = "a number" if key == b"v" else "the number of a vertex"
            return f"{quoted(field.decode(errors='replace'))} is not {rule}"
    return str(error)


def announced(path: Path) -> Announced:
    """Return the number of faces."""
    return Announced(count_in(path, b"\nf"))
