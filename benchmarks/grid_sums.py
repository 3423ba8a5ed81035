"""Queries on uniform grids and a plain loop: ratios of times, alternated in one process.

`integrate` and `deposit` on full grids, `nearest` on one with 1 % of its cells occupied, and the loop
(`amanatides_woo.py`) take turns on one thread: CPU times, which other programs disturb least. So do one
thread and two of `integrate`: elapsed times, for which two cores must be free. Each line has the median of
the ratios of neighbouring times, and their quartiles.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

import amanatides_woo
import raybox as rb
from amanatides_woo import deposit, integrate, nearest

Results = dict[str, Any]
Calls = dict[str, Callable[[], object]]
KINDS = ("incoherent", "parallel")
SUMS = ("integrate", "deposit")
_LOWER, _SIZE = -0.7, 1.9
_CELLS_IN_ALL = {64: 6_000_000, 128: 6_000_000}  # that the rays of one call visit, about
_OCCUPIED, _ALIKE = 0.01, 0.999  # cells; rays whose first cell is that of the loop, at least
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


def measure(cells: Sequence[int] = (64, 128, 512), rounds: int = 15, *, two: bool = False) -> dict[str, Any]:
    """Return the times of raybox and of the loops: each query, number of cells an axis, kind of rays."""
    times = []
    for side in cells:
        for kind in KINDS:
            for query, calls in _queries(side, kind).items():
                record: dict[str, Any] = {"cells": side, "rays": kind, "query": query}
                turns = {"raybox": calls["1"], "loop": calls["loop"]}
                record["seconds"] = timing.alternate(turns, rounds, time.process_time)
                if two:
                    record["elapsed"] = timing.alternate(calls, rounds, time.perf_counter)
                times.append(record)
    return {"machine": machine.describe(), "times": times}


def _queries(side: int, kind: str) -> dict[str, Calls]:
    """Return raybox's call, the loop's and that of two threads, whose results are compared first."""
    rng = np.random.default_rng(side)
    shape, pitch, lower = (side,) * 3, _SIZE / side, np.full(3, _LOWER)
    full = rb.Scene(rb.Grid.uniform([_LOWER] * 3, pitch, shape))
    occupied = rng.random(shape) < _OCCUPIED
    sparse = rb.Scene(rb.Grid.uniform([_LOWER] * 3, pitch, shape, occupied=occupied))
    rays = rays_of(kind, _CELLS_VISITED[side > _LARGE] // side, rng)
    arrays = [np.array(x) for x in (rays.origins, rays.directions)]
    values, weights = rng.random(shape), rng.random(len(rays))
    sums, cells = np.empty(len(rays)), np.zeros(shape)
    index, t = np.empty(len(rays), np.int64), np.empty(len(rays))
    query = {
        "integrate": partial(full.integrate, rays, values),
        "deposit": partial(full.deposit, rays, weights),
        "nearest": partial(sparse.nearest, rays),
    }
    about = (lower, pitch)
    loops = {
        "integrate": lambda: amanatides_woo.integrate(*about, values, *arrays, sums),
        "deposit": lambda: amanatides_woo.deposit(*about, weights, *arrays, cells),
        "nearest": lambda: amanatides_woo.nearest(*about, occupied, *arrays, (index, t)),
    }
    for loop in loops.values():
        loop()
    assert np.allclose(query["integrate"](), sums, rtol=1e-9, atol=1e-9 * sums.max())
    assert np.allclose(query["deposit"](), cells.ravel(), rtol=1e-9, atol=1e-9 * cells.max())
    assert (
        np.isclose(query["nearest"]().t, t).mean() > 0.999
    )  # edges, which the loop may pass on the other side
    return {
        name: {"1": partial(call, workers=1), "loop": loops[name], "2": partial(call, workers=2)}
        for name, call in query.items()
    }


class Case(NamedTuple):
    """A grid, and rays through it."""

    name: str
    cells: int
    rays: rb.Rays
    directions: np.ndarray
    rng: np.random.Generator

    @property
    def pitch(self) -> float:
        """The length of a cell."""
        return _SIZE / self.cells

    def scene(self, occupied: np.ndarray | None = None) -> rb.Scene:
        """Return the grid as a scene."""
        return rb.Scene(rb.Grid.uniform([_LOWER] * 3, self.pitch, (self.cells,) * 3, occupied=occupied))


def case_of(cells: int, kind: str) -> Case:
    """Return a grid, and rays of one kind."""
    rng = np.random.default_rng(cells)
    rays = rays_of(kind, _CELLS_IN_ALL.get(cells, _CELLS_OTHERWISE) // cells, rng)
    return Case(f"{cells}^3, {kind}", cells, rays, np.ascontiguousarray(rays.directions), rng)


def measure_integrate(case: Case, rounds: int) -> None:
    """Print the ratios of `integrate`."""
    scene, values = case.scene(), case.rng.random((case.cells,) * 3)
    lower, sums, rays = np.full(3, _LOWER), np.empty(len(case.rays)), case.rays
    peer = partial(integrate, lower, case.pitch, values, rays.origins, case.directions, sums)
    one = partial(scene.integrate, rays, values, workers=1)
    peer()
    assert np.allclose(one(), sums, rtol=1e-9, atol=1e-9 * sums.max())
    ratios(f"integrate {case.name}", (one, peer), time.process_time, rounds)
    two = partial(scene.integrate, rays, values, workers=2)
    ratios(f"integrate {case.name}, 1/2", (one, two), time.perf_counter, rounds)


def measure_deposit(case: Case, per: Literal["length", "hit"], rounds: int) -> None:
    """Print the ratios of `deposit`; both return a new array."""
    scene, rays, weights = case.scene(), case.rays, case.rng.random(len(case.rays))

    def peer() -> np.ndarray:
        sums = np.zeros((case.cells,) * 3)
        both = rays.origins, case.directions
        deposit(np.full(3, _LOWER), case.pitch, both, weights, per == "hit", sums)
        return sums

    one = partial(scene.deposit, rays, weights, per=per, workers=1)
    if per == "length":  # of hits, the loop counts some more cells of no length
        assert np.allclose(one(), peer().ravel(), rtol=1e-6, atol=1e-9)
    ratios(f"deposit per {per} {case.name}", (one, peer), time.process_time, rounds)


def measure_nearest(case: Case, rounds: int) -> None:
    """Print the ratios of `nearest` where one cell of a hundred is occupied."""
    rays, occupied = case.rays, case.rng.random((case.cells,) * 3) < _OCCUPIED
    cells, times = np.empty(len(rays), np.int64), np.empty(len(rays))
    scene, both = case.scene(occupied), (rays.origins, case.directions)
    peer = partial(nearest, np.full(3, _LOWER), case.pitch, occupied, both, cells, times)
    one = partial(scene.nearest, rays, workers=1)
    peer()
    assert np.mean(one().index == cells) > _ALIKE
    ratios(f"nearest 1 % {case.name}", (one, peer), time.process_time, rounds)


MEASURES: dict[str, Callable[[Case, int], None]] = {
    "integrate": measure_integrate,
    "deposit-length": lambda case, rounds: measure_deposit(case, "length", rounds),
    "deposit-hit": lambda case, rounds: measure_deposit(case, "hit", rounds),
    "nearest": measure_nearest,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, nargs="*", default=[64, 128, 512], help="per axis")
    parser.add_argument("--queries", nargs="*", choices=MEASURES, default=list(MEASURES))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--two", action="store_true", help="time two threads, too")
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}; ratio [quartiles]  median times")
    for cells in options.cells:
        for kind in ("incoherent", "parallel"):
            for query in options.queries:
                MEASURES[query](case_of(cells, kind), options.rounds)


if __name__ == "__main__":
    main()
