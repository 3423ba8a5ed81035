"""Wavefront OBJ: vertices and polygons; ``o`` and ``g`` lines begin objects.

Colours are those of the materials in the libraries of the file's folder or below (see `mtl`).
Triangles keep the order of the polygons in the file. What follows a ``#`` is a comment. `COUNTED` statements
are left out and counted, `PASSED` ones need no count, `REFUSED` ones could change the triangles. Other words
are counted; a line that begins with none is refused: it may be the rest of a broken one.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from raybox.io.formats import mtl
from raybox.io.formats.common import Loaded, ReadOptions, file_error
from raybox.io.formats.mesh_parts import MeshPart, faces_of, to_scene
from raybox.io.formats.tables import Announced, count_in
from raybox.io.formats.text_lines import count_unknown, decoded_names, floats, refuse_line, text_lines

NAMES = ("o", "g", "usemtl")  # of objects and materials: a # may be in them
FACES = ("f", "fo")
COUNTED = {"p": "points", "l": "lines", "curv": "curves", "surf": "free-form surfaces"}
COUNTED |= {"cdc": "curves"} | dict.fromkeys(("bsp", "bzp", "cdp"), "free-form surfaces")
# Appearance, and what belongs to curves and free-form surfaces
_PASSED = (
    "vn vt vp s mg usemap maplib bevel c_interp d_interp lod shadow_obj trace_obj "
    "cstype deg bmat step parm trim hole scrv sp curv2 con end ctech stech res"
)
PASSED = frozenset(_PASSED.split())
REFUSED = {"call": "reads another file", "csh": "runs a command"}
REFUSED |= dict.fromkeys(("V", "F", "FO"), "is in capitals, which OBJ does not have")
_NUMBERS = (3, 4, 6, 7)  # of a vertex: with a weight, or a color
_MORE = "words after x y z of vertices"
_WORD = re.compile(r"[^\W\d]")


def read(path: Path, options: ReadOptions) -> Loaded:
    """Return the triangles of an OBJ file."""
    numbers, sizes, corners = array("d"), array("q"), array("q")
    objects, materials = [("", 0)], [("", 0)]  # names, and the first polygon of each
    libraries, skipped, left_out = list[str](), Counter[str](), Counter[str]()
    is_known, unknown = False, list[tuple[int, str]]()
    for number, line, (key, *fields) in _statements(path):
        try:
            if key == "v":
                numbers.extend(_vertex(fields, skipped))
            elif key in FACES:
                face = _corners(fields if "_" not in line else [], len(numbers) // 3)
                sizes.append(len(face))
                corners.extend(face)
            elif key in NAMES:
                (materials if key == "usemtl" else objects).append((" ".join(fields), len(sizes)))
            elif key == "mtllib":
                libraries.append(" ".join(fields))
            elif key in COUNTED:
                skipped[COUNTED[key]] += 1
            elif key in REFUSED or not _WORD.match(key):
                raise ValueError(REFUSED.get(key, "is no statement of OBJ that raybox reads"))
            elif key not in PASSED:
                count_unknown(key, skipped)
                unknown = unknown or [(number, line)]
                continue
            is_known = True
        except (OverflowError, ValueError) as error:
            problem = "has a number that is too large" if isinstance(error, OverflowError) else str(error)
            refuse_line(path, line, problem, f"line {number}")
    if not is_known:
        for number, line in unknown:
            refuse_line(path, line, "is no statement of OBJ, and no line is", f"line {number}")
        raise file_error(path, "has no statement of OBJ", "check that it is a Wavefront OBJ file")
    vertices = np.array(numbers).reshape(-1, 3)
    found = faces_of(vertices, np.array(corners, np.int64), np.array(sizes, np.int64), skipped)
    used, starts = zip(*materials, strict=True)
    libraries = libraries if len(used) > 1 and len(found.faces) else []
    palette = mtl.colors_of(path, libraries, used, skipped, left_out)
    colors = palette[np.searchsorted(starts, found.polygon, side="right") - 1]
    names, starts = zip(*objects, strict=True)
    first = np.searchsorted(found.polygon, starts[1:])
    named = decoded_names(names, skipped, path.stem)
    each = zip(named, np.split(found.faces, first), np.split(colors, first), strict=True)
    parts = [MeshPart(name, vertices, faces, colors=some) for name, faces, some in each]
    return to_scene(parts, path, options, +skipped, +left_out, may_be_empty=not numbers)


def _statements(path: Path) -> Iterator[tuple[int, str, list[str]]]:
    """Yield each statement: number of its last line, text, words."""
    pieces: list[str] = []
    for number, raw in enumerate(text_lines(path.read_bytes(), path), 1):
        line = raw
        if "#" in line and not (pieces or [line])[0].lstrip().startswith(NAMES):
            line = line.partition("#")[0]
        if line.endswith("\\\n"):
            pieces.append(line[:-2])
            continue
        if pieces:
            line, pieces = " ".join([*pieces, line]), []
        if words := line.split():
            yield number, line, words
    if pieces:
        refuse_line(path, pieces[-1], "is continued, but no line follows", f"line {number}")


def _vertex(fields: list[str], skipped: Counter[str]) -> list[float]:
    """Return x, y and z; count words after them that are no weight and no color."""
    if len(fields) < 3:
        raise ValueError(f"has {len(fields)} numbers, a vertex has 3 or more")
    if len(fields) not in _NUMBERS:
        skipped[_MORE] += len(fields) - 3
    try:
        return floats(fields[:3])
    except ValueError as error:
        raise ValueError(f"is not a vertex: {error}") from None


def _corners(fields: list[str], vertices: int) -> list[int]:
    """Return the corners of a face, from 0; negative ones in the file count back from the last vertex."""
    try:
        corners = [int(field.partition("/")[0]) for field in fields]
    except ValueError:
        corners = []
    if not corners:
        raise ValueError("is not a face of numbers of vertices")
    if 0 in corners or min(corners) < -vertices:
        raise ValueError(f"names a vertex that does not exist; there are {vertices} so far, counted from 1")
    return [corner - 1 if corner > 0 else vertices + corner for corner in corners]


def announced(path: Path) -> Announced:
    """Return the number of faces."""
    return Announced(count_in(path, b"\nf"))
