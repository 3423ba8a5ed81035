"""The parts of the full measurement: each is a process and a JSON file."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import array_input
import batch_sizes
import derived_fields
import grid_sums
import meshes
import raybox_only
import second_rays
import small_batches
from first_use import first_use
from raybox.bench import data, worker
from raybox.bench.peers import others
from raybox.bench.runner import versus

TREES = ("embreex", "open3d", "warp")
FAST = ("raybox", *TREES)
EMBREE = ("raybox", "embreex")
ALL = ("nearest", "occluded", "count", "all")
LEAST = 1.0  # seconds of rounds; shorter ones are repeated
FULL = {"queries": ALL, "rounds": 5, "least": LEAST, "patience": 2.0, "ration": 0.2}
SOME = FULL | {"queries": ("nearest", "occluded", "count"), "patience": 1.5}
REAL = SOME | {"ray_count": 768**2, "names": EMBREE, "rays": data.SCENE_KINDS}
MESH = {"ray_count": 768**2, "names": EMBREE, "queries": ("nearest", "occluded"), "least": LEAST}


class Part(NamedTuple):
    """A function that a process runs, on so many threads."""

    job: Callable[..., Any]
    how: dict[str, Any]
    threads: int = 1

    def arguments(self) -> dict[str, Any]:
        """Return the job's arguments; jobs that compare peers get the number of threads."""
        jobs = (versus, raybox_only.builds, meshes.measure, batch_sizes.measure)
        return self.how | ({"threads": self.threads} if self.job in jobs else {})

    def timed_by(self, clock: str) -> "Part":
        """Return the part timed by this clock, if one thread is measured."""
        jobs = (
            versus,
            meshes.measure,
            small_batches.measure,
            batch_sizes.measure,
            array_input.measure,
            second_rays.measure,
            derived_fields.measure,
        )
        return (
            self._replace(how=self.how | {"clock": clock}) if self.job in jobs and self.threads == 1 else self
        )

    def made_quick(self) -> "Part":
        """Return the part with few rays and rounds, which shows that it works."""
        return self._replace(how=self.how | {name: QUICK[name] for name in self.how.keys() & QUICK.keys()})


QUICK: dict[str, Any] = {
    "ray_count": 2**12,
    "count": 2**12,
    "rounds": 1,
    "least": 0.0,
    "patience": 0.3,
    "size": 1000,
    "most": 2**8,
    "sizes": [1000],
    "cells": (64,),
}


def parts(files: Path, made: Path) -> dict[str, Part]:
    """Return all parts by name; `files` is the folder of real files, `made` that of files made from them."""
    alone, slow = raybox_only, ("raybox", *(name for name in others() if name not in TREES))
    return _real(files, made) | {
        "small-batches": Part(small_batches.measure, {"size": 10**5, "rounds": 15, "most": 10**6}),
        "batch-sizes-1": Part(batch_sizes.measure, {"most": 2**20, "rounds": 3}),
        "batch-sizes-2": Part(batch_sizes.measure, {"most": 2**20, "rounds": 3}, 2),
        "array-input": Part(array_input.measure, {"ray_count": 2**20, "rounds": 9}),
        "versus-1e3-1": Part(versus, FULL | {"size": 10**3, "names": FAST}),
        "versus-1e5-1": Part(versus, FULL | {"size": 10**5, "names": FAST}),
        "versus-1e6-1": Part(versus, SOME | {"size": 10**6, "names": FAST, "rounds": 3}),
        "versus-1e5-2": Part(versus, SOME | {"size": 10**5, "names": FAST}, 2),
        "slow-peers": Part(versus, SLOW | {"names": slow}),
        "cores": Part(alone.cores, {"rounds": 7}, 2),
        "workers-1e6": Part(versus, _own(WORKERS) | {"size": 10**6}, 2),
        "quality-1e5": Part(versus, _own(QUALITIES)),
        "exactness-1e5": Part(versus, _own((FLOAT32_ONLY, "raybox")) | FLOAT32_OPTIONS),
        "builds-1e5-1": Part(alone.builds, {"size": 10**5, "names": (*QUALITIES, *TREES)}),
        "builds-1e6-1": Part(alone.builds, {"size": 10**6, "names": QUALITIES}),
        "builds-1e6-2": Part(alone.builds, {"size": 10**6, "names": QUALITIES}, 2),
        "memory-1e7": Part(alone.memory, {"size": 10**7, "count": 10**6}, 2),
        "sizes": Part(alone.sizes, {"sizes": [10**k for k in range(3, 8)], "count": 2**18, "rounds": 3}),
        "mixed-1e5": Part(alone.mixed, {"size": 10**5, "count": 2**20}),
        "derived": Part(derived_fields.measure, {"ray_count": 768**2, "rounds": 9}),
        "grids": Part(grid_sums.measure, {"cells": (64, 128, 512), "rounds": 7}),
        "brute": Part(alone.brute, {"rounds": 7}),
        "first-use": Part(first_use, {"repeats": 1}, 2),
    }


QUALITIES = ("raybox balanced", "raybox fast")
WORKERS = ("raybox, 2 workers", "raybox, 1 worker")
FLOAT32_OPTIONS = {"queries": ("nearest",), "rays": ("incoherent", "inside")}  # not in packets
FLOAT32_ONLY = "raybox proposals"  # the peer that returns the nearest candidate of the float32 tree
SLOW = FULL | {"size": 10**4, "queries": ("nearest",), "ray_count": 2**16, "rounds": 3, "least": 0.0}


def _own(names: tuple[str, ...]) -> dict[str, Any]:
    """Return options that compare raybox with itself: all rays, without checks of results."""
    return SOME | {"names": names, "patience": 9.0, "check": False}


def _real(files: Path, made: Path) -> dict[str, Part]:
    """Return the parts of real files: boxes, triangles, a street, two threads."""
    skull, city = files / "skull_mesh" / "skull.obj", files / "delft_cityjson" / "delft.city.json"
    boxes = {
        "skull": skull,
        "city": city,
        "house": files / "duplex_ifc" / "duplex_aabb.csv",
        "voxels": files / "voxel_store" / "scene_store8.vox",
    }
    triangles = {"skull": skull, "city": city, "house": files / "duplex_ifc" / "duplex_a_20110907.ifc"}
    peers = {"house": {"names": ("raybox", "embreex", "open3d")}}  # of the README's chart
    beams = {"boxes": str(made / "cuboids.npz"), "rays": (str(made / "beams.npz"),)}
    two = _own(WORKERS) | {"boxes": str(skull), "rays": data.SCENE_KINDS, "ray_count": 2**20}
    second = [
        ("mesh", "triangles", triangles),
        ("real", "boxes", {k: boxes[k] for k in ("house", "city", "voxels")}),
    ]
    return (
        {
            f"real-{name}": Part(versus, REAL | peers.get(name, {}) | {"boxes": str(path)})
            for name, path in boxes.items()
        }
        | {
            f"mesh-{name}": Part(meshes.measure, MESH | peers.get(name, {}) | {"mesh": str(path)})
            for name, path in triangles.items()
        }
        | {
            f"second-{start}-{name}": _second(path, form, peers.get(name, {}))
            for start, form, chosen in second
            for name, path in chosen.items()
        }
        | {"real-street": Part(versus, REAL | beams), "workers-skull": Part(versus, two, 2)}
    )


def _second(path: Path, form: str, how: dict[str, Any]) -> Part:
    """Return the part of second rays in a file's scene; in the triangles of the house, in a room."""
    view = "room" if path.suffix == ".ifc" else "oblique"
    facts = {"path": str(path), "form": form, "view": view, "ray_count": 768**2, "least": LEAST}
    return Part(second_rays.measure, facts | {"names": EMBREE} | how)


def run(todo: dict[str, Part], folder: Path, names: list[str]) -> None:
    """Run the parts that have no result yet, or the named ones; failures stop no other."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in todo.items():
        target = folder / f"{name}.json"
        if names and name not in names:
            continue
        if target.exists() and name not in names:
            print(f"{name}: done before", file=sys.stderr)
            continue
        started = time.perf_counter()
        try:
            result = worker.run_apart(part.job, part.arguments(), threads=part.threads)
        except (RuntimeError, subprocess.SubprocessError, ValueError) as error:
            print(f"{name}: FAILED: {error}", file=sys.stderr)
            continue
        result |= {"part": name, "took_seconds": round(time.perf_counter() - started, 1)}
        target.write_text(json.dumps(_rounded(result)) + "\n")
        print(f"{name}: {result['took_seconds']:.0f} s", file=sys.stderr, flush=True)


def _rounded(value: Any) -> Any:
    """Return values with floats rounded to six digits, the precision of the clocks."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
