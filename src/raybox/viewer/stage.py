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
from raybox.hits import AllHits, Hits
from raybox.scene.scene import Scene
from raybox.validation import Bools, Floats, Ints, MaskInput
from raybox.viewer.bounds import Solid, finite_bounds

MAX_CELLS = 2_000_000
"""Occupied cells of a grid that are objects; a grid of more is one object."""
HIDDEN_CLASSES = ("IfcSpace", "IfcOpeningElement", "IfcOpeningStandardCase")
"""Classes of IFC products that fill or cut others."""
NOT_A_SCENE = "scene must be a path, Boxes, a Grid, a Mesh, Planes, Instances, a Scene, or a list of these"
Columns = dict[str, NDArray[Any]]


class StagePart(NamedTuple):
    """A geometry in 3D, and the numbers of its objects among those of the stage."""

    geometry: Solid
    first_object: int
    objects: int
    cells: Ints | None = None
    """of a grid: the cell of each object, ascending; None where the grid is one object"""

    def objects_of(self, own: Ints) -> Ints:
        """Return the stage's objects, from those of the geometry (of a grid, cells)."""
        if isinstance(self.geometry, Grid):
            own = 0 * own if self.cells is None else np.searchsorted(self.cells, own)
        return self.first_object + own

    def rows_of(self, mask: Bools) -> Bools:
        """Return which rows belong to the objects of a mask of all objects of the stage."""
        own = mask[self.first_object : self.first_object + self.objects]
        if isinstance(self.geometry, Grid):
            rows = np.zeros(len(self.geometry), np.bool_)
            rows[slice(None) if self.cells is None else self.cells] = own
            return rows
        numbers = _numbers(self.geometry)
        return own if numbers is None else own[numbers]

    def visible(self, rows: Bools) -> Bools:
        """Return which of the objects have a row that a mask allows."""
        if isinstance(self.geometry, Grid):
            return np.array([rows.any()]) if self.cells is None else rows[self.cells]
        numbers = _numbers(self.geometry)
        return rows if numbers is None else np.bincount(numbers[rows], minlength=self.objects) > 0

    def column(self, values: NDArray[Any] | None) -> NDArray[Any] | None:
        """Return ids or labels of the objects, from those of the geometry; of cells, the occupied ones'."""
        is_grid = isinstance(self.geometry, Grid) and values is not None
        return values if not is_grid else None if self.cells is None else values[self.cells]  # type: ignore[index]


class Stage(NamedTuple):
    """The scene shown, and the ids and labels of its objects; `visible` are those shown at the start."""

    name: str
    scene: Scene
    parts: tuple[StagePart, ...]
    ids: list[str] | None
    """"" for objects without"""
    labels: Columns
    visible: Bools
    ends: tuple[Floats, Floats]
    """the corners of a box around everything finite"""
    credit: str = ""

    def where(self, mask: Bools | None) -> MaskInput:
        """Return the argument `where` of queries, from a mask of objects; None: those visible at first."""
        mask = self.visible if mask is None else mask
        if mask.all():
            return None
        masks = [part.rows_of(mask) for part in self.parts]
        return masks if isinstance(self.scene.geometry, tuple) else masks[0]

    def all(self, ray: Rays, mask: Bools | None = None) -> AllHits:
        """Return all hits of one ray with the objects of a mask."""
        return self.scene.all(ray, workers=1, where=self.where(mask))

    def objects_of(self, hits: Hits | AllHits) -> NDArray[np.int32]:
        """Return the object of each hit, -1 for misses."""
        numbers = np.full(hits.index.shape, -1, np.int32)
        for number, part in enumerate(self.parts):
            rows = (hits.geometry == number) & (hits.index >= 0)
            numbers[rows] = part.objects_of(hits.object[rows])
        return numbers


def make_stage(
    scene: Solid | Scene | Sequence[Solid],
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
    solids, masks = zip(*map(_in_3d, given, _masks(where, given)), strict=True)
    parts = _parts([_without_rows(solid, mask) for solid, mask in zip(solids, masks, strict=True)])
    pairs = zip(parts, masks, strict=True)
    shown = [np.ones(part.objects, np.bool_) if mask is None else part.visible(mask) for part, mask in pairs]
    visible, labels = np.concatenate(shown), _labels(parts)
    if hides_spaces and "ifc_class" in labels:
        solid_ones = visible & ~np.isin(labels["ifc_class"].astype(str), HIDDEN_CLASSES)
        visible = solid_ones if solid_ones.any() else visible
    shapes = [part.geometry for part in parts]
    is_same = isinstance(scene, Scene) and all(a is b for a, b in zip(shapes, given, strict=True))
    made = cast("Scene", scene) if is_same else Scene(shapes)
    return Stage(name, made, parts, _ids(parts), labels, visible, finite_bounds(shapes), credit)


def rays_in_3d(rays: Rays) -> Rays:
    """Return rays in 3D, flattened; invalid ones remain misses."""
    rows = rays.rows()
    return Rays(rows.origins, rows.directions, t_min=rows.t_min, t_max=rows.t_max, invalid="miss")


def _listed(scene: Solid | Scene | Sequence[Solid]) -> list[Solid]:
    """Return the geometries of a scene, a geometry or a list."""
    found = scene.geometry if isinstance(scene, Scene) else scene
    listed = cast("list[Solid]", [*found] if isinstance(found, list | tuple) else [found])
    wrong = [type(one).__name__ for one in listed if not isinstance(one, Solid)]
    if wrong or not listed:
        raise InvalidInput(f"{NOT_A_SCENE}; got {wrong[0] if wrong else 'an empty list'}.")
    return listed


def _masks(where: MaskInput, geometries: list[Solid]) -> list[Bools | None]:
    """Return the rows of each geometry that `where` allows, flat; None for all."""
    is_one = where is None or isinstance(where, str) or (len(geometries) == 1 and not isinstance(where, list))
    listed: Sequence[Any] = [where] * len(geometries) if is_one else cast("Sequence[Any]", where)
    if len(geometries) == 1 and len(listed) != 1:  # a mask as a list of bool
        listed = [where]
    if len(listed) != len(geometries):
        rule = f"where must be a list of {len(geometries)}, a mask, an expression or None for each geometry"
        raise InvalidInput(f"{rule}; got {len(listed)}. Leave it out to show all.")
    pairs = zip(listed, geometries, strict=True)
    return [None if mask is None else _flat_mask(mask, geometry) for mask, geometry in pairs]


def _flat_mask(where: MaskInput, geometry: Solid) -> Bools:
    shape = getattr(geometry, "shape", None)
    return row_mask(where, object_rows(geometry), len(geometry), shape).reshape(-1)


def _in_3d(geometry: Solid, mask: Bools | None) -> tuple[Solid, Bools | None]:
    """Return a geometry in 3D, and its mask; of a grid in 2D, its occupied cells as boxes."""
    if geometry.ndim_space == 3:
        return geometry, mask
    if isinstance(geometry, Grid):
        cells = geometry.occupied.reshape(-1)
        return _in_3d(geometry.boxes(cells), None if mask is None else mask[cells])
    made: Solid
    if isinstance(geometry, Instances):
        made = Instances(cast("Boxes", _in_3d(geometry.geometry, None)[0]), geometry.rows())
    else:
        made = (Planes if isinstance(geometry, Planes) else Boxes)(*geometry.rows()[:2])
    return made._with(geometry._attributes), mask


def _without_rows(geometry: Solid, mask: Bools | None) -> Solid:
    """Return a geometry without the rows that no mask of objects can leave out; numbers stay.

    These are triangles of objects of which a mask allows some only, which become points, and cells of a grid
    that is one object.
    """
    if mask is None:
        return geometry
    if isinstance(geometry, Grid) and not _has_cells(geometry):
        return Grid(*geometry.edges, occupied=geometry.occupied & mask.reshape(geometry.shape))
    numbers = _numbers(geometry)
    if not isinstance(geometry, Mesh) or numbers is None:
        return geometry
    is_shown = np.bincount(numbers[mask], minlength=object_count(geometry)) > 0
    left_out = ~mask & is_shown[numbers]
    faces = np.where(left_out[:, None], geometry.faces[:, :1], geometry.faces)
    return restored(geometry.vertices, faces, numbers, geometry._attributes) if left_out.any() else geometry


def _parts(solids: Sequence[Solid]) -> tuple[StagePart, ...]:
    """Return the geometries with their objects, numbered through."""
    parts: list[StagePart] = []
    first = 0
    for one in solids:
        cells = np.flatnonzero(one.occupied) if isinstance(one, Grid) and _has_cells(one) else None
        count = object_count(one) if isinstance(one, Mesh) else len(one)
        if isinstance(one, Grid):
            count = 1 if cells is None else len(cells)
        parts.append(StagePart(one, first, count, cells))
        first += count
    return tuple(parts)


def _has_cells(grid: Grid) -> bool:
    """Return whether the cells of a grid are objects."""
    return count_occupied(grid.rows()) <= MAX_CELLS


def _numbers(geometry: Solid) -> Ints | None:
    """Return the object of each triangle; None where each row is an object."""
    return stored_objects(geometry) if isinstance(geometry, Mesh) else None


def _ids(parts: tuple[StagePart, ...]) -> list[str] | None:
    """Return the ids of all objects as text; None if there are none at all."""
    columns = [part.column(part.geometry.ids) for part in parts]
    if all(column is None for column in columns):
        return None
    pairs = zip(parts, columns, strict=True)
    texts = [[""] * part.objects if own is None else map(str, own.tolist()) for part, own in pairs]
    return [text for own in texts for text in own]


def _labels(parts: tuple[StagePart, ...]) -> Columns:
    """Return the labels of all objects, missing where a geometry has none of that name."""
    count = sum(part.objects for part in parts)
    places = [np.arange(part.first_object, part.first_object + part.objects) for part in parts]
    columns: Columns = {}
    for name in dict.fromkeys(name for part in parts for name in part.geometry.labels):
        own = [part.column(part.geometry.labels.get(name)) for part in parts]
        if any(values is not None for values in own):
            columns[name] = combined(list(zip(places, own, strict=True)), count)
    return columns
