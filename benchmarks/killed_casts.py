"""Kill casts at random times and at each step, damage their parts, plant links; count what becomes of them.

    python benchmarks/killed_casts.py [--casts 500] [--damages 250] [--seed 1] [CAMPAIGN ...]

Campaigns are kills, commands, clusters, damages and links. Every cast is killed by ``kill -9`` up to three
times, and continued by the same call until it ends. It must end without an error, with the bytes of a cast
that nothing stopped; on the way there is no output, or the whole of it; nothing is left next to it. Prints a
table of Markdown for docs/scale.md, and each failure to stderr. Exits with 1 if there is any. Cases that this
version of raybox refuses before any work are counted as "not offered".
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import raybox as rb
from killed_cases import Case, Files, cases, content, left_over, scene_of, write_inputs
from killed_outcomes import (
    HEADER,
    Found,
    Make,
    Outcome,
    Reference,
    Row,
    Run,
    failure_of,
    forked,
    print_row,
    reference,
    was_resumed,
)
from killed_processes import KILLED, Kill, run_command
from raybox.casting.steps import STEPS

_MOST_KILLS = 3
_PARTS = 24  # of a cast
Random = np.random.Generator


def command(case: Case, files: Files, target: str) -> Run:
    """Return what casts by the command, in another process."""
    scene = files.folder / f"{case.scene}.npz"
    if not scene.exists():
        rb.save(scene, scene_of(case.scene, files.folder).geometry)
    words = [str(scene), str(files.rays(case.rays)), "-o", target, "--query", case.query, "--workers", "2"]
    for name in ("values", "weights"):
        words += [f"--{name}", str(files.array(name))] if name in case.options else []
    words += ["--labels", "kind"] if "labels" in case.options else []
    words += ["--carry", "name"] if "carry" in case.options else []
    words += ["--format", case.out] if case.dataset and case.out != "parquet" else []
    return lambda kill: run_command(["cast", *words, "--chunk", "100"], kill, files.folder)


def killed_cast(run: Run, target: str, wanted: Reference, kills: Iterator[Kill]) -> Outcome:
    """Kill a cast, continue it until it ends, and compare its output."""
    met = list[str]()
    for kill in kills:
        ended = run(kill)
        if ended.outcome != KILLED:
            break
        met.append(str(kill))
        found = content(target)
        if found not in (None, wanted.content):
            return Outcome(len(met), failure=f"an output that is not whole, killed at {', '.join(met)}")
        if found is not None and not left_over(target):  # all was done: the next call would begin anew
            return Outcome(len(met))
    else:
        ended = run(None)
    failure = failure_of(ended, target, wanted)
    failure += f" (killed at {', '.join(met)})" if failure else ""
    return Outcome(len(met), was_resumed(ended) and bool(met), failure=failure)


def kills_at(seconds: float, random: Random, number: int) -> Iterator[Kill]:
    """Yield up to three kills: of each two casts, one is killed at steps."""
    for k in range(int(random.integers(1, _MOST_KILLS + 1))):
        if number % 2:
            step = STEPS[(number // 2 + k) % len(STEPS)]
            count = int(random.integers(1, _PARTS if "part" in step else 2))
            yield Kill(step=f"{step}:{count}")
        else:
            yield Kill(seconds=float(random.random()) * seconds)


def campaign(
    casts: int, files: Files, make: Make, chosen: list[Case], seed: int
) -> Iterator[tuple[Case, Outcome]]:
    """Yield the outcome of each cast."""
    random, references = np.random.default_rng(seed), dict[Case, Reference | str]()
    for number in range(casts):
        case = chosen[number % len(chosen)]
        with tempfile.TemporaryDirectory(dir=files.folder, ignore_cleanup_errors=True) as name:
            folder = Path(name)
            if case not in references:
                references[case] = reference(case, files, make, folder)
                for path in folder.iterdir():
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            wanted = references[case]
            if isinstance(wanted, str):
                yield case, Outcome(offered=False, failure=wanted)
                continue
            target = case.target(folder)
            yield (
                case,
                killed_cast(
                    make(case, files, target), target, wanted, kills_at(wanted.seconds, random, number)
                ),
            )


def commands_of(chosen: list[Case]) -> list[Case]:
    """Return the cases that the command offers."""
    return [case for case in chosen if not case.scene.startswith("split") and "where" not in case.options]


def main() -> int:
    """Run the campaigns that the command line names; return 1 if anything failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=["kills", "commands", "clusters", "damages", "links"])
    parser.add_argument("--casts", type=int, default=500)
    parser.add_argument("--damages", type=int, default=250)
    parser.add_argument("--seed", type=int, default=1)
    given, chosen, rows = parser.parse_args(), list(cases()), list[Row]()
    print(HEADER, flush=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        files = write_inputs(Path(name))
        for campaign_name in given.names:
            rows += [
                print_row(title, found) for title, found in _campaigns(campaign_name, given, files, chosen)
            ]
    return int(any(one.failure for row in rows for one in row.outcomes if one.offered))


def _campaigns(
    name: str, given: argparse.Namespace, files: Files, chosen: list[Case]
) -> Iterator[tuple[str, Found]]:
    """Yield the campaigns of a name; of 500 casts, 40 are by the command, and 60 on a cluster."""
    share = given.casts / 500
    if name == "kills":
        found = campaign(round(400 * share), files, forked, chosen, given.seed)
        yield "`stream.cast`, its process killed", found
    elif name == "commands":
        some = commands_of(chosen)
        yield "`raybox cast`, killed", campaign(round(40 * share), files, command, some, given.seed)
    elif name == "clusters":
        from killed_clusters import campaigns

        yield from campaigns(round(60 * share), files, chosen, given.seed)
    elif name == "damages":
        from damaged_parts import damaged

        found = damaged(given.damages, files, chosen, given.seed)
        yield "parts damaged, cut, swapped, renamed, foreign", found
    elif name == "links":
        from damaged_parts import planted

        yield "links, other owners, open folders", planted(files, chosen, given.seed)
    else:
        raise SystemExit(f"no campaign {name!r}; there are kills, commands, clusters, damages and links")


if __name__ == "__main__":
    sys.exit(main())
