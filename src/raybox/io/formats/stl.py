"""STL, binary and text: triangles; each solid of a text is an object."""

from pathlib import Path

import numpy as np

from raybox.io.formats.common import Loaded, ReadOptions, file_error
from raybox.io.formats.mesh_parts import MeshPart, check_end, cut_off, to_scene
from raybox.io.formats.tables import Announced, count_in
from raybox.io.formats.text_lines import floats, name_of, plain, refuse_line, text_lines

HEADER, RECORD = 84, np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("extra", "<u2")])
_NEXT = [  # the statements that may follow each other, and where the next one is found
    {"solid": 1},
    {"facet": 2, "endsolid": 0},
    {"outer loop": 3},
    *({"vertex": 4 + k} for k in range(3)),
    {"endloop": 7},
    {"endfacet": 1},
]
_OPEN = ("solid", "facet", "vertex", "endsolid")  # more words may follow


def read(path: Path, options: ReadOptions) -> Loaded:
    """Return the triangles of an STL file.

    It is binary if its size fits (both may begin with "solid").
    """
    data = path.read_bytes()
    end = HEADER + int.from_bytes(data[HEADER - 4 : HEADER], "little") * RECORD.itemsize
    if HEADER <= end <= len(data) and not data[end:].strip():
        corners = np.frombuffer(data[:end], RECORD, offset=HEADER)["corners"]
        return to_scene([_part(path.stem, corners)], path, options)
    text = plain(data, path)
    if text.lstrip()[:5].lower() == b"solid" and b"\0" not in text:
        return to_scene(_solids(text, path), path, options)
    if HEADER <= end < len(data):
        check_end(path, data[end:])
    size = f"{end} bytes announced, {len(data)} there"
    raise file_error(path, f"is neither text nor a whole binary STL: {size}", "copy or download it again")


def _part(name: str, corners: object) -> MeshPart:
    vertices = np.asarray(corners, dtype=np.float64).reshape(-1, 3)
    return MeshPart(name, vertices, np.arange(len(vertices), dtype=np.int64).reshape(-1, 3))


def _solids(text: bytes, path: Path) -> list[MeshPart]:
    """Return the solids of a text file."""
    parts: list[MeshPart] = []
    name, corners, line, state = "", list[list[float]](), 0, 0
    for line, row in enumerate(text_lines(text, path), 1):
        key, words = _statement(row)
        if not key:
            continue
        try:
            if key not in _NEXT[state]:
                raise ValueError(f"stands where {' or '.join(_NEXT[state])} should stand")
            state = _NEXT[state][key]
            if key == "vertex":
                corners.append(_vertex(words))
            elif key == "solid":
                name, corners = name_of(words) or path.stem, []
            elif key == "endsolid":
                parts.append(_part(name, corners))
        except ValueError as error:
            refuse_line(path, row, str(error), f"line {line}")
    if state:
        raise cut_off(path, f"line {line}, in solid {name!r}")
    return parts


def _statement(row: str) -> tuple[str, list[str]]:
    """Return the key of a line in small letters, and further words."""
    words = row.split()
    key = words[0].lower() if words else ""
    if key == "end":  # "end solid", as some programs write
        words[:2] = ["".join(words[:2])]
        key = words[0].lower()
    return (key, words[1:]) if key in _OPEN else (" ".join(words).lower(), [])


def _vertex(words: list[str]) -> list[float]:
    if len(words) != 3:
        raise ValueError(f"has {len(words)} numbers, a vertex has 3")
    return floats(words)


def announced(path: Path) -> Announced:
    """Return the number of triangles: that of the header if it fits the size, else of facets in the text."""
    with path.open("rb") as file:
        count = int.from_bytes(file.read(HEADER)[HEADER - 4 :], "little")
    end = HEADER + count * RECORD.itemsize
    return Announced(count if end <= path.stat().st_size else count_in(path, b"endfacet"))
