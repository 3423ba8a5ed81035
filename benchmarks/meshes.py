"""Time raybox on a mesh of triangles beside embreex, open3d, and trimesh with rtree, in one run.

    python benchmarks/meshes.py MESH [--rays 1000000] [--threads 1] [--rounds 7]

Rays are those of raybox.bench: incoherent, inside, camera; their conversion to each contestant's own form is
not timed. Contestants alternate, every second round backwards; a ratio is the median over rounds of a peer's
time for a ray over raybox's in the same round. Coordinates are float32 numbers. The output is a table, with
the number of rays whose results differ in brackets: another triangle, or a hit for a miss. Peers that are not
installed are left out.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import raybox as rb
from raybox.bench import data, timing

QUERIES = ("nearest", "occluded", "count")
RTREE_RAYS = 64  # rays of trimesh with rtree, which needs about a millisecond for each


class Contestant(NamedTuple):
    """A library with its queries and its most rays; `read` returns the triangles of nearest."""

    name: str
    prepare: Callable[[data.RaySet], Any]
    run: dict[str, Callable[[Any], Any]]
    read: Callable[[Any], np.ndarray]
    max_rays: int = 1 << 30


class Settings(NamedTuple):
    """A mesh, and the number of threads."""

    vertices: np.ndarray
    faces: np.ndarray
    threads: int


def ours(mesh: Settings) -> Contestant:
    scene = rb.Scene(rb.Mesh(mesh.vertices, mesh.faces))

    def query_of(query: str) -> Callable[[rb.Rays], Any]:
        return lambda rays: getattr(scene, query)(rays, workers=mesh.threads)

    run = {name: query_of(name) for name in QUERIES}
    return Contestant("raybox", lambda rays: rb.Rays(*rays), run, lambda hits: hits.index)


def embreex(mesh: Settings) -> Contestant:
    from embreex.mesh_construction import TriangleMesh
    from embreex.rtcore_scene import EmbreeScene

    scene, pool = EmbreeScene(), ThreadPoolExecutor(mesh.threads)
    mesh_reference = TriangleMesh(scene, mesh.vertices.astype(np.float32), mesh.faces.astype(np.int32))

    def run(parts: list[data.RaySet], **options: Any) -> list[Any]:
        assert mesh_reference is not None
        return list(pool.map(lambda part: scene.run(*part, **options), parts))

    def prepare(rays: data.RaySet) -> list[data.RaySet]:
        parts = (np.array_split(x.astype(np.float32), mesh.threads) for x in rays)
        return [data.RaySet(*part) for part in zip(*parts, strict=True)]

    return Contestant(
        "embreex",
        prepare,
        {
            "nearest": lambda rays: run(rays, query="INTERSECT", output=True),
            "occluded": lambda rays: run(rays, query="OCCLUDED"),
        },
        lambda parts: np.concatenate([part["primID"] for part in parts]).astype(np.int64),
    )


def open3d(mesh: Settings) -> Contestant:
    import open3d as o3d

    scene = o3d.t.geometry.RaycastingScene(nthreads=mesh.threads)
    scene.add_triangles(mesh.vertices.astype(np.float32), mesh.faces.astype(np.uint32))
    verbs = dict(zip(QUERIES, ("cast_rays", "test_occlusions", "count_intersections"), strict=True))

    def query_of(verb: str) -> Callable[[Any], Any]:
        return lambda rays: getattr(scene, verb)(rays, nthreads=mesh.threads)

    def prepare(rays: data.RaySet) -> Any:
        return o3d.core.Tensor(np.hstack(rays).astype(np.float32))

    def read(result: Any) -> np.ndarray:
        found = result["primitive_ids"].numpy().astype(np.int64)
        return np.where(found == 2**32 - 1, -1, found)

    return Contestant("open3d", prepare, {name: query_of(verb) for name, verb in verbs.items()}, read)


def trimesh_rtree(mesh: Settings) -> Contestant:
    import rtree as _  # noqa: F401
    import trimesh
    from trimesh.ray.ray_triangle import RayMeshIntersector

    ray = RayMeshIntersector(trimesh.Trimesh(mesh.vertices, mesh.faces, process=False))
    run = {
        "nearest": lambda rays: ray.intersects_first(*rays),
        "occluded": lambda rays: ray.intersects_any(*rays),
    }
    return Contestant("trimesh rtree", lambda rays: rays, run, lambda found: found, RTREE_RAYS)


def time_query(contestants: list[Contestant], query: str, rays: data.RaySet, rounds: int) -> Iterator[str]:
    """Yield the cells of a table row: rate, ratios, and numbers of differing rays."""
    chosen = [peer for peer in contestants if query in peer.run]
    parts = [rays.spread(peer.max_rays) for peer in chosen]
    prepared = [peer.prepare(part) for peer, part in zip(chosen, parts, strict=True)]
    calls = {peer.name: partial(peer.run[query], form) for peer, form in zip(chosen, prepared, strict=True)}
    results = [call() for call in calls.values()]  # compiles, builds
    seconds = timing.alternate(calls, rounds)
    pairs = zip(chosen, parts, strict=True)
    times = [np.array(seconds[peer.name]) / len(part.origins) for peer, part in pairs]
    yield f"{1e-6 / median(times[0]):.3g}"
    for peer in contestants[1:]:
        if peer not in chosen:
            yield "-"
            continue
        k = chosen.index(peer)
        ratio = median(b / a for a, b in zip(times[0], times[k], strict=True))
        different = f" ({differing(chosen, results, parts, k)})" if query == "nearest" else ""
        yield f"{ratio:.3g}{different}"


def differing(chosen: list[Contestant], results: list[Any], parts: list[data.RaySet], k: int) -> int:
    """Return the number of rays whose result differs from raybox's."""
    own, total, number = chosen[0], len(parts[0].origins), len(parts[k].origins)
    mine = own.read(results[0])[np.arange(number) * total // number]
    return int((mine != chosen[k].read(results[k])).sum())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("mesh")
    parser.add_argument("--rays", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--kinds", nargs="+", default=["incoherent", "inside", "camera"])
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-options.threads :])
    loaded = rb.load(options.mesh)
    vertices = np.asarray(loaded.vertices) - np.asarray(loaded.vertices).min(axis=0)
    mesh = Settings(vertices.astype(np.float32).astype(float), np.asarray(loaded.faces), options.threads)
    corners = mesh.vertices[mesh.faces]
    around = np.stack([mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)])
    boxes = data.BoxSet(corners.min(axis=1), corners.max(axis=1), around)
    contestants = [ours(mesh)]
    for make in (embreex, open3d, trimesh_rtree):
        with suppress(ImportError):
            contestants.append(make(mesh))
    names = " | ".join(f"{peer.name} /" for peer in contestants[1:])
    print(f"| rays | query | raybox M rays/s | {names} |")
    print(f"| --- | --- | ---: |{' ---: |' * (len(contestants) - 1)}")
    for kind in options.kinds:
        rays = data.rays(kind, options.rays, boxes)
        for query in QUERIES:
            cells = " | ".join(time_query(contestants, query, rays, options.rounds))
            print(f"| {kind} | {query} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
