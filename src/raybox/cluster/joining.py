"""Parts put together, in order, as they come: bytes are moved, nothing is encoded again.

The output is what `raybox.stream.cast` writes of the same chunks, byte for byte. What is joined is noted once
it is on the disk, and its parts are removed: few of them ever get there. The note of a part is a line of a
log: what the part told of itself, and how long the files of the output are with it. Who resumes cuts them
back to what the last line says, and goes on with the part after it.
"""

import json
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from raybox.cluster.parts import ROWS, Told
from raybox.stream import footer
from raybox.stream.growing import Part
from raybox.stream.plain import Task
from raybox.stream.sinks import SINKS


class Note(NamedTuple):
    """A part that is joined, and the lengths of the output's files then."""

    told: Told
    files: dict[str, int]


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


def _line(number: int, note: Note) -> bytes:
    return json.dumps([number, note.told, note.files]).encode() + b"\n"


class Joiner:
    """Appends parts to an output, in order, after those that are noted."""

    def __init__(self, log: Path, task: Task, suffix: str, notes: list[Note]) -> None:
        self.notes = notes
        self._sink: Any = SINKS[suffix](task, notes[-1].files if notes else {})
        self._append = _APPEND.get(suffix, _rows)
        self._log = Part(log, sum(len(_line(*numbered)) for numbered in enumerate(notes)))
        self._number = len(notes)
        self._waiting = deque[tuple[Path, bytes]]()

    def add(self, path: Path, told: Told) -> None:
        """Append the next part."""
        if told.rows:
            self._append(self._sink, path, told)
        note = Note(told, self._sink.parts.lengths())
        self._waiting.append((path, _line(self._number, note)))
        self._number += 1

    def settle(self) -> None:
        """Have what is joined put on the disk, note it, and remove its parts; while others may be added."""
        some = [self._waiting[k] for k in range(len(self._waiting))]
        if not some:
            return
        for part in self._sink.parts.values():
            part.sync()
        before = self._log.length
        try:
            self._log.write(b"".join(line for _, line in some))
            self._log.sync()
        except OSError:
            self._log.cut(before)
            raise
        for path, _ in some:
            path.unlink(missing_ok=True)
            self._waiting.popleft()

    def finish(self, rows: int) -> None:
        """Write what a whole file has and a growing one has not."""
        self._sink.finish(rows)

    def close(self) -> None:
        """Close all files."""
        self._sink.close()
        self._log.close()


def _after_head(sink: Any, path: Path, told: Told) -> None:
    """`.npy` and `.csv`: what comes after the head of each."""
    sink.parts["answers"].take(path, sink.head, told.length - sink.head)


def _row_group(sink: Any, path: Path, told: Told) -> None:
    """`.parquet`: row groups as they are, their footers moved (see `raybox.stream.footer`)."""
    data: Any = np.memmap(path, np.uint8, "r", shape=(told.length,))
    body, end = footer.split(memoryview(data))
    whole = sink.parts["answers"]
    sink.keep(footer.moved(end, whole.length - len(footer.MAGIC)))
    whole.take(path, len(footer.MAGIC), len(body))


def _rows(sink: Any, path: Path, _: Told) -> None:
    """`.npz` and `.zarr`, which keep columns apart: rows of the parts are parted."""
    rows: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    sink.add({name: rows[name] for name in rows.dtype.names})


_APPEND: dict[str, Callable[[Any, Path, Told], None]] = {
    ".npy": _after_head,
    ".csv": _after_head,
    ".parquet": _row_group,
}
assert all((suffix in _APPEND) == (rows == suffix) for suffix, rows in ROWS.items())
