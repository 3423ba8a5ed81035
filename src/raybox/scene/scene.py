"""`Scene`: boxes, grids, triangles, planes and instances in trees, and the queries of rays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from importlib import import_module
from math import prod
from typing import Any, NamedTuple, Never, cast, final

import numpy as np

from raybox._version import __version__
from raybox.bvh.build import Quality
from raybox.compiler.float_environment import guard_class, in_default_environment, is_default
from raybox.compiler.fork import fork_safe_lock
from raybox.compiler.struct_ref import plan_of
from raybox.errors import InvalidInput, out_of_memory
from raybox.geometry import Cull, Geometry, RayRows, Rays
from raybox.hits.hit_ids import source_of
from raybox.queries.query import (
    ExcludeInput,
    ExcludeObjectInput,
    GroupsInput,
    Opt,
    Public,
    Query,
    Request,
    Res,
    RunOptions,
    Target,
)
from raybox.queries.table import QueryMethods
from raybox.scene import geometry_parts
from raybox.scene.geometry_parts import Part, TreeState, View
from raybox.scene.groups import starts_of
from raybox.spatial.table import SpatialMethods
from raybox.spatial.target import JoinTarget, Searchable, SearchTarget, WhereInput
from raybox.traversal.job import Job
from raybox.validation import Bools, Floats, Ints, MaskInput


@final
@guard_class("geometry")
class Scene(QueryMethods, SpatialMethods):
    """Geometry that rays may hit, built once and queried many times.

    Every result is exact: it equals that of rational arithmetic on the given numbers. A tree in float32 finds
    candidates, and its bounds are padded so that it loses none; float64 with an exact fallback decides.
    Touching is a hit. Results depend neither on threads, nor on the order of the rays, nor on how the
    tree was built. Several threads may run queries at once.

    Parameters
    ----------
    geometry : Boxes, Grid, Mesh, Planes, Instances, or a list of them
        The geometry. Indices in results are its rows; of a grid, the numbers of its cells. For a list,
        `Hits.geometry` is the geometry that was hit; each has a tree of its own (planes are unbounded: every
        ray is tested against each). A grid has a tree of its occupied cells, of a bit or two for each.
    groups : array_like of int, shape (len(geometry),), or a list of them, optional
        The world of each primitive: a number from 0 on, or -1 for what is common to all. A ray of a group
        hits the primitives of that group and of -1. Of a list: an array for each geometry, or None, which is
        common to all, as a `Grid` is. Every query then needs ``groups=``, the world of each ray.
    quality : {"balanced", "fast", "best"}
        Of the tree; no result depends on it. "fast": for a scene that is rebuilt often, or queried little.
        "best": for minutes of queries.
    workers : int
        Threads of the build and of `update`; -1 for all cores. The tree does not depend on it.

    Raises
    ------
    InvalidInput
        If the geometry is of another type, of different D, or has 2**31 rows or more, but for a grid; if
        groups are of another shape or below -1; if quality is unknown.

    Examples
    --------
    >>> import raybox as rb
    >>> scene = rb.Scene(rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]]))
    >>> rays = rb.Rays([0, 0, 0], [[1, 0, 0], [-1, 0, 0]])
    >>> scene.nearest(rays).index, scene.count(rays)
    (array([ 0, -1]), array([2, 0]))
    >>> scene = rb.Scene([rb.Boxes([2, -1, -1], [3, 1, 1]), rb.Planes([1, 0, 0], -4)])
    >>> scene.nearest(rays).geometry
    array([0, 1])
    >>> worlds = rb.Scene(rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]]), groups=[0, 1])
    >>> worlds.nearest(rb.Rays([0, 0, 0], [1, 0, 0]), groups=1).index
    array(1)
    """

    def __init__(
        self,
        geometry: Geometry | Sequence[Geometry],
        *more: Never,
        groups: GroupsInput | Sequence[GroupsInput] = None,
        quality: Quality = "balanced",
        workers: int = -1,
    ) -> None:
        if more:
            geometry_parts.refuse_more(geometry, *more)
        made = geometry_parts.make_all(geometry, quality, workers, groups)
        self._set(isinstance(geometry, list | tuple), quality, made)

    def _set(self, is_list: bool, quality: Quality, made: tuple[Part, ...]) -> None:
        self._is_list, self._quality, self._lock, self._parts = is_list, quality, fork_safe_lock(), made
        self._plain: View | None = None

    @property
    def geometry(self) -> Any:
        """The geometry of the scene; of a list, a tuple."""
        made = tuple(part.geometry for part in self._parts)
        return made if self._is_list else made[0]

    @property
    def groups(self) -> Any:
        """The group of each primitive, int64, read-only; None without groups.

        Of a list, a tuple of arrays, with None for a `Grid`.
        """
        found = tuple(part.groups and part.groups.of_rows for part in self._parts)
        if all(one is None for one in found):
            return None
        return found if self._is_list else found[0]

    @property
    def bounds(self) -> Floats:
        """The lower and upper bounds of the scene, shape (2, D); +inf and -inf if it is empty."""
        lower, upper = (
            np.concatenate(ends) for ends in zip(*(part.box_rows for part in self._parts), strict=True)
        )
        corners = np.array([lower.min(axis=0, initial=np.inf), upper.max(axis=0, initial=-np.inf)])
        return corners[:, : self._parts[0].geometry.ndim_space]

    def __len__(self) -> int:
        return sum(len(part.geometry) for part in self._parts)

    def __repr__(self) -> str:
        made = self.geometry
        return f"Scene({list(made) if self._is_list else made!r})"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        parts = self._parts
        states = [PartState(part.geometry, geometry_parts.tree_state(part)) for part in parts]
        return _unpickled, (__version__, self._is_list, self._quality, states)

    def update(
        self,
        geometry: Geometry | Sequence[Geometry],
        *,
        groups: GroupsInput | Sequence[GroupsInput] = None,
    ) -> None:
        """Move the scene's boxes (or vertices); results are those of a new scene.

        The tree is refitted, which costs a fraction of a build. If boxes have moved so far across each other
        that its cost (see `stats`) has grown to 1.4 times that after the build, its poor parts are rebuilt;
        the whole tree is, if half of it is poor, if parts do not suffice, or if the scene is small. Queries
        that run in other threads return results for the boxes at the time when they started, without
        waiting. The first update allocates memory for a second tree. Earlier hits do not change. A
        process that is forked during an update has the scene of before.

        Parameters
        ----------
        geometry : Boxes, Mesh, Planes, Instances, or a list of them
            Of the type, D and number of rows that the scene has. In a list, an unchanged object costs
            nothing; the tree of an unchanged object of `Instances` is reused. A `Grid` cannot move. Ids are
            those of this geometry, as labels are: pass ``ids=boxes.ids`` to keep them.
        groups : array_like of int, shape (len(geometry),), or a list of them, optional
            Other groups, of a scene that has groups: the tree is built again. None: they stay as they are,
            and the boxes of all groups move.

        Raises
        ------
        InvalidInput
            If the geometry is not that of the scene, moved; if groups do not fit, or the scene has none.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([2, -1], [3, 1]))
        >>> scene.update(rb.Boxes([7, -1], [8, 1]))
        >>> scene.nearest(rb.Rays([0, 0], [1, 0])).t
        array(7.)
        """
        given = geometry_parts.listed(geometry)
        old = tuple(part.geometry for part in self._parts)
        if isinstance(geometry, list | tuple) != self._is_list or not geometry_parts.alike(given, old):
            raise InvalidInput(
                f"update needs the geometry of the scene, moved: {self!r}; got {geometry!r}. "
                "Build a new Scene instead."
            )
        with self._lock:
            if groups is not None:
                self._regroup(geometry, groups)
                return
            pairs = zip(self._parts, given, strict=True)
            self._parts = tuple(
                part if part.geometry is one else geometry_parts.moved(part, one) for part, one in pairs
            )

    def _regroup(
        self, geometry: Geometry | Sequence[Geometry], groups: GroupsInput | Sequence[GroupsInput]
    ) -> None:
        """Build the scene again for other groups."""
        if self.groups is None:
            raise InvalidInput(
                "update takes groups of a scene that has groups; this one has none. Make it with them: "
                "Scene(geometry, groups=…)."
            )
        self._parts = geometry_parts.make_all(
            geometry, self._quality, self._parts[0].refit_policy.threads, groups
        )

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the scene into a new folder, from which `open` maps it without a build.

        The folder has the geometry with its ids, labels, units and counts of what was left out, and the
        trees. It is written under another name and then renamed: there is never half a folder.
        :func:`raybox.save` writes the geometry alone, into one file.

        Parameters
        ----------
        folder : path
            A name that ends in ``.scene``, where nothing exists yet. Boxes in 3D take about 90 bytes each on
            the disk, triangles 150 to 200, cells of a grid two bits.

        Raises
        ------
        FileFormatError
            If the name ends otherwise, something exists there, or the folder cannot be written.
        InvalidInput
            If an id or a label is one that ``.npz`` files of :func:`raybox.save` do not hold.

        Examples
        --------
        >>> import raybox as rb, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]])).save(f"{folder}/two.scene")
        >>> rb.Scene.open(f"{folder}/two.scene").nearest(rb.Rays([4, 0], [1, 0])).index
        array(1)
        """
        import_module("raybox.io.scene_files").save(folder, self)

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, check: bool = False) -> Scene:
        """Return the scene that `save` wrote into a folder, mapped into memory.

        It is ready within milliseconds, plus the time to read ids and labels. Pages are read from the disk
        when a query needs them, are shared by all processes that open the folder, and leave memory where it
        is short. Results are those of the scene that was saved, bit for bit. Nothing writes to the folder:
        `update` copies. Do not change its files while a process uses them: one that becomes shorter ends
        that process.

        Parameters
        ----------
        folder : path
            The folder given to `save`, which may have been moved or copied.
        check : bool
            True: read all bytes first, compare them with their checksums, and require what compiled code
            relies on, so that no damaged or manipulated file crashes a query. False: check the manifest, and
            the sizes and headers of all files; trust their numbers.

        Raises
        ------
        FileFormatError
            If the folder is missing (then it is a FileNotFoundError, too), holds no scene of this version of
            raybox, or is damaged, as far as it is checked.
        """
        found: Scene = import_module("raybox.io.scene_files").open_scene(folder, check=check)
        return found

    def check(self) -> None:
        """Raise `RayboxError` unless the tree has each box once, within all bounds above it."""
        for part in self._parts:
            geometry_parts.check(part)

    def stats(self) -> dict[str, float]:
        """Return the statistics of the tree: boxes, nodes, depth, bytes, bytes_per_box, fill, cost.

        fill is the share of slots in use. cost is the average number of nodes that a line through the bulk of
        the scene hits: the surface area of all nodes over that of the root (Goldsmith and Salmon 1987). Of a
        grid whose cells are all occupied, nodes are not stored, nor counted.
        """
        return geometry_parts.measured(self._parts)

    def _run(
        self,
        query: Query[Opt, Res, Public],
        rays: Rays,
        options: Any = None,
        *,
        workers: int = -1,
        progress: bool = False,
        where: MaskInput = None,
        cull: Cull = None,
        groups: GroupsInput = None,
        exclude: ExcludeInput = None,
        exclude_object: ExcludeObjectInput = None,
    ) -> Public:
        """Return the public results of a query for all rays."""
        if not is_default():
            how = RunOptions(workers=workers, progress=progress, where=where, cull=cull, groups=groups)
            how |= RunOptions(exclude=exclude, exclude_object=exclude_object)
            return in_default_environment(self._run)(query, rays, options, **how)
        try:
            view = self._plain
            if view is None or view.parts is not self._parts or where is not None or cull is not None:
                view = self._view(where, cull)
            if type(rays) is not Rays or rays.ndim_space != view.ndim_space:
                check_rays(rays, view.ndim_space)
            if query.prepare:
                counts = tuple(len(part.geometry) for part in view.parts)
                target = Target(view.rows.parts, counts, self._is_list, workers)
                options = query.prepare(options, rays, target)
            rows = rays._rows()
            if view.groups is not None or groups is not None:
                rows = rows._replace(starts=starts_of(view.groups, groups, rays.shape))
            if exclude is not None or exclude_object is not None:
                from raybox.scene.exclusion import exclusion_of

                excluded, owners = exclusion_of(exclude, exclude_object, view.rows, rays.shape)
                view, rows = _with_owners(view, owners), rows._replace(excluded=excluded)
            results = _results(view, query, rows, options, workers, progress)
            return query.present(results, rays.shape, source_of(rays, view.rows), options)
        except MemoryError as error:
            subject = f"{query.name} of {prod(rays.shape):,} rays"
            raise out_of_memory(error, subject, "query fewer rays at a time") from error.__cause__

    @property
    def _dimension(self) -> int:
        return self._parts[0].geometry.ndim_space

    def _target(
        self, method: str, shape: tuple[int, ...], where: WhereInput, groups: GroupsInput
    ) -> SearchTarget:
        """Return what a spatial query runs on."""
        from raybox.scene.box_targets import target_of

        parts = self._parts
        found, own = target_of(parts, self._masked(where), method), geometry_parts.groups_of(parts)
        if own is None and groups is None:
            return found
        return found._replace(starts=starts_of(own, groups, shape, "query"))

    def _joined(self, other: Searchable, where: WhereInput, other_where: WhereInput) -> JoinTarget:
        """Return what a join with a scene runs on."""
        from raybox.scene.box_targets import join_target, target_of

        scene = cast("Scene", other)
        own, others = self._parts, scene._parts
        found = target_of(own, self._masked(where), "join")
        return join_target(found, target_of(others, scene._masked(other_where), "join"), own, others)

    def _masked(self, where: WhereInput) -> MaskInput | Sequence[MaskInput]:
        """Return masks as those of a list."""
        return where if self._is_list or where is None else [cast("MaskInput", where)]

    def _view(self, where: MaskInput, cull: Cull) -> View:
        """Return what queries read of the scene; without masks and culled sides it is stored."""
        if where is not None or cull is not None:
            return geometry_parts.view(self._parts, self._masked(where), cull)
        self._plain = geometry_parts.view(self._parts, None, None)
        return self._plain


def _with_owners(view: View, owners: tuple[Ints, ...]) -> View:
    """Return what queries read of a scene, with the owners of its primitives, if there are any."""
    if not owners:
        return view
    pairs = zip(view.jobs, owners, strict=True)
    return view._replace(jobs=tuple(plan_of(job._replace(owners=one)) for job, one in pairs))


def _results(
    view: View, query: Query[Opt, Res, Public], rays: RayRows, options: Opt, workers: int, progress: bool
) -> Res:
    """Return the results of a query on all geometries."""
    if len(view.jobs) == 1:
        return query.run(view.jobs[0], rays, options, workers, progress)

    def run_one(job: Job, some: RayRows, own: Opt = options) -> Res:
        return query.run(job, some, own, workers, progress)

    return query.merge_geometries(Request(view.jobs, view.rows.starts, rays), run_one, options)


def geometries_of(scene: Scene) -> tuple[Geometry, ...]:
    """Return the geometries of a scene: one, or those of a list."""
    return tuple(part.geometry for part in scene._parts)


def masks_of(scene: Scene, where: MaskInput) -> Bools | list[Bools | None]:
    """Return which primitives may be hit: of a list, a mask for each geometry, or None for all of it."""
    masks = geometry_parts.masks(scene._masked(where), scene._parts)
    return [mask if mask.size else None for mask in masks] if scene._is_list else masks[0]


def check_rays(rays: object, dimension: int) -> None:
    """Raise `InvalidInput` unless rays are `Rays` of the scene's D."""
    if type(rays) is not Rays:
        raise InvalidInput(
            f"rays must be raybox.Rays; got {type(rays).__name__}. Make some: "
            "raybox.Rays(origins, directions); of rows of both: raybox.Rays.from_array(array)."
        )
    if rays.ndim_space != dimension:
        raise InvalidInput(
            f"rays must have the scene's dimensions, D = {dimension}; "
            f"got D = {rays.ndim_space}. Add or drop a coordinate."
        )


class SceneState(NamedTuple):
    """The parts of a scene, one for each geometry, and how it was made."""

    parts: tuple[Part, ...]
    quality: Quality
    is_list: bool

    @property
    def part(self) -> Part:
        """That of a scene of one geometry."""
        (part,) = self.parts
        return part


def state_of(scene: Scene) -> SceneState:
    """Return the state of a scene."""
    return SceneState(scene._parts, scene._quality, scene._is_list)


class PartState(NamedTuple):
    """A geometry of a stored scene, and its tree."""

    geometry: Geometry
    tree: TreeState


@in_default_environment
def _unpickled(version: str, is_list: bool, quality: Quality, parts: list[PartState]) -> Scene:
    """Return a scene with the trees that it was pickled with; one of another version is built again."""
    if version != __version__:
        geometries = [part.geometry for part in parts]
        groups = [part.tree.groups and part.tree.groups.of_rows for part in parts]
        if not is_list:
            return Scene(geometries[0], groups=groups[0], quality=quality)
        return Scene(
            geometries, groups=groups if any(own is not None for own in groups) else None, quality=quality
        )
    return restore(is_list, quality, [part._replace(tree=part.tree.copied()) for part in parts])


def restore(is_list: bool, quality: Quality, parts: Iterable[PartState]) -> Scene:
    """Return a scene whose trees are built already."""
    scene = object.__new__(Scene)
    restored = (geometry_parts.restored(part.geometry, part.tree, quality) for part in parts)
    scene._set(is_list, quality, tuple(restored))
    return scene
