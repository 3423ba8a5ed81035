"""The scene that the viewer shows: exact coordinates, and their map to the page's coordinates."""

import math
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Grid, Mesh, Rays, stored_objects
from raybox.geometry.grid_surface import visible_cells
from raybox.scene.scene import Scene
from raybox.validation import Floats, Ints

Labels = dict[str, list[str]]
Solid = Boxes | Grid | Mesh
MAX_CELLS = 1_000_000  # drawn at most; of a grid with more, its outline
MAX_OF_FULL = 5_000  # cells of a grid that is full: drawn translucent, so that its inside shows
_FLAT_CELLS = 5_000_000  # of a grid in 2D, at most: each is a box, occupied or not


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
    objects: Ints | None = None
    """the object of each triangle; None if each row is an object"""

    @property
    def solid(self) -> Solid:
        """The boxes, cells or triangles."""
        return cast("Solid", self.scene.geometry)

    @property
    def radius(self) -> float:
        """Half the diagonal of the finite bounds, in scene coordinates."""
        low, high = self.ends
        return float(np.linalg.norm((high / 2 - low / 2) / self.page_frame.scale)) * self.page_frame.scale

    def object_of(self, index: int) -> int:
        """Return the number of a row's object."""
        return index if self.objects is None else int(self.objects[index])

    def rows_of(self, index: int) -> list[int]:
        """Return the rows of a row's object."""
        if self.objects is None:
            return [index]
        rows: list[int] = np.flatnonzero(self.objects == self.objects[index]).tolist()
        return rows

    def id_of(self, index: int) -> str | None:
        """Return the id of a row's object, None without one."""
        return None if self.ids is None else self.ids[self.object_of(index)]

    def labels_of(self, index: int) -> tuple[tuple[str, str], ...]:
        """Return names and values of the other labels of a row's object; of a cell, its place on each axis.

        Of a triangle, its object comes first.
        """
        if isinstance(self.solid, Grid):
            return (("cell", ", ".join(str(k) for k in np.unravel_index(index, self.solid.shape))),)
        id_, number = self.id_of(index), self.object_of(index)
        own = [] if self.objects is None else [("object", str(number))]
        values = ((name, column[number]) for name, column in self.labels.items())
        return (*own, *((name, value) for name, value in values if value and value != id_))


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
    geometry: Solid | Scene, name: str = "scene", ids: list[str] | None = None, labels: Labels | None = None
) -> Stage:
    """Return the stage of a geometry; 2D is shown at z = 0."""
    original = geometry.geometry if isinstance(geometry, Scene) else geometry
    if not isinstance(original, Solid):
        raise InvalidInput(
            f"scene must be of Boxes, a Grid or a Mesh; got {geometry!r}. Show its geometries one by one; "
            "instances.boxes() returns the boxes round instances."
        )
    solid = to_3d(original)
    scene = geometry if isinstance(geometry, Scene) and solid is original else Scene(solid)
    if ids is None and original.ids is not None:
        ids = list(map(str, original.ids))
    if labels is None:
        labels = {column: _texts(values) for column, values in original.labels.items()}
    ends = finite_bounds(solid)  # once: slower than a click on 10^5 boxes
    objects = stored_objects(original) if isinstance(original, Mesh) else None
    return Stage(name, scene, ids, labels, _page_frame(*ends), ends, objects)


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


def finite_bounds(solid: Solid) -> tuple[Floats, Floats]:
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
    solids: dict[type[Solid], Solid] = {Boxes: boxes, Grid: grid, Mesh: mesh}
    scene = Scene(solids[kind])
    for row in (0, 98):  # many hits and one: two code paths
        ray = Rays([row - 0.25, 0.25, 0.25], [1.0, 0.0, 0.0])
        hits, everything = scene.nearest(ray, workers=1), scene.all(ray, workers=1)
        _ = (
            hits.normals,
            hits.points,
            everything.lengths,
            scene.occluded(ray, workers=1, where=[True] * len(scene)),
        )
    many = Rays(np.full((64, 3), -1.0), np.ones((64, 3)))
    scene.nearest(many, workers=1)
