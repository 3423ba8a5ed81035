"""Outcomes of casts, rows of the table, and casts that nothing stopped; for `killed_casts.py`."""

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import raybox as rb
from killed_cases import Case, Files, arguments, content, left_over, scene_of
from killed_processes import Ended, Kill, run_forked

Run = Callable[[Kill | None], Ended]


class Outcome(NamedTuple):
    """What became of a cast.

    How often it was killed, whether it continued from parts, whether it was refused, and what is wrong.
    """

    kills: int = 0
    resumed: bool = False
    refused: bool = False
    failure: str = ""
    offered: bool = True


class Row(NamedTuple):
    """A line of the table."""

    name: str
    outcomes: list[Outcome]
    seconds: float

    def __str__(self) -> str:
        offered = [one for one in self.outcomes if one.offered]
        kills, resumed = sum(one.kills for one in offered), sum(one.resumed for one in offered)
        refused, failed = sum(one.refused for one in offered), sum(bool(one.failure) for one in offered)
        missing = len(self.outcomes) - len(offered)
        counts = f"{len(offered)} | {kills} | {resumed} | {refused} | {failed} | {missing}"
        return f"| {self.name} | {counts} | {self.seconds:.0f} s |"


HEADER = """| campaign | casts | kills | continued from parts | refused | failures | not offered | time |
|---|---|---|---|---|---|---|---|"""
Make = Callable[[Case, Files, str], Run]
Found = Iterator[tuple[object, Outcome]]


def forked(case: Case, files: Files, target: str) -> Run:
    """Return what casts in a fork of this process."""
    scene, how = scene_of(case.scene), arguments(case, files)

    def call() -> object:
        return rb.cast(scene, files.rays(case.rays), target, **how)

    return lambda kill: run_forked(call, kill, files.folder / "log")


class Reference(NamedTuple):
    """A cast that nothing stopped: its bytes, and the seconds that it takes."""

    content: dict[str, bytes]
    seconds: float


def reference(case: Case, files: Files, make: Make, folder: Path) -> Reference | str:
    """Return what a cast writes; a text if it is refused."""
    target = case.target(folder)
    ended = make(case, files, target)(None)
    found = content(target)
    if ended.outcome or found is None:
        return ended.text or ended.outcome
    return Reference(found, ended.seconds)


def print_row(name: str, outcomes: Found) -> Row:
    """Print each failure to stderr, and a line of the table; Ctrl-C ends a campaign early."""
    started, found = time.perf_counter(), list[Outcome]()
    with suppress(KeyboardInterrupt):
        for case, outcome in outcomes:
            found.append(outcome)
            if outcome.failure and outcome.offered:
                print(f"FAILURE {name}: {case}: {outcome.failure}", file=sys.stderr, flush=True)
    row = Row(name, found, time.perf_counter() - started)
    print(row, flush=True)
    refusals = {re.sub(r"/\S*/", "", one.failure) for one in found if not one.offered}
    for text in sorted(refusals):
        print(f"  not offered: {text[:150]}", file=sys.stderr, flush=True)
    return row


def was_resumed(ended: Ended) -> bool:
    """Return whether a cast continued from parts that were there."""
    return "resumed=" in ended.text and "resumed=0," not in ended.text


def failure_of(ended: Ended, target: str, wanted: Reference) -> str:
    """Return what is wrong with a cast that has ended; an empty text if nothing is."""
    if ended.outcome:
        return f"{ended.outcome}: {ended.text.strip()[-300:]}"
    if content(target) != wanted.content:
        return "other bytes"
    return f"left over: {left}" if (left := left_over(target)) else ""
