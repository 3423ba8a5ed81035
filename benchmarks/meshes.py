"""Time raybox on a mesh of triangles beside embreex, open3d, and trimesh with rtree, in one run.

    python benchmarks/meshes.py MESH [--rays 1000000] [--threads 1] [--rounds 7]

Rays are those of raybox.bench: oblique, camera, incoherent, inside; their conversion to each contestant's own
form is not timed. Contestants alternate, every second round backwards; a ratio is the median over rounds of a
peer's time for a ray over raybox's in the same round. Coordinates are float32 numbers. The output is a table,
and for `nearest` the number of rays whose results differ: another triangle, or a hit for a miss. Peers that
are not installed are left out.
"""

import argparse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import raybox as rb
from raybox.bench import data, machine, report, timing, worker
from raybox.bench.peers import Engine
from raybox.bench.runner import Spec

QUERIES = ("nearest", "occluded", "count")
RTREE_RAYS = 64  # rays of trimesh with rtree, which needs about a millisecond for each


class Triangles(NamedTuple):
    """A mesh at the origin, whose coordinates are float32 numbers; `scene` has the bounds that rays need."""

    vertices: np.ndarray
    faces: np.ndarray
    scene: data.BoxSet


def load(path: str) -> Triangles:
    """Return the triangles of a file."""
    mesh = rb.load(path)
    assert isinstance(mesh, rb.Mesh), f"{path} has no triangles"
    moved = mesh.vertices - mesh.vertices.min(axis=0)
    vertices = moved.astype(np.float32).astype(np.float64)
    around = np.stack([vertices.min(axis=0), vertices.max(axis=0)])
    return Triangles(vertices, np.asarray(mesh.faces), data.BoxSet(around[:1], around[1:], around))


def ours(mesh: Triangles, threads: int) -> Engine:
    scene = rb.Scene(rb.Mesh(mesh.vertices, mesh.faces))
    run = {name: partial(getattr(scene, name), workers=threads) for name in QUERIES}
    return Engine(lambda rays: rb.Rays(*rays), run, {"nearest": lambda hits: hits.index})


def embreex(mesh: Triangles, threads: int) -> Engine:
    from embreex.mesh_construction import TriangleMesh
    from embreex.rtcore_scene import EmbreeScene

    scene, pool = EmbreeScene(), ThreadPoolExecutor(threads)
    mesh_reference = TriangleMesh(scene, mesh.vertices.astype(np.float32), mesh.faces.astype(np.int32))

    def run(parts: list[data.RaySet], **options: Any) -> list[Any]:
        assert mesh_reference is not None
        if threads == 1:
            return [scene.run(*parts[0], **options)]
        return list(pool.map(lambda part: scene.run(*part, **options), parts))

    def prepare(rays: data.RaySet) -> list[data.RaySet]:
        parts = (np.array_split(x.astype(np.float32), threads) for x in rays)
        return [data.RaySet(*part) for part in zip(*parts, strict=True)]

    return Engine(
        prepare,
        {
            "nearest": lambda rays: run(rays, query="INTERSECT", output=True),
            "occluded": lambda rays: run(rays, query="OCCLUDED"),
        },
        {"nearest": lambda parts: np.concatenate([part["primID"] for part in parts]).astype(np.int64)},
    )


def open3d(mesh: Triangles, threads: int) -> Engine:
    import open3d as o3d

    scene = o3d.t.geometry.RaycastingScene(nthreads=threads)
    scene.add_triangles(mesh.vertices.astype(np.float32), mesh.faces.astype(np.uint32))
    verbs = dict(zip(QUERIES, ("cast_rays", "test_occlusions", "count_intersections"), strict=True))

    def read(result: Any) -> np.ndarray:
        found = result["primitive_ids"].numpy().astype(np.int64)
        return np.where(found == 2**32 - 1, -1, found)

    return Engine(
        lambda rays: o3d.core.Tensor(np.hstack(rays).astype(np.float32)),
        {name: partial(getattr(scene, verb), nthreads=threads) for name, verb in verbs.items()},
        {"nearest": read},
    )


def trimesh_rtree(mesh: Triangles, _threads: int) -> Engine:
    import rtree as _  # noqa: F401
    import trimesh
    from trimesh.ray.ray_triangle import RayMeshIntersector

    ray = RayMeshIntersector(trimesh.Trimesh(mesh.vertices, mesh.faces, process=False))
    run = {
        "nearest": lambda rays: ray.intersects_first(*rays),
        "occluded": lambda rays: ray.intersects_any(*rays),
    }
    return Engine(lambda rays: rays, run, {"nearest": np.asarray})


MAKERS: dict[str, Callable[[Triangles, int], Engine]] = {
    "raybox": ours,
    "embreex": embreex,
    "open3d": open3d,
    "trimesh rtree": trimesh_rtree,
}
MOST = {"trimesh rtree": RTREE_RAYS}


SPEC = Spec("triangles", rays=data.SCENE_KINDS, queries=QUERIES, names=tuple(MAKERS), ray_count=1_000_000)


def measure(mesh: str, **how: Any) -> dict[str, Any]:
    """Return the times of all contestants that are installed, in the form of `raybox.bench.runner`.

    how: fields of its `Spec` that are not those of `SPEC`.
    """
    spec = SPEC._replace(**how)
    triangles, engines, contestants = load(mesh), {}, []
    for name in spec.names:
        why_not = ""
        try:
            engines[name] = MAKERS[name](triangles, spec.threads)
        except ImportError as error:
            why_not = f"not installed ({error})"
        contestants.append({"name": name, "why_not": why_not})
    times: list[dict[str, Any]] = []
    for kind in spec.rays:
        cast = data.rays(kind, spec.ray_count, triangles.scene)
        for query in spec.queries:
            able = {name: engine for name, engine in engines.items() if query in engine.run}
            times += [{"rays": kind, "query": query} | one for one in _time(able, query, cast, spec)]
    return {
        "spec": spec._asdict(),
        "size": len(triangles.faces),
        "machine": machine.describe(),
        "contestants": contestants,
        "times": times,
    }


def _time(engines: dict[str, Engine], query: str, rays: data.RaySet, spec: Spec) -> list[dict[str, Any]]:
    """Return a record for each contestant, with the number of rays whose result is not raybox's."""
    calls, records, expected = {}, [], np.empty(0)
    for name, engine in engines.items():
        some = rays.spread(MOST.get(name, len(rays.origins)))
        calls[name] = partial(engine.run[query], engine.prepare(some))
        result, count = calls[name](), len(some.origins)  # builds and compiles
        records.append({"name": name, "ray_count": count})
        if query == "nearest":
            found = engine.read[query](result)
            expected = expected if len(expected) else found
            chosen = np.arange(count) * len(expected) // count
            records[-1]["differing"] = int((found != expected[chosen]).sum())
    seconds = timing.alternate(calls, spec.rounds, timing.CLOCKS[spec.clock], least=spec.least)
    return [record | {"seconds": seconds[record["name"]]} for record in records]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("mesh")
    parser.add_argument("--rays", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--kinds", nargs="+", default=data.SCENE_KINDS)
    options = parser.parse_args()
    worker.bind(options.threads)
    result = measure(
        options.mesh,
        rays=options.kinds,
        ray_count=options.rays,
        threads=options.threads,
        rounds=options.rounds,
    )
    print(report.markdown(*report.pivot(report.rows(result))))
    for line in report.absent(result):
        print(f"not measured: {line}")
    for record in result["times"]:
        if record.get("differing"):
            print(
                f"{record['name']}, {record['rays']}: {record['differing']} of {record['ray_count']} differ"
            )


if __name__ == "__main__":
    main()
