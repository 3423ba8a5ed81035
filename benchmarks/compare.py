"""Prove that nothing changed: run two trees of raybox in turns and compare bits and times.

    python benchmarks/compare.py OLD NEW [--quick] [--only PATTERN] [--bits-only]

OLD and NEW are folders with src/raybox, or commits. Each runs in a worker process of its own, a second OLD in
a third (the null run). A ratio is the median over rounds of new / old seconds of the same round. Cases over
the bar are run again in fresh processes, with more rounds, and only these count. The exit status is 1 if any
bit differs, a case fails, or one stays over the bar.
"""

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests" / "helpers"))

import compare_cases
import compare_report
import real_data
from compare_cases import Case, Extent
from compare_data import Folder
from compare_report import Outcome
from compare_trees import Tree, Worker, WorkerError, prune, reply, request, send, snapshot, value_of, workers

LEAST = 0.02  # seconds of a timed sample; a shorter call is repeated
MOST_CALLS = 1000
TOTAL = 0.3  # seconds of all samples of one worker, or there are more rounds
MORE = 4  # times as many rounds, at most
RERUNS = 3  # fresh sets of processes, each with twice the rounds


class Run(NamedTuple):
    """One comparison's settings."""

    trees: list[Tree]
    data: Folder
    real: Path
    repeats: int
    bar: float
    clock: str


def main() -> int:
    options = _parser().parse_args()
    started = time.perf_counter()
    options.cache.mkdir(parents=True, exist_ok=True)
    prune(options.cache)
    old, new = (snapshot(spec, options.cache) for spec in (options.old, options.new))
    cases = [case for case in compare_cases.plan(_extent(options)) if re.search(options.only, case.name)]
    if not cases:
        raise SystemExit(f"no case matches {options.only!r}")
    with tempfile.TemporaryDirectory() as made:
        trees = [old, new] if options.bits_only else [old, new, old]
        repeats = options.repeats or (5 if options.quick else 7)
        run = Run(trees, Folder(Path(made)), options.data, repeats, options.bar, options.clock)
        outcomes = compare(run, cases)
    print("\n".join(compare_report.summary(outcomes, options.bar)))
    print(f"{time.perf_counter() - started:.0f} s")
    return int(any(o.wrong or o.ratio > options.bar for o in outcomes))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", metavar="OLD", help="a folder with src/raybox, or a commit")
    parser.add_argument("new", metavar="NEW")
    parser.add_argument("--data", type=Path, default=real_data.FOLDER, help="the folder of real files")
    parser.add_argument("--only", default="", metavar="PATTERN", help="cases whose names match this")
    parser.add_argument("--quick", action="store_true", help="a few scenes, a few minutes")
    parser.add_argument("--bits-only", action="store_true", help="measure no times")
    parser.add_argument("--scenes", nargs="+", help="these data sets instead")
    parser.add_argument("--rays", type=int, help="rays of a large batch: 1,000,000; quick: 100,000")
    parser.add_argument("--repeats", type=int, help="rounds: 7; quick: 5")
    parser.add_argument("--bar", type=float, default=1.03, help="the ratio that is too much: 1.03")
    clock = "wall, or cpu: processor time of all threads, for a machine that others use too"
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help=clock)
    cache = Path(tempfile.gettempdir()) / "raybox-compare"
    parser.add_argument("--cache", type=Path, default=cache, help=f"where compiled code stays: {cache}")
    return parser


def _extent(options: argparse.Namespace) -> Extent:
    scenes = compare_cases.QUICK if options.quick else compare_cases.SYNTHETIC
    scenes += ("house", "street") if options.quick else (*compare_cases.FILES, "street")
    rays = options.rays or (100_000 if options.quick else 1_000_000)
    return Extent(tuple(options.scenes or scenes), rays, options.quick)


def compare(run: Run, cases: list[Case]) -> list[Outcome]:
    """Run every case, then again those over the bar; print a line for each."""
    print(compare_report.HEADER if len(run.trees) == 3 else "case, bits")
    outcomes: list[Outcome] = []
    while len(outcomes) < len(cases):  # once more for each case that ends a process
        with workers(run.trees) as processes:
            while len(outcomes) < len(cases) and all(one.process.poll() is None for one in processes):
                outcomes.append(_outcome(run, processes, cases[len(outcomes)], run.repeats))
                print(compare_report.line(outcomes[-1]), flush=True)
    slow = [k for k, outcome in enumerate(outcomes) if outcome.ratio > run.bar]
    for k in slow:
        outcomes[k] = _again(run, outcomes[k])
        print(compare_report.line(outcomes[k]), flush=True)
    return outcomes


def _again(run: Run, first: Outcome) -> Outcome:
    """Return the outcome of reruns in fresh processes, until it is within the bar or they are enough."""
    total = first._replace(old=(), new=(), null=())
    for _ in range(RERUNS):
        with workers(run.trees) as processes:
            one = _outcome(run, processes, first.case, 2 * run.repeats)
        total = total._replace(
            old=total.old + one.old,
            new=total.new + one.new,
            null=total.null + one.null,
            differing=total.differing or one.differing,
            error=total.error or one.error,
            reruns=total.reruns + 1,
        )
        if total.ratio <= run.bar:
            break
    return total


def _outcome(run: Run, processes: list[Worker], case: Case, repeats: int) -> Outcome:
    """Set a case up in every worker, compare the bits, and time it in turns."""
    try:
        differing = _differing(run, processes, _request(run, processes[0], case))
        if len(processes) < 3:
            return Outcome(case, differing)
        return Outcome(case, differing, "", *_times(run, processes, repeats))
    except WorkerError as error:
        return Outcome(case, error=str(error))


def _request(run: Run, converter: Worker, case: Case) -> dict[str, Any]:
    """Return a case as a worker gets it, its files made."""
    if case.geometry in (*compare_cases.FILES, "street"):
        _convert(run, converter, case.geometry)
    kind, count = case.rays or ("", 0)
    files = {"geometry": str(run.data.geometry(case.geometry)), "count": str(count)}
    if kind:
        made = run.data.rays(case.geometry, kind, 1000 if count == 1 else count)
        files["rays"] = str(made)
        if "source" in case.options:
            _table(made, case.options["source"])
    if case.action == "load":
        files["file"] = str(_real(run, case.geometry))
    return {"action": case.action, "options": case.options, "files": files}


def _real(run: Run, name: str) -> Path:
    return run.real / compare_cases.FILES.get(name, "pandaset_frame")


def _convert(run: Run, converter: Worker, name: str) -> None:
    """Write the files of a real data set once, with the old tree."""
    target = run.data.path / f"{name}.npz"
    if not target.exists():
        request(converter, "convert", str(_real(run, name).resolve()), str(target), name)


def _table(rays: Path, source: str) -> None:
    """Write rays as a table of another format beside their file."""
    target = rays.with_suffix(f".{source}")
    if target.exists():
        return
    with np.load(rays) as arrays:
        rows = np.hstack([arrays[name].reshape(-1, 3) for name in ("origins", "directions")])
    names = [f"{vector}_{axis}" for vector in ("origin", "direction") for axis in "xyz"]
    if source == "npy":
        np.save(target, rows)
    elif source == "csv":
        np.savetxt(target, rows, fmt="%.17g", delimiter=",", header=",".join(names), comments="")
    else:
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.table(dict(zip(names, rows.T, strict=True))), target)


def _differing(run: Run, processes: list[Worker], case: dict[str, Any]) -> tuple[str, ...]:
    """Return the fields whose bits differ from OLD's, the null run's included."""
    received: list[dict[str, Any]] = []
    for worker, name in zip(processes, ("old", "new", "null"), strict=False):
        folder = run.data.path / name
        folder.mkdir(exist_ok=True)
        send(worker, "prepare", case | {"files": case["files"] | {"folder": str(folder)}})
        if len(processes) == 3:
            received.append(reply(worker))
    received = received or [reply(worker) for worker in processes]
    replies = [value_of(one) for one in received]
    found = {f: "" for f, bits in replies[0].items() if bits != replies[1].get(f)}
    if len(replies) == 3 and replies[2] != replies[0]:
        found["(OLD differs from itself)"] = ""
    return tuple(found)


def _times(run: Run, processes: list[Worker], repeats: int) -> list[tuple[float, ...]]:
    """Return the seconds of each round, for each worker; every second round goes backwards."""
    once = max(request(processes[0], "measure", 1, run.clock), 1e-6)
    calls = min(MOST_CALLS, max(1, round(LEAST / once)))
    seconds: list[list[float]] = [[] for _ in processes]
    for turn in range(MORE * repeats):
        if turn >= repeats and calls * sum(seconds[0]) > TOTAL:
            break
        order = range(len(processes)) if turn % 2 == 0 else reversed(range(len(processes)))
        for k in order:
            seconds[k].append(request(processes[k], "measure", calls, run.clock) / calls)
    return [tuple(of_one) for of_one in seconds]


if __name__ == "__main__":
    sys.exit(main())
