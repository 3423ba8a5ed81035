"""Measure the figures of docs/scale.md: core time and bytes of rays, overhead of clusters.

``python benchmarks/scale.py`` prints its tables, in about two minutes of two cores; ``--only sizes`` (or
``files``) one of them, and ``--small`` takes a hundredth, to see that it runs. Rays are those of
raybox.bench, from outside of the scene and in all directions: the hardest kind. Costs are core-seconds, which
other programs on the machine do not count into.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from distributed import Client, LocalCluster
from pyarrow import parquet

import raybox as rb
from raybox.bench import data, machine

ROUNDS = 3
QUERIES = ("nearest", "occluded", "count")


def make_input(size: int, count: int) -> tuple[rb.Boxes, rb.Rays]:
    """Return boxes that fill a tenth of a cube, and rays."""
    boxes = data.boxes("uniform", size)
    rays = data.rays("incoherent", count, boxes)
    return rb.Boxes(boxes.lower, boxes.upper), rb.Rays(rays.origins, rays.directions)


def spent(work: Callable[[], Any], client: Client | None = None) -> tuple[float, float]:
    """Return core-seconds of this process and a cluster's workers, and wall time."""

    def clock() -> float:
        workers = client.run(time.process_time).values() if client else ()
        return time.process_time() + sum(workers)

    before, start = clock(), time.perf_counter()
    work()
    took = time.perf_counter() - start
    return clock() - before, took


def cost(work: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Return the median of some costs, after a warm-up."""
    work()
    return median(spent(work)[0] for _ in range(rounds))


def row(*cells: Any) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def head(*cells: str) -> None:
    row(*cells)
    row(*("---" for _ in cells))


def sizes(small: bool) -> None:
    """Print the cost of a million rays by number of boxes."""
    count = 2**14 if small else 2**19
    head("boxes", "build, core-s", "bytes a box", *(f"{query}, core-s a million rays" for query in QUERIES))
    for power in range(4, 6 if small else 8):
        boxes, rays = make_input(10**power, count)
        scenes: list[rb.Scene] = []
        built, _ = spent(lambda boxes=boxes, scenes=scenes: scenes.append(rb.Scene(boxes, workers=1)))
        runs = [partial(getattr(scenes[0], query), rays, workers=1) for query in QUERIES]
        costs = [f"{cost(work) / count * 1e6:.3f}" for work in runs]
        row(f"10^{power}", f"{built:.2f}", f"{48 + scenes[0].stats()['bytes_per_box']:.0f}", *costs)


def files(small: bool) -> None:
    """Print the overhead of files and of a cluster."""
    count = 2**16 if small else 2**22
    boxes, rays = make_input(10**5, count)
    scene = rb.Scene(boxes)
    started = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        tempfile.TemporaryDirectory() as made_folder,
        LocalCluster(**started) as cluster,
        Client(cluster) as client,
    ):
        folder = Path(made_folder)
        source, out = folder / "rays.parquet", folder / "out.parquet"
        rb.save(source, rays)
        runs_by_name: dict[str, Callable[[], Any]] = {
            "in memory, two threads": lambda: scene.nearest(rays, workers=2),
            "`rb.cast`, two threads": lambda: rb.cast(scene, source, out, workers=2),
            "`rb.cast` to a dataset": lambda: written_anew(scene, source, folder / "hits"),
            "`rb.cast`, two cluster workers of one thread": lambda: rb.cast(
                scene, source, out, cluster=client
            ),
        }
        for work in runs_by_name.values():
            work()
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in runs_by_name}
        for _ in range(ROUNDS):
            for name, work in runs_by_name.items():
                found[name].append(spent(work, client))
        head("way", "core-s a million rays", "s a million rays")
        for name, both in found.items():
            row(name, *(f"{median(column) / count * 1e6:.3f}" for column in zip(*both, strict=True)))
        number = 1000
        start = time.perf_counter()
        client.gather([client.submit(int, k, pure=False) for k in range(number)])
        print(f"\nAn empty task: {(time.perf_counter() - start) / number * 1e3:.1f} ms")
        metadata = parquet.read_metadata(out)
        footer = metadata.serialized_size / metadata.num_row_groups
        print(f"The footer of a row group: {footer:.0f} bytes")
        print(f"Bytes a ray: {source.stat().st_size / count:.1f} in, {out.stat().st_size / count:.1f} out")


def written_anew(scene: rb.Scene, source: Path, folder: Path) -> None:
    """Cast to a dataset, which is not replaced: an old one is removed first."""
    shutil.rmtree(folder, ignore_errors=True)
    rb.cast(scene, source, folder, workers=2, format="parquet")


TABLES = {"sizes": sizes, "files": files}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a hundredth of everything")
    parser.add_argument("--only", choices=TABLES, help="one table")
    options = parser.parse_args()
    facts = machine.describe()
    versions = {name: facts["versions"].get(name) for name in ("numpy", "numba")}
    print(f"{facts['date']}, {facts['usable_cores']} of {facts['cores']} cores, {facts['cpu']}")
    print(f"Python {facts['python']}, {versions}")
    boxes, rays = make_input(100, 5000)
    for query in QUERIES:
        getattr(rb.Scene(boxes), query)(rays)
    for name in [options.only] if options.only else TABLES:
        print()
        TABLES[name](options.small)


if __name__ == "__main__":
    main()
