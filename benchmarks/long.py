"""Measure what files and clusters cost where rays do not fit in memory: 2·10⁸ rays, 10⁵ boxes, two threads.

``python benchmarks/long.py`` takes 17 GB of disk and three minutes a round: the same question in memory (of a
tenth of the rays), ``raybox cast``, and `cluster.cast` by two workers of one thread, as Dask starts them.
Each is a process of its own, and so is its peak of memory. Rays are those of raybox.bench that start in and
around the boxes; a quarter of them meet anything.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import raybox as rb
from raybox.bench import data, machine
from raybox.io.formats.assembly import column_names
from scale import head, row

BOXES, STEP = 10**5, 2**20
WARMING = 8  # chunks: some for each worker, which then has loaded what it needs
NAMES = [*column_names("origins"), *column_names("directions")]
CAST = ["-m", "raybox", "cast", "boxes.npz", "rays.parquet", "-o", "out.parquet", "--workers", "2"]
COLUMNS = (
    "in memory, M/s",
    "cast, M/s",
    "of memory",
    "with its start",
    "peak, GB",
    "cluster / cast",
)


def rays_of(count: int) -> Iterator[data.RaySet]:
    """Give rays, a million at a time."""
    scene = data.boxes("uniform", 1)  # whatever it holds, rays are for the unit cube
    for number, begin in enumerate(range(0, count, STEP), 1):
        yield data.rays("incoherent", min(STEP, count - begin), scene, seed=number)


def write(folder: Path, count: int, name: str) -> None:
    """Write rays as plain numbers: they hardly shrink."""
    schema = pa.schema([(column, pa.float64()) for column in NAMES])
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    with parquet.ParquetWriter(folder / name, schema, **plain) as writer:
        for both in rays_of(count):
            columns = [column for part in both for column in np.ascontiguousarray(part.T)]
            writer.write_table(pa.table(columns, schema=schema))


def in_memory(folder: Path, count: int) -> float:
    """Return the seconds that the question alone takes."""
    origins, directions = (np.concatenate(parts) for parts in zip(*rays_of(count), strict=True))
    scene, rays = rb.Scene(rb.load(folder / "boxes.npz")), rb.Rays(origins, directions)
    scene.nearest(rays[:STEP], workers=2)
    start = time.perf_counter()
    scene.nearest(rays, workers=2)
    return time.perf_counter() - start


def by_cluster(folder: Path, _: int) -> float:
    """Return the seconds that two workers take."""
    from distributed import LocalCluster

    scene = rb.Scene(rb.load(folder / "boxes.npz"))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        rb.cluster.cast(scene, folder / "few.parquet", folder / "few.out.parquet", cluster=cluster)
        return rb.cluster.cast(
            scene, folder / "rays.parquet", folder / "out.parquet", cluster=cluster
        ).seconds


WAYS = {"memory": in_memory, "cluster": by_cluster}


def alone(way: str, folder: Path, count: int) -> float:
    """Have a process of its own do it; return seconds."""
    call = [sys.executable, __file__, "--way", way, "--folder", str(folder), "--rays", str(count)]
    told = subprocess.run(call, stdout=subprocess.PIPE, check=True)
    return float(json.loads(told.stdout.splitlines()[-1]))


def command(folder: Path) -> tuple[float, float, float]:
    """Run ``raybox cast``; return the seconds that it tells, all it took, and its peak of memory in GB."""
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    start = time.perf_counter()
    child = subprocess.Popen([sys.executable, *CAST], cwd=folder, text=True, **pipes)
    assert child.stderr is not None
    said = child.stderr.read()
    _, status, used = os.wait4(child.pid, 0)
    found = re.search(r"in ([\d.]+) s", said)
    if status or not found:
        raise RuntimeError(said)
    return float(found[1]), time.perf_counter() - start, used.ru_maxrss / 1e6


def compare(folder: Path, count: int, rounds: int) -> None:
    """Let all take turns; print the rates of each round, and what they are of the others."""
    boxes = data.boxes("uniform", BOXES)
    rb.save(folder / "boxes.npz", rb.Boxes(boxes.lower, boxes.upper))
    write(folder, count, "rays.parquet")
    write(folder, WARMING * STEP, "few.parquet")
    head(*COLUMNS)
    found: list[tuple[float, ...]] = []
    for _ in range(rounds):
        few = count // 10
        before = few / alone("memory", folder, few)
        told, whole, peak = command(folder)
        rate = (before + few / alone("memory", folder, few)) / 2
        workers = alone("cluster", folder, count)
        ratio = 2 * workers / (told + command(folder)[0])
        found.append((rate / 1e6, count / told / 1e6, count / told / rate, count / whole / rate, peak, ratio))
        row(*(f"{number:.2f}" for number in found[-1]))
    row(*(f"**{median(column):.2f}**" for column in zip(*found, strict=True)))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rays", type=lambda text: int(float(text)), default=2 * 10**8)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--folder", type=Path, help="where there is room; a temporary one if left out")
    options.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.way:
        print(json.dumps(WAYS[asked.way](asked.folder, asked.rays)))
        return
    facts = machine.describe()
    print(f"{facts['date']}, {facts['usable_cores']} of {facts['cores']} cores, {facts['cpu']}\n")
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        compare(Path(folder), asked.rays, asked.rounds)


if __name__ == "__main__":
    main()
