"""Compare every query with exact arithmetic at the edges of float64, by kind of fault.

    python benchmarks/edges.py [--cases 100000] [--kind N] [--seed 0] [--workers 2] [--show 3]

Each kind is a family of scales (edge_scales.py) that scenes of every primitive get (edge_families.py):

1. coordinates up to the largest float, whose differences overflow;
2. times that are different and round to the same float, also in the adapters;
3. directions, ranges and positions of magnitudes far apart, which no common power of two rescales;
4. axes and matrices whose products underflow;
5. times beyond the largest float.

A case is one ray (or moving box, point, matrix) in a scene, under every query that the primitive has. Truth
is in Fractions (tests/helpers/exact*.py, path_truth.py). It prints the cases by kind and primitive, the wrong
results by query, and the first wrong scenes, of one ray, as Python. The exit code is 1 if anything is wrong.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import edge_families
import edge_report

COUNTS = ("cases", "hits", "misses", "touches", "ties")
BATCH = 16  # scenes of one task


class Task(NamedTuple):
    """Scenes of one kind and primitive, by their seeds."""

    kind: int
    primitive: str
    seeds: range


class Example(NamedTuple):
    """Where a result is wrong."""

    kind: int
    primitive: str
    seed: int
    query: str
    row: int


class Tally(NamedTuple):
    """Counts of cases; of results and wrong ones by query; wrong ones, the first of each query."""

    counts: Counter
    compared: Counter
    wrong: Counter
    examples: list[Example]


def examine(task: Task) -> Tally:
    """Return the tally of the scenes of a task."""
    tally = Tally(Counter(), Counter(), Counter(), [])
    for seed in task.seeds:
        case = edge_families.make(task.kind, task.primitive, seed)
        tally.counts["cases"] += edge_report.rows_of(case)
        for one in edge_report.outcomes_of(case, tally.counts):
            tally.compared[one.query] += len(one.wrong)
            if one.wrong.any():
                if one.query not in tally.wrong:
                    example = Example(task.kind, task.primitive, seed, one.query, int(one.wrong.argmax()))
                    tally.examples.append(example)
                tally.wrong[one.query] += int(one.wrong.sum())
    return tally


def tasks(kind: int, cases: int, seed: int) -> Iterator[Task]:
    """Yield the tasks of a kind; at least one scene of each primitive."""
    for primitive, share in edge_families.shares(kind).items():
        scenes = max(1, round(cases * share / edge_families.RAYS))
        for first in range(0, scenes, BATCH):
            yield Task(kind, primitive, range(seed + first, seed + min(first + BATCH, scenes)))


def run(pool: ProcessPoolExecutor, kind: int, cases: int, seed: int) -> dict[str, Tally]:
    """Return the tally of each primitive of a kind."""
    tallies: dict[str, Tally] = {}
    todo = list(tasks(kind, cases, seed))
    for task, part in zip(todo, pool.map(examine, todo), strict=True):
        total = tallies.setdefault(task.primitive, Tally(Counter(), Counter(), Counter(), []))
        for mine, other in zip(total[:3], part[:3], strict=True):
            mine.update(other)
        total.examples.extend(part.examples)
    return tallies


def line(cells, width: int = 9) -> str:
    first, second, *rest = cells
    return f"{first:>4}  {second:<24}" + "".join(str(x).rjust(width) for x in rest)


def print_kind(kind: int, tallies: dict[str, Tally], took: float) -> None:
    for primitive, tally in tallies.items():
        cells = (*(tally.counts[name] for name in COUNTS), sum(tally.compared.values()))
        wrong = ", ".join(f"{query} {number}" for query, number in tally.wrong.items())
        print(line((kind, primitive, *cells, sum(tally.wrong.values()))), f" {wrong}")
    print(f"{took:.0f} s", flush=True)


def print_queries(results: dict[int, dict[str, Tally]]) -> None:
    """Print the results of each query and the wrong ones by kind."""
    compared, wrong = Counter(), Counter()
    for kind, tallies in results.items():
        for tally in tallies.values():
            for query, number in tally.compared.items():
                compared[query] += number
                wrong[query, kind] += tally.wrong[query]
    print("\n" + line(("", "query", "results", *(f"wrong {kind}" for kind in results))))
    for query, number in compared.items():
        print(line(("", query, number, *(wrong[query, kind] for kind in results))))


def print_examples(tallies: dict[str, Tally], show: int) -> None:
    """Print one wrong case of each query, reduced, from different scenes."""
    firsts: dict[str, Example] = {}
    scenes = set()
    for one in (one for tally in tallies.values() for one in tally.examples):
        if one.query not in firsts and (one.primitive, one.seed) not in scenes:
            firsts[one.query] = one
            scenes.add((one.primitive, one.seed))
    for one in list(firsts.values())[:show]:
        print("\n" + as_python(one), flush=True)


def as_python(one: Example) -> str:
    """Return a wrong case, reduced, as Python."""
    case = edge_families.make(one.kind, one.primitive, one.seed)
    text = edge_report.printed(*edge_report.reduced(case, one.query, one.row))
    return f"# kind {one.kind}, {one.primitive}, seed {one.seed}, row {one.row}\n{text}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--kind", type=int, choices=sorted(edge_families.KINDS), action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--show", type=int, default=3, help="wrong cases to print for each kind")
    options = parser.parse_args()
    kinds = options.kind or sorted(edge_families.KINDS)
    print(line(("kind", "primitive", *COUNTS, "results", "wrong")))
    results = {}
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for kind in kinds:
            start = time.perf_counter()
            results[kind] = run(pool, kind, options.cases // len(kinds), options.seed)
            print_kind(kind, results[kind], time.perf_counter() - start)
    print_queries(results)
    for tallies in results.values():
        print_examples(tallies, options.show)
    wrong = {k: sum(sum(t.wrong.values()) for t in tallies.values()) for k, tallies in results.items()}
    print("\nwrong: " + ", ".join(f"kind {kind}: {number}" for kind, number in wrong.items()))
    return int(any(wrong.values()))


if __name__ == "__main__":
    sys.exit(main())
