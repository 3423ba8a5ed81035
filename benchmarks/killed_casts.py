"""Kill casts at random times and at each call, damage their parts, plant links; count what becomes of them.

    python benchmarks/killed_casts.py [--casts 500] [--damages 250] [--seed 1] [CAMPAIGN ...]

Campaigns are kills, changes, commands, clusters, damages and links. Every cast is killed by ``kill -9`` up
to three times, and continued by the same call until it ends. It must end without an error, with the bytes of
a cast that nothing stopped; on the way there is no output, or the whole of it; nothing is left next to it.
Prints a table of Markdown for docs/scale.md, and each failure to stderr. Exits with 1 if there is any. Cases
that this version of raybox refuses before any work are counted as "not offered".
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import raybox as rb
from killed_cases import (
    Case,
    Files,
    cases,
    content,
    left_over,
    scene_of,
    write_inputs,
    write_others,
)
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
from killed_processes import KILLED, REFUSED, Kill, run_command

NAMES = ("kills", "changes", "commands", "clusters", "damages", "links")
_MOST_KILLS = 3
_CALLS = 330  # of a cast, about
Random = np.random.Generator


def command(case: Case, files: Files, target: str) -> Run:
    """Return what casts by the command, in another process."""
    scene = files.folder / f"{case.scene}.npz"
    if not scene.exists():
        rb.save(scene, scene_of(case.scene).geometry)
    words = [str(scene), str(files.rays(case.rays)), "-o", target, "--query", case.query, "--workers", "2"]
    for name in ("values", "weights"):
        words += [f"--{name}", str(files.array(name))] if name in case.options else []
    words += ["--labels", "kind"] if "labels" in case.options else []
    words += ["--carry", "name"] if "carry" in case.options else []
    words += ["--format", case.out] if case.dataset and case.out != "parquet" else []
    return lambda kill: run_command(["cast", *words, "--chunk", "100"], kill, files.folder)


def killed_cast(
    run: Run, target: str, wanted: Reference, kills: Iterator[Kill], *, lenient: bool = False
) -> Outcome:
    """Kill a cast, continue it until it ends, and compare its output.

    lenient: a call that is not the last may also be refused, or end with the output of other rays.
    """
    met = list[str]()
    for kill in kills:
        ended = run(kill)
        if lenient and ended.outcome in ("", REFUSED):
            if content(target) is not None and not left_over(target):
                _remove(Path(target))
            continue
        if ended.outcome != KILLED:
            break
        met.append(str(kill))
        found = content(target)
        if found not in (None, wanted.content) and not lenient:
            return Outcome(len(met), failure=f"an output that is not whole, killed at {', '.join(met)}")
        if found is not None and not left_over(target):  # all was done: the next call would begin anew
            if not lenient:
                return Outcome(len(met))
            _remove(Path(target))
    else:
        ended = run(None)
    failure = failure_of(ended, target, wanted)
    failure += f" (killed at {', '.join(met)})" if failure else ""
    return Outcome(len(met), was_resumed(ended) and bool(met), failure=failure)


def kills_at(seconds: float, random: Random, number: int) -> Iterator[Kill]:
    """Yield up to three kills: of each two casts, one is killed at calls that change the disk."""
    for _ in range(int(random.integers(1, _MOST_KILLS + 1))):
        if number % 2:
            yield Kill(call=int(random.integers(_CALLS)))
        else:
            yield Kill(seconds=float(random.random()) * seconds)


class _Rays:
    """The file of rays of a case, which is changed between calls, and put back at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def changed(self, kills: Iterator[Kill], random: Random) -> Iterator[Kill]:
        """Yield kills; between two calls, the file is another one, or what it was."""
        original = self._path.with_name(f"original-{self._path.name}")
        self._path.rename(original)
        _copy(original, self._path)
        try:
            for kill in kills:
                yield kill
                CHANGES[random.integers(len(CHANGES))](self._path, random)
                yield kill
                _remove(self._path)
                _copy(original, self._path)
        finally:
            _remove(self._path)
            original.rename(self._path)


def _copy(path: Path, to: Path) -> None:
    shutil.copytree(path, to) if path.is_dir() else shutil.copy2(path, to)


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _swapped(path: Path, _random: Random) -> None:
    """Put rays of another file in the place of these."""
    _remove(path)
    _copy(path.parent / "others" / path.name, path)


def _rewritten(path: Path, random: Random) -> None:
    """Write a few other bytes into the file, or a file of it."""
    inner = (
        [one for one in path.rglob("*") if one.is_file() and one.stat().st_size > 4000]
        if path.is_dir()
        else [path]
    )
    with inner[random.integers(len(inner))].open("r+b") as file:
        size = file.seek(0, 2)
        file.seek(int(random.integers(size // 2, size - 64)))
        file.write(bytes(random.integers(48, 58, 16, np.uint8)))


def _appended(path: Path, random: Random) -> None:
    """Append the end of the file to it."""
    if not path.is_dir():
        data = path.read_bytes()
        path.write_bytes(data + data[-int(random.integers(1, 2000)) :])


CHANGES = (_swapped, _rewritten, _appended)


def campaign(
    casts: int, files: Files, make: Make, chosen: list[Case], seed: int, *, changing: bool = False
) -> Iterator[tuple[Case, Outcome]]:
    """Yield the outcome of each cast; changing: its rays are others for every second call."""
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
            target, kills = case.target(folder), kills_at(wanted.seconds, random, number)
            if changing:
                kills = _Rays(files.rays(case.rays)).changed(kills, random)
            yield case, killed_cast(make(case, files, target), target, wanted, kills, lenient=changing)


def commands_of(chosen: list[Case]) -> list[Case]:
    """Return the cases that the command offers."""
    return [case for case in chosen if "where" not in case.options]


def main() -> int:
    """Run the campaigns that the command line names; return 1 if anything failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", default=["kills", "changes", "commands", "clusters", "damages", "links"]
    )
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
        found = campaign(round(300 * share), files, forked, chosen, given.seed)
        yield "`rb.cast`, its process killed", found
    elif name == "changes":
        write_others(files)
        found = campaign(round(100 * share), files, forked, chosen, given.seed, changing=True)
        yield "`rb.cast`, killed, its rays changed between calls", found
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
        raise SystemExit(
            f"no campaign {name!r}; there are kills, changes, commands, clusters, damages and links"
        )


if __name__ == "__main__":
    sys.exit(main())
