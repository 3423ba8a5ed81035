"""`Scene.closest`: the boxes nearest to points."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from raybox.compiler.float_environment import guard_class
from raybox.hits import Neighbors
from raybox.hits.file_columns import (
    CHUNK_HITS,
    Argument,
    ChunkResults,
    Columns,
    FileColumns,
    FileRows,
    Scratch,
    index_dtypes,
)
from raybox.spatial.file_columns import ROW, groups_of
from raybox.spatial.target import RunSettings, Searchable, WhereInput
from raybox.validation import Array, ArrayInput, Ints


@guard_class()
class ClosestMethod(Searchable):
    """Gives a scene the method `closest`."""

    def closest(
        self,
        points: ArrayInput,
        k: SupportsIndex = 1,
        *,
        max_distance: ArrayInput = np.inf,
        where: WhereInput = None,
        groups: ArrayInput | None = None,
        workers: int = -1,
        progress: bool = False,
    ) -> Neighbors:
        """Return the k boxes nearest to each point, nearest first.

        A box that holds the point is at distance 0. Order is exact, as are ties: the lowest index comes
        first. Distances are Euclidean, exact ones rounded once. A box at infinity on an axis, whose bounds
        there are both +inf or both -inf, is at no distance, and not found.

        Parameters
        ----------
        points : array_like, shape (..., D)
            Finite.
        k : int
            How many boxes, at least 1.
        max_distance : array_like
            The largest distance that counts; it broadcasts to the points' shape.
        where : array_like of bool, shape (len(scene),), or str, optional
            Boxes that may be found, as for `nearest`.
        groups : array_like of int, optional
            The group of each point, in a scene with groups; it broadcasts to the points' shape.
        workers : int
            Threads; -1 for all cores. The result does not depend on it.
        progress : bool
            Show a progress bar on stderr when it takes long.

        Returns
        -------
        Neighbors
            ``index`` and ``distance`` of shape (..., k); -1 and +inf where there are fewer boxes.

        Raises
        ------
        InvalidInput
            If the scene is not of boxes and grids, a point is not finite, k is below 1, or a distance is
            below 0.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[0, 0], [3, 0]], [[1, 1], [4, 1]]))
        >>> neighbors = scene.closest([[2.5, 2], [0.5, 0.5]], k=2, max_distance=2)
        >>> neighbors.index, neighbors.distance
        (array([[ 1,  0],
               [ 0, -1]]), array([[1.11803399, 1.80277564],
               [0.        ,        inf]]))
        """
        from raybox.spatial.arguments import distances_of, neighbor_count, points_of
        from raybox.spatial.closest_search import find_closest
        from raybox.spatial.query_boxes import QueryBoxes

        found, wanted = points_of(points, self._dimension), neighbor_count(k)
        target = self._target("closest", found.shape, where, groups)
        distances = distances_of(max_distance, "max_distance", found.shape)
        queries = QueryBoxes(found.rows, found.rows, distances, target.starts)
        nearest = find_closest(target, queries, wanted, RunSettings(workers, progress))
        shape = *found.shape, wanted
        return Neighbors(target.scene, nearest.rows.reshape(shape), nearest.distances.reshape(shape))


def _chunks(
    scene: Any, points: FileRows, first: int, workers: int, k: Any = 1, groups: Any = None, **how: Any
) -> Iterator[ChunkResults]:
    from raybox.spatial.arguments import neighbor_count

    wanted = neighbor_count(np.asarray(k).item())
    step = max(1, CHUNK_HITS // wanted)
    for begin in range(0, points.total, step):
        end = min(begin + step, points.total)
        valid = slice(*np.searchsorted(points.numbers, (begin, end)))
        own = groups_of(points, groups, valid)
        found = scene.closest(points.rows[valid], wanted, workers=workers, **how, **own)
        hits = int(np.count_nonzero(found.index[:, 0] >= 0))
        spread = _Spread(range(first + begin, first + end), points.numbers[valid] - begin)
        yield ChunkResults(hits, partial(_columns, found, spread))


class _Spread(NamedTuple):
    """Points of a chunk, of which some are valid."""

    rows: range
    """their numbers in the file"""
    valid: Ints
    """those of the valid ones among them"""

    def column(self, values: Array, missing: float) -> Array:
        """Return values of all points, flat, from those (n, k) of the valid ones."""
        if len(self.valid) == len(self.rows):
            return values.reshape(-1)
        found = np.full((len(self.rows), values.shape[1]), missing, values.dtype)
        found[self.valid] = values
        return found.reshape(-1)


def _columns(found: Neighbors, spread: _Spread, _scratch: Scratch) -> Columns:
    k = found.shape[1]
    row = spread.rows if k == 1 else np.repeat(np.arange(spread.rows.start, spread.rows.stop), k)
    columns: Columns = {"row": row, "index": spread.column(found.index, -1)}
    if len(found._scene_rows.parts) > 1:
        columns["geometry"] = spread.column(found.geometry, -1)
    return columns | {"distance": spread.column(found.distance, np.inf)}


COLUMNS = FileColumns(
    lambda _dimension, ids, **_: {**ROW, **index_dtypes(ids), "distance": np.dtype(np.float64)},
    _chunks,
    arguments={"k": Argument.NUMBER, "max_distance": Argument.NUMBER},
    reads="points",
)
