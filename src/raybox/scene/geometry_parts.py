"""The geometries of a scene, each with rows for the kernels and a tree of its own."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import accumulate
from os import PathLike
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np

from raybox.bvh.build import QUALITIES
from raybox.bvh.forest import broken_starts
from raybox.bvh.node import Tree
from raybox.bvh.partial_rebuild import Costs, RefitPolicy
from raybox.compiler import huge_pages
from raybox.compiler.struct_ref import plan_of
from raybox.errors import InvalidInput
from raybox.exact import instance_definition
from raybox.exact.double_double import TAME_HIGH, TAME_LOW, invert
from raybox.geometry import (
    BoxRows,
    Cull,
    Geometry,
    InstanceRows,
    Instances,
    ObjectRows,
    PrimitiveRows,
    RayRows,
    TriangleRows,
    around,
    facing,
    object_rows,
    row_masks,
    with_scratch,
)
from raybox.geometry.ray_rows import NO_ROWS
from raybox.hits.hit_ids import SceneRows
from raybox.primitives import exact_table
from raybox.primitives.table import bounds, has_simd, has_volumes, own_tree
from raybox.queries.query import GroupsInput
from raybox.scene.groups import GroupRows, checked_groups
from raybox.threads.chunks import check_workers
from raybox.traversal.job import NO_TRIANGLES, Job
from raybox.traversal.ray_setup import Frame, frame_of
from raybox.traversal.slot_triangles import triangles_of
from raybox.validation import Array, Bools, Floats, Floats32, MaskInput, freeze, names_of

_MAX_IDS = 2**62
_OF_ARRAYS = "Of boxes: Scene(raybox.Boxes(lower, upper)); of triangles: Scene(raybox.Mesh(vertices, faces))"
_MAX_PIECES = 1_000_000  # boxes of subtrees that are transformed for the bounds of all instances


class Part(NamedTuple):
    """One geometry of a scene, and what is built from it."""

    geometry: Geometry
    rows: PrimitiveRows
    tree: PrimitiveRows  # a `Tree`, or that of `own_tree`
    bounds: Callable[[], tuple[Floats, Floats]]  # of each row, computed by the first call
    frame: Frame | None  # of the tree, for primitives with vector code
    refit_policy: RefitPolicy
    triangles: Callable[[], Floats32]  # of nodes, in float32; computed by the first call
    inner: "Part | None" = None  # of instances: the part of the inner geometry
    groups: GroupRows | None = None

    @property
    def box_rows(self) -> tuple[Floats, Floats]:
        """The lower and upper bounds of the rows, (M, 3) each."""
        return self.bounds()

    @property
    def objects(self) -> ObjectRows:
        """The objects of the rows, with ids and labels."""
        return object_rows(self.geometry)

    @property
    def size(self) -> int:
        """The number of its hit ids."""
        return len(self.geometry) * (self.rows.size if isinstance(self.rows, InstanceRows) else 1)


def listed(geometry: Geometry | Sequence[Geometry]) -> list[Geometry]:
    """Return the geometries of a scene, of one D."""
    made = [*geometry] if isinstance(geometry, list | tuple) else [cast("Geometry", geometry)]
    if not made:
        raise InvalidInput("a Scene of a list needs at least one geometry; got none. Boxes may be empty.")
    dims = {getattr(one, "ndim_space", None) for one in made} - {None} if len(made) > 1 else ()
    if len(dims) > 1:
        for one in made:
            _check_kind(one)
        raise InvalidInput(
            f"geometries of a Scene must have the same dimensions; got {', '.join(map(repr, made))}. "
            "Add or drop a coordinate."
        )
    return made


def refuse_more(*given: object) -> NoReturn:
    """Raise `InvalidInput` for several geometries, or arrays, in place of one geometry."""
    kinds = ", ".join(type(one).__name__ for one in given)
    way_out = "Put them into a list: Scene([one, other])"
    if not all(isinstance(one, Geometry) for one in given):
        way_out = _OF_ARRAYS
    raise InvalidInput(
        f"a Scene takes one geometry, or a list of them; got {len(given)}: {kinds}. {way_out}."
    )


def alike(given: list[Geometry], old: tuple[Geometry, ...]) -> bool:
    """Return whether geometries have the same types, D and numbers of rows."""
    return len(given) == len(old) and all(
        type(one) is type(other) and one.ndim_space == other.ndim_space and len(one) == len(other)
        for one, other in zip(given, old, strict=True)
    )


def make_all(
    geometry: Geometry | Sequence[Geometry],
    quality: str,
    workers: int,
    groups: GroupsInput | Sequence[GroupsInput] = None,
) -> tuple[Part, ...]:
    """Build the parts of a scene."""
    given = listed(geometry)
    for one in given if groups is not None else ():  # before their groups are
        _check_kind(one)
    each = checked_groups(groups, given, isinstance(geometry, list | tuple))
    parts = tuple(make(one, quality, workers, own) for one, own in zip(given, each, strict=True))
    for part in parts:
        if len(parts) > 1 and exact_table.TABLE[type(part.rows)] is None:
            name = type(part.geometry).__name__
            raise InvalidInput(
                f"a Scene of several geometries needs exact times of each; {name} has kernels only. "
                "Add EXACT to the module of its kernels, or make a Scene of only this one."
            )
    if len(parts) > 1 and (total := sum(part.size for part in parts)) > _MAX_IDS:
        raise InvalidInput(
            f"a Scene of several geometries may have up to 2**62 rows in all; got {total}. "
            "Make a Scene of each."
        )
    return parts


def _check_kind(geometry: object) -> Any:
    """Return the rows of a container of primitives, None for instances; refuse anything else."""
    rows = exact_table.rows_of(geometry)
    if rows is None and not isinstance(geometry, Instances):
        raise InvalidInput(
            f"a Scene is made of Boxes, a Grid, a Mesh, Planes, Instances, or a list of these; got "
            f"{type(geometry).__name__}. {_way_out(geometry)}."
        )
    return rows


def _way_out(geometry: Any) -> str:
    """Return the line that makes a scene of another object."""
    module = type(geometry).__module__.partition(".")[0]
    if isinstance(geometry, str | PathLike):
        return "Load the file: Scene(raybox.load(path))"
    if module == "trimesh":
        return "Convert it: Scene(raybox.Mesh.from_trimesh(mesh))"
    if module == "open3d":
        return "Convert it: Scene(raybox.Mesh(np.asarray(mesh.vertices), np.asarray(mesh.triangles)))"
    if names_of(geometry) is not None:
        return "Of a table with min_x ... max_z: Scene(raybox.Boxes.from_bounds(table))"
    if isinstance(geometry, np.ndarray | list | tuple):
        rows = "; of rows of lower and upper bounds: Scene(raybox.Boxes.from_bounds(array))"
        return _OF_ARRAYS + rows
    if hasattr(geometry, "geometry"):
        return "Of another scene: Scene(scene.geometry)"
    return "Make some: Boxes(lower, upper)"


def make(geometry: Geometry, quality: str, workers: int, groups: GroupRows | None = None) -> Part:
    """Build a geometry's part of a scene."""
    rows = _check_kind(geometry)
    own = own_tree(rows)
    if own is None and len(geometry) >= 2**31:
        raise InvalidInput(f"a Scene holds up to 2**31 - 1 rows; got {len(geometry)}. Split it by space.")
    if quality not in QUALITIES:
        raise InvalidInput(f"quality must be one of {', '.join(map(repr, QUALITIES))}; got {quality!r}.")
    refit_policy = RefitPolicy(quality, check_workers(workers), groups and groups.of_tree())
    if own is not None:
        return _made(geometry, rows, own.build(rows), refit_policy)
    inner = None
    if isinstance(geometry, Instances):
        inner = make(geometry.geometry, quality, workers)
        rows = _instance_rows(geometry, inner)
    box_rows = bounds(rows)
    tree = refit_policy.build(*box_rows)
    return _made(geometry, rows, tree, refit_policy, inner, box_rows=lambda: box_rows, groups=groups)


class InstanceArrays(NamedTuple):
    """The arrays of `InstanceRows` that are computed from matrices and a geometry."""

    high: Floats
    low: Floats
    tame: Bools
    lower: Floats
    upper: Floats


class TreeState(NamedTuple):
    """What a geometry's part is restored from, without a build."""

    tree: PrimitiveRows
    built: Costs | None = None
    """the costs of the tree as built, once an update has measured them"""
    inner: "TreeState | None" = None
    """of instances: that of their geometry"""
    rows: PrimitiveRows | None = None
    """the rows for kernels, of instances `InstanceArrays`; None: computed from the geometry"""
    frame: Frame | None = None
    """None: computed from the tree"""
    triangles: Floats32 | None = None
    """those of nodes; None: computed by the first query"""
    groups: GroupRows | None = None

    def copied(self) -> "TreeState":
        """Return the state with arrays of its own, which are aligned and read-only."""
        tree: Any = self.tree
        arrays = {
            name: _copied(item) for name, item in tree._asdict().items() if isinstance(item, np.ndarray)
        }
        return TreeState(
            tree._replace(**arrays), self.built, self.inner and self.inner.copied(), groups=self.groups
        )


def _copied(array: Array) -> Array:
    copy: Array = huge_pages.empty(array.shape, array.dtype)
    copy[...] = array
    freeze(copy)
    return copy


def tree_state(part: Part) -> TreeState:
    """Return the state of a part."""
    inner = part.inner and tree_state(part.inner)
    return TreeState(part.tree, part.refit_policy.built, inner, groups=part.groups)


def restored(geometry: Geometry, state: TreeState, quality: str) -> Part:
    """Return the part of a geometry whose tree is built already."""
    groups = state.groups
    refit_policy = RefitPolicy(quality, check_workers(-1), groups and groups.of_tree())
    refit_policy.built = state.built
    if isinstance(geometry, Instances) and state.inner:
        inner = restored(geometry.geometry, state.inner, quality)
        rows: PrimitiveRows = _instance_rows(geometry, inner, cast("InstanceArrays | None", state.rows))
        return _made(geometry, rows, state.tree, refit_policy, inner, groups=groups)
    rows = geometry._rows() if state.rows is None else state.rows
    made = _made(geometry, rows, state.tree, refit_policy, frame=state.frame, groups=groups)
    triangles = state.triangles
    return made if triangles is None else made._replace(triangles=lambda: triangles)


def moved(part: Part, geometry: Geometry) -> Part:
    """Return the part of a geometry that has moved, with its tree refitted."""
    if not isinstance(part.tree, Tree):
        name = type(geometry).__name__
        raise InvalidInput(f"update moves boxes and vertices; a {name} stays. Build a new Scene instead.")
    inner = part.inner
    if isinstance(geometry, Instances):
        if inner is None or geometry.geometry is not inner.geometry:
            inner = make(geometry.geometry, part.refit_policy.quality, part.refit_policy.threads)
        rows: PrimitiveRows = _instance_rows(geometry, inner)
    else:
        rows = geometry._rows()
    box_rows = bounds(rows)
    tree = part.refit_policy.move(part.tree, part.box_rows, box_rows)
    return _made(
        geometry, rows, tree, part.refit_policy, inner, box_rows=lambda: box_rows, groups=part.groups
    )


class View(NamedTuple):
    """The parts of a scene as queries read them: all of their arguments but the rays."""

    parts: tuple[Part, ...]
    jobs: tuple[Job, ...]
    """of each part, laid out, without rays"""
    rows: SceneRows
    ndim_space: int
    groups: GroupRows | None
    """of a geometry that has some, for their numbers"""


def view(parts: tuple[Part, ...], where: MaskInput | Sequence[MaskInput], cull: Cull) -> View:
    """Return the parts of a scene with masks and culled sides."""
    chosen = zip(parts, masks(where, parts), sided(parts, cull), strict=True)
    starts = tuple(accumulate([part.size for part in parts[:-1]], initial=0))
    each = [job(part, NO_ROWS, mask, side) for part, mask, side in chosen]
    jobs = tuple(plan_of(one._replace(first=first)) for one, first in zip(each, starts, strict=True))
    rows, sizes = zip(*((part.rows, len(part.geometry)) for part in parts), strict=True)
    scene_rows = SceneRows(rows, starts, sizes, tuple(part.objects for part in parts))
    return View(parts, jobs, scene_rows, parts[0].geometry.ndim_space, groups_of(parts))


def groups_of(parts: tuple[Part, ...]) -> GroupRows | None:
    """Return the groups of a geometry that has some, for their numbers."""
    return next((part.groups for part in parts if part.groups), None)


def job(part: Part, rays: RayRows, allowed: Bools, cull: Cull) -> Job:
    """Return the job of a query on one part, for the kernels."""
    tree = cast(Tree, part.tree)  # or that of `own_tree`
    rows = facing(part.geometry, part.rows, cull)
    return Job(tree, rows, rays, allowed, part.frame, triangles=part.triangles())


def masks(where: MaskInput | Sequence[MaskInput], made: tuple[Part, ...]) -> list[Bools]:
    """Return a mask for each geometry; one expression is for all."""
    return row_masks(where, [part.geometry for part in made], [part.objects for part in made])


def sided(made: tuple[Part, ...], cull: Cull) -> list[Cull]:
    """Return what is culled of each geometry: of several, nothing of those without sides."""
    if cull != "back" or len(made) == 1:
        return [cull] * len(made)
    sides: list[Cull] = ["back" if _has_sides(part.rows) else None for part in made]
    if not any(sides):
        raise InvalidInput('cull="back" is for Planes and Mesh; there are none here. Leave cull out.')
    return sides


def _has_sides(rows: PrimitiveRows) -> bool:
    return hasattr(rows.rows if isinstance(rows, InstanceRows) else rows, "cull_back")


def check(part: Part) -> None:
    """Raise `RayboxError` unless the tree of a part is valid."""
    from raybox.bvh import validate

    if isinstance(part.tree, Tree):
        validate.check(part.tree, *part.box_rows)
        if (groups := part.refit_policy.groups) is not None:
            validate.require(not (rule := broken_starts(part.tree, groups)), rule)
    else:
        own_tree(part.rows).check(part.tree, part.rows)
    if part.inner:
        check(part.inner)


def measured(parts: tuple[Part, ...]) -> dict[str, float]:
    """Return the statistics of the trees of all parts."""
    parts = (*parts, *(part.inner for part in parts if part.inner))
    each = [_measured(part) for part in parts]
    if len(each) == 1:
        return each[0]
    total = {key: sum(one[key] for one in each) for key in each[0]}
    total["depth"] = max(one["depth"] for one in each)
    total["bytes_per_box"] = total["bytes"] / max(1, total["boxes"])
    total["fill"] = sum(one["fill"] * one["nodes"] for one in each) / max(1, total["nodes"])
    return total


def _measured(part: Part) -> dict[str, float]:
    if isinstance(part.tree, Tree):
        from raybox.bvh.validate import stats

        return stats(part.tree, *part.box_rows)
    measures: dict[str, float] = own_tree(part.rows).stats(part.tree, part.rows)
    return measures


def _made(
    geometry: Geometry,
    rows: PrimitiveRows,
    tree: PrimitiveRows,
    refit_policy: RefitPolicy,
    inner: Part | None = None,
    *,
    box_rows: Callable[[], tuple[Floats, Floats]] | None = None,
    frame: Frame | None = None,
    groups: GroupRows | None = None,
) -> Part:
    if frame is None and isinstance(tree, Tree) and has_simd(rows):
        frame = frame_of(tree)
    return Part(
        geometry,
        rows,
        tree,
        box_rows or cache(partial(bounds, rows)),
        frame,
        refit_policy,
        cache(partial(_triangles, tree, rows, frame)),
        inner,
        groups,
    )


def _triangles(tree: PrimitiveRows, rows: PrimitiveRows, frame: Frame | None) -> Floats32:
    """Return the triangles of a tree's nodes as vector code reads them; of other rows, none."""
    if not (frame and isinstance(tree, Tree) and has_volumes(rows)):
        return NO_TRIANGLES
    return triangles_of(tree, rows, frame)


def _instance_rows(geometry: Instances, inner: Part, arrays: InstanceArrays | None = None) -> InstanceRows:
    """Return the rows of instances for the kernels; arrays: computed unless they are given."""
    size = len(inner.geometry)
    if len(geometry) * max(1, size) >= 2**62:
        raise InvalidInput(
            f"instances may have up to 2**62 - 1 rows in all; got {len(geometry)} times {size}. "
            "Split them by space."
        )
    placed = geometry._rows()
    none = np.zeros(0, np.bool_)
    rows = cast("BoxRows | TriangleRows", inner.rows)
    found = _instance_arrays(placed, inner) if arrays is None else arrays
    made = InstanceRows(rows, inner.tree, size, placed, *found, none, none, rows)
    return with_scratch(made, 0)


def _instance_arrays(placed: Floats, inner: Part) -> InstanceArrays:
    high, low = _inverses(placed)
    tame = _is_tame(placed) & (np.abs(high) < TAME_HIGH).all(axis=(1, 2))
    lower, upper = around(placed, *_pieces(inner, len(placed)))
    freeze(high, low, tame, lower, upper)
    return InstanceArrays(high, low, tame, lower, upper)


def _inverses(placed: Floats) -> tuple[Floats, Floats]:
    """Return the inverses of the first three columns as sums of two arrays."""
    high, low = np.empty((len(placed), 3, 3)), np.empty((len(placed), 3, 3))
    certain = np.empty(len(placed), np.bool_)
    invert(placed, high, low, certain)
    for k in np.flatnonzero(~certain).tolist():
        high[k], low[k] = instance_definition.inverse(tuple(map(tuple, placed[k].tolist())))
    return high, low


def _is_tame(placed: Floats) -> Bools:
    size = np.abs(placed)
    tame: Bools = ((size == 0.0) | ((size > TAME_LOW) & (size < TAME_HIGH))).all(axis=(1, 2))
    return tame


def _pieces(part: Part, instances: int) -> tuple[Floats, Floats]:
    """Return boxes that contain the inner geometry: the more, the tighter are the bounds of its instances."""
    from raybox.bvh.validate import slots_below

    lower, upper = part.box_rows
    if not len(lower):
        return np.zeros((1, 3)), np.zeros((1, 3))  # a point stands for an empty geometry
    whole = lower.min(axis=0, keepdims=True), upper.max(axis=0, keepdims=True)
    assert isinstance(part.tree, Tree)  # as instances are of boxes or of a mesh
    for levels in (2, 1):
        low, up = slots_below(part.tree, levels)
        if len(low) * instances <= _MAX_PIECES:
            return np.maximum(low, whole[0]), np.minimum(up, whole[1])
    return whole
