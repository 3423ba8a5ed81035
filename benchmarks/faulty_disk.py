"""Let each call of a cast on its files fail, as on a broken or full disk; count what becomes of the casts.

    python benchmarks/faulty_disk.py [--every 1] [--at-once 8] [--folder FOLDER] [WAY ...]

`faulty_disk.c`, compiled here and preloaded, fails one call of open, read, write, fsync, rename, unlink,
mkdir, close, ftruncate and their relatives. Faults are tried in forks of this process. A cast must end with
the right bytes, or with an error of one line; the next call, without a fault, must end with the right bytes,
and nothing may be left over. ``--every N`` tries each N-th fault. Prints a table of Markdown for
docs/scale.md, and each failure to stderr; exits with 1 if there is any.

The way "full disk" needs root: a small file system is mounted from a file, and filled but for some bytes, or
until it has no inodes. The next call has room again.
"""

import argparse
import ctypes
import errno
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

FOLDER = "FAULTY_FOLDER"
SECONDS = 900.0  # of a fork; its casts take less than a second each
_DISK = 16 << 20  # bytes of a full disk
_FREE = (None, 0, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 21)
"""Bytes that are free on a full disk; None: all, but no inode."""
_FORK = 20  # faults that are tried in a fork
SHORT, FULL, LOST = -1, -2, -3
KINDS = {
    "EIO": errno.EIO,
    "ENOSPC": errno.ENOSPC,
    "EINTR": errno.EINTR,
    "short": SHORT,
    "full from then on": FULL,
    "lost": LOST,
}
CALLS = {
    "o": "open",
    "r": "read",
    "w": "write",
    "f": "fsync",
    "c": "close",
    "n": "rename",
    "u": "unlink",
    "m": "mkdir",
    "t": "ftruncate",
    "h": "fchmod",
}
_FITS = {"ENOSPC": "owmtfcn", "short": "wr", "full from then on": "owmt", "lost": "wf"}
"""The calls that have a fault; those that are not here are any."""
SUFFIX = ".raybox"
FULL_DISK = "full disk"


class Way(NamedTuple):
    """A cast: its output, and its arguments."""

    out: str
    how: Mapping[str, Any] = MappingProxyType({})
    files: int = 1
    """Of rays."""
    blocks: bool = False
    """Whether the blocks are cast one by one, as other schedulers do."""


IDS = tuple(f"box {k}" for k in range(40))
WAYS = {
    "`.npy`": Way("out.npy"),
    "`.npy` of several files": Way("out.npy", {"query": "all"}, files=2),
    "`.npy` by blocks": Way("out.npy", blocks=True),
    "`.npz`": Way("out.npz", {"ids": IDS}),
    "`.csv`": Way("out.csv", {"query": "count"}),
    "`.parquet`": Way("out.parquet", {"query": "all"}),
    "`.zarr`": Way("out.zarr", {"query": "count"}),
    "dataset of Parquet": Way("out/", {"ids": IDS}),
    "dataset of Zarr": Way("out/", {"query": "occluded", "format": "zarr"}),
    "sums": Way("out.csv", {"query": "deposit"}),
    "dataset of sums": Way("out/", {"query": "deposit", "per": "hit"}),
}


class Fault(NamedTuple):
    """A fault at the call of a number; None: no fault."""

    kind: str
    call: int


class Ended(NamedTuple):
    """What became of a cast with a fault, and of the next call."""

    refused: bool
    text: str
    failure: str
    call: str = ""
    """The name of the call that had the fault; empty if none had it."""


class Row(NamedTuple):
    """A line of the table."""

    name: str
    calls: int
    faults: int = 0
    right: int = 0
    refused: int = 0
    next_right: int = 0
    failures: int = 0

    def add(self, ended: Ended) -> "Row":
        """Return the row with one more fault."""
        return self._replace(
            faults=self.faults + 1,
            right=self.right + (not ended.refused and not ended.failure),
            refused=self.refused + ended.refused,
            next_right=self.next_right + (ended.refused and not ended.failure),
            failures=self.failures + bool(ended.failure),
        )

    def __str__(self) -> str:
        return "| " + " | ".join([self.name, *(f"{number:,}" for number in self[1:])]) + " |"


HEADER = """| output | calls | faults | right at once | refused in one line | then right | failures |
|---|---|---|---|---|---|---|"""


class Library:
    """The preloaded library."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._library.faulty_set.argtypes = ctypes.c_long, ctypes.c_int
        self._library.faulty_calls.restype = ctypes.c_char_p
        self._library.faulty_fired.restype = ctypes.c_long

    def set(self, fault: Fault | None) -> None:
        """Count calls from now on; one of them fails."""
        self._library.faulty_set(*((-1, 0) if fault is None else (fault.call, KINDS[fault.kind])))

    def stop(self) -> None:
        """Let no more calls fail, and count none: `fired` and `calls` stay."""
        self._library.faulty_stop()

    def fired(self) -> bool:
        """Return whether a call has failed."""
        return bool(self._library.faulty_fired())

    def calls(self) -> str:
        """Return a letter for each call so far."""
        found: bytes = self._library.faulty_calls()
        return found.decode()


def build(folder: Path) -> Path:
    """Compile the library; return its path."""
    library = folder / "faulty_disk.so"
    source = Path(__file__).with_suffix(".c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def run_preloaded(folder: Path, words: list[str]) -> int:
    """Run this script again, with the library, for the files of a folder; return its status."""
    library = build(folder)
    files = folder / "files"
    files.mkdir()
    more = {FOLDER: str(files.resolve()), "LD_PRELOAD": str(library)}
    return subprocess.run([sys.executable, __file__, *words], env=os.environ | more, check=False).returncode


class Caster:
    """Casts of one way, in folders of their own."""

    def __init__(self, way: Way, folder: Path) -> None:
        import raybox as rb

        random = np.random.default_rng(31)
        boxes = rb.Boxes.from_centers(random.random((40, 3)), 0.3)
        rays = rb.Rays(random.random((103, 3)) - 0.5, random.integers(-3, 4, (103, 3)) * 1.0)
        self.raybox, self.scene, self.way = rb, rb.Scene(boxes), way
        self.is_folder = way.out.endswith(("/", ".zarr"))
        folder.mkdir()
        self.rays = [folder / f"rays-{k}.npy" for k in range(way.files)]
        for path in self.rays:
            rb.save(path, rays)

    def cast(self, folder: Path) -> None:
        """Cast all rays; the output is in a folder."""
        rb, out, way = self.raybox, f"{folder}/{self.way.out}", self.way
        rays = self.rays if way.files > 1 else self.rays[0]
        how = {"chunk": 60, "workers": 1, **way.how}
        if not way.blocks:
            rb.cast(self.scene, rays, out, **how)
            return
        rb.cast(self.scene, rays, out, blocks=[0], **how)
        rb.casting.cast_blocks(out + SUFFIX, [1], workers=1)
        rb.casting.finish(out + SUFFIX)


def content(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files in a folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def problem_of(caster: Caster, folder: Path, wanted: dict[str, bytes], *, ends: bool = True) -> str:
    """Return what is wrong with what is in the folder of a cast that is done; an empty text if nothing is.

    ends: whether the folder of the unfinished output must be gone.
    """
    found = content(folder)
    out = {name: data for name, data in found.items() if not name.split("/")[0].endswith(SUFFIX)}
    if out != wanted:
        return f"other bytes: {sorted(out)}"
    return (
        f"left over: {sorted(found.keys() - out.keys())}" if ends and len(list(folder.iterdir())) > 1 else ""
    )


def attempt(caster: Caster, folder: Path) -> str | None:
    """Cast; return the text of an error of raybox, None without one. Others are raised."""
    try:
        caster.cast(folder)
    except caster.raybox.RayboxError as error:
        return str(error)
    return None


@contextmanager
def failing(fault: Fault) -> Iterator[Library]:
    """Let a call of a block fail."""
    library = Library()
    library.set(fault)
    try:
        yield library
    finally:
        library.stop()


def ended_of(
    caster: Caster, folder: Path, wanted: dict[str, bytes], fault: AbstractContextManager[Any]
) -> Ended:
    """Cast with a fault, then without one; return what became of both."""
    printed, failure, text = list[str](), "", None
    sys.unraisablehook = lambda found: printed.append(f"ignored in {found.object}: {found.exc_value!r}")
    threading.excepthook = lambda found: printed.append(f"in a thread: {found.exc_value!r}")
    with fault:
        try:
            text = attempt(caster, folder)
        except BaseException as error:
            failure = f"{type(error).__name__}: {error}"
    is_refused = text is not None
    if failure:
        return Ended(is_refused, text or "", failure)
    if printed:
        failure = f"printed: {printed[0]}"
    elif text is not None and len(text.splitlines()) != 1:
        failure = f"an error of several lines: {text}"
    elif text is None:
        failure = problem_of(caster, folder, wanted, ends=False)
    is_needed = is_refused or not caster.is_folder or (folder / (caster.way.out.strip("/") + SUFFIX)).exists()
    if not failure and is_needed:
        try:
            again = attempt(caster, folder)
        except BaseException as error:
            again = f"{type(error).__name__}: {error}"
        problem = f"refused: {again}" if again is not None else problem_of(caster, folder, wanted)
        failure = f"the next call after {text or 'done'!r}: {problem}" if problem else ""
    return Ended(is_refused, text or "", failure)


class _Child(NamedTuple):
    """A fork that tries some faults, one after the other."""

    process: int
    faults: Sequence[Fault]
    ends: float
    """When it hangs."""


def outcomes(
    faults: Sequence[Fault], work: Callable[[Fault], Ended], at_once: int
) -> Iterator[tuple[Fault, Ended]]:
    """Yield what became of each fault, tried in a fork of this process."""
    running, lines, left = (
        dict[int, _Child](),
        dict[int, bytearray](),
        [faults[k : k + _FORK] for k in range(0, len(faults), _FORK)],
    )
    while running or left:
        while left and len(running) < at_once:
            some = left.pop(0)
            pipe, process = _started(some, work)
            lines[pipe], running[pipe] = bytearray(), _Child(process, some, time.monotonic() + SECONDS)
        ready = [pipe for pipe in select.select(list(running), [], [], 1.0)[0] if _read(pipe, lines[pipe])]
        late = [pipe for pipe, child in running.items() if time.monotonic() > child.ends]
        for pipe in {*ready, *late}:
            child = running.pop(pipe)
            if pipe in late:
                os.kill(child.process, signal.SIGKILL)
            os.close(pipe)
            found = [Ended(*json.loads(line)) for line in lines.pop(pipe).splitlines()]
            os.waitpid(child.process, 0)
            yield from zip(child.faults, found, strict=False)
            if len(found) < len(child.faults):
                died = "hangs" if pipe in late else "the process has died"
                yield child.faults[len(found)], Ended(False, "", died, "any")
                left.append(child.faults[len(found) + 1 :])


def _read(pipe: int, data: bytearray) -> bool:
    """Append what is in a pipe; return whether it has ended."""
    more = os.read(pipe, 1 << 16)
    data += more
    return not more


def _started(faults: Sequence[Fault], work: Callable[[Fault], Ended]) -> tuple[int, int]:
    """Try faults in a fork; return the pipe that gets a line for each, and the process."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            for fault in faults:
                os.write(write, json.dumps(work(fault)).encode() + b"\n")
        finally:
            os._exit(0)
    os.close(write)
    return read, child


def faults_of(calls: str) -> Iterator[Fault]:
    """Yield all faults of some calls."""
    for number, call in enumerate(calls):
        for kind in KINDS:
            if call in _FITS.get(kind, CALLS):
                yield Fault(kind, number)


def failing_calls(name: str, folder: Path, every: int = 1, at_once: int = 8) -> Row:
    """Try faults at each call of a cast; return what became of them, and print the failures."""
    caster, library = Caster(WAYS[name], folder), Library()
    whole = folder / "whole"
    for path in (folder / "first", whole):  # the first one compiles
        path.mkdir()
        library.set(None)
        caster.cast(path)
        library.stop()
    row, wanted = Row(name, len(library.calls())), content(whole)

    def work(fault: Fault) -> Ended:
        place = folder / f"{fault.call} {fault.kind}"
        place.mkdir()
        with removed(place):
            ended = ended_of(caster, place, wanted, failing(fault))
        call = library.calls()[fault.call : fault.call + 1] if library.fired() else ""
        return ended._replace(call=CALLS.get(call, ""))

    for fault, ended in outcomes(list(faults_of(library.calls()))[::every], work, at_once):
        if ended.call:
            row = row.add(ended)
        show(name, f"{fault.kind} at call {fault.call}, {ended.call}", ended)
    return row


def show(name: str, fault: str, ended: Ended) -> None:
    """Print a failure, or all with ``-v``."""
    if ended.failure:
        print(f"FAILURE {name}: {fault}: {ended.failure}", file=sys.stderr, flush=True)
    elif "-v" in sys.argv:
        print(f"{name}: {fault}: {ended.text or 'done'}", file=sys.stderr)


@contextmanager
def removed(folder: Path) -> Iterator[None]:
    """Remove a folder after a block."""
    try:
        yield
    finally:
        shutil.rmtree(folder)


@contextmanager
def mounted(folder: Path) -> Iterator[Path]:
    """Yield the folder of a small file system, which root mounts."""
    image, disk = folder / "image", folder / "disk"
    disk.mkdir(parents=True)
    with image.open("wb") as file:
        file.truncate(_DISK)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-N", "200", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, disk], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


@contextmanager
def filled(disk: Path, free: int | None) -> Iterator[None]:
    """Fill a disk in a block, but for some bytes; None: all inodes."""
    filler = disk / "filler"
    filler.mkdir()
    with removed(filler):
        with suppress(OSError):
            for number in range(1000 if free is None else 0):
                (filler / str(number)).touch()
        with suppress(OSError), (filler / "zeros").open("wb", buffering=0) as file:
            while free is not None and (left := _free(disk) - free) > 0:
                file.write(bytes(min(1 << 16, left)))
        yield


def _free(disk: Path) -> int:
    facts = os.statvfs(disk)
    return facts.f_bfree * facts.f_frsize


def full_disks(folder: Path) -> Row:
    """Cast on a disk that is full, but for some bytes, and again with room; return what became of it."""
    row = Row(FULL_DISK, 0)
    with mounted(folder) as disk:
        for number, (name, way) in enumerate(WAYS.items()):
            caster, whole = Caster(way, folder / f"rays {number}"), folder / f"whole {number}"
            whole.mkdir()
            caster.cast(whole)
            for free in _FREE:
                place = disk / "out"
                place.mkdir()
                with removed(place):
                    ended = ended_of(caster, place, content(whole), filled(disk, free))
                row = row.add(ended)
                show(name, "no inode" if free is None else f"{free:,} bytes free", ended)
    return row


def main() -> int:
    """Run the ways that the command line names; return 1 if anything failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("ways", nargs="*", metavar="WAY", help="of the outputs; all of them without one")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=8, help="faults that are tried at the same time")
    parser.add_argument("--folder", default="/dev/shm" if Path("/dev/shm").is_dir() else None)
    parser.add_argument("-v", action="store_true", help="print each error")
    given = parser.parse_args()
    if unknown := {*given.ways} - {*WAYS, FULL_DISK}:
        parser.error(f"no output {min(unknown)!r}; there are {', '.join([*WAYS, FULL_DISK])}")
    if FOLDER not in os.environ:
        with tempfile.TemporaryDirectory(dir=given.folder) as name:
            return run_preloaded(Path(name), sys.argv[1:])
    warnings.simplefilter("ignore", DeprecationWarning)  # of forks
    folder, rows = Path(os.environ[FOLDER]), list[Row]()
    print(HEADER, flush=True)
    started = time.perf_counter()
    for number, name in enumerate(given.ways or [*WAYS, FULL_DISK]):
        place = folder / str(number)
        is_disk = name == FULL_DISK
        rows.append(full_disks(place) if is_disk else failing_calls(name, place, given.every, given.at_once))
        print(rows[-1], flush=True)
    sums = [sum(column) for column in zip(*(row[1:] for row in rows), strict=True)]
    print(Row("together", *sums))
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)
    return int(any(row.failures for row in rows))


if __name__ == "__main__":
    sys.exit(main())
