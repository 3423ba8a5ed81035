"""Show that sums with reproducible=True have the same bits, and what they cost beside the default.

    python benchmarks/reproducible_sums.py [--rays 10000000] [--rounds 9]

Rays of full-mantissa weights are deposited in a few thousand boxes, and in the cells of a grid, by 1, 2 and 4
threads, in two orders; `integrate` likewise sums full-mantissa values over the boxes. Costs are of a tenth of
the rays and one thread: both ways take turns, and ratios are of processor times. The exit code is 1 if a bit
differs.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import raybox as rb

CELLS, BOXES = 16, 2000


def seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def report_cost(name: str, call: Callable[[bool], Any], rounds: int) -> None:
    """Print the ratio of processor times with reproducible=True and without; the first round is left out."""
    call(True), call(False)
    pairs = np.array(
        [[seconds(lambda kind=kind: call(kind)) for kind in (True, False)] for _ in range(rounds)]
    )
    low, middle, high = np.percentile(pairs[:, 0] / pairs[:, 1], [25, 50, 75])
    each = np.median(pairs, axis=0)
    print(f"{name}: {middle:.2f} [{low:.2f}, {high:.2f}], {each[0]:.3f} s beside {each[1]:.3f} s", flush=True)


def bits_that_differ(call: Callable[[Any, int], Any], count: int, rng) -> int:
    """Return how many results differ. call: maps an order of the rays and a number of threads to results."""
    given, shuffled = np.arange(count), rng.permutation(count)
    wanted = call(given, 1).view(np.int64)
    differ = 0
    for workers in (1, 2, 4):
        for order in (given, shuffled):
            if workers > 1 or order is shuffled:
                differ += int((call(order, workers).view(np.int64) != wanted).sum())
    return differ


def in_given_order(sums: Any, order: Any) -> Any:
    """Return the sums of rays in the order in which they were given."""
    made = np.empty_like(sums)
    made[order] = sums
    return made


def check(name: str, scene: rb.Scene, rays: rb.Rays, rounds: int) -> int:
    """Print what is measured of one scene; return how many numbers have other bits."""
    rng, count = np.random.default_rng(5), len(rays)
    weights, values = rng.normal(size=count), rng.normal(size=len(scene))
    how = {"reproducible": True}
    terms = int(scene.deposit(rays, per="hit").sum())

    def deposited(order: Any, workers: int) -> Any:
        return scene.deposit(rays[order], weights[order], workers=workers, **how)

    def integrated(order: Any, workers: int) -> Any:
        return in_given_order(scene.integrate(rays[order], values, workers=workers, **how), order)

    differ = bits_that_differ(deposited, count, rng), bits_that_differ(integrated, count, rng)
    default = scene.deposit(rays, weights, workers=1)
    other = int((scene.deposit(rays, weights, workers=2) != default).sum())
    print(
        f"{name}: {count:,} rays, {terms / len(scene):,.0f} terms a sum of {len(scene):,}; other bits: "
        f"deposit {differ[0]}, integrate {differ[1]}; by default, two threads: deposit {other}",
        flush=True,
    )
    some = slice(0, count // 10)
    part, own = rays[some], weights[some]
    report_cost(
        f"{name}, deposit", lambda kind: scene.deposit(part, own, reproducible=kind, workers=1), rounds
    )
    report_cost(
        f"{name}, integrate", lambda kind: scene.integrate(part, values, reproducible=kind, workers=1), rounds
    )
    report_cost(f"{name}, null", lambda _kind: scene.deposit(part, own, workers=1), rounds)
    return sum(differ)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rays", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    rng = np.random.default_rng(4)
    rays = rb.Rays(rng.uniform(-1, 2, (options.rays, 3)), rng.normal(size=(options.rays, 3)))
    lower = rng.uniform(0, 0.9, (BOXES, 3))
    boxes = rb.Scene(rb.Boxes(lower, lower + rng.uniform(0, 0.2, (BOXES, 3))))
    grid = rb.Scene(rb.Grid(*(np.sort(rng.random(CELLS + 1)) for _ in range(3))))
    each = ("boxes", boxes), ("grid", grid)
    differ = sum(check(name, scene, rays, options.rounds) for name, scene in each)
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
