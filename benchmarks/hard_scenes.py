"""Time queries in scenes where every ray ties with, touches or contains many primitives.

    python benchmarks/hard_scenes.py [--rays 2048] [--primitives 2000] [--family NAME] [--query NAME]
    python benchmarks/hard_scenes.py --walls

It prints a Markdown table: processor seconds on one thread, extrapolated from the pairs of a small scene of
each family of tests/helpers/hard_families.py to 10^5 rays at 10^5 primitives; how many times those of
`count`; and microseconds a pair. To time another tree, put its `src` on PYTHONPATH.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import hard_families
import raybox as rb
import real_data

PAIRS = 1e10  # of 10^5 rays and 10^5 primitives
QUERIES = {"count": {}, "occluded": {}, "nearest": {}, "first": {"k": 4}, "all": {}}
SIDE, ROUNDS = 256, 7  # of a sweep at a wall: rays in a row, and rounds
LISTED = 2e6  # pairs of a query with `all`, at most: its hits take memory


def seconds(query: Callable[[], object], rounds: int = 2) -> float:
    """Return the least processor seconds of a call."""
    best = np.inf
    for _ in range(rounds):
        start = time.process_time()
        query()
        best = min(best, time.process_time() - start)
    return best


def a_pair(name: str, query: str, options: argparse.Namespace) -> float:
    """Return the processor seconds of a query for each pair of a family's scene."""
    rng = np.random.default_rng(1)
    rays, geometry = hard_families.FAMILIES[name](rng, options.rays, options.primitives)
    if query == "all":
        rays = rays[: int(LISTED / options.primitives)]
    call = partial(getattr(rb.Scene(geometry), query), workers=1, **QUERIES[query])
    call(rays[:1])  # compile
    return seconds(partial(call, rays)) / (len(rays) * len(geometry))


def rows(options: argparse.Namespace) -> Iterator[str]:
    """Yield the rows of the table."""
    for name in options.family or hard_families.FAMILIES:
        base = a_pair(name, "count", options)
        for query in options.query or QUERIES:
            took = base if query == "count" else a_pair(name, query, options)
            yield f"| {name} | {query} | {took * PAIRS:,.1f} | {took / base:.1f} | {took * 1e6:.4f} |"


def quads(number: int, turned: bool = False) -> rb.Mesh:
    """Return upright walls in one oblique plane, exactly; or turned by a matrix, which rounds them."""
    rng = np.random.default_rng(2)
    ends = rng.uniform(0.5, 1, (2, 2)) * [[1, 1], [-1, 1]]
    heights = rng.uniform(0.5, 1, (number, 2)) * [-1, 1]
    corners = np.empty((number, 4, 3))
    corners[:, :, :2] = ends[[0, 1, 1, 0]]
    corners[:, :, 2] = heights[:, [0, 0, 1, 1]]
    if turned:
        corners = corners @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    corner, split = 4 * np.arange(number)[:, None, None], [[[0, 1, 2], [0, 2, 3]], [[1, 2, 3], [1, 3, 0]]]
    faces = np.resize(split, (number, 2, 3)) + corner
    return rb.Mesh(corners.reshape(-1, 3), faces.reshape(-1, 3))


def grid_at(mesh: rb.Mesh) -> rb.Rays:
    """Return a sweep from in front of a wall over its first quad."""
    first, second, _, last = mesh.vertices[:4]
    across, up = second - first, last - first
    s, t = (x[..., None] for x in np.meshgrid(*[np.linspace(0.01, 0.99, SIDE)] * 2))
    eye = first + across / 2 + up / 3 + 2 * np.cross(across, up)
    goals = (first + s * across + t * up).reshape(-1, 3)
    return rb.Rays(np.broadcast_to(eye, goals.shape), goals - eye)


def sweep_in(mesh: rb.Mesh) -> rb.Rays:
    """Return the beams of a lidar two meters above the ground of a city."""
    low, high = mesh.bounds
    eye = [*(low + high)[:2] / 2, low[2] + 2]
    azimuths, elevations = np.linspace(0, 360, 1024, endpoint=False), np.linspace(-15, 15, 64)
    a, e = np.meshgrid(np.radians(azimuths), np.radians(elevations))
    beams = np.stack([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)], axis=-1).reshape(-1, 3)
    return rb.Rays(np.broadcast_to(eye, beams.shape), beams)


def embree(mesh: rb.Mesh, rays: rb.Rays) -> Callable[[], object] | None:
    """Return a call of embreex on one thread; None if it is not installed."""
    try:
        from embreex.mesh_construction import TriangleMesh
        from embreex.rtcore_scene import EmbreeScene
    except ImportError:
        return None
    scene, middle = EmbreeScene(), mesh.bounds.mean(axis=0)
    reference = TriangleMesh(scene, (mesh.vertices - middle).astype(np.float32), mesh.faces.astype(np.int32))
    numbers = ((rays.origins - middle).astype(np.float32), rays.directions.astype(np.float32))
    return lambda: (reference, scene.run(*numbers, query="INTERSECT", output=True))


def walls() -> Iterator[str]:
    """Yield the rows of the table of walls."""
    scenes = {"one quad": quads(1), "two quads in one oblique plane": quads(2)}
    scenes |= {"two quads, turned by a matrix": quads(2, turned=True)}
    scenes |= {"party walls of a city": rb.load(real_data.CITY)}
    for name, mesh in scenes.items():
        rays = sweep_in(mesh) if "city" in name else grid_at(mesh)
        scene = rb.Scene(mesh)
        calls = {
            query: partial(getattr(scene, query), rays, workers=1, **how) for query, how in QUERIES.items()
        }
        calls |= {"embreex": peer} if (peer := embree(mesh, rays)) else {}
        for call in calls.values():
            call()  # compile
        best = dict.fromkeys(calls, np.inf)
        for _, query in itertools.product(range(ROUNDS), calls):
            best[query] = min(best[query], seconds(calls[query], 1) / len(rays) * 1e6)
        first = scene.first(rays, 2)
        tied = (first.hit[:, 1] & (first.t[:, 0] == first.t[:, 1])).mean()
        times = (f"{best[query]:.3f}" if query in best else "" for query in (*QUERIES, "embreex"))
        yield f"| {name} | {tied:.0%} | {' | '.join(times)} | {best['nearest'] / best['count']:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rays", type=int, default=2048)
    parser.add_argument("--primitives", type=int, default=2000)
    parser.add_argument("--family", choices=list(hard_families.FAMILIES), action="append")
    parser.add_argument("--query", choices=list(QUERIES), action="append")
    parser.add_argument("--walls", action="store_true", help="time walls of triangles instead")
    options = parser.parse_args()
    if options.walls:
        print(f"| scene | rays that tie | {' | '.join(QUERIES)} | embreex | nearest / count |")
        print(f"| --- | {'---: | ' * (len(QUERIES) + 3)}".rstrip())
        for row in walls():
            print(row, flush=True)
        return
    print("| family | query | s | of `count` | us a pair |\n| --- | --- | ---: | ---: | ---: |")
    for row in rows(options):
        print(row, flush=True)


if __name__ == "__main__":
    main()
