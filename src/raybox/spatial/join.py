"""`Scene.join`: all pairs of boxes of two scenes, or of one, that overlap or are near each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypedDict, Unpack, overload

import numpy as np

from raybox.compiler.float_environment import guard_class
from raybox.errors import InvalidInput
from raybox.spatial.target import RunSettings, Searchable, WhereInput
from raybox.validation import Ints

CHUNK = 1 << 16
"""Boxes of one scene whose pairs are in memory together."""


class JoinOptions(TypedDict, total=False):
    """How scenes are joined: the other arguments of `join`."""

    distance: float
    where: WhereInput
    other_where: WhereInput
    workers: int
    progress: bool


@guard_class()
class JoinMethod(Searchable):
    """Gives a scene the method `join`."""

    @overload
    def join(
        self,
        other: Searchable | None = None,
        *,
        chunks: Literal[False] = False,
        **how: Unpack[JoinOptions],
    ) -> Ints: ...
    @overload
    def join(
        self, other: Searchable | None = None, *, chunks: Literal[True], **how: Unpack[JoinOptions]
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
        from raybox.spatial.arguments import distances_of
        from raybox.spatial.pairs import Join
        from raybox.spatial.query_boxes import NO_DISTANCES
        from raybox.spatial.search import BATCH

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
        join = Join(target, apart if apart[0] > 0.0 else NO_DISTANCES, other is None)
        if chunks:
            return join.blocks(CHUNK, RunSettings(workers, progress))
        blocks = list(join.blocks(BATCH, RunSettings(workers, progress)))
        return blocks[0] if len(blocks) == 1 else np.concatenate([np.empty((0, 2), np.int64), *blocks])
