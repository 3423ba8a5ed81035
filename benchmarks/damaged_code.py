"""Damage files of stored machine code in many ways, and count what a process that loads them does.

    python benchmarks/damaged_code.py [FILES] [SEED]

One cache is prepared. For each damage (50 and seed 1 by default), one of its files is changed, and a new
process builds a scene, runs two queries and prints a checksum of the results:

    replaced   the right results; the file was compiled anew, and is whole again
    kept       the right results; the damaged file is still there
    wrong      other results
    foreign    an exception
    crash      a signal ended the process, or it did not answer within ten minutes

Exits with 1 unless all files are replaced. After each process, the prepared file is put back.
"""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

SECONDS = 600.0
REPLACED = "replaced"
_SELDOM = "probe.sum_of_words"
PREFIX = 23 + 32  # bytes of a file before its checksum: the format's name, and the key

QUERIES = """
import hashlib
import numpy as np
import raybox as rb

rng = np.random.default_rng(1)
scene = rb.Scene(rb.Boxes.from_centers(rng.random((300, 3)), 0.05))
rays = rb.Rays(rng.random((1500, 3)), rng.normal(size=(1500, 3)))
hits, occluded = scene.nearest(rays), scene.occluded(rays)
assert 300 < hits.hit.sum() < 1200
assert (occluded == hits.hit).all()
print(hashlib.blake2b(hits.index.tobytes() + hits.t.tobytes() + occluded.tobytes()).hexdigest())
"""

Random = np.random.Generator


class Case(NamedTuple):
    """The content of a file, and that of another file of the cache."""

    data: bytes
    other: bytes


def flip_bits(case: Case, random: Random) -> bytes:
    """Flip one to three bits."""
    changed = bytearray(case.data)
    for bit in random.choice(8 * len(changed), int(random.integers(1, 4)), replace=False):
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def overwrite(case: Case, random: Random) -> bytes:
    """Write random bytes over up to a page of the file."""
    at, some = int(random.integers(len(case.data))), random.bytes(int(random.integers(1, 4096)))
    return (case.data[:at] + some + case.data[at + len(some) :])[: len(case.data)]


def cut_off(case: Case, random: Random) -> bytes:
    """Cut the end off."""
    return case.data[: int(random.integers(len(case.data)))]


def swap(case: Case, random: Random) -> bytes:
    """Return the code of another entry point; every second time behind this file's key."""
    return case.data[:PREFIX] + case.other[PREFIX:] if random.random() < 0.5 else case.other


def foreign(case: Case, random: Random) -> bytes:
    """Return a whole file of another version, or bytes that are no code at all."""
    version = case.data[: PREFIX - 32] + random.bytes(32) + case.data[PREFIX:]
    return (version, b"", random.bytes(5000), b"\x7fELF" + case.data)[int(random.integers(4))]


DAMAGES: tuple[Callable[[Case, Random], bytes], ...] = (flip_bits, overwrite, cut_off, swap, foreign)


class Result(NamedTuple):
    """What a process printed, and how it ended."""

    output: str
    problem: str


def run(cache: Path) -> Result:
    """Run the queries in a new process with a cache."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", QUERIES]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Result("", "crash no answer")
    if done.returncode < 0:
        return Result("", f"crash signal {-done.returncode}")
    last = (done.stderr.strip().splitlines() or [""])[-1]
    return Result(done.stdout, f"foreign {last}" if done.returncode else "")


def outcome(cache: Path, path: Path, damaged: bytes, wanted: str) -> str:
    """Return what a process does that finds a damaged file."""
    path.write_bytes(damaged)
    found = run(cache)
    if found.problem:
        return found.problem
    if found.output != wanted:
        return "wrong"
    return "kept" if path.read_bytes() == damaged else REPLACED


def campaign(cache: Path, files: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each damage, that of the file, and the outcome."""
    prepared = run(cache)
    assert not prepared.problem, prepared.problem
    # the second function of the probe is loaded only where the first one is not stored
    paths = sorted(path for path in cache.rglob("*.nbc") if _SELDOM not in path.name)
    whole = {path: path.read_bytes() for path in paths}
    for number in range(files):
        random, damage = np.random.default_rng([seed, number]), DAMAGES[number % len(DAMAGES)]
        path, other = (paths[k] for k in random.choice(len(paths), 2, replace=False))
        damaged = damage(Case(whole[path], whole[other]), random)
        assert damaged != whole[path]
        yield damage.__name__, path.name, outcome(cache, path, damaged, prepared.output)
        path.write_bytes(whole[path])


def main(files: int = 50, seed: int = 1) -> int:
    """Print the counts of a campaign; return the exit status."""
    counts = Counter[tuple[str, str]]()
    with tempfile.TemporaryDirectory() as cache:
        for damage, name, found in campaign(Path(cache), files, seed):
            counts[damage, found.partition(" ")[0]] += 1
            if found != REPLACED:
                print(f"{damage} of {name}: {found[:150]}")
    for (damage, kind), number in sorted(counts.items()):
        print(f"{damage:10} {kind:9} {number:4}")
    good = sum(number for (_, kind), number in counts.items() if kind == REPLACED)
    print(f"{files} files: {good} replaced, with the right results")
    return int(good != files)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
