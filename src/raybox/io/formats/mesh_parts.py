"""What mesh formats share: polygons cut into triangles, parts put together or boxed."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.errors import FileFormatError
from raybox.geometry import Boxes, Mesh
from raybox.io.formats.common import Floats, Loaded, Want, broken

Ints = NDArray[np.int64]


class Part(NamedTuple):
    """One named piece of a file; pieces may share one array of vertices."""

    name: str
    vertices: Floats
    faces: Ints


def triangulate(sizes: Ints, corners: Ints) -> Ints:
    """Cut polygons into triangles, as fans around each polygon's first corner.

    ``sizes`` (P,) are the polygons' numbers of corners (at least 3), ``corners`` their vertices.
    The triangles keep the order of the polygons: k corners make k - 2 of them.
    """
    fans = sizes - 2
    first = np.repeat(np.cumsum(sizes) - sizes, fans)
    step = np.arange(fans.sum()) - np.repeat(np.cumsum(fans) - fans, fans)
    return np.stack([corners[first], corners[first + step + 1], corners[first + step + 2]], axis=-1)


def to_scene(parts: Sequence[Part], path: Path, want: Want) -> Loaded:
    """Make one mesh of all parts, or one box of each part where boxes are wanted."""
    parts = [part for part in parts if len(part.faces)]
    if not parts:
        raise broken(
            path, "holds no triangles", "check that it is a mesh (point sets need origin, or --origin)"
        )
    for part in parts:
        _check(part, path)
    return _boxes(parts) if want.boxes else Loaded(_joined(parts))


def _check(part: Part, path: Path) -> None:
    wrong = (part.faces < 0) | (part.faces >= len(part.vertices))
    if wrong.any():
        face, corner = np.argwhere(wrong)[0]
        problem = (
            f"vertex {part.faces[face, corner]} does not exist: there are {len(part.vertices)}, from 0 on"
        )
        raise broken(path, problem, "the file may be cut off", f"part {part.name!r}, triangle {face}")
    wrong = ~np.isfinite(part.vertices)
    if wrong.any():
        vertex, axis = np.argwhere(wrong)[0]
        problem = f"{part.vertices[vertex, axis]} is not a finite number"
        raise broken(
            path, problem, "correct the vertex", f"vertex {vertex} (the first is 0), column {'xyz'[axis]}"
        )


def _boxes(parts: Sequence[Part]) -> Loaded:
    corners = [part.vertices[part.faces.ravel()] for part in parts]
    lower, upper = (np.array([bound(c, axis=0) for c in corners]) for bound in (np.min, np.max))
    return Loaded(Boxes(lower, upper), [part.name for part in parts])


def _joined(parts: Sequence[Part]) -> Mesh:
    if all(part.vertices is parts[0].vertices for part in parts):
        return Mesh(parts[0].vertices, np.concatenate([part.faces for part in parts]))
    starts = np.cumsum([0] + [len(part.vertices) for part in parts])
    faces = [part.faces + start for part, start in zip(parts, starts[:-1], strict=True)]
    return Mesh(np.concatenate([part.vertices for part in parts]), np.concatenate(faces))


def cut_off(path: Path, place: str, error: Exception | None = None) -> FileFormatError:
    """Word the most frequent error: a file that ends too early."""
    problem = "the file ends too early" + (f" ({error})" if error else "")
    return broken(path, problem, "copy or download it again", place)
