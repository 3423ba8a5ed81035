"""The parts of the full measurement: each is a process and a JSON file."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import raybox_only
from first_use import first_use
from raybox.bench import worker
from raybox.bench.peers import others, table
from raybox.bench.runner import versus

TREES = ("embreex", "open3d", "warp")
FAST = ("raybox", *TREES)
EMBREE = ("raybox", "embreex")
ALL = ("nearest", "occluded", "count", "all")
LEAST = 3.0  # seconds of rounds; shorter ones are repeated
FULL = {"queries": ALL, "rounds": 5, "least": LEAST, "patience": 3.0, "ration": 0.25}
LARGE = FULL | {"rounds": 3}
SOME = FULL | {"queries": ("nearest", "occluded", "count"), "patience": 1.5, "ration": 0.2}


class Part(NamedTuple):
    """A function that a process runs, on so many threads."""

    job: Callable[..., Any]
    how: dict[str, Any]
    threads: int = 1

    def arguments(self) -> dict[str, Any]:
        """Return the job's arguments; jobs that compare peers get the number of threads."""
        return self.how | ({"threads": self.threads} if self.job in (versus, raybox_only.builds) else {})


def parts(data: Path | None, street: Path) -> dict[str, Part]:
    """Return all parts by name; those of real files only if there is a folder of them."""
    all_peers = ("raybox", *others())
    made = {
        "first-use": Part(first_use, {}, 2),
        "versus-1e3-1": Part(versus, FULL | {"size": 10**3, "names": all_peers}),
        "versus-1e5-1": Part(versus, FULL | {"size": 10**5, "names": all_peers}),
        "versus-1e6-1": Part(versus, LARGE | {"size": 10**6, "names": FAST}),
        "versus-1e7-1": Part(versus, SOME | {"size": 10**7, "names": ("raybox", "warp"), "rounds": 3}),
        "versus-1e3-2": Part(versus, FULL | {"size": 10**3, "names": FAST}, 2),
        "versus-1e5-2": Part(versus, FULL | {"size": 10**5, "names": FAST}, 2),
        "versus-1e6-2": Part(versus, LARGE | {"size": 10**6, "names": EMBREE}, 2),
        "clustered": Part(versus, SOME | {"boxes": "clustered", "size": 10**5, "names": FAST}),
        "mixed-sizes": Part(versus, SOME | {"boxes": "mixed", "size": 10**5, "names": FAST}),
        "cores": Part(raybox_only.cores, {}, 2),
        "workers-1e5": Part(versus, _own(10**5, "raybox, 2 workers", "raybox, 1 worker"), 2),
        "workers-1e6": Part(versus, _own(10**6, "raybox, 2 workers", "raybox, 1 worker"), 2),
        "quality-1e5": Part(versus, _own(10**5, *QUALITIES)),
        "quality-1e6": Part(versus, _own(10**6, *QUALITIES)),
        "builds-1e5-1": Part(raybox_only.builds, {"size": 10**5, "names": (*QUALITIES, *TREES)}),
        "builds-1e6-1": Part(raybox_only.builds, {"size": 10**6, "names": (*QUALITIES, "warp"), "rounds": 3}),
        "builds-1e6-2": Part(raybox_only.builds, {"size": 10**6, "names": QUALITIES, "rounds": 5}, 2),
        "memory-1e7": Part(raybox_only.memory, {"size": 10**7, "count": 10**6}, 2),
        "sizes": Part(
            raybox_only.sizes, {"sizes": [10**k for k in range(3, 8)], "count": 2**18, "rounds": 5}
        ),
        "mixed-1e5": Part(raybox_only.mixed, {"size": 10**5, "count": 2**20}),
        "mixed-1e6": Part(raybox_only.mixed, {"size": 10**6, "count": 2**20, "rounds": 5}),
        "brute": Part(raybox_only.brute, {}),
    }
    if FLOAT32_ONLY in table():
        made |= {
            f"exactness-{name}": Part(versus, _own(size, FLOAT32_ONLY, "raybox") | FLOAT32_OPTIONS)
            for name, size in (("1e5", 10**5), ("1e6", 10**6))
        }
    return made | (_real(data, street) if data else {})


QUALITIES = ("raybox balanced", "raybox fast")
FLOAT32_OPTIONS = {"queries": ("nearest",), "rays": ("incoherent", "inside")}  # not in packets
FLOAT32_ONLY = "raybox proposals"  # the peer that returns the nearest candidate of the float32 tree


def _own(size: int, *names: str) -> dict[str, Any]:
    """Return options that compare raybox with itself: all rays, without checks of results."""
    return SOME | {"size": size, "names": names, "patience": 9.0, "check": False}


def _real(data: Path, street: Path) -> dict[str, Part]:
    files = {
        "house": data / "duplex_ifc" / "duplex_aabb.csv",
        "city": data / "delft_cityjson" / "delft.city.json",
        "skull": data / "skull_mesh" / "skull.obj",
        "voxels": data / "voxel_store" / "scene_store8.vox",
    }
    options = SOME | {"ray_count": 2**18, "names": ("raybox", "embreex", "warp")}
    made = {f"real-{name}": Part(versus, options | {"boxes": str(path)}) for name, path in files.items()}
    beams = {"boxes": str(street / "cuboids.npz"), "rays": (str(street / "beams.npz"),)}
    return made | {"real-street": Part(versus, options | beams)}


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
