"""The scene that the viewer shows: exact coordinates, and their map to the page's coordinates."""

import math
from typing import Any, NamedTuple, cast

import numpy as np

from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Mesh, Rays
from raybox.scene.scene import Scene
from raybox.validation import Floats

Labels = dict[str, list[str]]
Solid = Boxes | Mesh


class PageFrame(NamedTuple):
    """The map from page to scene coordinates: ``scene = shift + scale * page``.

    A browser draws in float32, which at map coordinates (5e5) has steps of 3 cm. Page coordinates are
    relative to the scene's centre, at most 4 on each axis; scale is a power of two, so scaling is exact.
    """

    shift: Floats
    scale: float

    def to_page(self, points: Any) -> Floats:
        """Return points of the scene in page coordinates."""
        return np.asarray((np.asarray(points, np.float64) - self.shift) / self.scale)

    def to_scene(self, points: Any) -> Floats:
        """Return points of the page in scene coordinates."""
        return np.asarray(self.shift + self.scale * np.asarray(points, np.float64))


class Stage(NamedTuple):
    """The scene shown: in 3D, with its name, ids and labels of rows, and finite bounds."""

    name: str
    scene: Scene
    ids: list[str] | None
    labels: Labels
    page_frame: PageFrame
    ends: tuple[Floats, Floats]

    @property
    def solid(self) -> Solid:
        """The boxes or triangles."""
        return cast("Solid", self.scene.geometry)

    @property
    def radius(self) -> float:
        """Half the diagonal of the finite bounds, in scene coordinates."""
        low, high = self.ends
        return float(np.linalg.norm((high / 2 - low / 2) / self.page_frame.scale)) * self.page_frame.scale

    def id_of(self, index: int) -> str | None:
        """Return the id of a row, None without one."""
        return None if self.ids is None else self.ids[index]

    def labels_of(self, index: int) -> tuple[tuple[str, str], ...]:
        """Return names and values of a row's other labels."""
        id_ = self.id_of(index)
        values = ((name, column[index]) for name, column in self.labels.items())
        return tuple((name, value) for name, value in values if value and value != id_)


def stage(
    geometry: Solid | Scene, name: str = "scene", ids: list[str] | None = None, labels: Labels | None = None
) -> Stage:
    """Return the stage of a geometry; 2D is shown at z = 0."""
    original = geometry.geometry if isinstance(geometry, Scene) else geometry
    if not isinstance(original, Boxes | Mesh):
        raise InvalidInput(
            f"scene must be of Boxes or of a Mesh; got {geometry!r}. Show its geometries one by one; "
            "instances.boxes() returns the boxes round instances."
        )
    solid = to_3d(original)
    scene = geometry if isinstance(geometry, Scene) and solid is original else Scene(solid)
    ends = finite_bounds(solid)  # once: slower than a click on 10^5 boxes
    return Stage(name, scene, ids, labels or {}, _page_frame(*ends), ends)


def to_3d(solid: Solid) -> Solid:
    """Return a geometry in 3D."""
    if solid.ndim_space == 3:
        return solid
    if isinstance(solid, Boxes):
        return Boxes(*solid.rows())
    return Mesh(np.pad(solid.vertices, ((0, 0), (0, 1))), solid.faces)


def rays_in_3d(rays: Rays) -> Rays:
    """Return rays in 3D, flattened; invalid ones remain misses."""
    rows = rays.rows()
    return Rays(rows.origins, rows.directions, t_min=rows.t_min, t_max=rows.t_max, invalid="miss")


def finite_bounds(solid: Solid) -> tuple[Floats, Floats]:
    """Return the corners of the box round all finite bounds; the origin without any."""
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
    scene = Scene(boxes if kind is Boxes else mesh)
    for row in (0, 98):  # many hits and one: two code paths
        ray = Rays([row - 0.25, 0.25, 0.25], [1.0, 0.0, 0.0])
        hits, everything = scene.nearest(ray, workers=1), scene.all(ray, workers=1)
        _ = hits.normals, hits.points, everything.lengths, scene.occluded(ray, workers=1, where=[True] * 99)
    many = Rays(np.full((64, 3), -1.0), np.ones((64, 3)))
    scene.nearest(many, workers=1)
