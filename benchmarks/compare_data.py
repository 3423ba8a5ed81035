"""Geometry and rays for `compare.py`, made by NumPy alone and saved, so that both trees read the same bits.

A geometry file holds ``NUMBER.FIELD`` arrays, one NUMBER a geometry: lower and upper (boxes), vertices and
faces (mesh), normals and offsets (planes), edges and occupied (a grid with these edges on every axis), and
transforms, where it is instances of them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Part = dict[str, Array]
UNIT = np.array([[0.0] * 3, [1.0] * 3])
HARD = np.array([[0.0] * 3, [8.0] * 3])
_CLUSTER = 1000  # boxes in a cluster


def boxes(kind: str, size: int) -> Part:
    """Return the boxes of `raybox.bench`: a tenth of the unit cube is filled, numbers are float32."""
    random = np.random.default_rng(0)
    centers = random.random((size, 3))
    scale = 0.01 * (1e5 / size) ** (1 / 3)
    halves = random.random((size, 3)) * scale
    if kind == "clustered":
        middles = random.random((-(-size // _CLUSTER), 3))
        centers = middles[np.arange(size) % len(middles)] + random.normal(0.0, 0.02, (size, 3))
    if kind == "mixed":
        halves = scale * 3.0 * 300.0 ** (random.random((size, 3)) - 1.0)
    return {"lower": single(centers - halves), "upper": single(centers + halves)}


def ball(rings: int, radius: float = 0.45) -> Part:
    """Return a bumpy sphere around the centre of the unit cube, of 4 rings² triangles."""
    theta = np.linspace(0.01, np.pi - 0.01, rings + 1)[:, None]
    phi = np.linspace(0.0, 2.0 * np.pi, 2 * rings + 1)[None, :]
    r = radius * (1.0 + 0.1 * np.sin(7 * theta) * np.cos(5 * phi))
    x, y, z = r * np.sin(theta) * np.cos(phi), r * np.sin(theta) * np.sin(phi), r * np.cos(theta)
    vertices = single(np.stack([x, y, z + 0.0 * phi], axis=-1).reshape(-1, 3) + 0.5)
    a = (np.arange(rings)[:, None] * (2 * rings + 1) + np.arange(2 * rings)[None, :]).ravel()
    b, c, d = a + 1, a + 2 * rings + 1, a + 2 * rings + 2
    return {"vertices": vertices, "faces": np.concatenate([np.stack(f, 1) for f in ((a, c, b), (b, c, d))])}


def instances(of: Part, count: int, size: float) -> Part:
    """Return instances of a geometry of the unit cube: turned, scaled to about this size, some mirrored."""
    random = np.random.default_rng(3)
    turns = np.linalg.qr(random.standard_normal((count, 3, 3)))[0]
    turns = turns * (size * random.uniform(0.3, 1.2, count))[:, None, None]
    shifts = random.random((count, 3)) - turns @ np.full(3, 0.5)
    return of | {"transforms": np.concatenate([turns, shifts[:, :, None]], axis=2)}


def planes(count: int) -> Part:
    random = np.random.default_rng(4)
    normals = random.standard_normal((count, 3))
    return {"normals": normals, "offsets": (normals * random.random((count, 3))).sum(axis=1)}


def hard_boxes(size: int) -> Part:
    """Return boxes on a grid of integers: ties, touching faces, zero thickness, half-spaces."""
    random = np.random.default_rng(5)
    lower = random.integers(0, 8, (size, 3)).astype(float)
    upper = lower + random.integers(0, 3, (size, 3))
    lower[:3], upper[:3] = -np.inf, np.inf
    lower[[0, 1, 2], [0, 1, 2]] = 7.0
    upper[3:6, 2] = np.inf
    return {"lower": lower, "upper": upper}


def hard_mesh(size: int) -> Part:
    random = np.random.default_rng(6)
    return {
        "vertices": random.integers(0, 9, (size, 3)).astype(float),
        "faces": random.integers(0, size, (2 * size, 3)),
    }


def flat(size: int) -> Part:
    """Return boxes of the plane."""
    made = boxes("uniform", size)
    return {name: np.ascontiguousarray(corner[:, :2]) for name, corner in made.items()}


def grid(side: int, share: float = 1.0) -> Part:
    """Return a grid of the unit cube, of which a share is occupied: balls of 8 to 24 cells across."""
    random, wanted = np.random.default_rng(8), share * side**3
    occupied = np.full((side,) * 3, share == 1.0)
    while np.count_nonzero(occupied) < wanted:
        center, radius = random.uniform(0, side, 3), random.uniform(4.0, 12.0)
        low = np.maximum(center - radius, 0).astype(int)
        high = np.minimum(center + radius + 1, side).astype(int)
        ends = [(int(a), int(b)) for a, b in zip(low, high, strict=True)]
        x, y, z = np.ix_(*(np.arange(*end) + 0.5 - c for end, c in zip(ends, center, strict=True)))
        block = tuple(slice(*end) for end in ends)
        occupied[block] |= x * x + y * y + z * z < radius * radius
    return {"edges": np.arange(side + 1) / side, "occupied": occupied}


def boxes_of(cells: Part) -> Part:
    """Return the boxes of the occupied cells of a grid."""
    places = np.argwhere(cells["occupied"])
    return {"lower": cells["edges"][places], "upper": cells["edges"][places + 1]}


def several() -> list[Part]:
    return [boxes("uniform", 20_000), ball(60), planes(5), instances(boxes("uniform", 50), 300, 0.2)]


def hard() -> list[Part]:
    turned = hard_mesh(40) | {"transforms": np.array([np.eye(4)[:3], 2 * np.eye(4)[[1, 2, 0]]])}
    return [hard_boxes(600), hard_mesh(200), planes(2), turned]


GEOMETRY: dict[str, Callable[[], list[Part]]] = {
    "tiny": lambda: [boxes("uniform", 200)],
    "uniform-1e3": lambda: [boxes("uniform", 10**3)],
    "uniform-1e5": lambda: [boxes("uniform", 10**5)],
    "uniform-1e6": lambda: [boxes("uniform", 10**6)],
    "clustered-1e5": lambda: [boxes("clustered", 10**5)],
    "mixed-1e5": lambda: [boxes("mixed", 10**5)],
    "mesh": lambda: [ball(160)],
    "instances": lambda: [instances(ball(25), 1000, 0.15)],
    "turned-boxes": lambda: [instances(boxes("uniform", 1000), 50, 0.3)],
    "planes": lambda: [planes(60)],
    "flat": lambda: [flat(20_000)],
    "several": several,
    "hard": hard,
    "hard-boxes": lambda: [hard_boxes(2000)],
    "hard-mesh": lambda: [hard_mesh(300)],
    "grid-full": lambda: [grid(64)],
    "grid-clumps": lambda: [grid(512, 0.01)],
    "grid-boxes": lambda: [boxes_of(grid(512, 0.01))],
}


def rays(kind: str, count: int, bounds: Array) -> Part:
    """Return rays of a kind for a scene with these bounds, of shape (count,) or (height, width)."""
    if kind in ("camera", "oblique"):
        return (camera if kind == "camera" else oblique)(count, bounds)
    random = np.random.default_rng(1)
    if kind == "hard":
        return _hard_rays(random, count)
    low, size = bounds[0], bounds[1] - bounds[0]
    origins = random.random((count, bounds.shape[1]))
    origins = low + (origins if kind == "inside" else origins * 2.0 - 0.5) * size
    return {"origins": single(origins), "directions": single(unit(random.standard_normal(origins.shape)))}


def _hard_rays(random: np.random.Generator, count: int) -> Part:
    """Return rays of integers: along faces and edges, of no direction, with ranges of one point."""
    low = random.choice([0.0, -np.inf, -1.0, 1.0], count, p=[0.6, 0.2, 0.1, 0.1])
    return {
        "origins": random.integers(-1, 10, (count, 3)).astype(float),
        "directions": random.integers(-2, 3, (count, 3)).astype(float),
        "t_min": low,
        "t_max": np.maximum(low, random.choice([np.inf, 1.0, 2.0], count)),
    }


def camera(count: int, bounds: Array) -> Part:
    """Return a square pinhole picture, 40 degrees wide, along the thinnest axis."""
    size = bounds[1] - bounds[0]
    dims = len(size)
    axis = dims - 1 - int(np.argmin(size[::-1]))
    width = max(1, int(count**0.5)) if dims == 3 else count
    x = ((np.arange(width) + 0.5) / width * 2.0 - 1.0) * np.tan(np.radians(20.0))
    shape = (width, width) if dims == 3 else (width,)
    directions = np.empty((*shape, dims))
    directions[..., axis] = 1.0
    directions[..., (axis + 1) % dims] = x
    if dims == 3:
        directions[..., (axis + 2) % dims] = -x[:, None]
    eye = bounds.mean(axis=0)
    eye[axis] -= 2.0 * size.max()
    return {"origins": single(np.broadcast_to(eye, directions.shape)), "directions": single(unit(directions))}


def oblique(count: int, bounds: Array) -> Part:
    """Return such a picture from in front, from the left and from above, z up."""
    view, width = np.array([0.3, -1.6, 0.9]), max(1, int(count**0.5))
    along = -unit(view)
    across = unit(np.cross(along, [0.0, 0.0, 1.0]))
    x = ((np.arange(width) + 0.5) / width * 2.0 - 1.0) * np.tan(np.radians(20.0))
    directions = along + x[:, None] * across - x[:, None, None] * np.cross(across, along)
    eye = bounds.mean(axis=0) + (bounds[1] - bounds[0]).max() * view
    return {"origins": single(np.broadcast_to(eye, directions.shape)), "directions": single(unit(directions))}


def bounds_of(part: Part) -> Array:
    """Return the corners around boxes or a mesh, (2, D)."""
    low, high = (part["vertices"],) * 2 if "vertices" in part else (part["lower"], part["upper"])
    return np.stack([low.min(axis=0), high.max(axis=0)])


def unit(vectors: Array) -> Array:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def single(array: Array) -> Array:
    """Round to float32, so that numbers are those that peers get."""
    return np.ascontiguousarray(array.astype(np.float32).astype(np.float64))


def save_geometry(path: Path, parts: list[Part]) -> None:
    np.savez(path, **{f"{k}.{name}": array for k, part in enumerate(parts) for name, array in part.items()})


def load_geometry(path: Path) -> list[Part]:
    parts: dict[int, Part] = {}
    with np.load(path) as archive:
        for key in archive.files:
            number, name = key.split(".")
            parts.setdefault(int(number), {})[name] = archive[key]
    return [parts[k] for k in sorted(parts)]


class Folder:
    """The files of one comparison, each made when it is first needed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def geometry(self, name: str) -> Path:
        """Return the file of a geometry; that of a real file must be there already."""
        path = self.path / f"{name}.npz"
        if not path.exists():
            save_geometry(path, GEOMETRY[name]())
        return path

    def rays(self, geometry: str, kind: str, count: int) -> Path:
        """Return the file of rays for a geometry; all that are made for the unit cube share theirs."""
        where = "flat" if geometry == "flat" else "unit" if geometry in GEOMETRY else geometry
        where = "hard" if geometry.startswith("hard") else where
        path = self.path / f"{where}.{kind}.{count}.npz"
        if not path.exists():
            np.savez(path, **self._made(geometry, where, kind, count))
        return path

    def _made(self, geometry: str, where: str, kind: str, count: int) -> Part:
        if kind == "beams":
            with np.load(self.path / f"{geometry}.beams.npz") as beams:
                return {name: spread(beams[name], count) for name in beams.files}
        known = {"unit": UNIT, "flat": UNIT[:, :2], "hard": HARD}
        around = known[where] if where in known else bounds_of(load_geometry(self.geometry(where))[0])
        return rays(kind, count, around)


def spread(rows: Array, count: int) -> Array:
    """Return this many rows, evenly from all of them."""
    return rows if count >= len(rows) else rows[np.arange(count) * len(rows) // count]
