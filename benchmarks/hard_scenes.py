"""Time queries in scenes where every ray ties with, touches or contains many primitives.

    python benchmarks/hard_scenes.py [--rays 2048] [--primitives 2000] [--family NAME] [--query NAME]

It prints a Markdown table: processor seconds on one thread, extrapolated from the pairs of a small scene of
each family of tests/helpers/hard_families.py to 10^5 rays at 10^5 primitives; how many times those of
`count`; and microseconds a pair. To time another tree, put its `src` on PYTHONPATH.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import hard_families
import raybox as rb

PAIRS = 1e10  # of 10^5 rays and 10^5 primitives
QUERIES = {"count": {}, "occluded": {}, "nearest": {}, "first": {"k": 4}, "all": {}}
LISTED = 2e6  # pairs of a query with `all`, at most: its hits take memory


def seconds(query: Callable[[], object], rounds: int = 2) -> float:
    """Return the least processor seconds of a call."""
    best = np.inf
    for _ in range(rounds):
        start = time.process_time()
        query()
        best = min(best, time.process_time() - start)
    return best


def a_pair(name: str, query: str, options: argparse.Namespace) -> float:
    """Return the processor seconds of a query for each pair of a family's scene."""
    rng = np.random.default_rng(1)
    rays, geometry = hard_families.FAMILIES[name](rng, options.rays, options.primitives)
    if query == "all":
        rays = rays[: int(LISTED / options.primitives)]
    call = partial(getattr(rb.Scene(geometry), query), workers=1, **QUERIES[query])
    call(rays[:1])  # compile
    return seconds(partial(call, rays)) / (len(rays) * len(geometry))


def rows(options: argparse.Namespace) -> Iterator[str]:
    """Yield the rows of the table."""
    for name in options.family or hard_families.FAMILIES:
        base = a_pair(name, "count", options)
        for query in options.query or QUERIES:
            took = base if query == "count" else a_pair(name, query, options)
            yield f"| {name} | {query} | {took * PAIRS:,.1f} | {took / base:.1f} | {took * 1e6:.4f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rays", type=int, default=2048)
    parser.add_argument("--primitives", type=int, default=2000)
    parser.add_argument("--family", choices=list(hard_families.FAMILIES), action="append")
    parser.add_argument("--query", choices=list(QUERIES), action="append")
    print("| family | query | s | of `count` | us a pair |\n| --- | --- | ---: | ---: | ---: |")
    for row in rows(parser.parse_args()):
        print(row, flush=True)


if __name__ == "__main__":
    main()
