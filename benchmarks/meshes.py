"""Time raybox on a mesh of triangles beside embreex, open3d, and trimesh over rtree, in one run.

    python benchmarks/meshes.py MESH [--rays 1000000] [--threads 1] [--rounds 7]

Rays are those of raybox.bench: incoherent, inside, camera; they are put into each contestant's own form
before the clock runs. Contestants take turns, every second round backwards; a ratio is the median over rounds
of a peer's time for a ray over raybox's in the same round. Coordinates are float32 numbers. Printed are rows
of a table, and in brackets how many rays a peer answers otherwise: another triangle, or a hit for a miss.
Peers that are not installed are left out.
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

QUESTIONS = ("nearest", "occluded", "count")
FEW = 64  # rays that trimesh over rtree is given: it takes about a millisecond for each


class Contestant(NamedTuple):
    """Who answers which questions, of so many of the rays; `read` gives nearest's triangles."""

    name: str
    prepare: Callable[[data.RaySet], Any]
    ask: dict[str, Callable[[Any], Any]]
    read: Callable[[Any], np.ndarray]
    most: int = 1 << 30


class Given(NamedTuple):
    """A mesh, and how many threads."""

    vertices: np.ndarray
    faces: np.ndarray
    threads: int


def ours(mesh: Given) -> Contestant:
    scene = rb.Scene(rb.Mesh(mesh.vertices, mesh.faces))

    def asker(question: str) -> Callable[[rb.Rays], Any]:
        return lambda rays: getattr(scene, question)(rays, workers=mesh.threads)

    ask = {name: asker(name) for name in QUESTIONS}
    return Contestant("raybox", lambda rays: rb.Rays(*rays), ask, lambda hits: hits.index)


def embreex(mesh: Given) -> Contestant:
    from embreex.mesh_construction import TriangleMesh
    from embreex.rtcore_scene import EmbreeScene

    scene, pool = EmbreeScene(), ThreadPoolExecutor(mesh.threads)
    kept = TriangleMesh(scene, mesh.vertices.astype(np.float32), mesh.faces.astype(np.int32))

    def run(parts: list[data.RaySet], **how: Any) -> list[Any]:
        assert kept is not None
        return list(pool.map(lambda part: scene.run(*part, **how), parts))

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


def open3d(mesh: Given) -> Contestant:
    import open3d as o3d

    scene = o3d.t.geometry.RaycastingScene(nthreads=mesh.threads)
    scene.add_triangles(mesh.vertices.astype(np.float32), mesh.faces.astype(np.uint32))
    verbs = dict(zip(QUESTIONS, ("cast_rays", "test_occlusions", "count_intersections"), strict=True))

    def asker(verb: str) -> Callable[[Any], Any]:
        return lambda rays: getattr(scene, verb)(rays, nthreads=mesh.threads)

    def prepare(rays: data.RaySet) -> Any:
        return o3d.core.Tensor(np.hstack(rays).astype(np.float32))

    def read(answer: Any) -> np.ndarray:
        found = answer["primitive_ids"].numpy().astype(np.int64)
        return np.where(found == 2**32 - 1, -1, found)

    return Contestant("open3d", prepare, {name: asker(verb) for name, verb in verbs.items()}, read)


def trimesh_rtree(mesh: Given) -> Contestant:
    import rtree as _  # noqa: F401
    import trimesh
    from trimesh.ray.ray_triangle import RayMeshIntersector

    ray = RayMeshIntersector(trimesh.Trimesh(mesh.vertices, mesh.faces, process=False))
    ask = {
        "nearest": lambda rays: ray.intersects_first(*rays),
        "occluded": lambda rays: ray.intersects_any(*rays),
    }
    return Contestant("trimesh rtree", lambda rays: rays, ask, lambda found: found, FEW)


def duel(all_of: list[Contestant], question: str, rays: data.RaySet, rounds: int) -> Iterator[str]:
    """Let all take turns; yield the cells of a row, and what they disagree on."""
    asked = [who for who in all_of if question in who.ask]
    parts = [rays.spread(who.most) for who in asked]
    given = [who.prepare(part) for who, part in zip(asked, parts, strict=True)]
    calls = {who.name: partial(who.ask[question], form) for who, form in zip(asked, given, strict=True)}
    answers = [call() for call in calls.values()]  # compiles, builds
    seconds = timing.alternate(calls, rounds)
    times = [np.array(seconds[who.name]) / len(part.origins) for who, part in zip(asked, parts, strict=True)]
    yield f"{1e-6 / median(times[0]):.3g}"
    for who in all_of[1:]:
        if who not in asked:
            yield "-"
            continue
        k = asked.index(who)
        ratio = median(b / a for a, b in zip(times[0], times[k], strict=True))
        yield f"{ratio:.3g}" + (f" ({differing(asked, answers, parts, k)})" if question == "nearest" else "")


def differing(asked: list[Contestant], answers: list[Any], parts: list[data.RaySet], k: int) -> int:
    """Count rays that a peer answers otherwise than raybox."""
    own, total, number = asked[0], len(parts[0].origins), len(parts[k].origins)
    mine = own.read(answers[0])[np.arange(number) * total // number]
    return int((mine != asked[k].read(answers[k])).sum())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("mesh")
    parser.add_argument("--rays", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--kinds", nargs="+", default=["incoherent", "inside", "camera"])
    how = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-how.threads :])
    loaded = rb.load(how.mesh)
    vertices = np.asarray(loaded.vertices) - np.asarray(loaded.vertices).min(axis=0)
    mesh = Given(vertices.astype(np.float32).astype(float), np.asarray(loaded.faces), how.threads)
    corners = mesh.vertices[mesh.faces]
    around = np.stack([mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)])
    boxes = data.BoxSet(corners.min(axis=1), corners.max(axis=1), around)
    contestants = [ours(mesh)]
    for make in (embreex, open3d, trimesh_rtree):
        with suppress(ImportError):
            contestants.append(make(mesh))
    print(f"| rays | question | raybox M rays/s | {' | '.join(f'{who.name} /' for who in contestants[1:])} |")
    print(f"| --- | --- | ---: |{' ---: |' * (len(contestants) - 1)}")
    for kind in how.kinds:
        rays = data.rays(kind, how.rays, boxes)
        for question in QUESTIONS:
            print(
                f"| {kind} | {question} | {' | '.join(duel(contestants, question, rays, how.rounds))} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
