"""STL, binary and text: triangles; a text file may hold several named solids.

trimesh is not used: it returns an empty scene for a text file that is cut off, and its errors name no line.
"""

from pathlib import Path

import numpy as np

from raybox.io.formats.common import Floats, Loaded, ReadOptions, file_error, quoted
from raybox.io.formats.mesh_parts import MeshPart, cut_off, to_scene
from raybox.io.formats.tables import Announced, count_in

HEADER, RECORD = 84, np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("extra", "<u2")])


def read(path: Path, options: ReadOptions) -> Loaded:
    """Return the triangles of an STL file.

    It is binary if its size fits (both may begin with "solid").
    """
    data = path.read_bytes()
    count = int.from_bytes(data[HEADER - 4 : HEADER], "little")
    if len(data) >= HEADER and len(data) == HEADER + count * RECORD.itemsize:
        return to_scene(
            [_part(path.stem, np.frombuffer(data, RECORD, offset=HEADER)["corners"])], path, options
        )
    if data.lstrip()[:5].lower() != b"solid" or b"\0" in data:
        size = f"{HEADER + count * RECORD.itemsize} bytes announced, {len(data)} there"
        raise file_error(path, f"is neither text nor a whole binary STL: {size}", "copy or download it again")
    return to_scene(_solids(data.decode("utf-8", errors="replace"), path), path, options)


def _part(name: str, corners: object) -> MeshPart:
    vertices = np.asarray(corners, dtype=np.float64).reshape(-1, 3)
    return MeshPart(name, vertices, np.arange(len(vertices), dtype=np.int64).reshape(-1, 3))


def _solids(text: str, path: Path) -> list[MeshPart]:
    """Return the solids of a text file.

    Lines other than solid, vertex, endfacet, endsolid are skipped.
    """
    parts: list[MeshPart] = []
    name, corners, line, inside = "", list[list[float]](), 0, False
    for line, fields in enumerate((row.split() for row in text.splitlines()), 1):
        key = fields[0].lower() if fields else ""
        if key == "solid":
            name, corners, inside = " ".join(fields[1:]) or path.stem, [], True
        elif key == "vertex":
            corners.append(_vertex(fields, path, line))
        elif key == "endfacet" and len(corners) % 3:
            raise file_error(
                path, "a facet of a number of corners other than 3", "correct the file", f"line {line}"
            )
        elif key == "endsolid":
            parts.append(_part(name, _stacked(corners)))
            inside = False
    if inside:
        raise cut_off(path, f"line {line}")
    return parts


def _stacked(corners: list[list[float]]) -> Floats:
    return np.array(corners, dtype=np.float64).reshape(-1, 3)


def _vertex(fields: list[str], path: Path, line: int) -> list[float]:
    try:
        x, y, z = map(float, fields[1:])
    except ValueError as error:
        raise file_error(
            path, f"{quoted(' '.join(fields))} is not a vertex", "correct the line", f"line {line}"
        ) from error
    return [x, y, z]


def announced(path: Path) -> Announced:
    """Return the number of triangles: that of the header if it fits the size, else of facets in the text."""
    with path.open("rb") as file:
        count = int.from_bytes(file.read(HEADER)[HEADER - 4 :], "little")
    is_binary = path.stat().st_size == HEADER + count * RECORD.itemsize
    return Announced(count if is_binary else count_in(path, b"endfacet"))
