"""Scenes of casts: what they are made of, their objects, and what identifies them."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from raybox.casting.arguments import mapped_from
from raybox.geometry import Boxes, Geometry, Grid, Instances, Mesh, ObjectRows, object_rows
from raybox.scene.scene import Scene, geometries_of, state_of
from raybox.store import checksum
from raybox.validation import Array


def dimension_of(scene: Scene) -> int:
    """Return D, the dimensions of a scene."""
    return geometries_of(scene)[0].ndim_space


class SceneObjects(NamedTuple):
    """The objects of one geometry of a scene."""

    objects: ObjectRows
    size: int
    """of its rows"""


def objects_of(scene: Scene) -> list[SceneObjects]:
    """Return the objects of each geometry of a scene."""
    return [SceneObjects(object_rows(one), len(one)) for one in geometries_of(scene)]


def content_of(geometry: Geometry) -> tuple[str, tuple[Array, ...]]:
    """Return what a geometry is made of, and the arrays that define it."""
    match geometry:
        case Grid():
            rows = geometry._rows()
            return "cells", (*geometry.edges, rows.blocks, rows.words)
        case Boxes():
            return "boxes", (geometry.lower, geometry.upper)
        case Mesh():
            return "triangles", (geometry.vertices, geometry.faces)
        case Instances():
            kind, arrays = content_of(geometry.geometry)
            return f"copies of {len(geometry.geometry)} {kind}", (geometry.transforms, *arrays)
    found = tuple(array for array in geometry._rows() if isinstance(array, np.ndarray))
    return type(geometry).__name__.lower(), found


def scene_text(scene: Scene) -> str:
    """Return the size and checksum of a scene."""
    contents = [content_of(one) for one in geometries_of(scene)]
    groups = [part.groups.of_rows for part in state_of(scene).parts if part.groups]
    found = checksum.of_arrays(*(array for _, arrays in contents for array in arrays), *groups)[:16]
    return f"{len(scene)} {', '.join(kind for kind, _ in contents)}, checksum {found}"


def mapped_files(*values: object) -> list[Path]:
    """Return the files that arrays are mapped from, also those in fields of tuples, and in scenes."""
    return list(dict.fromkeys(path for value in values for path in _mapped_in(value)))


def _mapped_in(value: object) -> Iterator[Path]:
    if mapped := mapped_from(value):
        yield mapped.path
    elif isinstance(value, tuple):
        for field in value:
            yield from _mapped_in(field)
    elif isinstance(value, Scene):
        yield from _mapped_in((*(content_of(one) for one in geometries_of(value)), state_of(value).parts))
