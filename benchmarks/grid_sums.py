"""Queries of uniform grids beside a plain loop: ratios of times, alternated.

    python benchmarks/grid_sums.py [--cells 64 128 512] [--rounds 15] [--two]

The loops (`amanatides_woo.py`) use one thread, and so does raybox; CPU times, which other programs disturb
least. `integrate`, `deposit` and `segments` pass full grids, `nearest` one of which 1 % is occupied, at
random. `--two` adds two threads over one: elapsed times, for which two cores must be free. Each line has the
median of the ratios of a round, and their quartiles.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median, quantiles
from typing import Any

import numpy as np

import raybox as rb
from own_aims import Aim, at_least
from raybox.bench import machine, report, timing

Results = dict[str, Any]
Calls = dict[str, Callable[[], object]]
KINDS = ("incoherent", "parallel")
PATHS = ("integrate", "deposit", "segments")
_LOWER, _SIZE = -0.7, 1.9
_LARGE = 128  # cells an axis; values of larger grids are checked once a call, which takes long
_CELLS_VISITED = (6_000_000, 50_000_000)  # by the rays of a call, about; in large grids
_OCCUPIED = 0.01


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
    import amanatides_woo  # needs Numba

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
    room = len(full.segments(rays).index) + 3 * len(rays)  # at edges the loop may pass more cells
    found = np.zeros(len(rays) + 1, np.int64), np.empty(room, np.int64), np.empty(room)
    query = {
        "integrate": partial(full.integrate, rays, values),
        "deposit": partial(full.deposit, rays, weights),
        "segments": partial(full.segments, rays),
        "nearest": partial(sparse.nearest, rays),
    }
    about = (lower, pitch)
    loops = {
        "integrate": lambda: amanatides_woo.integrate(*about, values, *arrays, sums),
        "deposit": lambda: amanatides_woo.deposit(*about, weights, *arrays, cells),
        "segments": lambda: amanatides_woo.segments(*about, shape, *arrays, found),
        "nearest": lambda: amanatides_woo.nearest(*about, occupied, *arrays, (index, t)),
    }
    for loop in loops.values():
        loop()
    assert np.allclose(query["integrate"](), sums, rtol=1e-9, atol=1e-9 * sums.max())
    assert np.allclose(query["deposit"](), cells.ravel(), rtol=1e-9, atol=1e-9 * cells.max())
    assert (np.diff(found[0]) == np.diff(query["segments"]().offsets)).mean() > 0.99
    assert (
        np.isclose(query["nearest"]().t, t).mean() > 0.999
    )  # edges, which the loop may pass on the other side
    return {
        name: {"1": partial(call, workers=1), "loop": loops[name], "2": partial(call, workers=2)}
        for name, call in query.items()
    }


def quotients(record: dict[str, Any]) -> list[float]:
    """Return the loop's time over raybox's, round by round."""
    seconds = record["seconds"]
    return [loop / own for own, loop in zip(seconds["raybox"], seconds["loop"], strict=True)]


def aims(results: Results) -> list[Aim]:
    """Return the aims of grids: at least the loop's speed."""
    times = results["grids"]["times"] if "grids" in results else []
    about = (
        ("deposit in full grids: the plain loop's rate", 1.0, "deposit", KINDS, 0),
        ("deposit in 512³ cells: 1.5 times the plain loop's rate", 1.5, "deposit", KINDS, 512),
        ("nearest of parallel rays, 1 % of cells: the plain loop's rate", 1.0, "nearest", ("parallel",), 0),
    )
    made = []
    for words, least, query, kinds, side in about:
        chosen = [
            (median(quotients(record)), f"{record['cells']}³ cells, {record['rays']}")
            for record in times
            if record["query"] == query and record["rays"] in kinds and side in (0, record["cells"])
        ]
        made.append(at_least(words, least, chosen))
    return [aim for aim in made if aim]


def section(results: Results) -> str:
    """Return the table of grids for the appendix."""
    if "grids" not in results:
        return ""
    lines = [
        (f"{record['cells']}³", record["rays"], record["query"], f"{median(quotients(record)):.2f}")
        for record in results["grids"]["times"]
    ]
    words = """One thread; how many times longer a plain compiled loop takes that goes from cell to cell
(Amanatides and Woo, 1987), in float64 and not exact. `integrate`, `deposit` and `segments` pass full grids,
`nearest` one of which 1 % is occupied, at random:"""
    table = report.markdown(("cells", "rays", "query", "plain loop /"), lines)
    return "\n\n".join(["## Grids", words, table])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, nargs="*", default=[64, 128, 512], help="per axis")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--two", action="store_true", help="time two threads, too")
    options = parser.parse_args()
    print("plain loop / raybox [quartiles]  median seconds")
    for record in measure(options.cells, options.rounds, two=options.two)["times"]:
        name = f"{record['cells']}^3, {record['rays']}, {record['query']}"
        own, loop = (median(record["seconds"][who]) for who in ("raybox", "loop"))
        print(f"{name:34} {_spread(quotients(record))}  {own:.4f}, {loop:.4f}")
        if options.two:
            elapsed = record["elapsed"]
            gains = [one / two for one, two in zip(elapsed["1"], elapsed["2"], strict=True)]
            print(f"{name + ', two threads':34} {_spread(gains)}")


def _spread(values: list[float]) -> str:
    low, middle, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return f"{middle:.2f}  [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    main()
