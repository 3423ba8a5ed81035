"""The folder of parts: ``OUT.raybox-parts``, beside the output until it is whole.

It holds ``asked.json``, the scene's files, the output as far as it is put together (``whole`` and ``joined``,
see `raybox.distributed.dask.join_parts`), and the parts after that: ``part-000000012``, ..., the answers of a
chunk of rays each. A part is written under another name and renamed, by whichever worker; written twice, it
is the same bytes. It ends with a few words about itself, so that whoever resumes knows which parts are whole.
"""

import json
import os
import shutil
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import numpy as np

from raybox.errors import RayboxError
from raybox.io.chunked import checksums, output_folder, passing_kernels
from raybox.io.chunked.output_folder import LOCK, Facts


class Told(NamedTuple):
    """What a part tells of itself."""

    rays: int
    rows: int
    met: int
    length: int
    """Of the answers, in bytes."""
    of: str
    """The sum of the rays."""


class Note(NamedTuple):
    """A part that is joined, and the lengths of the output's files then."""

    told: Told
    files: dict[str, int]


def line_of(number: int, note: Note) -> bytes:
    """Give the line of a part."""
    return json.dumps([number, note.told, note.files]).encode() + b"\n"


def noted(log: Path, whole: Path) -> list[Note]:
    """Read which parts are joined: from the first on, as far as lines are whole.

    There are none if the output's files are gone: who was stopped had just put them in their place.
    """
    notes = list[Note]()
    for line in log.read_bytes().splitlines() if log.exists() else ():
        try:
            number, told, files = json.loads(line)
            note = Note(Told(*told), dict(files))
        except (ValueError, TypeError):
            break
        if number != len(notes):
            break
        notes.append(note)
    there = sum(path.stat().st_size for path in whole.rglob("*")) if whole.exists() else 0
    return notes if notes and there >= sum(notes[-1].files.values()) else []


ENDING = ".raybox-parts"
SCENE = "scene"
ROWS = {".parquet": ".parquet", ".csv": ".csv", ".npy": ".npy", ".npz": ".npy", ".zarr": ".npy"}  # of parts
_ASKED, _PART, _WORK, _WHOLE, _JOINED = "asked.json", "part-", "work-", "whole", "joined"
_MAGIC = b"raybox-1"
_LANES = 32  # sums side by side: eight wait for each other, a third slower
_REMOVERS = 4  # files at once: letting go of what memory holds of one takes 12 ms
_TAIL = struct.Struct("<8sQQQQ16s16s")


def part_of(folder: Path, number: int) -> Path:
    """Return where a part is, or is to be."""
    return folder / f"{_PART}{number:09}"


def number_of(part: Path) -> int:
    """Return which part a path is of."""
    return int(part.name.removeprefix(_PART))


def seal(path: Path, told: Told) -> None:
    """Have a part tell of itself, at its end."""
    words = _TAIL.pack(_MAGIC, *told[:4], bytes.fromhex(told.of), bytes.fromhex(_sum_of(path, told.length)))
    with path.open("ab") as file:
        file.write(words)


def told_by(path: Path) -> Told | None:
    """Return what a part tells of itself; None if there is none, or not all of it."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            file.seek(max(0, size - _TAIL.size))
            magic, rays, rows, met, length, of, told = _TAIL.unpack(file.read(_TAIL.size))
    except (OSError, struct.error):
        return None
    if magic != _MAGIC or length + _TAIL.size != size or _sum_of(path, length) != told.hex():
        return None
    return Told(rays, rows, met, length, of.hex())


def _sum_of(path: Path, length: int) -> str:
    """Return the sum of the first so many bytes of a file."""
    data = np.asarray(np.memmap(path, np.uint8, "r", shape=(length,))) if length else np.empty(0, np.uint8)
    data.flags.writeable = False  # of one kind, so that the loop is compiled once
    end, sums = length // 8 * 8, np.arange(_LANES, dtype=np.uint64)
    passing_kernels.fold(data[:end].view(np.uint64), sums)
    return checksums.of_text(sums.tobytes().hex(), data[end:].tobytes().hex())


class Folder:
    """The folder of one output."""

    def __init__(self, target: Path, asked: Facts, found: Facts) -> None:
        self.given, self.target = target, target.resolve()
        self.path = output_folder.folder_of(target, ENDING)
        self.asked, self.found = asked, found
        self.same_input = True
        self.whole, self.log = self.path / _WHOLE, self.path / _JOINED

    def load(self) -> None:
        """Take up what the same command has left; refuse what another one has."""
        path = self.path / _ASKED
        if not path.exists():
            if output_folder.holds_others(self.path, _ASKED):
                raise output_folder.foreign(self.path, "is there, but does not say what was asked")
        else:
            try:
                before = json.loads(path.read_text(encoding="utf-8"))
                asked, found = dict(before["asked"]), before["input"]
            except (ValueError, KeyError, TypeError) as error:
                raise output_folder.foreign(self.path, "does not say what was asked") from error
            output_folder.compare(self.given, self.path, asked, self.asked)
            self.same_input = found == self.found
        if self.same_input:
            self.note()

    def note(self) -> None:
        """Write down what is asked, of which rays."""
        new = self.path / (_ASKED + ".new")
        new.write_text(json.dumps({"asked": self.asked, "input": self.found}), encoding="utf-8")
        os.replace(new, self.path / _ASKED)

    def place(self, whole: Path) -> None:
        """Put the whole output in its place, and remove the parts."""
        output_folder.sync(whole)
        os.replace(whole, self.target)
        output_folder.sync_folder(self.target.parent)
        self.remove()

    def told(self, error: BaseException) -> BaseException:
        """Add to an error what is kept."""
        number = self.done()
        kept = f"{number:,} parts are done and kept in {self.path.name}, from where the same command goes on"
        if not number:
            return error
        if isinstance(error, RayboxError):
            return type(error)(f"{error}; {kept}")
        error.add_note(kept)
        return error

    def clear_work(self) -> None:
        """Remove what workers that died, or were stopped, have left of parts under way."""
        for item in self.path.glob(_WORK + "*"):
            shutil.rmtree(item, ignore_errors=True)

    def remove(self) -> None:
        """Remove the folder; what says whose it is, last."""
        last = [self.path / name for name in (_ASKED, LOCK)]
        with ThreadPoolExecutor(_REMOVERS) as pool:
            list(pool.map(_remove, (item for item in self.path.iterdir() if item not in last)))
        for item in last:
            _remove(item)
        self.path.rmdir()

    def notes(self) -> list[Note]:
        """Tell which parts are joined."""
        return noted(self.log, self.whole)

    def done(self) -> int:
        """Count the parts that are done."""
        joined = len(self.notes())
        return joined + sum(1 for path in self.path.glob(_PART + "*") if number_of(path) >= joined)


def _remove(item: Path) -> None:
    shutil.rmtree(item, ignore_errors=True) if item.is_dir() else item.unlink(missing_ok=True)


def make_work(folder: Path) -> Path:
    """Make a folder for parts under way, of one thread."""
    path = folder / f"{_WORK}{uuid4().hex[:12]}"
    path.mkdir()
    return path


@contextmanager
def opened(target: Path, asked: Facts, found: Facts) -> Iterator[Folder]:
    """Lend the folder of an output to one process at a time; leave nothing where nothing was done."""
    folder = Folder(target, asked, found)
    with output_folder.held(target, folder.path):
        folder.load()
        folder.clear_work()
        try:
            yield folder
        finally:
            if folder.path.exists():
                folder.clear_work()
                if not folder.done():
                    folder.remove()
