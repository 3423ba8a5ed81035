"""`Scene.intersecting`: the boxes that share a point with a convex region, as what a camera sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from raybox.compiler.float_environment import guard_class
from raybox.errors import InvalidInput
from raybox.geometry.rows import NO_STARTS
from raybox.spatial.target import Searchable, TargetPart, WhereInput
from raybox.threads.chunks import run_chunks
from raybox.validation import ArrayInput, Ints, Ints32

if TYPE_CHECKING:
    from raybox.geometry.region import Region


@guard_class()
class IntersectingMethod(Searchable):
    """Gives a scene the method `intersecting`."""

    def intersecting(
        self,
        region: Region,
        *,
        where: WhereInput = None,
        groups: ArrayInput | None = None,
        workers: int = -1,
        progress: bool = False,
    ) -> Ints:
        """Return the boxes that share a point with a convex region, such as a view frustum.

        The answer is exact: a box near a corner of the region, which is outside though no single plane
        says so, is not found. Boxes and regions are closed: touching counts. Of a mesh and of `Instances`,
        the boxes around each triangle and each copy are tested, not what is in them.

        Parameters
        ----------
        region : Region or Frustum
            Of the scene's D; it may be unbounded, or empty.
        where : array_like of bool, shape (len(scene),), or str, optional
            Boxes that may be found, as for `nearest`.
        groups : int, optional
            The group of the region, in a scene with groups.
        workers : int
            Threads, of a list of geometries; -1 for all cores.
        progress : bool
            Show a progress bar on stderr when it takes long.

        Returns
        -------
        ndarray of int64, shape (n,)
            Their rows, ascending; of a scene of a list, numbered on from geometry to geometry.

        Raises
        ------
        InvalidInput
            If the scene holds planes, or the region is of another type or D.

        Notes
        -----
        Planes of the region and boxes decide nearly all in float64, then its corners and edges (separating
        axes, see Assarsson and Möller 2000, "Optimized View Frustum Culling Algorithms for Bounding Boxes");
        what rounding leaves undecided is a system of inequalities, solved in integers.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[4, -1, -1], [-9, -1, -1]], [[6, 1, 1], [-8, 1, 1]]))
        >>> view = rb.Frustum.pinhole(
        ...     [0, 0, 0], [1, 0, 0], up=[0, 0, 1], fov=60, width=640, height=480, near=0.1, far=100
        ... )
        >>> scene.intersecting(view)
        array([0])
        """
        from raybox.geometry.region import Region
        from raybox.spatial.region_search import rows_in

        if not isinstance(region, Region):
            raise InvalidInput(
                f"intersecting takes a raybox.Region or Frustum; got {type(region).__name__}. Make one: "
                "raybox.Region(normals, offsets), of the points p with n.p <= offset."
            )
        if region.ndim_space != self._dimension:
            raise InvalidInput(
                f"the region must have the scene's dimensions, D = {self._dimension}; got "
                f"D = {region.ndim_space}. Add or drop a coordinate."
            )
        target = self._target("intersecting", (), where, groups)

        def work(begin: int, end: int) -> list[Ints]:
            parts = target.parts[begin:end]
            return [part.first + rows_in(region, part, _start_nodes(part, target.starts)) for part in parts]

        found = run_chunks(work, len(target.parts), workers=workers, progress=progress, min_chunk=1)
        return np.concatenate([rows for some in found for rows in some])


def _start_nodes(part: TargetPart, starts: Ints32) -> Ints:
    """Return the nodes at which the search begins: those of what is common, and of the region's group."""
    rows = getattr(part.tree, "starts", NO_STARTS)
    if rows.ndim != 2 or starts.size == 0:
        return np.zeros(1, np.int64)
    chosen = rows[[0, *starts[starts > 0].tolist()]]
    return np.concatenate([np.arange(first, first + count) for first, count in chosen])
