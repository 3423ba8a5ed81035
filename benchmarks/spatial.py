"""Spatial queries of raybox, rtree, shapely, geo-index and SciPy: results are compared, then timed.

    python benchmarks/spatial.py [--rounds 7] [--boxes 100000] [--only uniform]

Real scenes are copies of a house and of a part of a city on a grid of sites. Queries are random points in
them, and the boxes of the same objects, turned by a quarter on their sites. Times are processor time of one
thread: medians of rounds in which all take turns. Peers are timed where they are installed; times of SciPy
are those of a KD-tree of centres.
"""

import argparse
import csv
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import numpy as np

import raybox as rb
import real_data
from raybox.bench import machine, peers, timing
from raybox.validation import Floats, Ints
from spatial_calls import (
    ANY,
    BARS,
    BOXES,
    CLOSEST,
    CLOSEST_8,
    COUNTS,
    JOIN,
    PEERS,
    POINTS,
    SORTED,
    Bounds,
    Call,
    Calls,
    Case,
    raybox_calls,
)

COLUMNS = ANY, SORTED, COUNTS, "rtree", "STRtree", "geo-index", "KD-tree"
SOME_COLUMNS = ANY, COUNTS, "rtree", "STRtree"
PACKAGES = "shapely", "geoindex-rs", "scipy"
SIZES = tuple(10**k for k in range(1, 7))  # queries a call


def uniform(count: int, dimension: int, size: float) -> Case:
    """Return boxes of up to a size in a unit cube."""
    rng = np.random.default_rng(1)
    lower, points, others = (rng.random((count, dimension)) for _ in range(3))
    sizes = size * rng.random((2, count, dimension))
    name = f"{count:,} uniform boxes, up to {size:g} wide, {dimension}D"
    return Case(name, Bounds(lower, lower + sizes[0]), points, Bounds(others, others + sizes[1]))


def sites(name: str, one: Bounds, count: int, dimension: int) -> Case:
    """Return copies of boxes on a grid of sites, and the same turned by a quarter on each."""
    rng = np.random.default_rng(1)
    middle = (one.lower.min(axis=0) + one.upper.max(axis=0)) / 2
    low, up = one.lower - middle, one.upper - middle
    turned = np.stack([-up[:, 1], low[:, 0], low[:, 2]], 1), np.stack([-low[:, 1], up[:, 0], up[:, 2]], 1)
    copies, pitch = -(-count // len(low)), 2.2 * np.abs([low, up])[..., :2].max()
    place = np.zeros((copies, 1, 3))
    place[..., 0, :2] = pitch * np.stack(np.divmod(np.arange(copies), int(copies**0.5)), axis=1)
    lower, upper, *others = ((x + place).reshape(-1, 3)[:, :dimension] for x in (low, up, *turned))
    begin, end, order = lower.min(axis=0), upper.max(axis=0), rng.permutation(len(lower))
    points = begin + rng.random(lower.shape) * (end - begin)
    name = f"{name}, {copies} copies: {len(lower):,} boxes, {dimension}D"
    return Case(name, Bounds(lower, upper), points, Bounds(*(x[order] for x in others)))


def house() -> Bounds:
    with real_data.HOUSE_BOXES.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    ends = ([[float(row[f"{end}_{axis}"]) for axis in "xyz"] for row in rows] for end in ("min", "max"))
    return Bounds(*map(np.array, ends))


def city() -> Bounds:
    boxes = rb.load(real_data.CITY, boxes=True)
    return Bounds(np.array(boxes.lower), np.array(boxes.upper))


def cases(count: int) -> Iterator[Case]:
    for dimension in (3, 2):
        yield sites("house", house(), count, dimension)
        yield sites("city", city(), count, dimension)
    yield uniform(count, 3, 0.01)
    yield uniform(count, 2, 0.01)
    yield uniform(count, 2, 0.004)


def all_calls(case: Case) -> Calls:
    """Return the calls of all that are installed, checked against raybox's."""
    calls = raybox_calls(case)
    for make in PEERS:
        try:
            theirs = make(case)
        except ImportError as error:
            print(f"{make.__name__}: {error}", file=sys.stderr)
            continue
        for what, found in theirs.items():
            for library, call in found.items():
                check(case, what, calls[what][ANY], call, library)
            calls[what] |= found
    return calls


def check(case: Case, what: str, own: Call, other: Call, library: str) -> None:
    """Raise `AssertionError` unless both find the same: of the nearest boxes, the same distances."""
    if own.found is None or other.found is None:
        return
    ours, theirs = own.found(own.run()), other.found(other.run())
    if what in {CLOSEST, CLOSEST_8}:
        some = len(theirs)
        same = np.allclose(distances(case, ours[:some]), distances(case, theirs), rtol=1e-12, atol=1e-12)
    else:
        ours = ours[ours[:, 0] < other.queries] if what != JOIN else ours
        same = np.array_equal(ours, theirs[np.lexsort(theirs.T[::-1])])
    assert same, f"{case.name}, {what}: {library} finds others"


def distances(case: Case, rows: Ints) -> Floats:
    """Return the distances of points to their nearest boxes, (N, k)."""
    point = case.points[: len(rows), None]
    gaps = np.maximum(0, np.maximum(case.boxes.lower[rows] - point, point - case.boxes.upper[rows]))
    return np.linalg.norm(gaps, axis=2)


def lines(case: Case, calls: Calls, rounds: int) -> Iterator[list[str]]:
    """Yield a row of the table for each question: microseconds a query, of joins milliseconds."""
    for what, contest in calls.items():
        runs = {library: call.run for library, call in contest.items()}
        times = timing.alternate(runs, rounds, time.process_time)
        each = {library: median(x) / contest[library].queries for library, x in times.items()}
        scale = 1e3 if what == JOIN else 1e6
        hits = f" ({len(contest[ANY].run().index) / len(case.points):.2f} found)" if COUNTS in contest else ""
        ratios = {library: each[library] / each[ANY] for library in each if (what, library) in BARS}
        against = ", ".join(f"{library} {x:.3g} (of {BARS[what, library]})" for library, x in ratios.items())
        if COUNTS in each and "STRtree" in each:
            against += f", counts {each['STRtree'] / each[COUNTS]:.3g} (of 4)"
        cells = [f"{each[library] * scale:.3g}" if library in each else "" for library in COLUMNS]
        yield [f"{what}{hits}", *cells, against]


def by_size(count: int, rounds: int) -> Iterator[list[str]]:
    """Yield microseconds a query for numbers of queries a call: points in 2D, and boxes."""
    case = uniform(count, 2, 0.01)
    rng = np.random.default_rng(2)
    for size in SIZES:
        some = rng.integers(0, count, size)
        others = Bounds(*(x[some] for x in case.others))
        calls = all_calls(case._replace(points=rng.random((size, 2)), others=others))
        for what in (POINTS, BOXES, CLOSEST):
            each = {library: microseconds(call, rounds) for library, call in calls[what].items()}
            yield [
                f"{size:,}",
                what,
                *(f"{each[library]:.3g}" if library in each else "" for library in SOME_COLUMNS),
            ]


def microseconds(call: Call, rounds: int) -> float:
    """Return the processor time of a query; short calls are repeated."""
    turns = max(1, 10_000 // call.queries)
    repeated = {"": lambda: [call.run() for _ in range(turns)]}
    return median(timing.alternate(repeated, rounds, time.process_time)[""]) / turns / call.queries * 1e6


def print_table(title: str, head: list[str], rows: Iterator[list[str]]) -> None:
    print(f"\n**{title}**\n\n| {' | '.join(head)} |\n| --- {'| ---: ' * (len(head) - 1)}|", flush=True)
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--boxes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="scenes whose name has this; sizes: calls of 10 to 10^6")
    options = parser.parse_args()
    versions = ", ".join(f"{name} {peers.version(name)}" for name in PACKAGES)
    print(machine.in_words(machine.describe()), versions, f"load {os.getloadavg()[0]:.1f}", sep="\n")
    for case in cases(options.boxes):
        if options.only in case.name:
            calls = all_calls(case)
            print_table(case.name, ["question", *COLUMNS, "times"], lines(case, calls, options.rounds))
    if options.only in "sizes":
        rows = by_size(options.boxes, options.rounds)
        print_table("queries a call", ["queries", "question", *SOME_COLUMNS], rows)


if __name__ == "__main__":
    main()
