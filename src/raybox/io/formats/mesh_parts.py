"""Shared by mesh formats: polygons cut into triangles, parts merged or boxed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.errors import FileFormatError
from raybox.geometry import Boxes, Mesh, column_of, join_meshes
from raybox.io.formats.common import Floats, Loaded, ReadOptions, file_error
from raybox.io.formats.polygons import Triangles, triangulate, without_holes
from raybox.validation import Array, Bools

Ints = NDArray[np.int64]
_BLANK = b" \t\r\n"


class MeshPart(NamedTuple):
    """A named part of a file: one object.

    Parts may share one array of vertices.
    """

    name: str
    vertices: Floats
    faces: Ints
    labels: Mapping[str, object] = MappingProxyType({})
    """values by name: numbers, bools, text or None for missing"""


def faces_of(vertices: Floats, corners: Ints, sizes: Ints, skipped: Counter[str]) -> Triangles:
    """Return the triangles of polygons without holes, in their order; those without any are counted."""
    found = triangulate(vertices, without_holes(corners, sizes))
    short = sizes < 3
    skipped["faces of fewer than three corners"] += int(short.sum())
    skipped["polygons whose edges cross"] += int((found.failed & ~short).sum())
    return found


def strip_triangles(strips: Ints) -> Ints:
    """Return the triangles of triangle strips, one array of vertices with -1 between strips.

    Every three vertices in a row are a triangle; every second one is turned round, so that all of a strip
    face the same side. Triangles that name a vertex twice only join strips: they are left out.
    """
    if not strips.size:
        return np.zeros((0, 3), dtype=np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(np.append(strips, [-1, -1]), 3)
    at = np.arange(len(windows))
    begins = np.maximum.accumulate(np.where(strips == -1, at + 1, 0))
    triangles = windows.copy()
    turned = (at - begins) % 2 == 1
    triangles[turned, :2] = triangles[turned, 1::-1]
    first, second, third = triangles.T
    within = (triangles != -1).all(axis=-1)
    found: Ints = triangles[within & (first != second) & (second != third) & (first != third)]
    return found


def to_scene(
    parts: Sequence[MeshPart],
    path: Path,
    options: ReadOptions,
    skipped: Mapping[str, int] = MappingProxyType({}),
    left_out: Mapping[str, int] = MappingProxyType({}),
) -> Loaded:
    """Return one mesh of all parts, or with ``options.boxes`` one box for each part.

    Each part is an object, with its name as id and its labels; parts without triangles are none.

    skipped: counts by reason of what is lost. left_out: of what is left out by documented defaults.
    """
    parts = [part for part in parts if len(part.faces)]
    if not parts:
        left = ", ".join(f"{count:,} {reason}" for reason, count in skipped.items())
        problem = "holds no triangles" + (f", but {left}" if left else "")
        raise file_error(path, problem, "check that it is a mesh (point sets need origin, or --origin)")
    parts = _usable(parts, path)
    return Loaded(_boxes(parts) if options.boxes else _merge(parts), skipped, left_out)


def _usable(parts: Sequence[MeshPart], path: Path) -> list[MeshPart]:
    """Return the parts without vertices that are not finite; raise if a triangle has such a corner."""
    found, source = list[MeshPart](), None
    for part in parts:
        if part.vertices is not source:
            source = part.vertices
            finite: Bools = np.asarray(np.isfinite(source).all(axis=1))
            vertices = source if finite.all() else source[finite]
            numbers = np.cumsum(finite) - 1
        wrong = (part.faces < 0) | (part.faces >= len(source))
        if not wrong.any():
            wrong = ~finite[part.faces]
        if wrong.any():
            raise _corner_error(part, np.argwhere(wrong)[0], path)
        faces = part.faces if vertices is source else numbers[part.faces]
        found.append(part._replace(vertices=vertices, faces=faces))
    return found


def _corner_error(part: MeshPart, index: Ints, path: Path) -> FileFormatError:
    """Return the error for a corner that does not exist, or is not finite."""
    vertex, count = part.faces[tuple(index)], len(part.vertices)
    if not 0 <= vertex < count:
        problem, place = (
            f"vertex {vertex} does not exist: there are {count}, from 0 on",
            f"triangle {index[0]}",
        )
        return file_error(path, problem, "correct the triangle", f"part {part.name!r}, {place}")
    axis = int(np.argmin(np.isfinite(part.vertices[vertex])))
    problem = f"{part.vertices[vertex, axis]} is not a finite number"
    place = f"vertex {vertex} (the first is 0), column {'xyz'[axis]}"
    return file_error(path, problem, "correct the vertex", place)


def _boxes(parts: Sequence[MeshPart]) -> Boxes:
    corners = [part.vertices[part.faces.ravel()] for part in parts]
    lower, upper = (np.array([bound(c, axis=0) for c in corners]) for bound in (np.min, np.max))
    return Boxes(lower, upper, ids=[part.name for part in parts], labels=_labels(parts))


def _merge(parts: Sequence[MeshPart]) -> Mesh:
    """Return a mesh of all parts, each of which is an object."""
    objects = np.repeat(np.arange(len(parts)), [len(part.faces) for part in parts])
    ids, labels = [part.name for part in parts], _labels(parts)
    if all(part.vertices is parts[0].vertices for part in parts):
        faces = np.concatenate([part.faces for part in parts])
        return Mesh(parts[0].vertices, faces, objects=objects, ids=ids, labels=labels)
    return join_meshes(parts, objects, ids, labels)


def _labels(parts: Sequence[MeshPart]) -> dict[str, Array]:
    """Return a column of each label that any part has."""
    names = dict.fromkeys(name for part in parts for name in part.labels)
    return {name: column_of([part.labels.get(name) for part in parts]) for name in names}


def check_end(path: Path, rest: bytes, padding: bytes = b"") -> None:
    """Raise `FileFormatError` unless the bytes after the end of the content are blank, or padding."""
    if rest.strip(_BLANK + padding):
        problem = f"{len(rest):,} bytes follow the end that the header announces"
        raise file_error(path, problem, "copy or download it again, or correct the header")


def cut_off(path: Path, place: str, error: Exception | None = None) -> FileFormatError:
    """Return the error for a file that ends too early."""
    problem = "the file ends too early" + (f" ({error})" if error else "")
    return file_error(path, problem, "copy or download it again", place)
