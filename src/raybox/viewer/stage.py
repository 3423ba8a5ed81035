"""The scene that the viewer shows: geometries in 3D, and their objects, numbered through all of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Grid, Instances, Mesh, Planes, Rays, object_count, stored_objects
from raybox.geometry.file_facts import Up, joined_facts
from raybox.geometry.grid_cells import count_occupied
from raybox.geometry.mesh import restored
from raybox.geometry.object_rows import combined, row_masks, shared_dtype
from raybox.geometry.property_sets import PropertySets
from raybox.hits import AllHits, Hits
from raybox.io.formats.ifc import NO_MATTER
from raybox.scene.scene import Scene
from raybox.validation import Bools, Ints, MaskInput

Solid = Boxes | Grid | Mesh | Instances | Planes
"""What the viewer shows."""
MAX_CELLS = 2_000_000
"""Occupied cells of a grid that are objects; a grid of more is one object."""
Column = NDArray[Any]
_SYMBOLS = {"metre": "m", "millimetre": "mm", "foot": "ft", "US survey foot": "ft", "degree": "°"}


class StagePart(NamedTuple):
    """A geometry in 3D, and the numbers of its objects among those of the stage.

    Each row is an object, unless `numbers` or `cells` say more.
    """

    geometry: Solid
    first_object: int
    objects: int
    numbers: NDArray[Any] | None = None
    """the object of each row"""
    cells: Ints | None = None
    """the row of each object, ascending: of a grid, the occupied cells"""
    color: str | None = None
    """of "#rrggbb", where it has one of its own"""

    def objects_of(self, rows: Ints) -> Ints:
        """Return the stage's objects of rows."""
        if self.cells is not None:
            return self.first_object + np.searchsorted(self.cells, rows)
        return self.first_object + (rows if self.numbers is None else self.numbers[rows])

    def rows_of(self, mask: Bools) -> Bools:
        """Return which rows belong to the objects of a mask of all objects of the stage."""
        own = mask[self.first_object : self.first_object + self.objects]
        if self.cells is not None:
            rows = np.zeros(len(self.geometry), np.bool_)
            rows[self.cells] = own
            return rows
        return own if self.numbers is None else own[self.numbers]

    def visible(self, rows: Bools) -> Bools:
        """Return which of the objects have a row that a mask allows."""
        if self.numbers is None:
            return rows if self.cells is None else rows[self.cells]
        found = np.zeros(self.objects, np.bool_)
        found[self.numbers[rows]] = True
        return found

    def column(self, values: Column | None) -> Column | None:
        """Return ids or labels of the objects, from the geometry's; a grid that is one object has none."""
        if values is None or not isinstance(self.geometry, Grid):
            return values
        return None if self.cells is None else values[self.cells]


class Stage(NamedTuple):
    """The scene shown, and the ids and labels of its objects; `visible` are those shown at the start."""

    name: str
    scene: Scene
    parts: tuple[StagePart, ...]
    ids: list[str] | None
    """"" for objects without"""
    labels: dict[str, Column]
    visible: Bools
    properties: PropertySets | None = None
    credit: str = ""
    unit: str = ""
    """of lengths: "m", "ft" and the like, or "" where no file states one"""
    up: Up = "z"

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

    def chosen(self, objects: MaskInput) -> Ints:
        """Return ascending numbers of objects, from numbers, a mask, an expression, or None for all."""
        count = len(self.visible)
        if objects is None:
            return np.arange(count)
        if isinstance(objects, str):
            masks = row_masks(objects, [part.geometry for part in self.parts])
            found = [part.visible(mask) for part, mask in zip(self.parts, masks, strict=True)]
            return np.flatnonzero(np.concatenate(found))
        values = np.asarray(objects)
        if values.dtype == np.bool_ and values.shape == (count,):
            return np.flatnonzero(values)
        numbers = np.unique(values)
        if not numbers.size or (numbers.dtype.kind in "iu" and numbers[0] >= 0 and numbers[-1] < count):
            return numbers.astype(np.int64)
        rule = f"objects must be numbers from 0 to {count - 1}, a mask of {count}, or an expression of labels"
        raise InvalidInput(f"{rule}; got {values.dtype} of shape {values.shape}. Leave misses (-1) out.")

    def objects_of(self, hits: Hits | AllHits) -> NDArray[np.int32]:
        """Return the object of each hit, -1 for misses."""
        numbers = np.full(hits.index.shape, -1, np.int32)
        for number, part in enumerate(self.parts):
            rows = (hits.geometry == number) & (hits.index >= 0)
            numbers[rows] = part.objects_of(hits.index[rows])
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

    Its unit and its axis that is up are those that all geometries state.

    Parameters
    ----------
    where : as of `Scene.nearest`
        The rows shown and hit at the start. Of objects of which it allows some rows only, the others are
        left out.
    hides_spaces : bool
        Do not show spaces and openings of IFC at the start, unless `where` allows nothing else.
    """
    given = _listed(scene)
    parts: list[StagePart] = []
    shown: list[Bools] = []
    for geometry, mask in zip(given, _masks(where, given), strict=True):
        solid, rows = _in_3d(geometry, mask)
        part = _part(solid, sum(one.objects for one in parts))
        parts.append(part if rows is None else _without_rows(part, rows))
        shown.append(np.ones(part.objects, np.bool_) if rows is None else part.visible(rows))
    visible, labels = np.concatenate(shown), _labels(parts)
    if hides_spaces and "ifc_class" in labels:
        others = visible & ~np.isin(labels["ifc_class"].astype(str), NO_MATTER)
        visible = others if others.any() else visible
    solids = [part.geometry for part in parts]
    is_same = isinstance(scene, Scene) and all(a is b for a, b in zip(solids, given, strict=True))
    made = cast("Scene", scene) if is_same else Scene(solids)
    ids = _joined(parts, [solid.ids for solid in solids])
    texts = None if ids is None else ["" if one is None else str(one) for one in ids.tolist()]
    facts = joined_facts([one._facts for one in given])
    unit = _SYMBOLS.get(facts.units or "", facts.units or "")
    sets = _joined(parts, [None if own.properties is None else own.properties.texts for own in solids])
    properties = None if sets is None else PropertySets([text or "" for text in sets])
    up: Up = facts.up or "z"
    return Stage(name, made, tuple(parts), texts, labels, visible, properties, credit, unit, up)


def rays_in_3d(rays: Rays) -> Rays:
    """Return rays in 3D, flattened; invalid ones remain misses."""
    rows = rays._rows()
    return Rays(rows.origins, rows.directions, t_min=rows.t_min, t_max=rows.t_max, invalid="miss")


def _listed(scene: Solid | Scene | Sequence[Solid]) -> list[Solid]:
    """Return the geometries of a scene, a geometry or a list."""
    found = scene.geometry if isinstance(scene, Scene) else scene
    listed = cast("list[Solid]", [*found] if isinstance(found, list | tuple) else [found])
    wrong = [type(one).__name__ for one in listed if not isinstance(one, Solid)]
    if wrong or not listed:
        rule = "scene must be a path, Boxes, a Grid, a Mesh, Planes, Instances, a Scene, or a list of these"
        raise InvalidInput(f"{rule}; got {wrong[0] if wrong else 'an empty list'}.")
    return listed


def _masks(where: MaskInput, solids: list[Solid]) -> list[Bools | None]:
    """Return the rows of each geometry that `where` allows, flat; None for all."""
    is_listed = isinstance(where, list) and len(where) == 1
    given: MaskInput | Sequence[MaskInput] = [where] if len(solids) == 1 and not is_listed else where
    return [mask if mask.size else None for mask in row_masks(given, solids)]


def _in_3d(solid: Solid, mask: Bools | None) -> tuple[Solid, Bools | None]:
    """Return a geometry in 3D, and its mask; of a grid in 2D, its occupied cells as boxes."""
    if solid.ndim_space == 3:
        return solid, mask
    if isinstance(solid, Grid):
        cells = solid.occupied.reshape(-1)
        return _in_3d(solid.boxes(cells), None if mask is None else mask[cells])
    made: Solid
    if isinstance(solid, Instances):
        made = Instances(cast("Boxes", _in_3d(solid.geometry, None)[0]), solid._rows())
    else:
        made = (Planes if isinstance(solid, Planes) else Boxes)(*solid._rows()[:2])
    return made._with(solid._attributes), mask


def _part(solid: Solid, first: int) -> StagePart:
    if isinstance(solid, Mesh):
        return StagePart(solid, first, object_count(solid), stored_objects(solid))
    if not isinstance(solid, Grid):
        return StagePart(solid, first, len(solid))
    if count_occupied(solid._rows()) > MAX_CELLS:
        return StagePart(solid, first, 1, np.broadcast_to(np.uint8(0), len(solid)))
    cells = np.flatnonzero(solid.occupied)
    return StagePart(solid, first, len(cells), cells=cells)


def _without_rows(part: StagePart, mask: Bools) -> StagePart:
    """Return a part without the rows that a mask hides of objects that it shows; numbers stay.

    No mask of objects can leave them out: triangles become points, cells are not occupied.
    """
    if part.numbers is None:
        return part
    solid, left_out = part.geometry, ~mask & part.visible(mask)[part.numbers]
    if isinstance(solid, Grid):
        occupied = solid.occupied & ~left_out.reshape(solid.shape)
        return part._replace(geometry=Grid(*solid.edges, occupied=occupied))
    if not isinstance(solid, Mesh) or not left_out.any():
        return part
    faces = np.where(left_out[:, None], solid.faces[:, :1], solid.faces)
    return part._replace(geometry=restored(solid.vertices, faces, part.numbers, solid._attributes))


def _labels(parts: Sequence[StagePart]) -> dict[str, Column]:
    labels = [part.geometry.labels for part in parts]
    names = dict.fromkeys(name for own in labels for name in own)
    columns = {name: _joined(parts, [own.get(name) for own in labels]) for name in names}
    return {name: column for name, column in columns.items() if column is not None}


def _joined(parts: Sequence[StagePart], columns: Sequence[Column | None]) -> Column | None:
    """Return the ids or a label of all objects, missing where a geometry has none; None without any."""
    own = [part.column(values) for part, values in zip(parts, columns, strict=True)]
    if all(values is None for values in own):
        return None
    places = [np.arange(part.first_object, part.first_object + part.objects) for part in parts]
    size = sum(part.objects for part in parts)
    return combined(list(zip(places, own, strict=True)), size, shared_dtype(own))
