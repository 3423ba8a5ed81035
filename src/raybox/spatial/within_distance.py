"""`Scene.within_distance`: the boxes at most so far from points."""

from __future__ import annotations

from typing import Literal, Unpack, overload

from raybox.compiler.float_environment import guard_class
from raybox.hits import Rows
from raybox.spatial.target import RunSettings, Searchable, SearchOptions, WhereInput
from raybox.validation import ArrayInput, Ints


@guard_class()
class WithinDistanceMethod(Searchable):
    """Gives a scene the method `within_distance`."""

    @overload
    def within_distance(
        self,
        points: ArrayInput,
        distance: ArrayInput,
        *,
        count: Literal[False] = False,
        **how: Unpack[SearchOptions],
    ) -> Rows: ...
    @overload
    def within_distance(
        self, points: ArrayInput, distance: ArrayInput, *, count: Literal[True], **how: Unpack[SearchOptions]
    ) -> Ints: ...
    def within_distance(
        self,
        points: ArrayInput,
        distance: ArrayInput,
        *,
        count: bool = False,
        where: WhereInput = None,
        groups: ArrayInput | None = None,
        workers: int = -1,
        progress: bool = False,
    ) -> Rows | Ints:
        """Return the boxes that are at most so far from each point.

        Distances are exact, and a box at just that distance counts. A box that holds the point is at 0.

        Parameters
        ----------
        points : array_like, shape (..., D)
            Finite.
        distance : array_like
            At least 0; it broadcasts to the points' shape. inf: all boxes.
        count : bool
            True: return only how many boxes are so near.
        where, groups, workers, progress
            As of `closest`.

        Returns
        -------
        Rows, or ndarray of int64 in the shape of the points
            Sorted by index, not by distance: see `closest`.

        Raises
        ------
        InvalidInput
            If the scene is not of boxes and grids, a point is not finite, or a distance is below 0.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[0, 0], [3, 0]], [[1, 1], [4, 1]]))
        >>> scene.within_distance([[2, 1], [1, 1]], 1.0).index
        array([0, 1, 0])
        """
        from raybox.spatial.arguments import distances_of, found_by, points_of
        from raybox.spatial.query_boxes import QueryBoxes

        found = points_of(points, self._dimension)
        target = self._target("within_distance", found.shape, where, groups)
        distances = distances_of(distance, "distance", found.shape)
        queries = QueryBoxes(found.rows, found.rows, distances)
        return found_by(target, queries, found.shape, RunSettings(workers, progress), count=count)
