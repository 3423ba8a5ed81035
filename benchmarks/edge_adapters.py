"""The adapters at the edges of float64: points in thin meshes, and times that are rounded to float32."""

import types
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np

import raybox as rb
from edge_outcome import Outcome, Placed, equal, points_within
from edge_scales import scaled
from edge_truth import Case, Truth
from exact import rounded
from raybox.adapters.open3d import RaycastingScene
from raybox.adapters.trimesh import RayMeshIntersector

POINTS = 16
SIDES = [[0, 2, 1], [1, 2, 3], [4, 5, 6], [5, 7, 6], [0, 1, 4], [1, 5, 4]]
SIDES += [[2, 6, 3], [3, 6, 7], [0, 4, 2], [2, 4, 6], [1, 3, 5], [3, 7, 5]]


class Layers(NamedTuple):
    """Closed boxes that are apart, as one mesh, and points and directions of lines from them."""

    lower: np.ndarray
    upper: np.ndarray
    points: np.ndarray
    directions: np.ndarray

    def mesh(self) -> tuple[np.ndarray, np.ndarray]:
        """Return vertices and faces."""
        pick = [[(k >> axis) & 1 for axis in range(3)] for k in range(8)]
        sides = np.stack([self.lower, self.upper])
        boxes = range(len(self.lower))
        vertices = [[sides[p[axis], i, axis] for axis in range(3)] for i in boxes for p in pick]
        return np.array(vertices), np.concatenate([np.array(SIDES) + 8 * i for i in boxes])

    @property
    def rows(self) -> np.ndarray:
        return self.points

    def outcomes(self, counts):
        vertices, faces = self.mesh()
        adapter = RayMeshIntersector(types.SimpleNamespace(vertices=vertices, faces=faces), workers=1)
        within = (self.points[:, None] >= self.lower) & (self.points[:, None] <= self.upper)
        yield equal("contains_points", adapter.contains_points(self.points), within.all(axis=2).any(axis=1))
        rows = rows_of(rb.Mesh(vertices, faces), self.points, self.directions)
        _count(counts, rows)
        firsts = [[x for k, x in enumerate(row) if k == 0 or x.t != row[k - 1].t] for row in rows]
        triangle, ray, location = adapter.intersects_id(self.points, self.directions, return_locations=True)
        got = [triangle[ray == k].tolist() for k in range(len(rows))]
        yield equal("intersects_id", got, [[x.index for x in row] for row in firsts])
        if got == [[x.index for x in row] for row in firsts]:
            each = zip(self.points.tolist(), self.directions.tolist(), firsts, strict=True)
            lines = [Placed(o, d, x.t) for o, d, row in each for x in row]
            found = points_within("intersects_location", location.tolist(), lines)
            wrong = np.zeros(len(rows), bool)
            wrong[ray[found.wrong]] = True
            at = [location[ray == k].tolist() for k in range(len(rows))]
            yield Outcome("intersects_location", wrong, at, [None] * len(rows))

    def alone(self, k: int) -> "Layers":
        return self._replace(points=self.points[[k]], directions=self.directions[[k]])

    def source(self) -> str:
        lower, upper, points, directions = (x.tolist() for x in self)
        return f"# closed boxes {lower}, {upper} as a mesh; points {points}, directions {directions}"


def make_layers(rng, _kind) -> Layers:
    """Return boxes one above the other, with gaps of any size."""
    axis = int(rng.integers(3))
    steps = rng.choice(np.arange(-9, 10), 2 * int(rng.integers(0, 3)), replace=False)
    inner = scaled(np.sort(steps), -int(rng.choice([2, 4, 40, 60, 100])))
    ends = np.array([-3.0, *inner, 3.0]).reshape(-1, 2)
    wide = float(rng.choice([4.0, 1000.0]))
    lower, upper = np.full((len(ends), 3), -wide), np.full((len(ends), 3), wide)
    lower[:, axis], upper[:, axis] = ends.T
    points = rng.choice([0.25, 0.5, -1.5, 3.0, 4.0, 5.0], (POINTS, 3)) + 0.0
    heights = np.concatenate([ends.ravel(), ends.mean(axis=1), [-5.0, 5.0, 0.5, -1.5, 1.5]])
    points[:, axis] = rng.choice(heights, POINTS)
    directions = rng.integers(-2, 3, (POINTS, 3)).astype(float)
    directions[:, axis] = rng.choice([-1.0, 1.0], POINTS)
    place = int(rng.choice([0, 0, rng.integers(-900, 1000)]))
    return Layers(*(scaled(x, place) for x in (lower, upper, points)), directions)


class Singles(NamedTuple):
    """Triangles, and rays of float32 (n, 6)."""

    corners: np.ndarray
    rays: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        return self.rays

    def outcomes(self, counts):
        scene, n = RaycastingScene(), len(self.rays)
        scene.add_triangles(self.corners.reshape(-1, 3), np.arange(3 * len(self.corners)).reshape(-1, 3))
        found = scene.cast_rays(self.rays)
        rays = self.rays.astype(float)
        mesh = rb.Mesh(self.corners.reshape(-1, 3), np.arange(3 * len(self.corners)).reshape(-1, 3))
        rows = rows_of(mesh, rays[:, :3], rays[:, 3:])
        _count(counts, rows)
        want = [float(single(row[0].t)) if row else np.inf for row in rows]
        yield equal("cast_rays t_hit", found["t_hit"].tolist(), want)
        every = scene.list_intersections(self.rays)
        times = [every["t_hit"][every["ray_ids"] == k].tolist() for k in range(n)]
        yield equal("list_intersections", times, [[float(single(x.t)) for x in row] for row in rows])

    def alone(self, k: int) -> "Singles":
        return self._replace(rays=self.rays[[k]])

    def source(self) -> str:
        return f"# RaycastingScene: triangles {self.corners.tolist()}, rays {self.rays.tolist()} of float32"


def rows_of(mesh: rb.Mesh, origins, directions) -> list:
    """Return the exact hits of each ray."""
    n = len(origins)
    rays = rb.Rays(origins, directions, t_min=np.zeros(n), t_max=np.full(n, np.inf))
    return Truth(Case("mesh", (mesh,), rays)).rows


def _count(counts, rows) -> None:
    counts["hits"] += sum(map(bool, rows))
    counts["misses"] += sum(not row for row in rows)
    counts["ties"] += sum(a.t == b.t for row in rows for a, b in pairwise(row))


def single(x: Fraction) -> np.float32:
    """Return a number rounded once to float32, ties to even."""
    with np.errstate(over="ignore"):
        near = np.float32(rounded(x))
        around = [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]

    def key(y):
        ends = Fraction(2) ** 128 * (1 if y > 0 else -1)
        value = Fraction(float(y)) if np.isfinite(y) else ends
        return abs(value - x), int(np.float32(y).view(np.int32)) & 1

    return min(around, key=key)


def make_singles(rng, _kind) -> Singles:
    """Return triangles of planes x + y + z = c, and rays whose times are near middles of two float32."""
    c = float(rng.choice([1.0, 2.0, 4.0, 8.0]))
    corners = np.array([[-4.0, -4.0, 8.0], [8.0, -4.0, -4.0], [-4.0, 8.0, -4.0]])
    corners[:, 2] += c
    turn = rng.permutation(3)
    odd = 2 * rng.integers(0, 50, POINTS) + 1
    step = np.where(rng.random(POINTS) < 0.7, odd * c * 2.0**-24, rng.uniform(0, 1, POINTS))
    rest = scaled(rng.choice([-1.0, 1.0, 0.0], POINTS), rng.integers(-140, -40, POINTS))
    rays = np.zeros((POINTS, 6))
    rays[:, 0], rays[:, 1] = -step, rest
    rays[:, 5] = scaled(1.0, rng.integers(-3, 4, POINTS))
    return Singles(corners[None][:, :, turn], rays[:, [*turn, *(3 + turn)]].astype(np.float32))
