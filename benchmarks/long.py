"""Measure the cost of files and clusters for rays larger than memory: 2·10⁸ rays, 10⁵ boxes, two threads.

``python benchmarks/long.py`` takes 17 GB of disk and three minutes a round: the same query in memory (of a
tenth of the rays), ``raybox cast``, and `rb.cast` by two cluster workers of one thread, as Dask starts them.
Each runs in its own process, whose peak memory is reported. Rays are those of raybox.bench that start in and
around the boxes; a quarter of them hit.
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
from raybox.io.formats.columns import column_names
from scale import head, row

BOXES, STEP = 10**5, 2**20
WARM_UP = 8  # chunks: enough for each worker to load its code
NAMES = [*column_names("origins"), *column_names("directions")]
CAST = ["-m", "raybox", "cast", "boxes.npz", "rays.parquet", "-o", "out.parquet", "--force", "--workers", "2"]
COLUMNS = (
    "in memory, M/s",
    "cast, M/s",
    "of memory",
    "with its start",
    "peak, GB",
    "cluster / cast",
)


def rays_of(count: int) -> Iterator[data.RaySet]:
    """Yield rays, a million at a time."""
    scene = data.boxes("uniform", 1)  # rays of any set of boxes are for the unit cube
    for number, begin in enumerate(range(0, count, STEP), 1):
        yield data.rays("incoherent", min(STEP, count - begin), scene, seed=number)


def write(folder: Path, count: int, name: str) -> None:
    """Write rays without compression, which would hardly shrink them."""
    schema = pa.schema([(column, pa.float64()) for column in NAMES])
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    with parquet.ParquetWriter(folder / name, schema, **plain) as writer:
        for both in rays_of(count):
            columns = [column for part in both for column in np.ascontiguousarray(part.T)]
            writer.write_table(pa.table(columns, schema=schema))


def in_memory(folder: Path, count: int) -> float:
    """Return the seconds of the query alone."""
    origins, directions = (np.concatenate(parts) for parts in zip(*rays_of(count), strict=True))
    scene, rays = rb.Scene(rb.load(folder / "boxes.npz")), rb.Rays(origins, directions)
    scene.nearest(rays[:STEP], workers=2)
    start = time.perf_counter()
    scene.nearest(rays, workers=2)
    return time.perf_counter() - start


def by_cluster(folder: Path, _: int) -> float:
    """Return the seconds of a cast by two workers."""
    from distributed import LocalCluster

    scene = rb.Scene(rb.load(folder / "boxes.npz"))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        rb.cast(scene, folder / "warm_up.parquet", folder / "warm_up.out.parquet", cluster=cluster)
        return rb.cast(scene, folder / "rays.parquet", folder / "out.parquet", cluster=cluster).seconds


RUNS = {"memory": in_memory, "cluster": by_cluster}


def in_process(run_name: str, folder: Path, count: int) -> float:
    """Return the seconds of a run in its own process."""
    call = [sys.executable, __file__, "--way", run_name, "--folder", str(folder), "--rays", str(count)]
    done = subprocess.run(call, stdout=subprocess.PIPE, check=True)
    return float(json.loads(done.stdout.splitlines()[-1]))


def command(folder: Path) -> tuple[float, float, float]:
    """Return seconds that ``raybox cast`` reports, its wall time, and its peak memory in GB."""
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    start = time.perf_counter()
    child = subprocess.Popen([sys.executable, *CAST], cwd=folder, text=True, **pipes)
    assert child.stderr is not None
    output = child.stderr.read()
    _, status, used = os.wait4(child.pid, 0)
    found = re.search(r"in ([\d.]+) s", output)
    if status or not found:
        raise RuntimeError(output)
    return float(found[1]), time.perf_counter() - start, used.ru_maxrss / 1e6


def compare(folder: Path, count: int, rounds: int) -> None:
    """Print the rates of each round, alternated, and their ratios."""
    boxes = data.boxes("uniform", BOXES)
    rb.save(folder / "boxes.npz", rb.Boxes(boxes.lower, boxes.upper))
    write(folder, count, "rays.parquet")
    write(folder, WARM_UP * STEP, "warm_up.parquet")
    head(*COLUMNS)
    found: list[tuple[float, ...]] = []
    for _ in range(rounds):
        sample = count // 10
        before = sample / in_process("memory", folder, sample)
        done, whole, peak = command(folder)
        rate = (before + sample / in_process("memory", folder, sample)) / 2
        workers = in_process("cluster", folder, count)
        ratio = 2 * workers / (done + command(folder)[0])
        found.append((rate / 1e6, count / done / 1e6, count / done / rate, count / whole / rate, peak, ratio))
        row(*(f"{number:.2f}" for number in found[-1]))
    row(*(f"**{median(column):.2f}**" for column in zip(*found, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rays", type=lambda text: int(float(text)), default=2 * 10**8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where there is room; a temporary one if left out")
    parser.add_argument("--way", choices=RUNS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(RUNS[options.way](options.folder, options.rays)))
        return
    facts = machine.describe()
    print(f"{facts['date']}, {facts['usable_cores']} of {facts['cores']} cores, {facts['cpu']}\n")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        compare(Path(folder), options.rays, options.rounds)


if __name__ == "__main__":
    main()
