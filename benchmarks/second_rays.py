"""Time second rays beside embreex and Open3D: from what a picture shows to the sun, a lamp, and by a bounce.

    python benchmarks/second_rays.py FILE [--form boxes] [--view room] [--rounds 5] [--clock cpu]

The first rays are a picture's: an oblique one, or that of a room of the house. Second rays start at its hits,
off the surface towards the viewer: as many as a picture of 768 x 768 has pixels, where four times as many
pixels show so many. Those to the sun go one way; those to the lamp end there, at t = 1; for both the query is
`occluded`. A bounce is random, cosine-weighted about the normal; its query is `nearest`. All get the same
float32 numbers; conversion to each contestant's own form is not timed. Contestants alternate.
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import meshes
import raybox as rb
from raybox.bench import data, machine, report, timing, worker
from raybox_peers import common

KINDS = {"sun": "occluded", "lamp": "occluded", "bounce": "nearest"}
"""Of second rays, with their queries."""
FORMS = "triangles", "boxes"
VIEWS = "oblique", "room"
_SUN = np.array([0.4, -0.5, 0.8]) / np.linalg.norm([0.4, -0.5, 0.8])
_SAMPLE, _MOST_PIXELS = 2**14, 4  # pixels; pixels for each second ray
_OFFSET = 1e-5  # of the scene's longest side: hundreds of times what float32 rounds off
_ROOM_EYE, _ROOM_TARGET, _ROOM_LAMP = (
    (6.0, 4.8, 3.1),
    (1.5, 11.0, 2.6),
    (3.5, 7.5, 4.0),
)  # in the house, metres


class Target(NamedTuple):
    """A scene: raybox's geometry, the triangles that peers get, and what the rays depend on."""

    geometry: rb.Mesh | rb.Boxes
    vertices: np.ndarray
    faces: np.ndarray
    around: np.ndarray


class SecondRays(NamedTuple):
    """Rays for t from 0 to t_max, of float32 numbers."""

    origins: np.ndarray
    directions: np.ndarray
    t_max: float


class SurfacePoints(NamedTuple):
    """What a picture shows: points off the surface, and unit normals towards the viewer."""

    origins: np.ndarray
    normals: np.ndarray


Cast = Callable[[], Any]
Prepare = Callable[[str, SecondRays], Cast]
"""(query, rays) -> the call that is timed"""


def load(path: str, form: str) -> Target:
    """Return the triangles of a file, or a box for each of its objects."""
    if form == "triangles":
        vertices, faces, scene = meshes.load(path)
        return Target(rb.Mesh(vertices, faces), vertices, faces, scene.around)
    boxes = data.boxes(path, 0)
    corners, faces = common.corners(boxes), common.faces(boxes, np.int32)
    return Target(rb.Boxes(boxes.lower, boxes.upper), corners, faces, boxes.around)


def first_rays(view: str, count: int, around: np.ndarray) -> rb.Rays:
    """Return the rays of a picture."""
    if view == "oblique":
        return rb.Rays(*data.rays("oblique", count, data.BoxSet(around[:1], around[1:], around)))
    width = int(count**0.5)
    size = {"width": width, "height": width}
    return rb.Rays.pinhole(_ROOM_EYE, _ROOM_TARGET, up=[0, 0, 1], fov=90, **size).reshape(-1)


def surface_points(view: str, count: int, target: Target) -> SurfacePoints:
    """Return about `count` points that a picture shows, fewer where four times as many pixels show fewer.

    Points of rays that start inside of a box, which have no normal, are left out.
    """
    scene = rb.Scene(target.geometry)
    share = scene.occluded(first_rays(view, _SAMPLE, target.around)).mean()
    rays = first_rays(view, int(count * min(_MOST_PIXELS, 1 / share)), target.around)
    hits = scene.nearest(rays)
    normals, directions = hits.normals, np.broadcast_to(rays.directions, (*hits.shape, 3))
    some = hits.hit & normals.any(axis=-1)
    away = (normals * directions).sum(axis=-1, keepdims=True) > 0.0
    facing = np.where(away, -normals, normals)[some]
    longest = (target.around[1] - target.around[0]).max()
    return SurfacePoints(hits.points[some] + _OFFSET * longest * facing, facing)


def second_rays(kind: str, surface: SurfacePoints, view: str, around: np.ndarray) -> SecondRays:
    """Return second rays of a kind."""
    origins = _single(surface.origins)
    if kind == "sun":
        return SecondRays(origins, np.tile(_single(_SUN), (len(origins), 1)), np.inf)
    if kind == "lamp":
        return SecondRays(origins, _single(_lamp(view, around) - origins), 1.0)
    ways = np.random.default_rng(2).standard_normal(origins.shape)
    ways = surface.normals + ways / np.linalg.norm(ways, axis=1, keepdims=True)
    return SecondRays(origins, _single(ways / np.linalg.norm(ways, axis=1, keepdims=True)), np.inf)


def _lamp(view: str, around: np.ndarray) -> np.ndarray:
    """Return where the lamp is: in the room, or above the middle by half of the longest side."""
    if view == "room":
        return np.array(_ROOM_LAMP)
    return np.append(around.mean(axis=0)[:2], around[1, 2] + 0.5 * (around[1] - around[0]).max())


def _single(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32).astype(np.float64)


def raybox(target: Target) -> Prepare:
    scene = rb.Scene(target.geometry)

    def prepare(query: str, rays: SecondRays) -> Cast:
        own = rb.Rays(rays.origins, rays.directions, t_max=rays.t_max)
        return partial(getattr(scene, query), own, workers=1)

    return prepare


def embreex(target: Target) -> Prepare:
    from embreex.mesh_construction import TriangleMesh
    from embreex.rtcore_scene import EmbreeScene

    scene = EmbreeScene()
    mesh_reference = TriangleMesh(scene, target.vertices.astype(np.float32), target.faces.astype(np.int32))

    def prepare(query: str, rays: SecondRays) -> Cast:
        assert mesh_reference is not None  # it must live as long as the scene
        how: dict[str, Any] = {"query": "INTERSECT", "output": True}
        if query == "occluded":
            how = {"query": "OCCLUDED"}
        if np.isfinite(rays.t_max):
            how["dists"] = np.full(len(rays.origins), rays.t_max, np.float32)
        return partial(scene.run, rays.origins.astype(np.float32), rays.directions.astype(np.float32), **how)

    return prepare


def open3d(target: Target) -> Prepare:
    import open3d as o3d

    scene = o3d.t.geometry.RaycastingScene(nthreads=1)
    scene.add_triangles(target.vertices.astype(np.float32), target.faces.astype(np.uint32))

    def prepare(query: str, rays: SecondRays) -> Cast:
        own = o3d.core.Tensor(np.hstack(rays[:2]).astype(np.float32))
        if query == "occluded":
            return partial(scene.test_occlusions, own, tnear=0.0, tfar=rays.t_max, nthreads=1)
        return partial(scene.cast_rays, own, nthreads=1)

    return prepare


MAKERS: dict[str, Callable[[Target], Prepare]] = {"raybox": raybox, "embreex": embreex, "open3d": open3d}


def hits_of(name: str, query: str, result: Any) -> np.ndarray:
    """Return whether each ray hits, of a contestant's result."""
    if name == "raybox":
        return result if query == "occluded" else result.hit
    if name == "embreex":
        return (result if query == "occluded" else result["primID"].astype(np.int64)) >= 0
    return result.numpy() if query == "occluded" else np.isfinite(result["t_hit"].numpy())


def measure(
    path: str,
    form: str = "triangles",
    view: str = "oblique",
    *,
    names: tuple[str, ...] = ("raybox", "embreex"),
    ray_count: int = 768**2,
    rounds: int = 5,
    least: float = 0.0,
    clock: str = "wall",
) -> dict[str, Any]:
    """Return the times of all contestants that are installed, in the form of `raybox.bench.runner`.

    `differing` is the number of rays that hit by one contestant alone.
    """
    target, able, contestants = load(path, form), {}, []
    for name in names:
        why_not = ""
        try:
            able[name] = MAKERS[name](target)
        except ImportError as error:
            why_not = f"not installed ({error})"
        contestants.append({"name": name, "why_not": why_not})
    surface, times = surface_points(view, ray_count, target), []
    for kind, query in KINDS.items():
        rays = second_rays(kind, surface, view, target.around)
        calls = {name: prepare(query, rays) for name, prepare in able.items()}
        found = {name: hits_of(name, query, call()) for name, call in calls.items()}
        for name, seconds in timing.alternate(calls, rounds, timing.CLOCKS[clock], least=least).items():
            facts = {"rays": kind, "query": query, "name": name, "ray_count": len(rays.origins)}
            differing = int((found[name] != found["raybox"]).sum())
            times.append(facts | {"differing": differing, "hits": int(found[name].sum()), "seconds": seconds})
    spec = {"boxes": Path(path).stem, "threads": 1, "names": [*able]}
    facts_of = {"spec": spec, "size": len(target.geometry), "machine": machine.describe()}
    return facts_of | {"contestants": contestants, "times": times}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", metavar="FILE")
    parser.add_argument("--form", choices=FORMS, default=FORMS[0])
    parser.add_argument("--view", choices=VIEWS, default=VIEWS[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clock", choices=timing.CLOCKS, default="wall", help="wall, or cpu: processor time")
    options = parser.parse_args()
    worker.bind(1)
    how = vars(options) | {"names": tuple(MAKERS)}
    result = measure(**how)
    print(machine.in_words(result["machine"]))
    print(report.text(*report.pivot(report.rows(result))))
    print(*report.absent(result), sep="\n")
    for record in result["times"]:
        shares = f"{record['hits'] / record['ray_count']:.1%} hit, {record['differing']:,} differ"
        print(f"{record['rays']}, {record['name']}: of {record['ray_count']:,} rays {shares}")


if __name__ == "__main__":
    main()
