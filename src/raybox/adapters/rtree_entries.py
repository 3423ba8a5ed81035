"""What an `Index` holds, read from rtree's forms of input; its items and properties."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, NoReturn, Protocol, TypeAlias, TypeVar

import numpy as np

from raybox import validation
from raybox.bvh.frame import frozen
from raybox.errors import InvalidInput
from raybox.geometry import Boxes, BoxRows
from raybox.geometry.rows import in_space
from raybox.validation import ArrayInput, Floats, Ints

T = TypeVar("T")
Objects: TypeAlias = bool | Literal["raw"]
Row: TypeAlias = tuple[int, ArrayInput, object]


class HasDimension(Protocol):
    """A `Property` of rtree, as far as it is read; its ``type`` is read too, if it has one."""

    @property
    def dimension(self) -> int:
        """D: 2 or 3."""


class IndexProperty:
    """A replacement for `rtree.index.Property`, of which only dimension and type are read."""

    def __init__(self, *, dimension: int = 2, **others: object) -> None:
        self.dimension = dimension
        vars(self).update(others)


class CoordinateOrder(NamedTuple):
    """How coordinates are given."""

    interleaved: bool
    """True: xmin, ymin, ..., xmax, ymax, ...; False: xmin, xmax, ymin, ymax, ..."""
    dimension: int
    """D: 2 or 3"""


class IndexItem(NamedTuple):
    """A box of an index, with its id and its object. Items are ordered by id."""

    id: int
    object: Any
    bounds: list[float]
    """xmin, xmax, ymin, ymax, ..."""

    @property
    def bbox(self) -> list[float]:
        """The bounds as xmin, ymin, ..., xmax, ymax, ..."""
        return interleave(self.bounds)

    def __lt__(self, other: Any) -> bool:
        return bool(self.id < other.id)

    def __gt__(self, other: Any) -> bool:
        return bool(self.id > other.id)


class Entries(NamedTuple):
    """The boxes of an index, in the order in which they were given."""

    ids: Ints
    boxes: Boxes
    objects: Sequence[object] | None
    """None: no box has an object"""

    def results(self, rows: Ints, objects: Objects) -> Iterator[Any]:
        """Return ids, objects or items of rows."""
        ids = self.ids[rows].tolist()
        if not objects:
            return iter(ids)
        given = self.objects
        each = [None] * len(ids) if given is None else [given[row] for row in rows.tolist()]
        if objects == "raw":
            return iter(each)
        ends = np.stack([self.boxes.lower[rows], self.boxes.upper[rows]], axis=-1)
        return map(IndexItem, ids, each, ends.reshape(len(ids), 2 * self.boxes.ndim_space).tolist())


class CornerPair(NamedTuple):
    """The lower and the upper corners of boxes, (..., D); of points the same."""

    lower: Floats
    upper: Floats


def dimension_of(properties: HasDimension) -> int:
    """Return D of properties of an index of boxes that do not move."""
    kind, dimension = getattr(properties, "type", 0), properties.dimension
    if kind != 0:
        raise InvalidInput(
            f"the type of an index must be RT_RTree, which is 0; got {kind}. Use rtree for it."
        )
    if dimension not in (2, 3):
        raise InvalidInput(f"dimension must be 2 or 3; got {dimension!r}. Use rtree for others.")
    return int(dimension)


def entries_of(stream: object, layout: CoordinateOrder) -> Entries:
    """Return what is in rows (id, coordinates, object), in three arrays, or in None."""
    if isinstance(stream, tuple):
        return _of_arrays(stream, layout)
    if isinstance(stream, str | bytes) or not (stream is None or isinstance(stream, Iterable)):
        _refuse(type(stream).__name__)
    rows = [_checked_row(row) for row in stream or ()]
    if not rows:
        return _of_arrays(((), *2 * [np.empty((0, layout.dimension))]), layout)
    ids, coordinates, objects = zip(*rows, strict=True)
    return _of_arrays((ids, *corners_of(coordinates, layout)), layout)._replace(objects=objects)


def _refuse(given: str) -> NoReturn:
    raise InvalidInput(
        "an index must be of rows (id, coordinates, object), or of a tuple of arrays (ids, mins, maxs); got "
        f"{given}. An index is in memory: files are those of raybox.Scene.save."
    )


def _checked_row(row: Any) -> Row:
    try:
        number, coordinates, obj = row
    except (TypeError, ValueError):
        raise InvalidInput(
            f"rows must be (id, coordinates, object); got {row!r}. The object may be None."
        ) from None
    return number, coordinates, obj


def _of_arrays(arrays: tuple[Any, ...], layout: CoordinateOrder) -> Entries:
    """Return what is in arrays of ids and corners."""
    if len(arrays) != 3:
        _refuse(f"{len(arrays)} values")
    boxes, ids = Boxes(arrays[1], arrays[2]), validation.integers(arrays[0], "ids")
    if ids.shape != (len(boxes),):
        raise InvalidInput(f"ids must have shape ({len(boxes)},), one for each box; got shape {ids.shape}.")
    if boxes.ndim_space != layout.dimension:
        raise InvalidInput(
            f"boxes must have the dimension of the properties, {layout.dimension}; got {boxes.ndim_space}. "
            f"Pass properties=Property(dimension={boxes.ndim_space})."
        )
    validation.freeze(ids)
    return Entries(ids, boxes, None)


def corners_of(coordinates: ArrayInput, layout: CoordinateOrder) -> CornerPair:
    """Return the corners of coordinates (..., 2 D), or of points (..., D)."""
    found, dimension = validation.floats(coordinates, "coordinates"), layout.dimension
    width = found.shape[-1] if found.ndim else 0
    if width == dimension:
        return CornerPair(found, found)
    if width != 2 * dimension:
        raise InvalidInput(
            f"coordinates must be {2 * dimension} numbers of a box, or {dimension} of a point; got shape "
            f"{found.shape}. For others, pass properties=Property(dimension=...)."
        )
    if layout.interleaved:
        return CornerPair(found[..., :dimension], found[..., dimension:])
    return CornerPair(found[..., ::2], found[..., 1::2])


def box_of(coordinates: ArrayInput, layout: CoordinateOrder) -> BoxRows:
    """Return one box or point."""
    lower, upper = corners_of(coordinates, layout)
    if lower.ndim > 1:
        raise InvalidInput(
            f"coordinates must be those of one box; got shape {lower.shape[:-1]} of boxes. For "
            "several: intersection_v, nearest_v."
        )
    if not (lower <= upper).all():
        Boxes(lower, upper)  # raises
    return BoxRows(frozen(in_space(lower)), frozen(in_space(upper)))


def interleave(deinterleaved: Sequence[T]) -> list[T]:
    """Return xmin, xmax, ymin, ymax, ... as xmin, ymin, ..., xmax, ymax, ..."""
    return [*deinterleaved[::2], *deinterleaved[1::2]]


def deinterleave(interleaved: Sequence[T]) -> list[T]:
    """Return xmin, ymin, ..., xmax, ymax, ... as xmin, xmax, ymin, ymax, ..."""
    half = len(interleaved) // 2
    return [x for ends in zip(interleaved[:half], interleaved[half:], strict=True) for x in ends]
