"""The cells of a grid: their numbers in C order, bounds, masks and slices."""

import operator
from math import prod
from types import EllipsisType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox import validation
from raybox.compiler.huge_pages import machine_bytes
from raybox.errors import InvalidInput, OutOfMemory
from raybox.geometry.cell_bits import FULL, CellBits, count, pack, unpack
from raybox.geometry.grid_edges import Edges
from raybox.geometry.row_ids import RowIndex
from raybox.geometry.rows import GridRows
from raybox.validation import Array, ArrayInput, Bools, Floats, Ints

Shape = tuple[int, ...]
GridIndex: TypeAlias = RowIndex | EllipsisType | tuple[RowIndex | EllipsisType, ...]
"""Integers and slices, one for each axis; others are refused."""


def bits_of(occupied: ArrayInput | None, shape: Shape) -> CellBits:
    """Return the bits of a mask of the cells, of any container; None: of one in which all are occupied."""
    if occupied is None:
        return FULL
    found = validation.array(occupied, "occupied")
    _check_mask(found, shape, "occupied")
    return pack(found)


def mask_of(bits: CellBits, shape: Shape) -> Bools:
    """Return the mask of the cells, frozen; a view without memory of its own if all are occupied."""
    if not bits.blocks.size:
        return np.broadcast_to(np.True_, shape)
    mask = unpack(bits, 0, prod(shape)).reshape(shape)
    validation.freeze(mask)
    return mask


def count_occupied(rows: GridRows) -> int:
    """Return how many cells of a grid rays may hit, without unpacking the mask."""
    return count(CellBits(rows.blocks, rows.words)) if rows.blocks.size else prod(rows.shape.tolist())


def part_of(bits: CellBits, shape: Shape, ranges: tuple["slice[int, int, None]", ...]) -> CellBits:
    """Return the bits of a part of the grid, with a range of cells on each axis."""
    if not bits.blocks.size:
        return FULL
    first, others = ranges[0], ranges[1:]
    stride = prod(shape[1:])
    rows = unpack(bits, first.start * stride, first.stop * stride).reshape(-1, *shape[1:])
    return pack(rows[:, *others])


def numbers(shape: Shape, ranges: tuple["slice[int, int, None]", ...]) -> Ints:
    """Return the grid's numbers of a part's cells, in the part's order."""
    axes = [np.arange(r.start, r.stop) for r in ranges]
    return np.asarray(np.ravel_multi_index(np.ix_(*axes), shape), dtype=np.int64).reshape(-1)


def index_of(edges: Edges, points: Floats) -> Ints:
    """Return the number of the cell of each finite point ``(..., D)``; -1 outside."""
    number = np.zeros(points.shape[:-1], dtype=np.int64)
    inside = np.ones(points.shape[:-1], dtype=np.bool_)
    for axis, values in enumerate(edges):
        x, count = points[..., axis], len(values) - 1
        place = np.searchsorted(values, x, side="right") - 1
        inside &= (values[0] <= x) & (x <= values[-1])
        number = number * count + np.clip(place, 0, count - 1)  # the last edge belongs to the last cell
    return np.where(inside, number, -1)


def check_memory(shape: Shape) -> None:
    """Raise `InvalidInput` if the bounds of all cells are more than the machine's memory."""
    size = 16 * len(shape) * prod(shape)
    if size > machine_bytes():
        raise OutOfMemory(
            f"boxes of all {prod(shape)} cells need {size:,} bytes of memory, more than there is. "
            f"Choose cells: grid.boxes(grid.occupied), or a part of the grid: grid[:10].boxes()."
        )


def all_bounds(edges: Edges) -> tuple[Floats, Floats]:
    """Return the bounds of all cells in C order, lower and upper, ``(M, D)`` each."""
    shape, dims = tuple(len(values) - 1 for values in edges), len(edges)
    bounds = np.empty((2, *shape, dims))
    for axis, values in enumerate(edges):
        along = [1] * dims
        along[axis] = -1
        bounds[0, ..., axis], bounds[1, ..., axis] = values[:-1].reshape(along), values[1:].reshape(along)
    lower, upper = bounds.reshape(2, -1, dims)
    return lower, upper


def bounds_of(edges: Edges, places: tuple[NDArray[np.intp], ...]) -> tuple[Floats, Floats]:
    """Return the bounds of the cells at these places, an index array an axis."""
    lower = np.stack([values[place] for values, place in zip(edges, places, strict=True)], axis=1)
    upper = np.stack([values[place + 1] for values, place in zip(edges, places, strict=True)], axis=1)
    return lower, upper


def places(cells: ArrayInput, shape: Shape) -> tuple[NDArray[np.intp], ...]:
    """Return the places of cells that are given by a mask or by numbers, an index array an axis."""
    found = validation.array(cells, "cells")
    if found.dtype == np.bool_:
        _check_mask(found, shape, "cells")
        return np.nonzero(found.reshape(shape))
    numbers = validation.integers(found, "cells")
    if numbers.ndim > 1:
        raise InvalidInput(
            f"cells must be a flat list of numbers, or a mask; got numbers of shape {numbers.shape}. "
            f"Flatten them: cells.ravel()."
        )
    numbers, size = np.atleast_1d(numbers), prod(shape)
    bad = (numbers < 0) | (numbers >= size)
    if bad.any():
        rule, way_out = f"cells must be from 0 to {size - 1}", "Drop misses, which are -1: cells[cells >= 0]"
        validation.refuse_rows(bad, rule, {"cells": numbers}, "number", way_out)
    return np.unravel_index(numbers, shape)


def ranges(index: GridIndex, shape: Shape) -> tuple["slice[int, int, None]", ...]:
    """Return the range of cells on each axis for an index of a grid: integers and slices."""
    parts = index if isinstance(index, tuple) else (index,)
    dots = next((k for k, part in enumerate(parts) if part is Ellipsis), len(parts))
    after = parts[dots + 1 :]
    if dots + len(after) > len(shape):
        raise IndexError(f"a Grid of {len(shape)} axes has as many indices; got {dots + len(after)}")
    whole = (slice(None),) * (len(shape) - dots - len(after))
    aligned = enumerate(zip((*parts[:dots], *whole, *after), shape, strict=True))
    return tuple(_range(part, axis, count) for axis, (part, count) in aligned)


def _range(part: object, axis: int, count: int) -> "slice[int, int, None]":
    """Return the cells of one axis that an integer or a slice is for."""
    if isinstance(part, slice):
        if part.step not in (None, 1):
            raise IndexError(
                f"a slice of a Grid must have step 1, as its cells share edges; got step {part.step} on axis "
                f"{axis}"
            )
        start, stop, _ = slice(part.start, part.stop).indices(count)
        if start >= stop:
            raise IndexError(
                f"a slice of a Grid must have a cell on each axis; {start}:{stop} on axis {axis} of {count} "
                f"cells has none"
            )
        return slice(start, stop)
    try:
        place = operator.index(part)  # type: ignore[arg-type]
    except TypeError:
        place = None
    if place is None or isinstance(part, bool):
        raise IndexError(
            f"a Grid is indexed by integers and slices; got {type(part).__name__} on axis {axis}. For a "
            f"mask of cells: Grid(*grid.edges, occupied=mask); for their boxes: grid.boxes(mask)"
        )
    if not -count <= place < count:
        raise IndexError(f"index {place} is out of range on axis {axis} of {count} cells")
    return slice(place % count, place % count + 1)


def _check_mask(found: Array, shape: Shape, name: str) -> None:
    if found.dtype == np.bool_ and found.shape in (shape, (prod(shape),)):
        return
    way_out = "Cells are in C order: transpose it, or use reshape"
    if found.dtype != np.bool_:
        way_out = "Compare with zero or a threshold: x > 0"
    raise InvalidInput(
        f"{name} must be bools of shape {shape} or ({prod(shape)},), one for each cell; got {found.dtype} "
        f"of shape {found.shape}. {way_out}."
    )
