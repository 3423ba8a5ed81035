"""`Scene.closest`: the boxes nearest to points."""

from typing import SupportsIndex

import numpy as np

from raybox.compiler.float_environment import guard_class
from raybox.hits import Neighbors
from raybox.spatial.arguments import distances_of, neighbor_count, points_of
from raybox.spatial.closest_search import find_closest
from raybox.spatial.query_boxes import QueryBoxes
from raybox.spatial.target import RunSettings, Searchable, WhereInput
from raybox.validation import ArrayInput


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
        found, wanted = points_of(points, self._dimension), neighbor_count(k)
        target = self._target("closest", found.shape, where, groups)
        distances = distances_of(max_distance, "max_distance", found.shape)
        queries = QueryBoxes(found.rows, found.rows, distances, target.starts)
        nearest = find_closest(target, queries, wanted, RunSettings(workers, progress))
        shape = *found.shape, wanted
        return Neighbors(target.scene, nearest.rows.reshape(shape), nearest.distances.reshape(shape))
