"""`Scene.containing`: the boxes that hold points."""

from __future__ import annotations

from typing import Literal, Unpack, overload

from raybox.compiler.float_environment import guard_class
from raybox.hits import Rows
from raybox.spatial.file_columns import found_columns
from raybox.spatial.target import RunSettings, Searchable, SearchOptions, WhereInput
from raybox.validation import ArrayInput, Ints

COLUMNS = found_columns("containing", "points")


@guard_class()
class ContainingMethod(Searchable):
    """Gives a scene the method `containing`."""

    @overload
    def containing(
        self, points: ArrayInput, *, count: Literal[False] = False, **how: Unpack[SearchOptions]
    ) -> Rows: ...
    @overload
    def containing(
        self, points: ArrayInput, *, count: Literal[True], **how: Unpack[SearchOptions]
    ) -> Ints: ...
    def containing(
        self,
        points: ArrayInput,
        *,
        count: bool = False,
        where: WhereInput = None,
        groups: ArrayInput | None = None,
        workers: int = -1,
        progress: bool = False,
    ) -> Rows | Ints:
        """Return the boxes that hold each point.

        Boxes are closed: a point on a face, an edge or a corner is inside. Bounds are compared as floats.

        Parameters
        ----------
        points : array_like, shape (..., D)
            Finite.
        count : bool
            True: return only how many boxes hold each point.
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
        Rows, or ndarray of int64 in the shape of the points

        Raises
        ------
        InvalidInput
            If the scene is not of boxes and grids (see `Mesh.contains`), or a point is not finite.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[0, 0], [1, 0]], [[1, 1], [2, 1]]))
        >>> scene.containing([[1, 0.5], [0.5, 0.5], [5, 5]]).index
        array([0, 1, 0])
        >>> scene.containing([[1, 0.5], [0.5, 0.5], [5, 5]], count=True)
        array([2, 1, 0])
        """
        from raybox.spatial.arguments import found_by, points_of
        from raybox.spatial.query_boxes import QueryBoxes

        found = points_of(points, self._dimension)
        target = self._target("containing", found.shape, where, groups)
        queries = QueryBoxes(found.rows, found.rows)
        return found_by(target, queries, found.shape, RunSettings(workers, progress), count=count)
