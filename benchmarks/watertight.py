"""Cast millions of rays at vertices and edges of closed meshes, and count those that pass through.

    python benchmarks/watertight.py [--rays 10000000] [--sample 100000] [--workers 2]

Meshes: a sphere of 1.3 million triangles, and a skull of 100,000. Their vertices are on a grid
of 2^-22, so that a ray can be aimed at one, or at a quarter point of an edge, without rounding: its origin is
that point less a multiple of the direction, in whole numbers. Such a ray must hit the mesh no later than
there, and also with its range reduced to that one time. Besides, lines in random directions must cross the
mesh an even number of times. Random rays of a sample, and second rays (those of second_rays.py, half of them
from vertices), must hit exactly the triangles that rational arithmetic (tests/helpers/exact_surfaces.py)
finds; second rays also in a house and a city, which are open. The exit code is 1 if a ray passes through, a
line is odd, or a hit is wrong.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import exact_surfaces
import raybox as rb
import real_data
import second_rays

GRID = 2.0**22
BATCH = 1_000_000
REACH = 2.0**-9  # t from a ray's origin to its target; directions are whole numbers up to 1024


LABELS = {
    "vertices": "at vertices: pass through",
    "edges": "at edges: pass through",
    "lines": "random lines: odd",
    "sample": "random rays: wrong hits",
    "second": "second rays: wrong hits",
}
JOBS = list(LABELS)
OPEN = ["house", "city"]  # meshes for the last job alone


class Found(NamedTuple):
    """Numbers of rays cast and of wrong results."""

    rays: int
    wrong: int
    seconds: float


def on_grid(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a mesh scaled to [-1, 1] with its vertices on the grid."""
    middle = (vertices.min(axis=0) + vertices.max(axis=0)) / 2
    size = np.abs(vertices - middle).max()
    return np.round((vertices - middle) / size * GRID) / GRID, faces


def sphere(times: int) -> tuple[np.ndarray, np.ndarray]:
    """Return an icosahedron subdivided so many times: 20 * 4 ** times triangles."""
    golden = (1 + 5**0.5) / 2
    plane = np.array([[x, y] for x in (-1.0, 1.0) for y in (-golden, golden)])
    plane = np.insert(plane, 0, 0.0, axis=1)
    vertices = np.concatenate([np.roll(plane, k, axis=1) for k in range(3)])
    near = np.linalg.norm(vertices[:, None] - vertices[None], axis=2) < 2.1
    faces = np.array(
        [
            (i, j, k)
            for i in range(12)
            for j in range(i + 1, 12)
            for k in range(j + 1, 12)
            if near[i, j] and near[j, k] and near[i, k]
        ]
    )
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    inward = (np.cross(b - a, c - a) * a).sum(axis=1) < 0
    faces[inward] = faces[inward][:, [0, 2, 1]]
    for _ in range(times):
        vertices, faces = divided(vertices, faces)
    return vertices / np.linalg.norm(vertices, axis=1, keepdims=True), faces


def edges_of(faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each edge once (low vertex first), and the number of each face's three."""
    pairs = np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    keys, numbers = np.unique(pairs[:, 0] * (faces.max() + 1) + pairs[:, 1], return_inverse=True)
    return np.stack(np.divmod(keys, faces.max() + 1), axis=1), numbers.reshape(-1, 3)


def divided(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a sphere with each triangle divided into four."""
    edges, numbers = edges_of(faces)
    middles = vertices[edges].sum(axis=1)
    middles *= np.linalg.norm(vertices[0]) / np.linalg.norm(middles, axis=1, keepdims=True)
    (a, b, c), (ab, bc, ca) = faces.T, (numbers + len(vertices)).T
    parts = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    return np.concatenate([vertices, middles]), np.concatenate([np.stack(part, axis=1) for part in parts])


def open_edges(faces: np.ndarray) -> int:
    """Return the number of edges not shared by two triangles in opposite directions."""
    directions = faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    ahead, back = (
        np.sort(pair[:, 0] * (faces.max() + 1) + pair[:, 1]) for pair in (directions, directions[:, ::-1])
    )
    return int((ahead != back).sum() + (ahead[1:] == ahead[:-1]).sum())


def targets(
    vertices: np.ndarray, edges: np.ndarray, kind: str, rng: np.random.Generator, n: int
) -> np.ndarray:
    """Return vertices, or points at quarters of edges: exact in float64."""
    if kind == "vertices":
        return vertices[rng.integers(0, len(vertices), n)]
    a, b = (vertices[x] for x in edges[rng.integers(0, len(edges), n)].T)
    share = rng.integers(1, 4, (n, 1))
    return (a * (4 - share) + b * share) / 4


def aimed(
    scene: rb.Scene, options: argparse.Namespace, kind: str, mesh: tuple[np.ndarray, np.ndarray]
) -> Found:
    """Return how many rays aimed at vertices or edges miss."""
    rng = np.random.default_rng(7)
    (vertices, faces), leaks, spent = mesh, 0, 0.0
    edges = edges_of(faces)[0]
    for begin in range(0, options.rays, BATCH):
        n = min(BATCH, options.rays - begin)
        target, direction = (
            targets(vertices, edges, kind, rng, n),
            rng.integers(-1024, 1025, (n, 3)).astype(float),
        )
        origin = target - direction * REACH
        assert ((target - origin) == direction * REACH).all()  # nothing was rounded
        start = time.perf_counter()
        first = rb.Rays(origin, direction)
        there = rb.Rays(origin, direction, t_min=REACH, t_max=REACH)
        hit = (scene.nearest(first, workers=options.workers).t <= REACH) & scene.occluded(
            there, workers=options.workers
        )
        spent += time.perf_counter() - start
        leaks += int((~hit & direction.any(axis=1)).sum())
    return Found(options.rays, leaks, spent)


def even(scene: rb.Scene, options: argparse.Namespace) -> Found:
    """Return how many random lines cross the mesh an odd number of times."""
    rng, odd, spent = np.random.default_rng(8), 0, 0.0
    for begin in range(0, options.rays, BATCH):
        n = min(BATCH, options.rays - begin)
        lines = rb.Rays.lines(rng.uniform(-1, 1, (n, 3)), rng.standard_normal((n, 3)))
        start = time.perf_counter()
        odd += int((scene.count(lines, workers=options.workers) % 2).sum())
        spent += time.perf_counter() - start
    return Found(options.rays, odd, spent)


def calls_of_second_rays(mesh: rb.Mesh, options: argparse.Namespace) -> Iterator[rb.Rays]:
    """Yield rays to the sun, rays to a lamp, and bounces: from what a picture shows, and from vertices."""
    around, vertices = np.stack(mesh.bounds), np.array(mesh.vertices)
    target = second_rays.Target(mesh, vertices, np.array(mesh.faces), around)
    surface, rng = second_rays.surface_points("oblique", options.sample, target), np.random.default_rng(9)
    some = vertices[rng.integers(0, len(vertices), len(surface.origins))]
    origins = np.where(rng.random((len(some), 1)) < 0.5, some, surface.origins)
    for kind in second_rays.KINDS:
        rays = second_rays.second_rays(kind, surface._replace(origins=origins), "oblique", around)
        yield rb.Rays(*rays[:2], t_max=rays.t_max)


def random_rays(options: argparse.Namespace) -> rb.Rays:
    """Return rays of any direction in and around a mesh."""
    rng, shape = np.random.default_rng(9), (options.sample, 3)
    return rb.Rays(rng.uniform(-1.5, 1.5, shape), rng.standard_normal(shape))


def exact_rows(mesh: rb.Mesh, rays: rb.Rays) -> Iterator[list[tuple[float, int]]]:
    """Yield the hits (t, index) of each ray in exact order, by rational arithmetic."""
    candidates = rb.Scene(rb.Boxes.of_triangles(mesh.vertices, mesh.faces)).all(rays)
    origins, ends = np.broadcast_to(rays.origins, (*rays.shape, 3)), np.broadcast_to(rays.t_max, rays.shape)
    given = zip(origins.tolist(), rays.directions.tolist(), ends.tolist(), strict=True)
    corners = mesh.triangles
    for (begin, end), (origin, direction, t_max) in zip(pairwise(candidates.offsets), given, strict=True):
        hits = []
        for i in candidates.index[begin:end].tolist():
            hit = exact_surfaces.triangle(origin, direction, (0.0, t_max), *corners[i].tolist())
            hits += [(hit[0].t, i)] if hit else []
        yield [(float(t), i) for t, i in sorted(hits)]


def compared(mesh: rb.Mesh, scene: rb.Scene, rays: rb.Rays, options: argparse.Namespace) -> Found:
    """Return how many rays `all`, `nearest` or `occluded` answers otherwise than rational arithmetic."""
    start = time.perf_counter()
    got, nearest = (getattr(scene, query)(rays, workers=options.workers) for query in ("all", "nearest"))
    occluded = scene.occluded(rays, workers=options.workers)
    spent = time.perf_counter() - start
    rows, wrong = list(zip(got.t.tolist(), got.index.tolist(), strict=True)), 0
    firsts = zip(nearest.t.tolist(), nearest.index.tolist(), strict=True)
    answers = zip(pairwise(got.offsets), firsts, occluded.tolist(), strict=True)
    for truth, ((begin, end), first, is_hit) in zip(exact_rows(mesh, rays), answers, strict=True):
        right = [*truth, (np.inf, -1)][0], bool(truth)
        wrong += rows[begin:end] != truth or (first, is_hit) != right
    return Found(len(rays), wrong, spent)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rays", type=int, default=10_000_000)
    parser.add_argument("--sample", type=int, default=100_000)
    parser.add_argument("--divide", type=int, default=8, help="times the sphere is subdivided")
    parser.add_argument("--data", type=Path, default=real_data.FOLDER, help="the folder of real files")
    parser.add_argument("--workers", type=int, default=-1)
    names = ["sphere", "skull", *OPEN]
    parser.add_argument("--meshes", nargs="+", default=names, choices=names)
    parser.add_argument("--jobs", nargs="+", default=JOBS, choices=JOBS)
    options = parser.parse_args()
    failed = False
    for name in options.meshes:
        vertices, faces = on_grid(*raw_mesh(name, options))
        mesh = rb.Mesh(vertices, faces)
        scene = rb.Scene(mesh)
        print(f"{name}: {len(mesh):,} triangles, {open_edges(faces)} edges open", flush=True)
        for job in [job for job in options.jobs if name not in OPEN or job == "second"]:
            found = run_job(job, mesh, scene, options)
            failed |= found.wrong > 0
            print(f"  {found.rays:>12,} {LABELS[job]} {found.wrong}  ({found.seconds:.1f} s)", flush=True)
    return int(failed)


def raw_mesh(name: str, options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices and faces."""
    if name == "sphere":
        return sphere(options.divide)
    bundled = Path(rb.__file__).parent / "data" / "duplex.npz"
    paths = {"skull": Path("skull_mesh", "skull.obj"), "city": Path("delft_cityjson", "delft.city.json")}
    mesh = rb.load(options.data / paths[name] if name in paths else bundled)
    return np.array(mesh.vertices), np.array(mesh.faces)


def run_job(job: str, mesh: rb.Mesh, scene: rb.Scene, options: argparse.Namespace) -> Found:
    """Return the result of one of the jobs."""
    if job in ("vertices", "edges"):
        return aimed(scene, options, job, (np.array(mesh.vertices), np.array(mesh.faces)))
    if job == "lines":
        return even(scene, options)
    calls = calls_of_second_rays(mesh, options) if job == "second" else [random_rays(options)]
    return Found(*map(sum, zip(*(compared(mesh, scene, rays, options) for rays in calls), strict=True)))


if __name__ == "__main__":
    raise SystemExit(main())
