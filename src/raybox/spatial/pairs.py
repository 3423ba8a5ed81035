"""Pairs of boxes of two scenes, some boxes of one at a time."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from raybox.compiler.float_environment import in_default_environment
from raybox.geometry import GridRows
from raybox.geometry.cell_bits import CellBits, unpack
from raybox.geometry.grid_cells import bounds_of
from raybox.spatial.query_boxes import NO_NUMBERS, QueryBoxes
from raybox.spatial.search import find_rows
from raybox.spatial.target import JoinTarget, RunSettings, TargetPart
from raybox.validation import Floats, Ints, Ints32


class _QueryRows(NamedTuple):
    """Some boxes of a geometry, and their rows in it."""

    lower: Floats
    upper: Floats
    rows: Ints


class Join(NamedTuple):
    """Two scenes, and how far apart their boxes may be; or one scene twice."""

    target: JoinTarget
    distances: Floats
    is_self: bool

    def blocks(self, size: int, how: RunSettings) -> Iterator[Ints]:
        """Yield the pairs of up to `size` boxes at a time."""
        for part, starts in zip(self.target.own.parts, self.target.starts, strict=True):
            for some in _boxes_of(part, size):
                yield self._pairs(part, some, starts, how)

    @in_default_environment
    def _pairs(self, part: TargetPart, some: _QueryRows, starts: Ints32, how: RunSettings) -> Ints:
        """Return the pairs of some boxes of a geometry."""
        numbers = some.rows + part.first
        queries = QueryBoxes(
            some.lower,
            some.upper,
            self.distances,
            starts if starts.size <= 1 else starts[some.rows],
            numbers=numbers if self.is_self else NO_NUMBERS,
        )
        found = find_rows(self.target.other, queries, how)
        pairs = np.empty((len(found.numbers), 2), np.int64)
        pairs[:, 0] = np.repeat(numbers, np.diff(found.offsets))
        pairs[:, 1] = found.numbers
        return pairs


def _boxes_of(part: TargetPart, size: int) -> Iterator[_QueryRows]:
    """Yield the boxes of a geometry that may be found, those of `size` rows at a time."""
    for begin in range(0, part.size, size):
        rows = _rows_of(part, begin, min(begin + size, part.size))
        if part.allowed.size:
            rows = rows[part.allowed[rows]]
        if rows.size:
            yield _QueryRows(*_bounds_of(part, rows), rows)


def _rows_of(part: TargetPart, begin: int, end: int) -> Ints:
    """Return the rows begin <= k < end; of a grid, of its occupied cells."""
    if isinstance(part.rows, GridRows) and part.rows.blocks.size:
        return begin + np.flatnonzero(unpack(CellBits(part.rows.blocks, part.rows.words), begin, end))
    return np.arange(begin, end)


def _bounds_of(part: TargetPart, rows: Ints) -> tuple[Floats, Floats]:
    if isinstance(part.rows, GridRows):
        return bounds_of(part.rows[:3], np.unravel_index(rows, tuple(part.rows.shape.tolist())))
    if len(rows) == part.size:
        return part.rows.lower, part.rows.upper
    return part.rows.lower[rows], part.rows.upper[rows]
