"""STL, binary and text: triangles; each solid of a text is an object.

Lines of a text whose first word is none of STL, also those before the first solid, are counted. Known
statements must follow each other as `_NEXT` has them: no triangle is lost without an error.
"""

import re
from collections import Counter
from pathlib import Path

import numpy as np

from raybox.io.formats.common import Loaded, ReadOptions, file_error
from raybox.io.formats.mesh_parts import MeshPart, check_end, cut_off, to_scene
from raybox.io.formats.tables import Announced, count_in
from raybox.io.formats.text_lines import count_unknown, decoded_names, floats, plain, refuse_line, text_lines

HEADER, RECORD = 84, np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("extra", "<u2")])
_NEXT = [  # the statements that may follow each other, and where the next one is found
    {"solid": 1},
    {"facet": 2, "endsolid": 0},
    {"outer loop": 3},
    *({"vertex": 4 + k} for k in range(3)),
    {"endloop": 7},
    {"endfacet": 1},
]
_PADDING = RECORD.itemsize  # zeros after the end, fewer than a triangle
_OPEN = ("solid", "facet", "vertex", "endsolid")  # more words may follow
_WORDS = {word.split()[0] for statements in _NEXT for word in statements}
_TEXT = re.compile(rb"^[^\S\n]*solid\b", re.IGNORECASE | re.MULTILINE)


def read(path: Path, options: ReadOptions) -> Loaded:
    """Return the triangles of an STL file, which is binary if its size fits."""
    data, end = path.read_bytes(), _binary_end(path)
    if is_binary(path):
        corners = np.frombuffer(data[:end], RECORD, offset=HEADER)["corners"]
        return to_scene([_part(path.stem, corners)], path, options, may_be_empty=True)
    text = plain(data, path).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if _TEXT.search(text) and b"\0" not in text:
        skipped = Counter[str]()
        parts = _solids(text, path, skipped)
        return to_scene(parts, path, options, +skipped, may_be_empty=True)
    if HEADER <= end < len(data):
        check_end(path, data[end:])
    size = f"{end} bytes announced, {len(data)} there"
    raise file_error(path, f"is neither text nor a whole binary STL: {size}", "copy or download it again")


def is_binary(path: Path) -> bool:
    """Return whether the size of a file is that of the triangles that it announces, but for padding."""
    end, size = _binary_end(path), path.stat().st_size
    with path.open("rb") as file:
        file.seek(min(end, size))
        rest = file.read()
    return end <= size and not rest.strip(b" \t\r\n\0") and (len(rest) < _PADDING or not rest.strip())


def _binary_end(path: Path) -> int:
    """Return the size of a binary file with the header of this one."""
    with path.open("rb") as file:
        count = file.read(HEADER)[HEADER - 4 :]
    return HEADER + int.from_bytes(count.ljust(4, b"\0"), "little") * RECORD.itemsize


def _part(name: str, corners: object) -> MeshPart:
    vertices = np.asarray(corners, dtype=np.float64).reshape(-1, 3)
    return MeshPart(name, vertices, np.arange(len(vertices), dtype=np.int64).reshape(-1, 3))


def _solids(text: bytes, path: Path, skipped: Counter[str]) -> list[MeshPart]:
    """Return the solids of a text file; count lines that are not known."""
    names, solids = list[str](), list[list[float]]()
    line, state = 0, 0
    for line, row in enumerate(text_lines(text, path), 1):
        key, words = _statement(row)
        if not key:
            continue
        if key.split()[0] not in _WORDS:
            count_unknown(key.split()[0], skipped)
            continue
        try:
            if key not in _NEXT[state]:
                raise ValueError(f"stands where {' or '.join(_NEXT[state])} should stand")
            state = _NEXT[state][key]
            if key == "vertex":
                if len(words) != 3:
                    raise ValueError(f"has {len(words)} numbers, a vertex has 3")
                solids[-1] += floats(words)
            elif key == "solid":
                names.append(" ".join(words))
                solids.append([])
        except ValueError as error:
            refuse_line(path, row, str(error), f"line {line}")
    if state:
        raise cut_off(path, f"line {line}, in solid {len(names)}")
    named = decoded_names(names, skipped, path.stem)
    return [_part(name, corners) for name, corners in zip(named, solids, strict=True)]


def _statement(row: str) -> tuple[str, list[str]]:
    """Return the key of a line in small letters, and further words."""
    words = row.split()
    key = words[0].lower() if words else ""
    if key == "end":  # "end solid", as some programs write
        words[:2] = ["".join(words[:2])]
        key = words[0].lower()
    return (key, words[1:]) if key in _OPEN else (" ".join(words).lower(), [])


def announced(path: Path) -> Announced:
    """Return the number of triangles: that of the header if it fits the size, else of facets in the text."""
    end = _binary_end(path)
    fits = end <= path.stat().st_size
    return Announced((end - HEADER) // RECORD.itemsize if fits else count_in(path, b"endfacet"))
