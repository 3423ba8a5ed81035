"""Shared by mesh formats: polygons cut into triangles, parts merged or boxed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.errors import FileFormatError
from raybox.geometry import Boxes, Mesh, column_of, join_meshes
from raybox.io.formats.common import Floats, Loaded, ReadOptions, file_error
from raybox.validation import Array

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


def triangulate(sizes: Ints, corners: Ints) -> Ints:
    """Return the triangles of polygons: fans around each polygon's first corner.

    ``sizes`` (P,) are the numbers of corners (at least 3), ``corners`` the vertices, polygon by polygon.
    Triangles keep the order of the polygons, k - 2 for k corners.
    """
    fans = sizes - 2
    first = np.repeat(np.cumsum(sizes) - sizes, fans)
    step = np.arange(fans.sum()) - np.repeat(np.cumsum(fans) - fans, fans)
    return np.stack([corners[first], corners[first + step + 1], corners[first + step + 2]], axis=-1)


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
        raise file_error(
            path, "holds no triangles", "check that it is a mesh (point sets need origin, or --origin)"
        )
    for part in parts:
        _check(part, path)
    return Loaded(_boxes(parts) if options.boxes else _merge(parts), skipped, left_out)


def _check(part: MeshPart, path: Path) -> None:
    wrong = (part.faces < 0) | (part.faces >= len(part.vertices))
    if wrong.any():
        face, corner = np.argwhere(wrong)[0]
        problem = (
            f"vertex {part.faces[face, corner]} does not exist: there are {len(part.vertices)}, from 0 on"
        )
        raise file_error(path, problem, "the file may be cut off", f"part {part.name!r}, triangle {face}")
    wrong = ~np.isfinite(part.vertices)
    if wrong.any():
        vertex, axis = np.argwhere(wrong)[0]
        problem = f"{part.vertices[vertex, axis]} is not a finite number"
        raise file_error(
            path, problem, "correct the vertex", f"vertex {vertex} (the first is 0), column {'xyz'[axis]}"
        )


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
