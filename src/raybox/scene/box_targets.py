"""The boxes of a scene's geometries, as spatial queries search them."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NoReturn

from raybox.errors import InvalidInput
from raybox.geometry import BoxRows, GridRows, Instances, Mesh, Planes
from raybox.geometry.object_rows import NO_OBJECTS, ObjectRows
from raybox.hits.hit_ids import SceneRows
from raybox.scene.geometry_parts import Part, groups_of, masks
from raybox.scene.groups import join_starts
from raybox.spatial.target import JoinTarget, SearchTarget, TargetPart
from raybox.validation import Bools, MaskInput

_OF_BOXES = frozenset(["overlapping", "join", "intersecting"])
"""Methods that answer for the boxes around triangles and copies, too."""


def target_of(parts: tuple[Part, ...], where: MaskInput | Sequence[MaskInput], method: str) -> SearchTarget:
    """Return what a spatial query runs on."""
    for part in parts:
        _check(part.geometry, method)
    sizes = tuple(len(part.geometry) for part in parts)
    starts = tuple(accumulate(sizes[:-1], initial=0))
    each = [_part(*one) for one in zip(parts, masks(where, parts), starts, strict=True)]
    rows = tuple(part.rows for part in each)
    scene = SceneRows(rows, starts, sizes, tuple(map(_objects, parts)))
    return SearchTarget(tuple(each), scene, parts[0].geometry.ndim_space)


def join_target(
    own: SearchTarget, other: SearchTarget, parts: tuple[Part, ...], others: tuple[Part, ...]
) -> JoinTarget:
    """Return what a join of two scenes, or of one with itself, runs on; parts: of each."""
    if own.dimension != other.dimension:
        raise InvalidInput(
            f"scenes must have the same dimensions to be joined; got D = {own.dimension} and D = "
            f"{other.dimension}. Add or drop a coordinate."
        )
    groups, other_groups = groups_of(parts), groups_of(others)
    if (groups is None) != (other_groups is None):
        raise InvalidInput(
            "scenes are joined group by group; one has groups and the other has none. Give both groups, -1 "
            "for what is common to all."
        )
    return JoinTarget(own, other, tuple(join_starts(other_groups, part.groups) for part in parts))


def _part(part: Part, allowed: Bools, first: int) -> TargetPart:
    tree: Any = part.tree
    rows = part.rows if isinstance(part.rows, BoxRows | GridRows) else BoxRows(*part.box_rows)
    return TargetPart(rows, tree, allowed, first)


def _objects(part: Part) -> ObjectRows:
    """Return the objects of rows; those of copies without names of their own have none."""
    objects = part.objects
    if not isinstance(part.geometry, Instances):
        return objects
    attributes = objects.attributes
    return ObjectRows(None, attributes) if attributes.ids is not None or attributes.labels else NO_OBJECTS


def _check(geometry: object, method: str) -> None:
    """Raise `InvalidInput` for a geometry without an answer."""
    if isinstance(geometry, Planes):
        _refuse(geometry, method, "Planes have no bounds: make a scene of the other geometries")
    if method in _OF_BOXES or not isinstance(geometry, Mesh | Instances):
        return
    around = "triangles: Scene(Boxes.of_triangles(mesh.vertices, mesh.faces))"
    if isinstance(geometry, Instances):
        around = "copies: Scene(instances.boxes())"
    way_out = f"Make a scene of the boxes around its {around}"
    if method == "containing":
        way_out += "; of points inside of a closed mesh: Mesh.contains"
    _refuse(geometry, method, way_out)


def _refuse(geometry: object, method: str, way_out: str) -> NoReturn:
    kinds = "boxes, grids, meshes and instances" if method in _OF_BOXES else "boxes and grids"
    raise InvalidInput(f"{method} is of {kinds}; the scene holds {geometry!r}. {way_out}.")
