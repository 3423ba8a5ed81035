"""Everything that is compiled: each query on each geometry, builds, pairs, sums and files, seeded.

    python tests/helpers/everything.py [--digests FILE] [--kernels FILE] [CASE ...]

writes a checksum of each result as JSON, and a line for each entry point and the kinds of its arguments. A
combination of kinds that is missing from `src/raybox/kernels/kernels.txt` needs a case here.
"""

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import raybox as rb
from kernel_lines import merge
from raybox.adapters.open3d import RaycastingScene
from raybox.adapters.rtree import Index
from raybox.adapters.trimesh import RayMeshIntersector
from raybox.compiler import entry_points
from raybox.compiler.kinds import kind_of, writable_arrays
from raybox.compiler.runtime import spin_while
from raybox.geometry.ray_input import LARGE

Results = Iterator[tuple[str, Any]]

BATCHES = 1, 2, 7, 100, 3000, 5000  # rays: less than are sorted, and more
PIXELS = 72  # of a side of a picture, whose rays form packets
WORKERS = 2
MANY = 40_000  # boxes: more than one thread builds alone
SPACE = 12  # corners are integers below it: edges meet, and hits tie


class Options(NamedTuple):
    """A query and what it is called with, beside rays."""

    query: str
    args: tuple[Any, ...] = ()
    named: dict[str, Any] = {}  # noqa: RUF012


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


# Geometries


def boxes(seed: int, count: int, dimension: int = 3) -> rb.Boxes:
    """Return boxes with integer corners, some without thickness."""
    lower = rng(seed).integers(0, SPACE, (count, dimension))
    return rb.Boxes(lower, lower + rng(seed + 1).integers(0, 4, lower.shape))


def mesh(seed: int, count: int) -> rb.Mesh:
    """Return triangles with integer corners."""
    corners = rng(seed).integers(0, SPACE, (count, 1, 3)) + rng(seed + 1).integers(-3, 4, (count, 3, 3))
    return rb.Mesh(corners.reshape(-1, 3), np.arange(3 * count).reshape(-1, 3))


def planes(seed: int, count: int, dimension: int = 3) -> rb.Planes:
    normals = rng(seed).integers(-2, 3, (count, dimension))
    normals[~normals.any(axis=1)] = 1
    return rb.Planes(normals, rng(seed + 1).integers(0, SPACE, count))


def grid(dimension: int, occupied: bool) -> rb.Grid:
    shape = (7, 6, 5)[:dimension]
    some = rng(5).random(shape) < 0.4 if occupied else None
    return rb.Grid.uniform([0] * dimension, 2, shape, occupied=some)


def copies(geometry: rb.Boxes | rb.Mesh, count: int = 30) -> rb.Instances:
    """Return copies: some shifted, others uneven, whose edges no float64 decides."""
    dimension, even = geometry.ndim_space, count // 3
    placed = np.zeros((count, dimension, dimension + 1))
    placed[:, :, :dimension] = np.eye(dimension)
    placed[even:, :, :dimension] += rng(6).integers(-1, 2, (count - even, dimension, dimension)) / 3
    singular = np.abs(np.linalg.det(placed[:, :, :dimension])) < 0.01
    placed[singular, :, :dimension] = np.eye(dimension)
    placed[:, :, dimension] = rng(7).integers(-4, 5, (count, dimension))
    return rb.Instances(geometry, placed)


GEOMETRIES: dict[str, Callable[[], Any]] = {
    "boxes": lambda: boxes(1, 300),
    "flat boxes": lambda: boxes(2, 200, 2),
    "mesh": lambda: mesh(3, 300),
    "planes": lambda: planes(4, 12),
    "flat planes": lambda: planes(5, 12, 2),
    "grid": lambda: grid(3, False),
    "cells": lambda: grid(3, True),
    "flat grid": lambda: grid(2, False),
    "flat cells": lambda: grid(2, True),
    "copies of boxes": lambda: copies(boxes(6, 8)),
    "copies of a mesh": lambda: copies(mesh(7, 8)),
    "copies of flat boxes": lambda: copies(boxes(8, 4, 2), 6),
    "several": lambda: [boxes(9, 60), mesh(10, 60), planes(11, 4), grid(3, True), copies(boxes(12, 4))],
    "several boxes": lambda: [boxes(13, 60), copies(boxes(14, 4)), grid(3, True)],
}
SUMMED = GEOMETRIES.keys() - {"mesh", "planes", "flat planes", "copies of a mesh", "several"}
CULLED = "mesh", "planes", "flat planes", "copies of a mesh"
ONE_ROW: dict[str, Callable[[], Any]] = {
    "boxes": lambda: boxes(1, 1),
    "flat boxes": lambda: boxes(2, 1, 2),
    "mesh": lambda: mesh(3, 1),
    "planes": lambda: planes(4, 1),
    "flat planes": lambda: planes(5, 1, 2),
    "grid": lambda: rb.Grid.uniform([0, 0, 0], 3, (1, 1, 1)),
}


def listed(geometry: Any) -> list[Any]:
    return geometry if isinstance(geometry, list) else [geometry]


def of_each(geometry: Any, make: Callable[[int], np.ndarray]) -> Any:
    """Return the array of a geometry with this many primitives, or a list of those of several."""
    found = [make(len(one)) for one in listed(geometry)]
    return found if isinstance(geometry, list) else found[0]


def mask(geometry: Any) -> Any:
    """Return a mask of two in three primitives."""
    return of_each(geometry, lambda count: np.arange(count) % 3 > 0)


def widened(numbers: np.ndarray, channels: tuple[int, ...]) -> np.ndarray:
    """Return numbers, or for each a row of channels."""
    return numbers.reshape(-1, *[1] * len(channels)) + np.ones(channels)


# Rays


def rays(count: int, dimension: int = 3) -> rb.Rays:
    """Return rays from integer points in integer directions, half of them with ranges of their own."""
    origins = rng(20).integers(-3, SPACE + 3, (count, dimension))
    directions = rng(21).integers(-4, 5, origins.shape)
    if count == 1:
        return rb.Rays(origins[0], SPACE // 2 - origins[0])
    if count < BATCHES[-1]:
        return rb.Rays(origins, directions)
    low = rng(22).integers(-2, 3, count)
    return rb.Rays(origins, directions, t_min=low, t_max=low + rng(23).integers(0, 9, count))


def picture() -> rb.Rays:
    """Return the rays of a camera, so near each other that they form packets."""
    # No `pinhole`: the tangent of its angle may round otherwise on another system.
    middle = (PIXELS - 1) / 2
    matrix, axes = [[270, 0, middle], [0, 270, middle], [0, 0, 1]], [[0, -1, 0], [0, 0, -1], [1, 0, 0]]
    return rb.Rays.from_camera(matrix, axes, [6, 6, 2 * SPACE], width=PIXELS, height=PIXELS)


def batches(dimension: int) -> Iterator[tuple[str, rb.Rays]]:
    """Yield rays of each batch size, and those of a picture."""
    for count in BATCHES:
        yield str(count), rays(count, dimension)
    if dimension == 3:
        yield "picture", picture()


# Cases


CASES: dict[str, Callable[[], Results]] = {}


def case(run: Callable[[], Results]) -> Callable[[], Results]:
    CASES[run.__name__] = run
    return run


def options(name: str, geometry: Any, count: int) -> Iterator[Options]:
    """Yield every query of a geometry, for this many rays."""
    plain = [Options(query) for query in ("nearest", "occluded", "count", "all")]
    for one in [*plain, Options("first", (1,)), Options("first", (3,))]:
        yield one
        yield one._replace(named={"where": mask(geometry)})
        if name in CULLED:
            yield one._replace(named={"cull": "back"})
    if isinstance(geometry, rb.Grid):
        yield Options("segments")
        yield Options("segments", named={"where": mask(geometry)})
    if name in SUMMED:
        yield from _sums(geometry, count)


def of_batches(name: str, geometry: Any) -> Iterator[tuple[str, Options, rb.Rays]]:
    """Yield every query of a geometry with its name, for each batch of rays."""
    for size, some in batches(listed(geometry)[0].ndim_space):
        for k, one in enumerate(options(name, geometry, some.t_min.size)):
            yield f"{name}/{size}/{one.query}/{k}", one, some


def _sums(geometry: Any, count: int) -> Iterator[Options]:
    """Yield sums along rays, of none, one and two channels."""
    weights = np.linspace(0.5, 2, count)
    for channels in (None, (), (2,)):
        values, given = None, None
        if channels is not None:
            values = of_each(geometry, lambda n, to=channels: widened(np.linspace(-1, 1, n), to))
            given = widened(weights, channels)
        for reproducible in (False, True):
            yield Options("integrate", (values,), {"reproducible": reproducible})
            for per in ("length", "hit"):
                yield Options("deposit", (given,), {"reproducible": reproducible, "per": per})
    yield Options("integrate", named={"where": mask(geometry)})
    yield Options("deposit", named={"where": mask(geometry), "reproducible": True})


def run(scene: rb.Scene, one: Options, some: rb.Rays, whole: rb.Scene) -> Any:
    """Return the results of a query; of sums whose last bits are free, which are near reproducible ones."""
    found = getattr(scene, one.query)(some, *one.args, workers=WORKERS, **one.named)
    if one.query not in ("integrate", "deposit"):
        return found
    if one.named.get("reproducible"):
        return found
    exact = getattr(whole, one.query)(some, *one.args, **one.named | {"reproducible": True})
    pairs = zip(listed(found), listed(exact), strict=True)
    return [np.isclose(near, sums, rtol=1e-12, atol=1e-12) for near, sums in pairs]


@case
def queries() -> Results:
    """Every query on every geometry and batch size."""
    for name, make in GEOMETRIES.items():
        geometry = make()
        scene = rb.Scene(geometry)
        scene.check()
        yield f"{name}/stats", scene.stats()
        for part, one, some in of_batches(name, geometry):
            yield part, run(scene, one, some.reshape(-1) if one.args else some, scene)


@case
def builds() -> Results:
    """Each builder on one thread and several, refits, and rebuilds of parts and of the whole."""
    some, far = boxes(30, MANY), rays(BATCHES[-1])
    spread = rb.Boxes(some.lower * 50.0 + rng(31).random(some.lower.shape) * 40, some.lower * 50.0 + 41)
    for quality in ("fast", "balanced", "best"):
        for workers in (1, WORKERS):
            scene = rb.Scene(spread, quality=quality, workers=workers)
            yield f"{quality}/{workers}", scene.stats()
        for step, amount in (("near", 0.1), ("part", 300.0), ("all", 3000.0)):
            moved = np.arange(len(spread)) < (len(spread) // 5 if step == "part" else len(spread))
            shift = np.where(moved[:, None], (rng(32).random(spread.lower.shape) - 0.5) * (4 * amount), 0)
            scene.update(rb.Boxes(spread.lower + shift, spread.upper + shift))
            scene.check()
            yield f"{quality}/{step}", (scene.stats(), scene.nearest(far).index)
    for name in ("mesh", "planes", "copies of boxes", "copies of a mesh", "several boxes"):
        geometry = GEOMETRIES[name]()
        scene = rb.Scene(geometry)
        scene.update(geometry)
        yield f"{name}/update", (scene.stats(), scene.nearest(far).index)


@case
def sums() -> Results:
    """Sums of many values, which compiled code checks, and of rays whose numbers are out of range."""
    scene = rb.Scene(rb.Grid.uniform([0, 0, 0], 0.25, (48, 48, 48)))
    some, values = picture().reshape(-1), np.linspace(-1, 1, len(scene))
    yield "integrate", scene.integrate(some, values, workers=WORKERS)
    yield "deposit", scene.deposit(some, reproducible=True, workers=WORKERS)
    tiny = rb.Rays(some.origins, some.directions * 2.0**-500)
    for name in ("boxes", "grid"):
        scene = rb.Scene(GEOMETRIES[name]())
        yield f"tiny/{name}/integrate", scene.integrate(tiny, reproducible=True)
        yield f"tiny/{name}/deposit", scene.deposit(tiny, reproducible=True)
    no_scale = rb.Rays([-1.0, 3.0, 3.0], [2.0**600, 5e-324, 0.0])  # parts of a direction that lose bits
    yield "no scale/integrate", scene.integrate(no_scale, reproducible=True)
    for reproducible in (False, True):
        yield f"no scale/deposit/{reproducible}", scene.deposit(no_scale, reproducible=reproducible)


@case
def pairs() -> Results:
    """`intersect`: row by row, one against many, every ray against every row."""
    for name in ("boxes", "flat boxes", "mesh", "planes", "flat planes", "grid"):
        geometry = GEOMETRIES[name]()
        some = rays(len(geometry), geometry.ndim_space)
        forms = {
            "rows": (some, geometry),
            "one row": (some, ONE_ROW[name]()),
            "one ray": (rays(1, geometry.ndim_space), geometry),
            "all": (some[:, None], geometry),
            "blocks": (rays(400, geometry.ndim_space)[:, None], geometry),
            "repeated": (rays(4 * len(geometry), geometry.ndim_space).reshape(4, len(geometry)), geometry),
            "few": (some[:3, None], boxes(3, 3, geometry.ndim_space)),
            "few rows": (some[:3], boxes(3, 3, geometry.ndim_space)),
        }
        for form, (rows, against) in forms.items():
            for cull in (None, "back") if name in CULLED and "few" not in form else (None,):
                yield f"{name}/{form}/{cull}", rb.intersect(rows, against, cull=cull)


@case
def moving() -> Results:
    """`sweep`."""
    for name in ("boxes", "flat boxes"):
        geometry = GEOMETRIES[name]()
        scene = rb.Scene(geometry)
        for count in (1, 50):
            movers = boxes(40, count, geometry.ndim_space)
            steps = rng(41).integers(-9, 10, movers.lower.shape)
            for where in (None, mask(geometry)):
                yield f"{name}/{count}/{where is None}", rb.sweep(movers, steps, scene, where=where)


@case
def worlds() -> Results:
    """Groups of boxes and meshes, small ones and one with a tree of its own, and what rays leave out."""
    made = {name: GEOMETRIES[name]() for name in ("boxes", "flat boxes", "mesh", "copies of boxes")}
    for name, geometry in {**made, "several": [made["boxes"], made["mesh"]]}.items():
        given = listed(geometry)
        groups = [
            np.where(rng(50).random(len(one)) < 0.6, 7, rng(52).integers(-1, 40, len(one))) for one in given
        ]
        plain, parted = rb.Scene(geometry), rb.Scene(geometry, groups=groups if len(given) > 1 else groups[0])
        for part, some in batches(given[0].ndim_space):
            own = rng(51).integers(-1, 42, some.shape)
            for query, args in (
                ("nearest", ()),
                ("occluded", ()),
                ("count", ()),
                ("all", ()),
                ("first", (3,)),
            ):
                yield f"{name}/{part}/{query}", getattr(parted, query)(some, *args, groups=own)
                left = plain.nearest(some)
                yield f"{name}/{part}/{query}/exclude", getattr(plain, query)(some, *args, exclude=left)
            if "boxes" in name:
                yield f"{name}/{part}/integrate", parted.integrate(some, groups=own, reproducible=True)
                yield f"{name}/{part}/deposit", parted.deposit(some, groups=own, reproducible=True)


@case
def spatial() -> Results:
    """Points and boxes in boxes, in the boxes of triangles and copies, and in cells; neighbours and joins."""
    made = {
        name: GEOMETRIES[name]()
        for name in ("boxes", "flat boxes", "mesh", "copies of boxes", "cells", "grid")
    }
    made["several boxes"] = [made["boxes"], made["cells"]]
    for name, geometry in made.items():
        scene, some = rb.Scene(geometry), boxes(60, 3000, listed(geometry)[0].ndim_space)
        for where in (None, mask(geometry)):
            yield f"{name}/overlapping/{where is None}", scene.overlapping(some, where=where)
            yield f"{name}/join/{where is None}", scene.join(rb.Scene(some), where=where)
        yield f"{name}/pairs", scene.join(distance=1.5)
        yield f"{name}/counts", scene.overlapping(some[:5], count=True)
        if name in ("mesh", "copies of boxes"):
            continue
        yield f"{name}/containing", scene.containing(some.lower)
        yield f"{name}/within", scene.within_distance(some.lower, np.arange(len(some)) % 3)
        for k in (1, 4):
            yield f"{name}/closest/{k}", scene.closest(some.lower, k, max_distance=5.0)
    worlds = rb.Scene(made["boxes"], groups=rng(61).integers(-1, 9, 300))
    yield "groups/containing", worlds.containing(boxes(60, 3000).lower, groups=rng(62).integers(-1, 10, 3000))
    yield "groups/join", worlds.join()
    yield "contains", made["boxes"].contains(boxes(63, 100).lower)
    some = boxes(64, 300)
    index = Index(
        (np.arange(300), made["boxes"].lower, made["boxes"].upper), properties=SimpleNamespace(dimension=3)
    )
    yield "ties", index.nearest_v(some.lower, some.upper, num_results=2)


@case
def saved() -> Results:
    """Scenes on disk."""
    for name in ("boxes", "flat boxes", "mesh", "grid"):
        geometry = GEOMETRIES[name]()
        whole = rb.Scene(geometry)
        with tempfile.TemporaryDirectory() as folder:
            whole.save(f"{folder}/a.scene")
            scene = rb.Scene.open(f"{folder}/a.scene", check=True)
            for part, one, some in of_batches(name, geometry):
                if not {"where", "cull"} & one.named.keys():
                    yield part, run(scene, one, some.reshape(-1), whole)


@case
def files() -> Results:
    """Casts of files of each format, in space and in the plane, and of points."""
    for dimension, geometry in ((3, "boxes"), (2, "flat boxes"), (3, "cells"), (3, "mesh")):
        made = GEOMETRIES[geometry]()
        scene, some = rb.Scene(made), rays(BATCHES[-1], dimension)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for ending in ("npy", "npz", "csv", "parquet"):
                source, target = folder / f"rays.{ending}", folder / f"out.{ending}"
                rb.save(source, some if ending != "npy" else rb.Rays(some.origins, some.directions))
                for k, one in enumerate(options(geometry, made, len(some))):
                    if one.query == "first" or {"where", "cull"} & one.named.keys():
                        continue
                    if one.args and one.args[0] is not None and ending != "parquet":
                        continue
                    yield f"{geometry}/{ending}/{one.query}/{k}", _cast(scene, source, target, one)


def _cast(scene: rb.Scene, source: Path, target: Path, one: Options) -> Any:
    """Cast a file of rays; return the bytes of the output, or its arrays."""
    named = {name: one.named[name] for name in ("per",) if name in one.named}
    if one.args and one.args[0] is not None:
        named["values" if one.query == "integrate" else "weights"] = one.args[0]
    target.unlink(missing_ok=True)
    rb.stream.cast(scene, source, target, query=one.query, chunk=1100, **named)
    return target.stat().st_size if target.suffix == ".npz" else target.read_bytes()


@case
def points() -> Results:
    """A cast from one origin to points of a file."""
    with tempfile.TemporaryDirectory() as name:
        source, target = Path(name) / "points.ply", Path(name) / "out.csv"
        some = rng(50).integers(0, SPACE, (50, 3))
        head = "ply\nformat ascii 1.0\nelement vertex 50\n"
        head += "".join(f"property float {axis}\n" for axis in "xyz") + "end_header\n"
        source.write_text(head + "".join(f"{x} {y} {z}\n" for x, y, z in some))
        rb.stream.cast(rb.Scene(boxes(1, 300)), source, target, origin=(-1.0, -2.0, -3.0))
        yield "points", target.read_bytes()


@case
def adapters() -> Results:
    """Other libraries' interfaces."""
    made, some = mesh(3, 300), rays(300)
    intersector = RayMeshIntersector(SimpleNamespace(vertices=made.vertices, faces=made.faces))
    yield "trimesh/location", intersector.intersects_location(some.origins, some.directions)
    yield "trimesh/id", intersector.intersects_id(some.origins, some.directions, multiple_hits=False)
    yield "trimesh/any", intersector.intersects_any(some.origins, some.directions)
    yield "trimesh/contains", intersector.contains_points(some.origins + 0.25)
    scene = RaycastingScene()
    for seed in (3, 60):
        one = mesh(seed, 200)
        scene.add_triangles(one.vertices.astype(np.float32), one.faces.astype(np.uint32))
    both = np.concatenate([some.origins, some.directions], axis=1).astype(np.float32)
    both[:, 3:][~both[:, 3:].any(axis=1)] = 1
    yield "open3d/cast", scene.cast_rays(both)
    yield "open3d/list", scene.list_intersections(both)
    yield "open3d/count", scene.count_intersections(both)
    yield "open3d/occluded", scene.test_occlusions(both)


@case
def sources() -> Results:
    """Rays of a camera, of lidars, and of large arrays."""
    scene, some = rb.Scene(boxes(1, 300)), rays(BATCHES[-1])
    o, d = some.origins, some.directions
    turn = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    made = {
        "camera": picture(),
        # angles whose sines are exact: others may round otherwise on another system
        "lidar": rb.Rays.lidar([6, 6, 24], np.arange(0, 3600, 90), range(-90, 180, 90), rotation=turn),
        "drive": rb.Rays.lidar([[6, 6, 24], [0, 6, 24]], np.arange(0, 3600, 90), range(-90, 180, 90)),
        "one origin": rb.Rays(o[0], d),
    }
    many = [np.tile(values, (LARGE // len(o), 1)) for values in (o, d)]
    made |= {f"copied/{dtype}": rb.Rays(*(values.astype(dtype) for values in many)) for dtype in ("f4", "f8")}
    for name, one in made.items():
        yield name, scene.nearest(one, workers=WORKERS)


@case
def surfaces() -> Results:
    """Areas and normals of triangles: some far away and thin, some without area."""
    made = mesh(3, 300)
    corners = made.vertices[made.faces] * 0.1 + 1e6
    corners[::7, 2] = corners[::7, 1]
    made = rb.Mesh(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3))
    yield "areas", made.face_areas
    yield "normals", made.face_normals


@case
def waiting() -> Results:
    """What threads do while they wait."""
    spin_while(np.zeros(1, np.int64), 0, 0, 0, 3)
    yield "waiting", 0


# Digests and kinds


def digest_of(value: Any) -> str:
    """Return a checksum of the bytes, types and shapes of all arrays of a result."""
    state = blake2b(digest_size=16)
    for name, array in flat("", value):
        state.update(f"{name} {array.dtype.str} {array.shape} ".encode() + array.tobytes())
    return state.hexdigest()


def flat(name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the arrays of a result with their names: of hits, every public field."""
    if isinstance(value, rb.Hits | rb.AllHits):
        value = {field: fields_of(value, field) for field in sorted(dir(type(value))) if field[0] != "_"}
    if isinstance(value, bytes):
        value = np.frombuffer(value, np.uint8)
    if isinstance(value, dict):
        for key, item in value.items():
            yield from flat(f"{name}.{key}", item)
    elif isinstance(value, list | tuple):
        for k, item in enumerate(value):
            yield from flat(f"{name}.{k}", item)
    elif isinstance(value, np.ndarray | np.generic | bool | int | float | str):
        yield name, np.ascontiguousarray(value)


def fields_of(hits: Any, field: str) -> Any:
    """Return a field of hits; None for methods, and for fields that these hits do not have."""
    try:
        found = getattr(hits, field)
    except (ValueError, AttributeError):
        return None
    return None if callable(found) else found


def recorded(run: Callable[[], Any]) -> tuple[set[str], Any]:
    """Return the lines that were asked for while a function ran, and its result."""
    found, find = set(), entry_points.find_code

    def record(function: Any, args: tuple[Any, ...]) -> Any:
        kinds = kind_of(args)
        found.add(f"{function.__module__}.{function.__qualname__}({kinds})")
        # A listed kernel may accept read-only arrays where this call passes others: record each combination.
        return find(function, args)._replace(writable=writable_arrays(kinds))

    with mock.patch.object(entry_points, "find_code", record):
        result = run()
    return found, result


def everything(names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and checksum of each result."""
    for name in names:
        for part, value in CASES[name]():
            yield f"{name}/{part}", digest_of(value)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run everything that is compiled.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--digests", type=Path)
    parser.add_argument("--kernels", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    found, digests = recorded(lambda: dict(everything(args.cases or list(CASES))))
    if args.digests:
        args.digests.write_text(json.dumps(digests, indent=1), newline="\n")
    if args.kernels:
        args.kernels.write_text("".join(f"{line}\n" for line in merge(found)))
    print(f"{len(digests)} results", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
