"""What a ray of the page hits, by brute force: NumPy rejects what is far from the line, Fractions decide.

Nothing of raybox's engine is used: geometries give their numbers only. `pickable` is a bool for each object
of the scene, numbered through all geometries.
"""

from typing import Any, NamedTuple

import numpy as np

import exact
import exact_instances

PAD = 1e-11  # of the size of a scene's numbers: ten thousand times any rounding


class Line(NamedTuple):
    """A ray of the page: t counts lengths of its direction."""

    origin: np.ndarray
    direction: np.ndarray
    t_min: float
    t_max: float

    @classmethod
    def of(cls, ray: dict[str, Any]) -> "Line":
        """Return the ray of a message; ends without a number are infinite."""
        low, high = ray["tMin"], ray["tMax"]
        ends = -np.inf if low is None else low, np.inf if high is None else high
        return cls(np.array(ray["origin"], float), np.array(ray["direction"], float), *map(float, ends))

    @property
    def numbers(self) -> tuple[list[float], list[float], tuple[float, float]]:
        return self.origin.tolist(), self.direction.tolist(), (self.t_min, self.t_max)


class BruteHit(NamedTuple):
    """A hit as the page shows it, in the order (exact t, geometry, primitive)."""

    object: int
    geometry: int
    primitive: int
    t: float
    t_enter: float
    t_exit: float


def hits(stage, line: Line, pickable: np.ndarray | None = None) -> list[BruteHit]:
    """Return all hits of a ray in order."""
    found = []
    for number, part in enumerate(stage.parts):
        for row, t, enter, leave in _contacts(part.geometry, line):
            owner = part.first_object + _owner(part, row)
            if pickable is None or pickable[owner]:
                found.append(((t, number, row), owner, (t, enter, leave)))
    found.sort(key=lambda one: one[0])
    return [BruteHit(owner, key[1], key[2], *map(exact.rounded, times)) for key, owner, times in found]


def shown(stage, answer: dict[str, Any]) -> list[BruteHit]:
    """Return the hits of an answer of the page; of copies, the copy stands for what is hit in it."""
    names = ("object", "geometry", "primitive", "t", "tEnter", "tExit")
    found = [BruteHit(*(hit[name] for name in names)) for hit in answer["hits"]]
    is_copy = [type(part.geometry).__name__ == "Instances" for part in stage.parts]
    return [hit._replace(primitive=hit.object) if is_copy[hit.geometry] else hit for hit in found]


def _owner(part, row: int) -> int:
    """Return the number of a row's object within its geometry."""
    if type(part.geometry).__name__ == "Mesh":
        return row if part.geometry.objects is None else int(part.geometry.objects[row])
    if type(part.geometry).__name__ == "Grid":
        return 0 if part.cells is None else int(np.count_nonzero(part.geometry.occupied.reshape(-1)[:row]))
    return row


def _contacts(geometry, line: Line):
    """Yield (row, t, t_enter, t_exit) of each row that the ray hits."""
    o, d, span = line.numbers
    name = type(geometry).__name__
    if name == "Boxes":
        rows = _near_boxes(geometry.lower, geometry.upper, line)
        found = exact_instances.of_boxes(
            o, d, span, geometry.lower[rows].tolist(), geometry.upper[rows].tolist()
        )
    elif name == "Mesh":
        corners = geometry.vertices[geometry.faces]
        rows = _near_triangles(corners, line)
        found = exact_instances.of_triangles(o, d, span, corners[rows].tolist())
    elif name == "Grid":
        rows, lower, upper = _near_cells(geometry, line)
        found = exact_instances.of_boxes(o, d, span, lower, upper)
    else:
        yield from _copies(geometry, line)
        return
    for k, *times, _ in found:
        yield (int(rows[k]), *times)


def _copies(geometry, line: Line):
    """Yield the contacts of copies, each in its own coordinates."""
    o, d, span = line.numbers
    for row in _near_copies(geometry, line):
        local = exact_instances.local(o, d, geometry.transforms[row].tolist())
        for _, _, *times, _ in exact_instances.contacts_with(geometry.geometry, *local, span):
            yield (int(row), *times)


def _size(line: Line, *arrays: np.ndarray) -> float:
    return 1.0 + max(float(np.abs(values).max(initial=0.0)) for values in (line.origin, *arrays))


def _slabs(low: np.ndarray, high: np.ndarray, o: float, d: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of t between two planes across an axis."""
    if d == 0.0:
        inside = (low <= o) & (o <= high)
        return np.where(inside, -np.inf, np.inf), np.where(inside, np.inf, -np.inf)
    ends = (low - o) / d, (high - o) / d
    return np.minimum(*ends), np.maximum(*ends)


def _near_boxes(lower, upper, line: Line) -> np.ndarray:
    pad = PAD * _size(line, lower, upper)
    slabs = [
        _slabs(lower[:, k] - pad, upper[:, k] + pad, line.origin[k], line.direction[k]) for k in range(3)
    ]
    first = np.maximum.reduce([slab[0] for slab in slabs])
    last = np.minimum.reduce([slab[1] for slab in slabs])
    return np.flatnonzero(first <= last)


def _near_triangles(corners: np.ndarray, line: Line) -> np.ndarray:
    """Return triangles whose shadow along the ray, as wide as its errors, contains the ray's point."""
    direction = line.direction / np.linalg.norm(line.direction)
    helper = np.eye(3)[np.argmin(np.abs(direction))]
    u = np.cross(direction, helper)
    u /= np.linalg.norm(u)
    flat = (corners - line.origin) @ np.stack([u, np.cross(direction, u)], axis=1)
    a, b = flat, np.roll(flat, -1, axis=1)
    areas = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    pad = PAD * _size(line, corners) * (1.0 + np.abs(flat).max(axis=(1, 2)))
    return np.flatnonzero((areas.min(axis=1) >= -pad) | (areas.max(axis=1) <= pad))


def _near_cells(grid, line: Line) -> tuple[np.ndarray, list, list]:
    """Return the occupied cells near the ray, and their bounds."""
    edges = grid.edges
    pad = PAD * _size(line, *edges)
    slabs = [
        _slabs(axis[:-1] - pad, axis[1:] + pad, line.origin[k], line.direction[k])
        for k, axis in enumerate(edges)
    ]
    first = np.maximum(np.maximum.outer(slabs[0][0], slabs[1][0])[:, :, None], slabs[2][0])
    last = np.minimum(np.minimum.outer(slabs[0][1], slabs[1][1])[:, :, None], slabs[2][1])
    places = np.argwhere((first <= last) & grid.occupied)
    lower, upper = (
        np.stack([axis[places[:, k] + step] for k, axis in enumerate(edges)], axis=1).tolist()
        for step in (0, 1)
    )
    return np.ravel_multi_index(tuple(places.T), grid.occupied.shape), lower, upper


def _near_copies(geometry, line: Line) -> np.ndarray:
    """Return copies whose bounding ball the line meets."""
    base = geometry.geometry
    points = np.concatenate([base.lower, base.upper] if type(base).__name__ == "Boxes" else [base.vertices])
    center = (points.min(axis=0) + points.max(axis=0)) / 2
    radius = np.linalg.norm(points - center, axis=1).max() if len(points) else 0.0
    radius = max(radius, np.linalg.norm(points.max(axis=0) - points.min(axis=0)))
    linear, shift = geometry.transforms[:, :3, :3], geometry.transforms[:, :3, 3]
    middles = linear @ center + shift
    reach = radius * np.linalg.norm(linear, axis=(1, 2)) * (1 + PAD) + PAD * _size(line, middles)
    direction = line.direction / np.linalg.norm(line.direction)
    away = middles - line.origin
    across = away - (away @ direction)[:, None] * direction
    return np.flatnonzero(np.linalg.norm(across, axis=1) <= reach)
