"""`sweep`: moving boxes against resting boxes (continuous collision detection).

A moving box hits a resting one as a ray hits that box enlarged by the moving one: the moving box's upper
corner crosses the lower planes, its lower corner the upper ones. The enlarged box is never computed, as that
would round: every decision is one exact comparison of two times (p - o)/d, as for rays.
"""

from __future__ import annotations

import numpy as np

from raybox.compiler.float_environment import in_default_environment
from raybox.errors import InvalidInput
from raybox.geometry import Boxes, MovingBoxes, row_mask
from raybox.hits import Hits
from raybox.hits.hit_ids import SceneRows, Source
from raybox.scene.scene import Scene, state_of
from raybox.threads.chunks import run_chunks
from raybox.validation import ArrayInput


@in_default_environment
def sweep(
    boxes_moving: Boxes,
    displacement: ArrayInput,
    scene: Scene,
    *,
    workers: int = -1,
    progress: bool = False,
    where: ArrayInput | None = None,
) -> Hits:
    """Return the first contact of each moving box with a scene of boxes.

    Boxes are closed and the motion includes both ends: touching counts, also at the start, at the end, and
    along a face. Hits, their order, and ties (the lowest index) are exact; times are exact, rounded once.

    Parameters
    ----------
    boxes_moving : Boxes
        M, with finite bounds.
    displacement : array_like, shape (D,) or (M, D)
        Of each box: a translation along a straight line. Zero finds what a box touches where it is.
    scene : Scene
        Of boxes, of the same D.
    workers : int
        Threads; -1 for all cores. The result does not depend on it.
    progress : bool
        Show a progress bar on stderr when it takes long.
    where : array_like of bool, shape (len(scene),), or str, optional
        Boxes that may be hit, as a mask or an expression of their labels; the others are ignored.

    Returns
    -------
    Hits
        Of shape (M,). ``index``: the scene's box that is touched first, -1 for none. ``t``: the time of that
        contact as a share of the displacement, 0 to 1; +inf for none. ``normals``: outward, of the face of
        the scene's box that is touched (of several: the lowest axis); zero where boxes overlap at t = 0.
        ``points``: the centre of the moving box at t. ``t_enter``, ``t_exit``: the range of t in which the
        two touch on the whole line.

    Raises
    ------
    InvalidInput
        If the scene is not of boxes, D differs, shapes do not fit, or a number is not finite.

    Notes
    -----
    The same query as a ray's, of boxes enlarged by the moving one (Minkowski sum): see e.g. van den
    Bergen 2003, "Collision Detection in Interactive 3D Environments", 2.3.

    Examples
    --------
    >>> import raybox as rb
    >>> walls = rb.Scene(rb.Boxes([[10, -5], [20, -5]], [[11, 5], [21, 5]]))
    >>> hits = rb.sweep(rb.Boxes([0, 0], [2, 2]), [16, 4], walls)
    >>> hits.index, hits.t, hits.normals, hits.points
    (array([0]), array([0.5]), array([[-1.,  0.]]), array([[9., 3.]]))
    """
    movers = MovingBoxes(boxes_moving, displacement)
    if not (isinstance(scene, Scene) and isinstance(scene.geometry, Boxes)):
        what = scene.geometry if isinstance(scene, Scene) else type(scene).__name__
        raise InvalidInput(
            f"scene must be a Scene of boxes; got {what}. Make one: Scene(Boxes(lower, upper))."
        )
    if scene.groups is not None:
        raise InvalidInput(
            "sweep is for a scene without groups; this one has some. Make one of a world, and of what is "
            "common: Scene(boxes[(groups == g) | (groups == -1)])."
        )
    if movers.ndim_space != scene.geometry.ndim_space:
        raise InvalidInput(
            f"moving boxes must have the scene's dimensions, D = {scene.geometry.ndim_space}; "
            f"got D = {movers.ndim_space}. Add or drop a coordinate."
        )
    return _sweep(movers, scene, where, workers=workers, progress=progress)


def _sweep(
    movers: MovingBoxes, scene: Scene, where: ArrayInput | None, *, workers: int, progress: bool
) -> Hits:
    """Return the first contact of each moving box; see `sweep`."""
    from raybox.queries.hit_query import HitOfRay
    from raybox.queries.nearest.stream import Nearest
    from raybox.traversal.job import Job
    from raybox.traversal.single import RaySpan, make_scratch, traverse_rays

    part = state_of(scene).part
    allowed = row_mask(where, part.objects, len(part.geometry))
    job = Job(part.tree, part.rows, movers._rows(), allowed)  # type: ignore[arg-type]
    index, t = np.full(len(movers.boxes), -1, np.int64), np.full(len(movers.boxes), np.inf)

    def work(begin: int, end: int) -> None:
        traverse_rays(job, RaySpan(begin, end), make_scratch(), HitOfRay(Nearest(index, t), 0))

    run_chunks(work, index.size, workers=workers, progress=progress)
    return Hits(index, t, Source(movers, SceneRows((part.rows,), objects=(part.objects,))))
