"""`Scene.integrate` on full uniform grids beside a plain loop: ratios of times, alternated in one process.

`integrate` and the loop (`amanatides_woo.py`, one thread) take turns: CPU times, which other programs disturb
least. So do one thread and two of `integrate`: elapsed times, for which two cores must be free. Each line has
the median of the ratios of neighbouring times, and their quartiles.
"""

import argparse
import os
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import raybox as rb
from amanatides_woo import integrate

_LOWER, _SIZE = -0.7, 1.9
_CELLS_IN_ALL = {64: 6_000_000, 128: 6_000_000}  # that the rays of one call visit, about
_CELLS_OTHERWISE = 50_000_000  # values are checked once a call, which takes long if there are many


def rays_of(kind: str, count: int, rng: np.random.Generator) -> rb.Rays:
    """Return rays from outside of the grid: any way through any point, or all parallel, row by row."""
    middle = _LOWER + _SIZE / 2
    if kind == "incoherent":
        directions = rng.normal(size=(count, 3))
        directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
        return rb.Rays(_LOWER + _SIZE * rng.random((count, 3)) - 2 * _SIZE * directions, directions)
    direction = np.array([0.58, 0.31, 0.75]) / np.linalg.norm([0.58, 0.31, 0.75])
    one = np.cross(direction, [1.0, 0.0, 0.0])
    one /= np.linalg.norm(one)
    side = int(np.sqrt(count))
    u, v = np.meshgrid(*[np.linspace(-0.45, 0.45, side) * _SIZE] * 2, indexing="ij")
    shift = u[..., None] * one + v[..., None] * np.cross(direction, one)
    return rb.Rays((middle + shift - 2 * _SIZE * direction).reshape(-1, 3), direction)


def seconds(call: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    call()
    return clock() - start


def ratios(
    name: str, calls: tuple[Callable[[], object], ...], clock: Callable[[], float], rounds: int
) -> None:
    """Print the quartiles of the first call's time over the second's."""
    times = np.array([[seconds(call, clock) for call in calls] for _ in range(rounds + 1)])[1:]
    low, middle, high = np.percentile(times[:, 0] / times[:, 1], [25, 50, 75])
    each = np.median(times, axis=0)
    print(f"{name:34} {middle:.2f}  [{low:.2f}, {high:.2f}]  {each[0]:.4f} s, {each[1]:.4f} s", flush=True)


def measure(cells: int, kind: str, rounds: int) -> None:
    """Print the ratios of one grid and one kind of rays."""
    rng = np.random.default_rng(cells)
    shape, pitch = (cells,) * 3, _SIZE / cells
    scene, values = rb.Scene(rb.Grid.uniform([_LOWER] * 3, pitch, shape)), rng.random(shape)
    rays = rays_of(kind, _CELLS_IN_ALL.get(cells, _CELLS_OTHERWISE) // cells, rng)
    directions = np.ascontiguousarray(rays.directions)
    lower, sums = np.full(3, _LOWER), np.empty(len(rays))
    integrate(lower, pitch, values, rays.origins, directions, sums)
    one = partial(scene.integrate, rays, values, workers=1)
    found = one()
    assert np.allclose(found, sums, rtol=1e-9, atol=1e-9 * sums.max())
    visited = scene.segments(rays[:1000]).offsets[-1] / 1000
    name = f"{cells}^3, {kind} ({visited:.0f} cells)"
    ratios(
        f"{name}, peer",
        (one, lambda: integrate(lower, pitch, values, rays.origins, directions, sums)),
        time.process_time,
        rounds,
    )
    two = partial(scene.integrate, rays, values, workers=2)
    ratios(f"{name}, 1/2", (one, two), time.perf_counter, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, nargs="*", default=[64, 128, 512], help="per axis")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}; ratio [quartiles]  median times")
    for cells in options.cells:
        for kind in ("incoherent", "parallel"):
            measure(cells, kind, options.rounds)


if __name__ == "__main__":
    main()
