"""`Scene.overlapping`: the boxes that share a point with other boxes."""

from __future__ import annotations

from typing import Literal, Unpack, overload

from raybox.compiler.float_environment import guard_class
from raybox.geometry import Boxes
from raybox.hits import Rows
from raybox.spatial.file_columns import found_columns
from raybox.spatial.target import RunSettings, Searchable, SearchOptions, WhereInput
from raybox.validation import ArrayInput, Ints

COLUMNS = found_columns("overlapping", "boxes")


@guard_class()
class OverlappingMethod(Searchable):
    """Gives a scene the method `overlapping`."""

    @overload
    def overlapping(
        self, boxes: Boxes, *, count: Literal[False] = False, **how: Unpack[SearchOptions]
    ) -> Rows: ...
    @overload
    def overlapping(self, boxes: Boxes, *, count: Literal[True], **how: Unpack[SearchOptions]) -> Ints: ...
    def overlapping(
        self,
        boxes: Boxes,
        *,
        count: bool = False,
        where: WhereInput = None,
        groups: ArrayInput | None = None,
        workers: int = -1,
        progress: bool = False,
    ) -> Rows | Ints:
        """Return the scene's boxes that share a point with each box.

        Boxes are closed: touching faces, edges and corners count. Bounds are compared as floats. Of a mesh
        and of `Instances`, the boxes around each triangle and each copy are tested, not what is in them.

        Parameters
        ----------
        boxes : Boxes
            M, of the scene's D.
        count : bool
            True: return only how many boxes each overlaps.
        where : array_like of bool, shape (len(scene),), or str, optional
            Boxes that may be found, as for `nearest`.
        groups : array_like of int, optional
            The group of each box, in a scene with groups; it broadcasts to (M,).
        workers : int
            Threads; -1 for all cores. The result does not depend on it.
        progress : bool
            Show a progress bar on stderr when it takes long.

        Returns
        -------
        Rows of shape (M,), or ndarray of int64, shape (M,)

        Raises
        ------
        InvalidInput
            If the scene holds planes, or boxes are of another type or D.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[0, 0], [3, 0]], [[1, 1], [4, 1]]))
        >>> scene.overlapping(rb.Boxes([[1, 1], [0, 0]], [[2, 2], [3, 3]])).index
        array([0, 0, 1])
        """
        from raybox.spatial.arguments import check_boxes, found_by
        from raybox.spatial.query_boxes import QueryBoxes

        lower, upper = check_boxes(boxes, self._dimension)._rows()
        target = self._target("overlapping", (len(lower),), where, groups)
        queries = QueryBoxes(lower, upper)
        return found_by(target, queries, (len(lower),), RunSettings(workers, progress), count=count)
