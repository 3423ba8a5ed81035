"""The scene that the viewer shows: exact coordinates, and their map to the page's coordinates."""

import math
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Grid, Instances, Mesh, Rays, object_rows, row_mask, stored_objects
from raybox.geometry.grid_surface import visible_cells
from raybox.scene.scene import Scene
from raybox.validation import Bools, Floats, Ints, MaskInput

Labels = dict[str, list[str]]
Solid = Boxes | Grid | Mesh | Instances
MAX_CELLS = 1_000_000  # drawn at most; of a grid with more, its outline
MAX_OF_FULL = 5_000  # cells of a grid that is full: drawn translucent, so that its inside shows
_FLAT_CELLS = 5_000_000  # of a grid in 2D, at most: each is a box, occupied or not
_MAX_TRIANGLES = 5_000_000  # of copies, at most
_NOUNS: dict[type, str] = {Boxes: "Box", Grid: "Cell", Mesh: "Triangle"}
# The corners of a box of size 1 around the origin, and its twelve triangles
CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
_SIDES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
TRIANGLES = np.array([t for a, b, c, d in _SIDES for t in ((a, b, c), (a, c, d))])


class PageFrame(NamedTuple):
    """The map from page to scene coordinates: ``scene = shift + scale * page``.

    A browser draws in float32, which at map coordinates (5e5) has steps of 3 cm. Page coordinates are
    relative to the scene's centre, at most 4 on each axis; scale is a power of two, so scaling is exact.
    """

    shift: Floats
    scale: float

    def to_page(self, points: ArrayLike) -> Floats:
        """Return points of the scene in page coordinates."""
        return np.asarray((np.asarray(points, np.float64) - self.shift) / self.scale)

    def to_scene(self, points: ArrayLike) -> Floats:
        """Return points of the page in scene coordinates."""
        return np.asarray(self.shift + self.scale * np.asarray(points, np.float64))


class Stage(NamedTuple):
    """The scene shown: in 3D, with its name, ids and labels of objects, and finite bounds."""

    name: str
    scene: Scene
    ids: list[str] | None
    labels: Labels
    page_frame: PageFrame
    ends: tuple[Floats, Floats]
    drawn: Boxes | Grid | Mesh
    """the geometry, or all triangles of copies"""
    objects: Ints | None = None
    """the object of each triangle that is drawn; None if each row is an object"""
    where: Bools | None = None
    """which rows of the scene are hit; None for all"""
    shown: Bools | None = None
    """which rows of `drawn` are shown; None for all"""

    @property
    def solid(self) -> Solid:
        """The boxes, cells, triangles or copies."""
        return cast("Solid", self.scene.geometry)

    @property
    def noun(self) -> str:
        """What a row of the list of a click is."""
        if isinstance(self.solid, Instances):
            is_box = isinstance(self.solid.geometry, Boxes) and len(self.solid.geometry) == 1
            return "Box" if is_box else "Copy"
        return "Object" if self.objects is not None else _NOUNS[type(self.solid)]

    @property
    def radius(self) -> float:
        """Half the diagonal of the finite bounds, in scene coordinates."""
        low, high = self.ends
        return float(np.linalg.norm((high / 2 - low / 2) / self.page_frame.scale)) * self.page_frame.scale

    def object_of(self, index: int) -> int:
        """Return the number of a row's object."""
        is_object = self.objects is None or isinstance(self.solid, Instances)
        return index if is_object else int(self.objects[index])  # type: ignore[index]

    def rows_of(self, index: int) -> list[int]:
        """Return the rows of `drawn` of a row's object."""
        if self.objects is None:
            return [index]
        rows: list[int] = np.flatnonzero(self.objects == self.object_of(index)).tolist()
        return rows

    def outlined(self, rows: list[int]) -> list[int]:
        """Return the rows of `drawn` whose edges show some rows: of copies, all their triangles."""
        if not isinstance(self.solid, Instances):
            return rows
        return [drawn for row in rows for drawn in self.rows_of(row)]

    def id_of(self, index: int) -> str | None:
        """Return the id of a row's object, None without one."""
        return None if self.ids is None else self.ids[self.object_of(index)]

    def labels_of(self, index: int) -> tuple[tuple[str, str], ...]:
        """Return other labels of a row's object by name; of a cell, its place on each axis."""
        if isinstance(self.solid, Grid):
            return (("cell", ", ".join(str(k) for k in np.unravel_index(index, self.solid.shape))),)
        id_, number = self.id_of(index), self.object_of(index)
        values = ((name, column[number]) for name, column in self.labels.items())
        return tuple((name, value) for name, value in values if value and value != id_)


def boxes_of(solid: Boxes | Grid, rows: list[int]) -> tuple[Floats, Floats]:
    """Return the corners of some boxes or cells."""
    found = solid.boxes(rows) if isinstance(solid, Grid) else solid[rows]
    return found.lower, found.upper


def boxes_to_draw(solid: Boxes | Grid) -> Boxes:
    """Return the boxes that show a solid: of a grid its visible cells, or its outline."""
    if not isinstance(solid, Grid):
        return solid
    cells = visible_cells(solid, MAX_CELLS, MAX_OF_FULL)
    return Boxes(*solid.bounds) if cells is None else solid.boxes(cells)


def stage(
    geometry: Solid | Scene,
    name: str = "scene",
    ids: list[str] | None = None,
    labels: Labels | None = None,
    where: MaskInput = None,
) -> Stage:
    """Return the stage of a geometry, or of the rows that `where` allows; 2D is shown at z = 0."""
    original = geometry.geometry if isinstance(geometry, Scene) else geometry
    if not isinstance(original, Solid):
        raise InvalidInput(
            f"scene must be of Boxes, a Grid, a Mesh or Instances; got {geometry!r}. "
            "Show its geometries one by one."
        )
    if where is not None and isinstance(original, Grid):
        raise InvalidInput("where is for boxes and triangles here; got a grid. Leave it out.")
    mask = None if where is None else row_mask(where, object_rows(original), len(original))
    solid = to_3d(original)
    scene = geometry if isinstance(geometry, Scene) and solid is original else Scene(solid)
    if ids is None and original.ids is not None:
        ids = list(map(str, original.ids))
    if labels is None:
        labels = {column: _texts(values) for column, values in original.labels.items()}
    objects = stored_objects(original) if isinstance(original, Mesh) else None
    drawn, objects = _triangles_of(solid) if isinstance(solid, Instances) else (solid, objects)
    shown = mask[objects] if mask is not None and isinstance(solid, Instances) else mask
    # once: slower than a click on 10^5 boxes
    ends = finite_bounds(drawn if shown is None or isinstance(drawn, Grid) else drawn[shown])
    return Stage(name, scene, ids, labels, _page_frame(*ends), ends, drawn, objects, mask, shown)


def _triangles_of(copies: Instances) -> tuple[Mesh, Ints]:
    """Return the triangles of all copies, and the copy of each."""
    inner, placed = copies.geometry, copies.rows()
    if isinstance(inner, Boxes):
        corners = inner.centers[:, None] + inner.sizes[:, None] * CORNERS
        faces = TRIANGLES + 8 * np.arange(len(inner))[:, None, None]
        inner = Mesh(corners.reshape(-1, 3), faces.reshape(-1, 3))
    if len(inner) * len(copies) > _MAX_TRIANGLES:
        raise InvalidInput(
            f"copies are shown up to {_MAX_TRIANGLES:,} triangles; got {len(copies):,} of {len(inner):,}. "
            "Show some: instances[:100]."
        )
    vertices = np.einsum("mij,vj->mvi", placed[:, :, :3], inner.vertices) + placed[:, None, :, 3]
    rows = inner.faces + len(inner.vertices) * np.arange(len(copies))[:, None, None]
    mesh = Mesh(vertices.reshape(-1, 3), rows.reshape(-1, 3))
    return mesh, np.repeat(np.arange(len(copies), dtype=np.int64), len(inner))


def _texts(values: NDArray[Any]) -> list[str]:
    """Return labels as text, "" for a missing one."""
    return ["" if value is None or value != value else str(value) for value in values.tolist()]


def to_3d(solid: Solid) -> Solid:
    """Return a geometry in 3D."""
    if solid.ndim_space == 3:
        return solid
    if isinstance(solid, Boxes):
        return Boxes(*solid.rows())
    if isinstance(solid, Grid):
        return _flat_cells(solid)
    if isinstance(solid, Instances):
        return Instances(cast("Boxes", to_3d(solid.geometry)), solid.rows())
    return Mesh(np.pad(solid.vertices, ((0, 0), (0, 1))), solid.faces)


def _flat_cells(grid: Grid) -> Boxes:
    """Return a box for each cell of a grid in 2D; of one that is not occupied, a box without any point."""
    if len(grid) > _FLAT_CELLS:
        raise InvalidInput(
            f"a grid in 2D is shown up to {_FLAT_CELLS:,} cells; got {len(grid):,}. Show a part: grid[:100]."
        )
    lower, upper = (np.array(end) for end in grid.boxes().rows()[:2])
    empty = ~grid.occupied.ravel()
    lower[empty], upper[empty] = np.inf, np.inf
    return Boxes(lower, upper)


def rays_in_3d(rays: Rays) -> Rays:
    """Return rays in 3D, flattened; invalid ones remain misses."""
    rows = rays.rows()
    return Rays(rows.origins, rows.directions, t_min=rows.t_min, t_max=rows.t_max, invalid="miss")


def finite_bounds(solid: Boxes | Grid | Mesh) -> tuple[Floats, Floats]:
    """Return the corners of the box round all finite bounds; the origin without any."""
    if isinstance(solid, Grid):
        return solid.bounds[0], solid.bounds[1]
    ends = (solid.lower, solid.upper) if isinstance(solid, Boxes) else (solid.vertices[solid.faces],) * 2
    both = np.concatenate([end.reshape(-1, 3) for end in ends])
    finite = np.isfinite(both)
    low = np.min(both, axis=0, initial=np.inf, where=finite)
    high = np.max(both, axis=0, initial=-np.inf, where=finite)
    known = low <= high
    return np.where(known, low, 0.0), np.where(known, high, 0.0)


def _page_frame(low: Floats, high: Floats) -> PageFrame:
    half = float((high / 2 - low / 2).max())  # halved first: the difference may overflow
    power = math.frexp(half)[1] - 2 if half > 0.0 else 0
    return PageFrame(low / 2 + high / 2, math.ldexp(1.0, min(max(power, -1000), 1022)))


def warm_up(kind: type[Solid]) -> None:
    """Run all queries of a click once, so that the first click finds them compiled."""
    lower = np.pad(np.arange(99.0)[:, None], ((0, 0), (0, 2)))
    boxes = Boxes(lower, lower + 0.5)
    corners = lower[:, None, :] + np.array([[0, -1, -1], [0, 3, -1], [0, -1, 3]])
    mesh = Mesh(corners.reshape(-1, 3), np.arange(297).reshape(-1, 3))
    grid = Grid(np.arange(-0.25, 99.0, 0.5), [0, 1], [0, 1])
    copies = Instances(boxes, np.eye(4))
    solids: dict[type[Solid], Solid] = {Boxes: boxes, Grid: grid, Mesh: mesh, Instances: copies}
    scene = Scene(solids[kind])
    for row in (0, 98):  # many hits and one: two code paths
        ray = Rays([row - 0.25, 0.25, 0.25], [1.0, 0.0, 0.0])
        hits, everything = scene.nearest(ray, workers=1), scene.all(ray, workers=1)
        _ = (
            hits.normals,
            hits.points,
            everything.by_object(),
            everything.lengths,
            scene.occluded(ray, workers=1, where=[True] * len(scene)),
        )
    many = Rays(np.full((64, 3), -1.0), np.ones((64, 3)))
    scene.nearest(many, workers=1)
