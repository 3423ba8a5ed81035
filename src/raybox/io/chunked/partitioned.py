"""The interface of a scene in parts on disk, as casts of files use it."""

from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from raybox.geometry import Bounded, Boxes, Grid
from raybox.io import checksums
from raybox.scene.scene import Scene
from raybox.validation import Array


@runtime_checkable
class PartitionedScene(Protocol):
    """A scene in parts, with the query methods of `raybox.Scene`."""

    @property
    def folder(self) -> Path:
        """The folder of the parts."""
        ...

    @property
    def parts(self) -> int:
        """The number of parts."""
        ...

    @property
    def memory(self) -> int | None:
        """Bytes that open parts may occupy together; None: no limit."""
        ...

    @property
    def kind(self) -> str:
        """What the scene is made of: "boxes" or "mesh"."""
        ...

    @property
    def digest(self) -> str:
        """A checksum of all parts: scenes of equal checksums have equal results."""
        ...

    @property
    def ndim_space(self) -> int:
        """D, the dimensions of space: 2 or 3."""
        ...

    def __len__(self) -> int: ...


AnyScene: TypeAlias = Scene | PartitionedScene


def dimension_of(scene: AnyScene) -> int:
    """Return D, the dimensions of a scene."""
    return scene.geometry.ndim_space if isinstance(scene, Scene) else scene.ndim_space


def content_of(geometry: Bounded | Grid) -> tuple[str, tuple[Array, ...]]:
    """Return what a geometry is made of, and the arrays that define it."""
    if isinstance(geometry, Grid):
        rows = geometry.rows()
        return "cells", (*geometry.edges, rows.blocks, rows.words)
    if isinstance(geometry, Boxes):
        return "boxes", (geometry.lower, geometry.upper)
    return "triangles", (geometry.vertices, geometry.faces)


def scene_text(scene: AnyScene) -> str:
    """Return the size and checksum of a scene."""
    if not isinstance(scene, Scene):
        kind = "boxes" if scene.kind == "boxes" else "triangles"
        return f"{len(scene)} {kind} in {scene.parts} parts, checksum {scene.digest[:16]}"
    kind, arrays = content_of(scene.geometry)
    return f"{len(scene)} {kind}, checksum {checksums.of_arrays(*arrays)[:16]}"
