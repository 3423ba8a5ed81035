"""The actions of `compare.py`'s workers, which use only public names of raybox."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import raybox as rb
from compare_data import load_geometry
from compare_digest import digests

_FIRST_USE = """
import sys
import raybox as rb
from compare_actions import geometry_from, rays_from
hits = rb.Scene(geometry_from(sys.argv[1])).nearest(rays_from(sys.argv[2]))
sys.stdout.buffer.write(hits.index.tobytes() + hits.t.tobytes())
"""
ONES = 256  # rays, one a call, that a case of single rays is timed on


class Task(NamedTuple):
    """A timed call, its preparation, and the checksums of its result."""

    call: Callable[[Any], Any]
    before: Callable[[], Any] = lambda: None
    digest: Callable[[Any], dict[str, str]] = digests


def geometry_of(part: dict[str, Any]) -> Any:
    """Return the container of one geometry's arrays."""
    if "transforms" in part:
        inner = {name: array for name, array in part.items() if name != "transforms"}
        return rb.Instances(geometry_of(inner), part["transforms"])
    if "vertices" in part:
        return rb.Mesh(part["vertices"], part["faces"])
    if "normals" in part:
        return rb.Planes(part["normals"], part["offsets"])
    if "edges" in part:
        return rb.Grid(*[part["edges"]] * 3, occupied=part["occupied"])
    return rb.Boxes(part["lower"], part["upper"])


def geometry_from(path: Any) -> Any:
    """Return one container, or a list of several."""
    made = [geometry_of(part) for part in load_geometry(Path(path))]
    return made if len(made) > 1 else made[0]


def rays_from(path: Any) -> rb.Rays:
    with np.load(path) as arrays:
        ranges = {name: arrays[name] for name in ("t_min", "t_max") if name in arrays.files}
        return rb.Rays(arrays["origins"], arrays["directions"], **ranges)


class Given(NamedTuple):
    """A case's files, and containers from earlier cases of the same scene."""

    files: dict[str, str]
    options: dict[str, Any]
    stored: dict[str, Any]

    def once(self, key: str, make: Callable[[], Any]) -> Any:
        """Return what is stored under a key, made at the first call."""
        if key not in self.stored:
            self.stored[key] = make()
        return self.stored[key]

    def geometry(self) -> Any:
        return self.once(self.files["geometry"], lambda: geometry_from(self.files["geometry"]))

    def rays(self) -> rb.Rays:
        return self.once(self.files["rays"], lambda: rays_from(self.files["rays"]))

    def scene(self) -> Any:
        """Return the scene of the case."""
        return self.once("scene", lambda: rb.Scene(self.geometry()))


def query(given: Given) -> Task:
    """Call a query of a scene, on all rays or on one at a time."""
    options = dict(given.options)
    name, masked = options.pop("query"), options.pop("masked", False)
    if masked:
        options["where"] = _mask(given.geometry())
    method, k = getattr(given.scene(), name), [options.pop("k")] if "k" in options else []
    rays = [given.rays()] if given.files["count"] != "1" else _single_rays(given.rays())
    return Task(lambda _: [method(one, *k, **options) for one in rays])


def _single_rays(rays: rb.Rays) -> list[rb.Rays]:
    flat = rays.reshape(-1)
    return [flat[i] for i in range(min(ONES, len(flat)))]


def arrays(given: Given) -> Task:
    """Make rays of float64 arrays and find what they hit first, in batches."""
    rays, scene = given.rays().reshape(-1), given.scene()
    count = min(given.options["batch"], len(rays))  # of a camera, a square
    ends = range(count, len(rays) + 1, count)[:ONES]
    batches = [tuple(np.array(x[end - count : end]) for x in (rays.origins, rays.directions)) for end in ends]

    def call(_: Any) -> Any:
        hits = [scene.nearest(rb.Rays(*batch)) for batch in batches]
        return [(one.index, one.t) for one in hits]

    return Task(call)


def pinhole(given: Given) -> Task:
    """Make the rays of a camera and find what they hit first."""
    scene, side = given.scene(), given.options["side"]
    how = {"up": [0, 0, 1], "fov": 40.0, "width": side, "height": side}
    return Task(lambda _: scene.nearest(rb.Rays.pinhole([0.8, -1.1, 1.4], [0.5] * 3, **how), workers=1))


def _mask(geometry: Any) -> Any:
    """Return a mask of every third primitive; of several geometries one each."""
    if isinstance(geometry, list):
        return [_mask(one) for one in geometry]
    return np.arange(len(geometry)) % 3 == 0


def fields(given: Given) -> Task:
    """Compute the fields that are derived from hits."""
    method, rays = getattr(given.scene(), given.options["query"]), given.rays()
    return Task(digest=digests, call=_touched, before=lambda: method(rays))


def _touched(hits: Any) -> Any:
    for name in ("index", "primitive", "geometry", "t_enter", "t_exit", "points", "normals", "uv", "lengths"):
        getattr(hits, name, None)
    return hits


def build(given: Given) -> Task:
    geometry = given.geometry()
    return Task(lambda _: rb.Scene(geometry, **given.options), digest=lambda scene: _facts(scene, given))


def _facts(scene: Any, given: Given) -> dict[str, str]:
    """Return checksums of a scene's public facts and of its hits."""
    scene.check()
    found = digests({"stats": scene.stats(), "bounds": scene.bounds, "len": len(scene)})
    return found | digests(scene.nearest(given.rays()))


def update(given: Given) -> Task:
    """Move a scene's geometry to and fro, a little or far; the digest is that of the second state."""
    still, amount = given.geometry(), 0.3 if given.options["far"] else 0.001
    states = [_moved(still, amount), still]
    scene = rb.Scene(still)

    def call(_: Any) -> Any:
        states.reverse()
        scene.update(states[1])
        return scene

    return Task(call, digest=lambda scene: _facts(scene, given))


def _moved(geometry: Any, amount: float) -> Any:
    """Return the same rows elsewhere: each has a shift of its own, a share of the whole's extent."""
    if isinstance(geometry, list):
        return [_moved(one, amount) for one in geometry]
    random = np.random.default_rng(7)
    if isinstance(geometry, rb.Planes):
        return rb.Planes(geometry.normals, geometry.offsets + random.normal(0, amount, len(geometry)))
    if isinstance(geometry, rb.Instances):
        return rb.Instances(geometry.geometry, _shifted(geometry.transforms, amount, random))
    if isinstance(geometry, rb.Mesh):
        size = np.ptp(geometry.vertices, axis=0).max() * amount
        return rb.Mesh(geometry.vertices + random.normal(0, size, geometry.vertices.shape), geometry.faces)
    finite = np.where(np.isfinite(geometry.lower), geometry.lower, 0.0)
    shift = random.normal(0, np.ptp(finite, axis=0).max() * amount, finite.shape)
    return rb.Boxes(geometry.lower + shift, geometry.upper + shift)


def _shifted(transforms: Any, amount: float, random: np.random.Generator) -> Any:
    dims = transforms.shape[-1] - 1
    moved = np.array(transforms)
    moved[:, :dims, dims] += random.normal(0, amount, (len(moved), dims))
    return moved


def intersect(given: Given) -> Task:
    """Test pairs without a tree: row by row, all rays against one, all against all, one against one."""
    geometry, rays, form = given.geometry(), given.rays().reshape(-1), given.options["form"]
    count = min(len(rays), len(geometry))
    most = {"rows": count, "one": 1, "grid": min(300, len(geometry)), "single": 1}[form]
    rays = {"rows": rays[:count], "one": rays, "grid": rays.reshape(-1, 1), "single": rays[0]}[form]
    geometry = _rows(geometry, np.arange(most))
    return Task(lambda _: rb.intersect(rays, geometry))


def _rows(geometry: Any, index: Any) -> Any:
    """Return some rows of boxes, planes or a mesh."""
    if isinstance(geometry, rb.Mesh):
        return rb.Mesh(geometry.vertices, geometry.faces[index])
    if isinstance(geometry, rb.Planes):
        return rb.Planes(geometry.normals[index], geometry.offsets[index])
    return geometry[index]


def sweep(given: Given) -> Task:
    boxes, scene = given.geometry(), given.scene()
    random = np.random.default_rng(8)
    which = random.permutation(len(boxes))[: given.options["count"]]
    which = which[(np.isfinite(boxes.lower) & np.isfinite(boxes.upper)).all(axis=1)[which]]
    movers, size = boxes[which], np.ptp(boxes.lower[which], axis=0).max()
    steps = np.round(random.normal(0, 0.2 * size, (len(which), boxes.lower.shape[1])), 1)
    return Task(lambda _: rb.sweep(movers, steps, scene, workers=given.options["workers"]))


def cast(given: Given) -> Task:
    """Cast a file of rays to a file of results, whose arrays are compared."""
    scene, options, folder = given.scene(), given.options, Path(given.files["folder"])
    source = Path(given.files["rays"]).with_suffix(f".{options['source']}")
    target = folder / f"out.{options['target']}"
    return Task(
        lambda _: rb.stream.cast(scene, source, target, query=options["query"]),
        before=lambda: target.unlink(missing_ok=True),
        digest=lambda done: digests({"summary": done._replace(seconds=0.0), "file": target}),
    )


def load(given: Given) -> Task:
    return Task(lambda _: rb.load(given.files["file"]))


def first_use(given: Given) -> Task:
    """Start a fresh process that imports, builds and casts, with compiled code in the cache."""
    command = [sys.executable, "-c", _FIRST_USE, given.files["geometry"], given.files["rays"]]
    return Task(lambda _: subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


ACTIONS: dict[str, Callable[[Given], Task]] = {
    action.__name__: action
    for action in (query, arrays, pinhole, fields, build, update, intersect, sweep, cast, load, first_use)
}
