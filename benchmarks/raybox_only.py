"""Measurements of raybox alone: builds, memory, cost by size, mixed batches, brute force, cores."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import peak_rates
import raybox as rb
from raybox.bench import data, machine, peers, raybox_scene, timing
from raybox.primitives.status import MISS_INDEX
from raybox.scene import all_pairs

_BRUTE = 2**10, 2**14  # rays and boxes of the brute force


def caches() -> dict[str, int]:
    """Return the sizes of a core's data caches in bytes, by level; empty if unknown."""
    found = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind, level, size = ((folder / name).read_text().strip() for name in ("type", "level", "size"))
        if kind != "Instruction":
            found[f"L{level}"] = int(size[:-1]) * {"K": 2**10, "M": 2**20}[size[-1]]
    return found


def builds(
    size: int, names: Sequence[str], threads: int = 1, rounds: int = 5, boxes: str = "uniform"
) -> dict[str, Any]:
    """Return times of builds, alternated; from each peer's own form to a scene ready for rays."""
    box_set, calls, records = data.boxes(boxes, size), {}, []
    for name in names:
        peer = peers.table()[name]
        facts: dict[str, Any] = {"name": name, "given": peer.given, "why_not": ""}
        records.append(facts)
        try:
            adapter = peers.load(peer)
            form, build = adapter.form(box_set), getattr(adapter, peer.build)
            build(adapter.form(data.boxes(boxes, 64)), threads, **peer.options)
        except Exception as error:
            facts["why_not"] = f"{type(error).__name__}: {error}"
            continue
        calls[name] = partial(build, form, threads, **peer.options)
        calls[name]()  # large scenes may compile loops that small ones do not use
    seconds = timing.alternate(calls, rounds)
    scene = rb.Scene(raybox_scene.form(box_set))
    return {
        "boxes": boxes,
        "size": size,
        "threads": threads,
        "machine": machine.describe(),
        "builds": [facts | {"seconds": seconds.get(facts["name"], [])} for facts in records],
        "stats": scene.stats(),
    }


def memory(size: int, count: int) -> dict[str, Any]:
    """Return the peak memory of a build and a query, without making the boxes."""
    boxes = raybox_scene.form(data.boxes("uniform", size))
    rays = raybox_scene.rays_of(data.rays("incoherent", count, data.boxes("uniform", 1)))
    _reset_peak()
    scene, build_seconds = timing.once(lambda: rb.Scene(boxes))
    built = machine.peak_gb()
    hits, seconds = timing.once(lambda: scene.nearest(rays))
    return {
        "size": size,
        "rays": count,
        "machine": machine.describe(),
        "build_seconds": build_seconds,
        "seconds": seconds,
        "met": int(np.count_nonzero(hits.hit)),
        "built_gb": built,
        "peak_gb": machine.peak_gb(),
        "stats": scene.stats(),
    }


def _reset_peak() -> None:
    """Reset the peak memory of this process; on Linux only."""
    switch = Path("/proc/self/clear_refs")
    if switch.exists():
        switch.write_text("5")


def sizes(sizes: Sequence[int], count: int, rounds: int = 5, kinds: Sequence[str] = data.RAY_KINDS) -> Any:
    """Return times of the same rays in scenes of growing size, on one thread."""
    made = {size: data.boxes("uniform", size) for size in sizes}
    scenes = {size: rb.Scene(raybox_scene.form(boxes)) for size, boxes in made.items()}
    found = []
    for kind in kinds:
        rays = raybox_scene.rays_of(data.rays(kind, count, made[sizes[0]]))
        calls: dict[str, Callable[[], Any]] = {
            str(size): partial(scene.nearest, rays, workers=1) for size, scene in scenes.items()
        }
        for call in calls.values():
            call()
        for size, seconds in timing.alternate(calls, rounds).items():
            found.append({"size": int(size), "rays": kind, "ray_count": len(rays), "seconds": seconds})
    return {
        "machine": machine.describe(),
        "caches": caches(),
        "tree_bytes": {str(size): scene.stats()["bytes"] for size, scene in scenes.items()},
        "times": found,
    }


def mixed(size: int, count: int, rounds: int = 7) -> dict[str, Any]:
    """Return times of half camera, half inside rays, and of each half, on one thread."""
    boxes = data.boxes("uniform", size)
    scene = rb.Scene(raybox_scene.form(boxes))
    halves = {kind: data.rays(kind, count // 2, boxes) for kind in ("camera", "inside")}
    wholes = {kind: data.rays(kind, count, boxes) for kind in ("joined", "lines")}
    calls: dict[str, Callable[[], Any]] = {}
    for kind, some in (halves | wholes).items():
        rays = raybox_scene.rays_of(some)
        calls[kind] = partial(scene.nearest, rays, workers=1)
        calls[kind]()
    return {
        "size": size,
        "rays": count,
        "machine": machine.describe(),
        "seconds": timing.alternate(calls, rounds),
    }


def brute(rounds: int = 7) -> dict[str, Any]:
    """Return times of all rays against all boxes, alternated with the core's peak rates."""
    ray_count, box_count = _BRUTE
    boxes = raybox_scene.form(data.boxes("uniform", box_count))._rows()
    rays = raybox_scene.rays_of(data.rays("inside", ray_count, data.boxes("uniform", 1)))._rows()
    task, workspace = all_pairs.make_task(rays, boxes), all_pairs.make_workspace()
    pairs = ray_count * box_count
    out = all_pairs.make_results(ray_count, np.full(pairs, MISS_INDEX), np.full(pairs, np.inf))
    run, steps = peak_rates.make(), 20_000_000

    def sweep() -> None:
        out.single_count[0] = 0
        all_pairs.intersect_all_pairs(task, (0, ray_count), workspace, out)

    calls: dict[str, Callable[[], Any]] = {
        "sweep": sweep,
        "probe": partial(run, steps),
        "slabs": partial(peak_rates.make_slabs(), steps),
    }
    for call in calls.values():
        call()
    return {
        "tests": (ray_count - int(out.single_count[0])) * box_count,
        "fused": steps * peak_rates.CHAINS,
        "lanes": peak_rates.LANES,
        "slabs": steps * peak_rates.LANES,
        "machine": machine.describe(),
        "seconds": timing.alternate(calls, rounds),
    }


def cores(rounds: int = 7) -> dict[str, Any]:
    """Return times of the fused operations on one thread and on two."""
    run, steps = peak_rates.make(), 20_000_000

    def two() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(run, [steps, steps]))

    two()
    return {
        "machine": machine.describe(),
        "seconds": timing.alternate({"one": partial(run, steps), "two": two}, rounds),
    }
