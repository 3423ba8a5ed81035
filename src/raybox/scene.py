"""`Scene`: boxes or triangles, held in a tree, and the questions rays ask of it."""

from functools import partial
from typing import Any, NamedTuple, final

import numpy as np

from raybox import questions, validate
from raybox.bvh.aim import Frame, frame_of
from raybox.bvh.build import QUALITIES
from raybox.bvh.check import check, stats
from raybox.bvh.keeper import Keeper
from raybox.bvh.layout import Tree
from raybox.bvh.traverse import Job
from raybox.errors import InvalidInput
from raybox.geometry import Bounded, Cull, Rays, facing
from raybox.hits import AllHits, Hits, Source
from raybox.kernels.primitives import bounds, screens
from raybox.parallel import check_workers
from raybox.validate import Bools, Floats, Ints


class _State(NamedTuple):
    """What a scene is now; replaced as a whole by `Scene.update`, so that questions under way stay whole."""

    geometry: Bounded
    rows: Any
    tree: Tree
    box_rows: tuple[Floats, Floats]
    frame: Frame | None  # for primitives that are screened many at a time


@final
class Scene:
    """Boxes or triangles, built once and asked many times.

    Every answer is exact: what rational arithmetic says of the very numbers given. A tree in float32
    only proposes candidates, padded so that it can lose none; float64 with an exact fallback decides.
    Touching is a hit. Answers depend neither on threads, nor on the order of the rays, nor on how the
    tree was built. Questions may be asked from several threads at once.

    Parameters
    ----------
    geometry : Boxes or Mesh
        What rays may meet. Numbers in answers are rows of it.
    quality : {"balanced", "fast", "best"}
        What the tree is made for, no answer depends on it. "fast": a scene that is asked little, or made
        anew all the time. "best": one that is asked for minutes.
    workers : int
        Threads that build, and that `update` uses; -1 for all cores. The tree does not depend on it.

    Raises
    ------
    InvalidInput
        If it is something else, or has 2**31 rows or more, or there is no such quality.

    Examples
    --------
    >>> import raybox as rb
    >>> scene = rb.Scene(rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]]))
    >>> rays = rb.Rays([0, 0, 0], [[1, 0, 0], [-1, 0, 0]])
    >>> scene.nearest(rays).index, scene.count(rays)
    (array([ 0, -1]), array([2, 0]))
    """

    def __init__(self, geometry: Bounded, *, quality: str = "balanced", workers: int = -1) -> None:
        rows, box_rows = _rows_of(geometry)
        if quality not in QUALITIES:
            raise InvalidInput(f"quality must be one of {', '.join(map(repr, QUALITIES))}; got {quality!r}.")
        self._keeper = Keeper(quality, check_workers(workers))
        self._state = _state(geometry, rows, self._keeper.build(*box_rows), box_rows)

    @property
    def geometry(self) -> Bounded:
        """What the scene is made of."""
        return self._state.geometry

    @property
    def bounds(self) -> Floats:
        """The corners of the box round everything, shape (2, D); +inf and -inf for an empty scene."""
        lower, upper = self._state.box_rows
        corners = np.array([lower.min(axis=0, initial=np.inf), upper.max(axis=0, initial=-np.inf)])
        return corners[:, : self._state.geometry.ndim_space]

    def __len__(self) -> int:
        return len(self._state.geometry)

    def __repr__(self) -> str:
        return f"Scene({self._state.geometry!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Scene, quality=self._keeper.quality), (self._state.geometry,)

    def nearest(
        self, rays: Rays, *, workers: int = -1, progress: bool = False, where: Any = None, cull: Cull = None
    ) -> Hits:
        """Return what each ray meets first.

        Parameters
        ----------
        rays : Rays
            Of any shape, of the scene's D.
        workers : int
            Threads; -1 for all cores.
        progress : bool
            Show a bar on stderr when it takes long.
        where : array_like of bool, shape (len(scene),), optional
            What may be met; the rest is not there.
        cull : None or "back"
            "back" (meshes only) drops triangles that rays meet from behind, along (b - a) x (c - a).

        Returns
        -------
        Hits
            Of the rays' shape. Of several first met at exactly the same t: the lowest index.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]]))
        >>> scene.nearest(rb.Rays([0, 0], [1, 0])).t
        array(2.)
        >>> scene.nearest(rb.Rays([0, 0], [1, 0]), where=[False, True]).index
        array(1)
        """
        job, source = self._ask(rays, where, cull)
        index, t = questions.nearest(job, workers=workers, progress=progress)
        return Hits(index.reshape(rays.shape), t.reshape(rays.shape), source)

    def occluded(
        self, rays: Rays, *, workers: int = -1, progress: bool = False, where: Any = None, cull: Cull = None
    ) -> Bools:
        """Tell which rays meet anything: bool, of the rays' shape. Parameters as for `nearest`.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([2, -1], [3, 1]))
        >>> scene.occluded(rb.Rays.segments([0, 0], [[1, 0], [2, 0]]))
        array([False,  True])
        """
        job, _ = self._ask(rays, where, cull)
        return questions.occluded(job, workers=workers, progress=progress).reshape(rays.shape)

    def count(
        self, rays: Rays, *, workers: int = -1, progress: bool = False, where: Any = None, cull: Cull = None
    ) -> Ints:
        """Tell how many each ray meets: int64, of the rays' shape. Parameters as for `nearest`.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]]))
        >>> scene.count(rb.Rays([[0, 0], [4, 0]], [1, 0]))
        array([2, 1])
        """
        job, _ = self._ask(rays, where, cull)
        return questions.count(job, workers=workers, progress=progress).reshape(rays.shape)

    def all(
        self, rays: Rays, *, workers: int = -1, progress: bool = False, where: Any = None, cull: Cull = None
    ) -> AllHits:
        """Return everything each ray meets, sorted by (t, index) along it. Parameters as for `nearest`.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[5, -1], [2, -1]], [[6, 1], [4, 1]]))
        >>> all_hits = scene.all(rb.Rays([[0, 0], [0, 9]], [1, 0]))
        >>> all_hits.offsets, all_hits.index, all_hits.lengths
        (array([0, 2, 2]), array([1, 0]), array([2., 1.]))
        """
        job, source = self._ask(rays, where, cull)
        return AllHits(*questions.everything(job, workers=workers, progress=progress), source)

    def first(
        self,
        rays: Rays,
        k: int,
        *,
        workers: int = -1,
        progress: bool = False,
        where: Any = None,
        cull: Cull = None,
    ) -> Hits:
        """Return the k nearest contacts of each ray, in order, padded with misses.

        Parameters
        ----------
        rays : Rays
            Of any shape, of the scene's D.
        k : int
            How many, at least 1.
        workers, progress, where, cull
            As for `nearest`.

        Returns
        -------
        Hits
            Of shape ``(*rays.shape, k)``.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[5, -1], [2, -1]], [[6, 1], [3, 1]]))
        >>> scene.first(rb.Rays([0, 0], [1, 0]), 3).index
        array([ 1,  0, -1])
        """
        k = questions.check_k(k)
        job, source = self._ask(rays, where, cull)
        index, t = questions.first(job, k, workers=workers, progress=progress)
        shape = (*rays.shape, k)
        return Hits(index.reshape(shape), t.reshape(shape), source._replace(inner=k))

    def update(self, geometry: Bounded) -> None:
        """Move the scene's boxes (or vertices): the same rows elsewhere, answers as of a fresh scene.

        Refits the tree, which costs a fraction of a build. Where boxes have travelled so far across each
        other that it has become poor (its cost, see `stats`, 1.4 times what it was), the parts that these
        were in are built anew; the whole, where that is half of it or would not do, or the scene is small.
        Questions under way in other threads are answered on the boxes as they were when they began; none
        waits. For that there is memory for a second tree, from the first update on. Hits given out before
        keep what they were found on.

        Parameters
        ----------
        geometry : Boxes or Mesh
            The kind, D and number of rows that the scene has.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([2, -1], [3, 1]))
        >>> scene.update(rb.Boxes([7, -1], [8, 1]))
        >>> scene.nearest(rb.Rays([0, 0], [1, 0])).t
        array(7.)
        """
        old = self._state
        alike = type(geometry) is type(old.geometry) and geometry.ndim_space == old.geometry.ndim_space
        if not alike or len(geometry) != len(old.geometry):
            raise InvalidInput(
                f"update wants what the scene is made of, moved: {old.geometry!r}; got {geometry!r}. "
                "Build a new Scene instead."
            )
        rows, box_rows = _rows_of(geometry)
        with self._keeper.lock:
            old = self._state
            tree = self._keeper.move(old.tree, old.box_rows, box_rows)
            self._state = _state(geometry, rows, tree, box_rows)

    def check(self) -> None:
        """Raise `RayboxError` if the tree is not sound: each box held once, inside of all bounds above it."""
        check(self._state.tree, *self._state.box_rows)

    def stats(self) -> dict[str, float]:
        """Return what the tree is like: boxes, nodes, depth, bytes, bytes_per_box, fill, cost.

        fill is the share of slots in use. cost is how many nodes a line through the bulk of the scene meets,
        on average: the surface area of all nodes, over that of the root (Goldsmith and Salmon 1987).
        """
        state = self._state
        return stats(state.tree, *state.box_rows)

    def _ask(self, rays: Rays, where: Any, cull: Cull) -> tuple[Job, Source]:
        """Check a question and lay it out for the kernels, all of one state."""
        state = self._state
        questions.check_rays(rays, state.geometry.ndim_space)
        allowed = validate.mask(where, len(state.geometry))
        rows = facing(state.geometry, state.rows, cull)
        return Job(state.tree, rows, rays.rows(), allowed, state.frame), Source(rays, state.geometry)


def state_of(scene: Scene) -> tuple[_State, str]:
    """Return what a scene is, and the quality of its tree."""
    return scene._state, scene._keeper.quality


def restore(geometry: Bounded, tree: Tree, quality: str) -> Scene:
    """Return a scene whose tree was built before."""
    scene = object.__new__(Scene)
    rows, box_rows = _rows_of(geometry)
    scene._keeper = Keeper(quality, check_workers(-1))
    scene._state = _state(geometry, rows, tree, box_rows)
    return scene


def _state(geometry: Bounded, rows: Any, tree: Tree, box_rows: tuple[Floats, Floats]) -> _State:
    """Put a state together."""
    return _State(geometry, rows, tree, box_rows, frame_of(tree) if screens(rows) else None)


def _rows_of(geometry: Any) -> tuple[Any, tuple[Floats, Floats]]:
    """Return a geometry's rows for the kernels, and the bounds of each."""
    if not isinstance(geometry, Bounded):
        raise InvalidInput(
            f"a Scene is made of Boxes or a Mesh; got {type(geometry).__name__}. "
            "Make some: Boxes(lower, upper)."
        )
    if len(geometry) >= 2**31:
        raise InvalidInput(f"a Scene holds up to 2**31 - 1 rows; got {len(geometry)}. Split it by space.")
    rows = geometry.rows()
    return rows, bounds(rows)
