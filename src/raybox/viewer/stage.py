"""The scene that the viewer shows: geometries in 3D, and their objects, numbered through all of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from raybox.errors import InvalidInput
from raybox.geometry import (
    Boxes,
    Grid,
    Instances,
    Mesh,
    Planes,
    Rays,
    object_count,
    object_rows,
    row_mask,
    stored_objects,
)
from raybox.geometry.grid_cells import count_occupied
from raybox.geometry.mesh import restored
from raybox.geometry.object_rows import combined
from raybox.hits import AllHits
from raybox.scene.scene import Scene
from raybox.validation import Bools, Floats, Ints, MaskInput
from raybox.viewer.bounds import Solid, finite_bounds

MAX_CELLS = 2_000_000
"""Occupied cells of a grid that are objects; a grid of more is one object."""
HIDDEN_CLASSES = ("IfcSpace", "IfcOpeningElement", "IfcOpeningStandardCase")
"""Classes of IFC products that fill or cut others."""
NOT_A_SCENE = "scene must be a path, Boxes, a Grid, a Mesh, Planes, Instances, a Scene, or a list of these"
Columns = dict[str, NDArray[Any]]
SceneInput = Solid | Scene | Sequence[Solid]


class StagePart(NamedTuple):
    """A geometry in 3D, and the numbers of its objects among those of the stage."""

    geometry: Solid
    first_object: int
    objects: int
    cells: Ints | None = None
    """of a grid: the cell of each object, ascending; None where the grid is one object"""

    def objects_of(self, rows: Ints) -> Ints:
        """Return the stage's object of each row (box, triangle, cell, copy, plane)."""
        if isinstance(self.geometry, Grid):
            numbers = np.zeros_like(rows) if self.cells is None else np.searchsorted(self.cells, rows)
        else:
            objects = _objects_of_mesh(self.geometry)
            numbers = rows if objects is None else objects[rows]
        return self.first_object + numbers

    def rows_of(self, mask: Bools) -> Bools:
        """Return which rows belong to the objects of a mask of all objects of the stage."""
        own = mask[self.first_object : self.first_object + self.objects]
        if isinstance(self.geometry, Grid):
            rows = np.zeros(len(self.geometry), np.bool_)
            rows[slice(None) if self.cells is None else self.cells] = own
            return rows
        objects = _objects_of_mesh(self.geometry)
        return own if objects is None else own[objects]


class Stage(NamedTuple):
    """The scene shown, and the ids and labels of its objects; `visible` are those shown at the start."""

    name: str
    scene: Scene
    parts: tuple[StagePart, ...]
    ids: list[str] | None
    labels: Columns
    visible: Bools
    ends: tuple[Floats, Floats]
    """the corners of a box around everything finite"""
    credit: str = ""

    @property
    def objects(self) -> int:
        """The number of objects."""
        return len(self.visible)

    def where(self, mask: Bools | None) -> MaskInput | list[Bools]:
        """Return the argument `where` of queries, from a mask of objects; None: those visible at first."""
        mask = self.visible if mask is None else mask
        if mask.all():
            return None
        masks = [part.rows_of(mask) for part in self.parts]
        return masks if isinstance(self.scene.geometry, tuple) else masks[0]

    def all(self, ray: Rays, mask: Bools | None = None) -> AllHits:
        """Return all hits of one ray with the objects of a mask."""
        return self.scene.all(ray, workers=1, where=self.where(mask))  # type: ignore[arg-type]

    def objects_of(self, geometry: Ints, index: Ints) -> NDArray[np.int32]:
        """Return the objects of hits by geometry and index, -1 for misses."""
        numbers = np.full(index.shape, -1, np.int32)
        for number, part in enumerate(self.parts):
            rows = (geometry == number) & (index >= 0)
            numbers[rows] = part.objects_of(index[rows])
        return numbers


def make_stage(
    scene: SceneInput,
    name: str = "scene",
    *,
    where: MaskInput = None,
    hides_spaces: bool = False,
    credit: str = "",
) -> Stage:
    """Return the stage of geometries; 2D is shown at z = 0.

    Parameters
    ----------
    where : as of `Scene.nearest`
        The rows shown and hit at the start. Of objects of which it allows some rows only, the others are
        left out.
    hides_spaces : bool
        Do not show spaces and openings of IFC at the start, unless `where` allows nothing else.
    """
    given = _listed(scene)
    masks = _masks(where, given)
    solids = [to_3d(_without_rows(one, mask)) for one, mask in zip(given, masks, strict=True)]
    parts = _parts(solids)
    pairs = zip(parts, given, masks, strict=True)
    visible = np.concatenate([_visible(part, one, mask) for part, one, mask in pairs])
    labels = _labels(parts, given)
    if hides_spaces and "ifc_class" in labels:
        solid = visible & ~np.isin(labels["ifc_class"].astype(str), HIDDEN_CLASSES)
        visible = solid if solid.any() else visible
    unchanged = isinstance(scene, Scene) and all(a is b for a, b in zip(solids, given, strict=True))
    made = cast("Scene", scene) if unchanged else Scene(solids)
    return Stage(name, made, parts, _ids(parts, given), labels, visible, finite_bounds(solids), credit)


def _listed(scene: SceneInput) -> list[Solid]:
    """Return the geometries of a scene, a geometry or a list."""
    found = scene.geometry if isinstance(scene, Scene) else scene
    listed = [*found] if isinstance(found, list | tuple) else [found]
    for one in listed:
        if not isinstance(one, Solid):
            raise InvalidInput(f"{NOT_A_SCENE}; got {type(one).__name__}.")
    if not listed:
        raise InvalidInput(f"{NOT_A_SCENE}; got an empty list. Boxes may be empty.")
    return listed


def _masks(where: MaskInput, geometries: list[Solid]) -> list[Bools | None]:
    """Return the rows of each geometry that `where` allows; None for all."""
    if where is None or isinstance(where, str):
        listed: Sequence[Any] = [where] * len(geometries)
    else:
        listed = cast(
            "Sequence[Any]", [where] if len(geometries) == 1 and not _is_list_of_masks(where) else where
        )
    if len(listed) != len(geometries):
        raise InvalidInput(
            f"where must be a list of {len(geometries)}, a mask, an expression or None for each geometry; "
            f"got {len(listed)}."
        )
    return [
        None if mask is None else row_mask(mask, object_rows(one), len(one), getattr(one, "shape", None))
        for mask, one in zip(listed, geometries, strict=True)
    ]


def _is_list_of_masks(where: object) -> bool:
    return isinstance(where, list | tuple) and len(where) == 1 and not isinstance(where[0], bool | np.bool_)


def _without_rows(geometry: Solid, mask: Bools | None) -> Solid:
    """Return a geometry without the rows that no mask of objects can leave out; numbers stay.

    These are triangles of objects of which a mask allows some only, which become points, and cells of a grid
    that is one object.
    """
    if mask is None or isinstance(geometry, Boxes | Instances | Planes):
        return geometry
    if isinstance(geometry, Grid):
        return (
            geometry
            if _has_cells(geometry)
            else Grid(*geometry.edges, occupied=geometry.occupied & mask.reshape(geometry.shape))
        )
    mesh = cast("Mesh", geometry)
    objects = stored_objects(mesh)
    if objects is None:
        return mesh
    left_out = ~mask & _any_of(objects, mask, object_count(mesh))[objects]
    if not left_out.any():
        return mesh
    faces = np.where(left_out[:, None], mesh.faces[:, :1], mesh.faces)
    return restored(mesh.vertices, faces, objects, mesh._attributes)


def _any_of(objects: Ints, mask: Bools, count: int) -> Bools:
    """Return which objects have a row that a mask allows."""
    found: Bools = np.zeros(count, np.bool_)
    found[objects[mask]] = True
    return found


def to_3d(geometry: Solid) -> Solid:
    """Return a geometry in 3D; of a grid in 2D, its occupied cells as boxes."""
    if geometry.ndim_space == 3:
        return geometry
    if isinstance(geometry, Planes):
        return Planes(*geometry.rows()[:2])
    if isinstance(geometry, Instances):
        return Instances(cast("Boxes", to_3d(geometry.geometry)), geometry.rows())
    boxes = geometry.boxes(geometry.occupied) if isinstance(geometry, Grid) else cast("Boxes", geometry)
    return Boxes(*boxes.rows()[:2])


def _parts(solids: list[Solid]) -> tuple[StagePart, ...]:
    """Return the geometries with their objects, numbered through."""
    parts: list[StagePart] = []
    first = 0
    for one in solids:
        cells = _occupied_cells(one) if isinstance(one, Grid) else None
        is_whole = isinstance(one, Grid) and cells is None
        count = 1 if is_whole else len(cells) if cells is not None else _object_count(one)
        parts.append(StagePart(one, first, count, cells))
        first += count
    return tuple(parts)


def _has_cells(grid: Grid) -> bool:
    """Return whether the cells of a grid are objects."""
    return count_occupied(grid.rows()) <= MAX_CELLS


def _occupied_cells(grid: Grid) -> Ints | None:
    return np.flatnonzero(grid.occupied) if _has_cells(grid) else None


def _objects_of_mesh(geometry: Solid) -> Ints | None:
    return stored_objects(geometry) if isinstance(geometry, Mesh) else None


def _object_count(geometry: Solid) -> int:
    return object_count(geometry) if isinstance(geometry, Mesh) else len(geometry)


def _visible(part: StagePart, geometry: Solid, mask: Bools | None) -> Bools:
    """Return which objects of a geometry its mask of rows allows."""
    if mask is None:
        return np.ones(part.objects, np.bool_)
    if isinstance(geometry, Grid):
        return (
            mask.ravel()[np.flatnonzero(geometry.occupied)]
            if _has_cells(geometry)
            else np.array([mask.any()])
        )
    objects = _objects_of_mesh(geometry)
    return mask if objects is None else _any_of(objects, mask, part.objects)


def _ids(parts: tuple[StagePart, ...], geometries: list[Solid]) -> list[str] | None:
    """Return the ids of all objects as text, "" for those without; None if there are none at all."""
    if all(one.ids is None for one in geometries):
        return None
    ids: list[str] = []
    for part, one in zip(parts, geometries, strict=True):
        own = None if one.ids is None else _of_objects(one, one.ids)
        ids += [""] * part.objects if own is None else map(str, own.tolist())
    return ids


def _labels(parts: tuple[StagePart, ...], geometries: list[Solid]) -> Columns:
    """Return the labels of all objects, missing where a geometry has none of that name."""
    names = dict.fromkeys(name for one in geometries for name in one.labels)
    columns: Columns = {}
    for name in names:
        found = [
            (
                np.arange(part.first_object, part.first_object + part.objects),
                _of_objects(one, one.labels.get(name)),
            )
            for part, one in zip(parts, geometries, strict=True)
        ]
        if any(values is not None for _, values in found):
            columns[name] = combined(found, sum(part.objects for part in parts))
    return columns


def _of_objects(geometry: Solid, values: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return ids or labels of a geometry's objects; of a grid, those of its occupied cells."""
    if values is None or not isinstance(geometry, Grid):
        return values
    return values[np.flatnonzero(geometry.occupied)] if _has_cells(geometry) else None


def rays_in_3d(rays: Rays) -> Rays:
    """Return rays in 3D, flattened; invalid ones remain misses."""
    rows = rays.rows()
    return Rays(rows.origins, rows.directions, t_min=rows.t_min, t_max=rows.t_max, invalid="miss")
