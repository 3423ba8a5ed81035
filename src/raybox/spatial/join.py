"""`Scene.join`: all pairs of boxes of two scenes, or of one, that overlap or are near each other."""

from collections.abc import Iterator
from typing import Literal, NamedTuple, overload

import numpy as np

from raybox.compiler.float_environment import guard_class, in_default_environment
from raybox.errors import InvalidInput
from raybox.geometry import GridRows
from raybox.geometry.cell_bits import CellBits, unpack
from raybox.geometry.grid_cells import bounds_of
from raybox.spatial.arguments import distances_of
from raybox.spatial.query_boxes import NO_DISTANCES, NO_NUMBERS, QueryBoxes
from raybox.spatial.search import BATCH, find_rows
from raybox.spatial.target import JoinTarget, RunSettings, Searchable, TargetPart, WhereInput
from raybox.validation import Floats, Ints, Ints32

CHUNK = 1 << 16
"""Boxes of one scene whose pairs are in memory together."""


@guard_class()
class JoinMethod(Searchable):
    """Gives a scene the method `join`."""

    @overload
    def join(
        self,
        other: Searchable | None = None,
        *,
        distance: float = 0.0,
        where: WhereInput = None,
        other_where: WhereInput = None,
        chunks: Literal[False] = False,
        workers: int = -1,
        progress: bool = False,
    ) -> Ints: ...
    @overload
    def join(
        self,
        other: Searchable | None = None,
        *,
        distance: float = 0.0,
        where: WhereInput = None,
        other_where: WhereInput = None,
        chunks: Literal[True],
        workers: int = -1,
        progress: bool = False,
    ) -> Iterator[Ints]: ...
    def join(
        self,
        other: Searchable | None = None,
        *,
        distance: float = 0.0,
        where: WhereInput = None,
        other_where: WhereInput = None,
        chunks: bool = False,
        workers: int = -1,
        progress: bool = False,
    ) -> Ints | Iterator[Ints]:
        """Return all pairs of boxes of two scenes, or of one, that overlap or are near each other.

        Boxes are closed: touching counts, as does a gap of exactly the distance. Gaps are compared exactly.
        Of meshes and `Instances`, pairs are of the boxes around triangles and copies. In scenes with groups,
        boxes are compared with those of their own group and with those common to all.

        Parameters
        ----------
        other : Scene, optional
            Of the same D. None: pairs of this scene, i < j.
        distance : float
            The largest gap, at least 0.
        where, other_where : array_like of bool, or str, optional
            Which boxes of this scene, and of the other, may be found, as for `nearest`.
        chunks : bool
            True: return an iterator of arrays, each of the pairs of the next 65,536 boxes of this scene.
        workers : int
            Threads; -1 for all cores. The result does not depend on it.
        progress : bool
            Show a progress bar on stderr when it takes long.

        Returns
        -------
        ndarray of int64, shape (n, 2), or an iterator of these
            Pairs (i, j), sorted: i is the row in this scene, j in the other. Of scenes of a list, rows are
            numbered on from geometry to geometry.

        Raises
        ------
        InvalidInput
            If a scene holds planes, D differs, only one scene has groups, or the distance is below 0.

        Examples
        --------
        >>> import raybox as rb
        >>> ducts = rb.Scene(rb.Boxes([[0, 0], [5, 0]], [[4, 1], [9, 1]]))
        >>> beams = rb.Scene(rb.Boxes([[3, 0], [4, 2]], [[6, 3], [5, 3]]))
        >>> ducts.join(beams)
        array([[0, 0],
               [1, 0]])
        >>> ducts.join(distance=1.0)
        array([[0, 1]])
        """
        if other is not None and not isinstance(other, JoinMethod):
            raise InvalidInput(f"join takes a Scene; got {type(other).__name__}. Make one: Scene(boxes).")
        if other is None and other_where is not None:
            raise InvalidInput(
                "other_where is of the boxes of another scene; pairs of one scene have where alone."
            )
        apart = distances_of(distance, "distance", (), "box")
        target = self._joined(
            self if other is None else other, where, where if other is None else other_where
        )
        join = _Join(target, apart if apart[0] > 0.0 else NO_DISTANCES, other is None)
        if chunks:
            return join.blocks(CHUNK, RunSettings(workers, progress))
        blocks = list(join.blocks(BATCH, RunSettings(workers, progress)))
        return blocks[0] if len(blocks) == 1 else np.concatenate([np.empty((0, 2), np.int64), *blocks])


class _QueryRows(NamedTuple):
    """Some boxes of a geometry, and their rows in it."""

    lower: Floats
    upper: Floats
    rows: Ints


class _Join(NamedTuple):
    """Two scenes, and how far apart their boxes may be; or one scene twice."""

    target: JoinTarget
    distances: Floats
    is_self: bool

    def blocks(self, size: int, how: RunSettings) -> Iterator[Ints]:
        """Yield the pairs of so many boxes at a time."""
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
    """Yield the boxes of a geometry that may be found, so many at a time."""
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
