"""Shared by mesh formats: polygons cut into triangles, parts merged or boxed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.errors import FileFormatError
from raybox.geometry import Mesh, column_of
from raybox.geometry.colors import Colors, joined_colors
from raybox.geometry.labels import with_colors, with_properties
from raybox.geometry.polygons import Triangles, triangulate, without_holes
from raybox.geometry.property_sets import PropertySets
from raybox.io.formats.common import Floats, HoldsRays, Loaded, ReadOptions, counts_in_words, file_error
from raybox.io.formats.object_boxes import boxes_of_objects

Ints = NDArray[np.int64]
_BLANK = b" \t\r\n"


class MeshPart(NamedTuple):
    """A named part of a file: one object. Parts may share one array of vertices."""

    name: str
    vertices: Floats
    faces: Ints
    labels: Mapping[str, object] = MappingProxyType({})
    """values by name: numbers, bools, text or None for missing"""
    colors: Colors | None = None
    """of the triangles: (F, 4)"""
    properties: str = ""
    """property sets, as JSON"""


def faces_of(vertices: Floats, corners: Ints, sizes: Ints, skipped: Counter[str]) -> Triangles:
    """Return the triangles of polygons without holes; count those without any, and fans that may overlap."""
    found = triangulate(vertices, without_holes(corners, sizes))
    skipped["faces of fewer than three corners"] += int(found.failed.sum())
    if found.not_flat.any():
        example = f"such as face {np.argmax(found.not_flat)} counted from 0"
        reason = f"exact shapes of faces that are not flat or cross themselves, {example}"
        skipped[reason] = int(found.not_flat.sum())
    return found


def to_scene(
    parts: Sequence[MeshPart],
    path: Path,
    options: ReadOptions,
    skipped: Mapping[str, int] = MappingProxyType({}),
    left_out: Mapping[str, int] = MappingProxyType({}),
    *,
    may_be_empty: bool = False,
) -> Loaded:
    """Return one mesh of all parts, or with ``options.boxes`` one box for each part.

    Each part is an object, with its name as id and its labels; parts without triangles are none.
    may_be_empty: whether the file states that there are no triangles, if nothing is lost.
    """
    parts = [part for part in parts if len(part.faces)]
    if not parts and (skipped or not may_be_empty):
        problem = "holds no triangles" + (f", but {counts_in_words(skipped)}" if skipped else "")
        may_be_points = path.suffix.lower() == ".ply"
        hint = " (point sets need origin, or --origin)" if may_be_points else ""
        error = HoldsRays if may_be_points and not skipped else FileFormatError
        raise file_error(path, problem, f"check that it is a mesh{hint}", kind=error)
    vertices, faces = joined(parts, path)
    names = dict.fromkeys(name for part in parts for name in part.labels)
    labels = {name: column_of([part.labels.get(name) for part in parts]) for name in names}
    ids = [part.name for part in parts]
    sizes = np.array([len(part.faces) for part in parts], np.int64)
    objects = np.repeat(np.arange(len(parts)), sizes)
    mesh = Mesh(vertices, faces, objects=objects, ids=ids, labels=labels)
    mesh = with_colors(mesh, joined_colors([part.colors for part in parts], sizes.tolist()))
    mesh = with_properties(mesh, PropertySets([part.properties for part in parts]))
    return Loaded(boxes_of_objects(mesh) if options.boxes else mesh, skipped, left_out)


def joined(parts: Sequence[MeshPart], path: Path) -> tuple[Floats, Ints]:
    """Return the vertices and faces of all parts; vertices that are not finite may be there, unused."""
    for part in parts:
        if part.faces.min(initial=0) < 0 or part.faces.max(initial=-1) >= len(part.vertices):
            face, corner = np.argwhere((part.faces < 0) | (part.faces >= len(part.vertices)))[0]
            wrong, place = part.faces[face, corner], f"part {part.name!r}, triangle {face}"
            problem = f"vertex {wrong} does not exist: there are {len(part.vertices)}, from 0 on"
            raise file_error(path, problem, "correct the triangle", place)
    if not parts:
        return np.zeros((0, 3)), np.zeros((0, 3), np.int64)
    is_shared = all(part.vertices is parts[0].vertices for part in parts)
    starts = np.cumsum([0, *(0 if is_shared else len(part.vertices) for part in parts[:-1])])
    vertices = np.concatenate([part.vertices for part in (parts[:1] if is_shared else parts)])
    faces = np.concatenate([part.faces + start for part, start in zip(parts, starts, strict=True)])
    finite = np.isfinite(vertices).all(axis=1)
    if finite.all():
        return vertices, faces
    for part in parts:
        used = np.unique(part.faces)
        for row, axis in np.argwhere(~np.isfinite(part.vertices[used]))[:1]:
            problem = f"{part.vertices[used[row], axis]} is not a finite number"
            place = f"vertex {used[row]} (the first is 0), column {'xyz'[axis]}"
            raise file_error(path, problem, "correct the vertex", place)
    return vertices[finite], (np.cumsum(finite) - 1)[faces]


def check_end(path: Path, rest: bytes, padding: bytes = b"") -> None:
    """Raise `FileFormatError` unless the bytes after the end of the content are blank, or padding."""
    if rest.strip(_BLANK + padding):
        problem = f"{len(rest):,} bytes follow the end that the header announces"
        raise file_error(path, problem, "copy or download it again, or correct the header")


def cut_off(path: Path, place: str) -> FileFormatError:
    """Return the error for a file that ends too early."""
    return file_error(path, "the file ends too early", "copy or download it again", place)
