"""A scene as the viewer holds it: exact numbers to ask, and where the page's own numbers lie among them."""

import math
from typing import Any, NamedTuple, cast

import numpy as np

from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Mesh, Rays
from raybox.scene.scene import Scene
from raybox.validation import Floats

Labels = dict[str, list[str]]
Solid = Boxes | Mesh


class Place(NamedTuple):
    """How the page's numbers stand to the scene's: ``scene = shift + scale * page``.

    A browser draws in float32, which at map coordinates (5e5) has steps of 3 cm. So the page gets numbers
    about its own origin, at most 4 on each axis; scale is a power of two, and times it nothing is rounded.
    """

    shift: Floats
    scale: float

    def to_page(self, points: Any) -> Floats:
        """Give points of the scene as the page has them."""
        return np.asarray((np.asarray(points, np.float64) - self.shift) / self.scale)

    def to_scene(self, points: Any) -> Floats:
        """Give points of the page as the scene has them."""
        return np.asarray(self.shift + self.scale * np.asarray(points, np.float64))


class Stage(NamedTuple):
    """What is shown: a scene in 3D, what it is called, the names of its rows, where what is finite ends."""

    name: str
    scene: Scene
    ids: list[str] | None
    labels: Labels
    place: Place
    ends: tuple[Floats, Floats]

    @property
    def solid(self) -> Solid:
        """The boxes or triangles."""
        return cast("Solid", self.scene.geometry)

    @property
    def radius(self) -> float:
        """Half the diagonal of what is finite, in the scene's numbers."""
        low, high = self.ends
        return float(np.linalg.norm((high / 2 - low / 2) / self.place.scale)) * self.place.scale

    def id_of(self, index: int) -> str | None:
        """Name a row, if its file did."""
        return None if self.ids is None else self.ids[index]

    def labels_of(self, index: int) -> tuple[tuple[str, str], ...]:
        """Give what else its file says of a row in words."""
        id_, said = self.id_of(index), ((name, words[index]) for name, words in self.labels.items())
        return tuple((name, word) for name, word in said if word and word != id_)


def stage(
    geometry: Solid | Scene, name: str = "scene", ids: list[str] | None = None, labels: Labels | None = None
) -> Stage:
    """Put geometry on a stage; what is flat is shown at z = 0."""
    given = geometry.geometry if isinstance(geometry, Scene) else geometry
    if not isinstance(given, Boxes | Mesh):
        raise InvalidInput(
            f"the viewer shows a scene of Boxes or of a Mesh; got {geometry!r}. Show its parts one by one; "
            "the boxes round copies are instances.boxes()."
        )
    solid = in_space(given)
    scene = geometry if isinstance(geometry, Scene) and solid is given else Scene(solid)
    ends = finite_bounds(solid)  # once: of 10^5 boxes it takes longer than a click
    return Stage(name, scene, ids, labels or {}, _place(*ends), ends)


def in_space(solid: Solid) -> Solid:
    """Give a geometry in 3D."""
    if solid.ndim_space == 3:
        return solid
    if isinstance(solid, Boxes):
        return Boxes(*solid.rows())
    return Mesh(np.pad(solid.vertices, ((0, 0), (0, 1))), solid.faces)


def rays_in_space(rays: Rays) -> Rays:
    """Give a list of rays in 3D; those that `invalid="miss"` let in stay misses."""
    rows = rays.rows()
    return Rays(rows.origins, rows.directions, t_min=rows.t_min, t_max=rows.t_max, invalid="miss")


def finite_bounds(solid: Solid) -> tuple[Floats, Floats]:
    """Give the corners of the box round all bounds that are finite; a point if there are none."""
    ends = (solid.lower, solid.upper) if isinstance(solid, Boxes) else (solid.vertices[solid.faces],) * 2
    both = np.concatenate([end.reshape(-1, 3) for end in ends])
    there = np.isfinite(both)
    low = np.min(both, axis=0, initial=np.inf, where=there)
    high = np.max(both, axis=0, initial=-np.inf, where=there)
    known = low <= high
    return np.where(known, low, 0.0), np.where(known, high, 0.0)


def _place(low: Floats, high: Floats) -> Place:
    half = float((high / 2 - low / 2).max())  # halves first: the difference may overflow
    power = math.frexp(half)[1] - 2 if half > 0.0 else 0
    return Place(low / 2 + high / 2, math.ldexp(1.0, min(max(power, -1000), 1022)))


def warm(kind: type[Solid]) -> None:
    """Ask a small scene everything a click asks, so that the first click finds it compiled."""
    lower = np.pad(np.arange(99.0)[:, None], ((0, 0), (0, 2)))
    boxes = Boxes(lower, lower + 0.5)
    corners = lower[:, None, :] + np.array([[0, -1, -1], [0, 3, -1], [0, -1, 3]])
    mesh = Mesh(corners.reshape(-1, 3), np.arange(297).reshape(-1, 3))
    scene = Scene(boxes if kind is Boxes else mesh)
    for row in (0, 98):  # many contacts, few contacts: two ways inside
        ray = Rays([row - 0.25, 0.25, 0.25], [1.0, 0.0, 0.0])
        hits, everything = scene.nearest(ray, workers=1), scene.all(ray, workers=1)
        _ = hits.normals, hits.points, everything.lengths, scene.occluded(ray, workers=1, where=[True] * 99)
    many = Rays(np.full((64, 3), -1.0), np.ones((64, 3)))
    scene.nearest(many, workers=1)
