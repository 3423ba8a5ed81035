"""The scene that the viewer shows, of files and geometries: in 3D, its objects numbered through all."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from raybox.errors import FileFormatError, InvalidInput, RayboxError
from raybox.geometry import Boxes, Grid, Instances, Mesh, Planes, Rays, object_count, stored_objects
from raybox.geometry.file_facts import Up, joined_facts
from raybox.geometry.grid_cells import count_occupied
from raybox.geometry.mesh import restored
from raybox.geometry.object_rows import combined, row_masks, shared_dtype
from raybox.geometry.property_sets import PropertySets
from raybox.hits import AllHits, Hits
from raybox.io.formats import FORMATS, announced, read
from raybox.io.formats.common import HoldsRays
from raybox.io.formats.ifc import NO_MATTER
from raybox.io.formats.scans import Scan, scan_around_zero
from raybox.scene.scene import Scene
from raybox.validation import Bools, Ints, MaskInput

Solid = Boxes | Grid | Mesh | Instances | Planes
"""What the viewer shows."""
MAX_CELLS = 2_000_000
"""Occupied cells of a grid that are objects; a grid of more is one object."""
MAX_BYTES = 256 * 2**20  # bytes of an upload
MAX_UNPACKED = 2**30  # bytes of an upload once it is unpacked
MAX_ROWS = 5_000_000  # rows of a scene
Column = NDArray[Any]
_RULE = "scene must be a path, Boxes, a Grid, a Mesh, Planes, Instances, a Scene, or a list of these"
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

    @property
    def has_colors(self) -> bool:
        """Whether a geometry has colours, or the base of copies."""
        solids = [part.geometry for part in self.parts]
        bases = [one.geometry for one in solids if isinstance(one, Instances)]
        return any(one.colors is not None for one in [*solids, *bases])

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


PathInput: TypeAlias = str | os.PathLike[str]
ViewInput: TypeAlias = PathInput | Solid | Scene | Stage | Sequence["PathInput | Solid"]


def geometries_in(path: Path, *, boxes: bool = False) -> list[Solid]:
    """Return the geometries of a file; raise, before it is read, if it is too large for a page."""
    if not boxes:  # else the objects of a mesh count, not its triangles
        check_rows(path, announced(path).rows)
    is_ifc = path.suffix.lower() == ".ifc"
    found = read(path, kind="scene", boxes=boxes, all_objects=is_ifc).geometry
    solids = cast("list[Solid]", found if isinstance(found, list) else [found])
    check_rows(path, sum(map(len, solids)))
    return solids


def check_rows(path: Path, rows: int) -> None:
    """Raise `RayboxError` if a file has too many rows for a page."""
    if rows > MAX_ROWS:
        raise RayboxError(f"{path}: {rows:,} rows exceed the limit of {MAX_ROWS:,} for a page")


def check_upload(name: str, size: int) -> str:
    """Return the name of an upload without folders; raise if it is too large, or no scene by its name."""
    plain = PurePosixPath(name.replace("\\", "/")).name[-80:] or "file"
    _check_size(plain, size, MAX_BYTES, "")
    suffix = PurePosixPath(plain).suffix.lower()
    if suffix not in FORMATS or FORMATS[suffix].is_folder:
        supported = " ".join(FORMATS)
        raise FileFormatError(f"{plain}: unsupported file extension {suffix!r}; supported: {supported}")
    return plain


def stage_of_bytes(name: str, content: bytes) -> Stage:
    """Return the stage of an uploaded scene's content."""
    with _uploaded(name, content) as (path, plain):
        return make_stage(geometries_in(path), plain, hides_spaces=True)


def scan_of_bytes(name: str, content: bytes) -> Scan:
    """Return the rays in an uploaded file's content."""
    with _uploaded(name, content) as (path, _):
        return scan_around_zero(path)


@contextmanager
def _uploaded(name: str, content: bytes) -> Iterator[tuple[Path, str]]:
    """Yield the path and the name of an uploaded file's content; errors name it as the user does.

    Only the extension of its name is used, and only if it is a format's: the content is parsed in a private
    folder that is removed afterwards.
    """
    plain = check_upload(name, len(content))
    with TemporaryDirectory(prefix="raybox-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / f"upload{PurePosixPath(plain).suffix.lower()}"
        path.write_bytes(content)
        try:
            _check_size(str(path), announced(path).bytes, MAX_UNPACKED, " once unpacked")
            yield path, plain
        except RayboxError as error:
            kind = HoldsRays if isinstance(error, HoldsRays) else FileFormatError
            raise kind(str(error).replace(str(path), plain)) from error


def _check_size(name: str, size: int, most: int, state: str) -> None:
    if size > most:
        problem = f"{size / 2**20:,.0f} MiB{state} exceed the limit of {most / 2**20:g} MiB for uploads"
        raise RayboxError(f"{name}: {problem}; open it with: raybox view FILE")


def make_stage(
    scene: ViewInput,
    name: str = "",
    *,
    boxes: bool = False,
    where: MaskInput = None,
    hides_spaces: bool | None = None,
    credit: str = "",
) -> Stage:
    """Return the stage of a file, a geometry, a scene, or a list of files and geometries; 2D is at z = 0.

    Its unit and its axis that is up are those that all geometries state.

    Parameters
    ----------
    boxes : bool
        One box of each object of a file.
    where : as of `Scene.nearest`
        The rows shown and hit at the start. Of objects of which it allows some rows only, the others are
        left out.
    hides_spaces : bool, optional
        Do not show spaces and openings of IFC at the start, unless `where` allows nothing else. None: those
        of files.
    """
    if isinstance(scene, Stage):
        return scene
    given, files = _listed(scene, boxes=boxes)
    name = name or (", ".join(files) if 0 < len(files) <= 3 else "scene")
    parts: list[StagePart] = []
    shown: list[Bools] = []
    is_alone = len(given) == 1 and not (isinstance(where, list) and len(where) == 1)
    for geometry, mask in zip(given, row_masks([where] if is_alone else where, given), strict=True):
        solid, rows = _in_3d(geometry, mask if mask.size else None)
        part = _part(solid, sum(one.objects for one in parts))
        parts.append(part if rows is None else _without_rows(part, rows))
        shown.append(np.ones(part.objects, np.bool_) if rows is None else part.visible(rows))
    solids, visible = [part.geometry for part in parts], np.concatenate(shown)
    names = dict.fromkeys(name for solid in solids for name in solid.labels)
    columns = {name: _joined(parts, [solid.labels.get(name) for solid in solids]) for name in names}
    labels = {name: column for name, column in columns.items() if column is not None}
    if (files if hides_spaces is None else hides_spaces) and "ifc_class" in labels:
        others = visible & ~np.isin(labels["ifc_class"].astype(str), NO_MATTER)
        visible = others if others.any() else visible
    is_plain = isinstance(scene, Scene) and scene.groups is None  # a view shows all worlds
    is_same = is_plain and all(a is b for a, b in zip(solids, given, strict=True))
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


def _listed(scene: ViewInput, *, boxes: bool) -> tuple[list[Solid], list[str]]:
    """Return all geometries, and the names of the files of which some are."""
    found = scene.geometry if isinstance(scene, Scene) else scene
    solids: list[Solid] = []
    files: list[str] = []
    for one in found if isinstance(found, list | tuple) else [found]:
        if isinstance(one, str | os.PathLike):
            solids += geometries_in(Path(one), boxes=boxes)
            files.append(Path(one).name)
        elif isinstance(one, Solid):
            solids.append(one)
        else:
            raise InvalidInput(f"{_RULE}; got {type(one).__name__}.")
    if not solids:
        raise InvalidInput(f"{_RULE}; got an empty list.")
    return solids, files


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


def _joined(parts: Sequence[StagePart], columns: Sequence[Column | None]) -> Column | None:
    """Return the ids or a label of all objects, missing where a geometry has none; None without any."""
    own = [part.column(values) for part, values in zip(parts, columns, strict=True)]
    if all(values is None for values in own):
        return None
    places = [np.arange(part.first_object, part.first_object + part.objects) for part in parts]
    size = sum(part.objects for part in parts)
    return combined(list(zip(places, own, strict=True)), size, shared_dtype(own))
