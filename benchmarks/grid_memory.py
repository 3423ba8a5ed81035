"""Measure the peak memory of grids of many cells, built and queried, each query in a process of its own.

    python benchmarks/grid_memory.py [--cells 512] [--rays 100000]

`values` are the bytes of a float64 a cell: what `integrate` takes, and `deposit` returns. `more` is the peak
of the process less what it held before the grid was made, and less the values.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np

import raybox as rb

QUERIES = ("integrate", "deposit", "deposit, reproducible", "nearest", "nearest, 1 % occupied", "count")


def peak_bytes() -> int:
    """Return the largest resident memory of this process so far."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    return 1024 * int(line.split()[1])


def run_query(name: str, cells: int, count: int) -> None:
    """Make a grid, its scene and values, and query it."""
    rng = np.random.default_rng(1)
    shape = (cells,) * 3
    occupied = None
    if "occupied" in name:
        occupied = np.zeros(shape, np.bool_)
        at = rng.integers(0, cells - cells // 8, (5, 3))
        for x, y, z in at:  # clumps
            occupied[x : x + cells // 8, y : y + cells // 8, z : z + cells // 8] = True
    scene = rb.Scene(rb.Grid.uniform([0, 0, 0], 1.0, shape, occupied))
    origins = rng.uniform(0, cells, (count, 3))
    rays = rb.Rays(origins, rng.normal(size=(count, 3)))
    if name == "integrate":
        values = np.empty(shape)
        values[...] = 1.0
        scene.integrate(rays, values)
    elif name.startswith("deposit"):
        scene.deposit(rays, rng.random(count), reproducible="reproducible" in name)
    elif name == "count":
        scene.count(rays)
    else:
        scene.nearest(rays)


def measure(name: str, cells: int, count: int) -> None:
    run_query(name, 8, min(count, 20_000))  # compile, or load
    before = peak_bytes()
    run_query(name, cells, count)
    peak = peak_bytes() - before
    values = 8 * cells**3 if name.startswith(("integrate", "deposit")) else 0
    print(
        f"{name:24}{peak / 1e6:10.0f} MB{values / 1e6:10.0f} MB{(peak - values) / 1e6:10.0f} MB", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--cells", type=int, default=512)
    parser.add_argument("--rays", type=int, default=100_000)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(options.one, options.cells, options.rays)
        return
    print(f"{'query':24}{'peak':>13}{'values':>13}{'more':>13}", flush=True)
    for name in QUERIES:
        how = ["--one", name, "--cells", str(options.cells), "--rays", str(options.rays)]
        subprocess.run([sys.executable, __file__, *how], check=True)


if __name__ == "__main__":
    main()
