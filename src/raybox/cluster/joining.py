"""Parts put together, in order: bytes are moved, nothing is encoded again.

The output is what `raybox.stream.cast` writes of the same chunks, byte for byte.
"""

import os
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from raybox.cluster.parts import ROWS, Told
from raybox.stream import footer
from raybox.stream.plain import Task
from raybox.stream.sinks import SINKS

_AT_ONCE = 1 << 24


class Joiner(Protocol):
    """Takes parts in order; `finish` makes a whole file of them."""

    def add(self, path: Path, told: Told) -> None:
        """Append a part."""
        ...

    def finish(self, rows: int) -> None:
        """Write what a whole file has and a growing one has not."""
        ...


def joiner(task: Task, suffix: str) -> Joiner:
    """Return what joins parts into a file with this ending, `answers` in the task's folder."""
    if ROWS[suffix] != suffix:
        return _Columns(task, suffix)
    return _Groups(task) if suffix == ".parquet" else _Bytes(task, suffix)


class _Bytes:
    """`.npy` and `.csv`: what comes after the head of each."""

    def __init__(self, task: Task, suffix: str) -> None:
        self._task, self._make = task, SINKS[suffix]
        self._make(task, {}).close()
        self._path = task.folder / f"answers{suffix}"
        self._head = self._path.stat().st_size

    def add(self, path: Path, told: Told) -> None:
        append(self._path, path, self._head, told.length - self._head)

    def finish(self, rows: int) -> None:
        sink = self._make(self._task, {"answers": self._path.stat().st_size})
        sink.finish(rows)
        sink.close()


class _Groups:
    """`.parquet`: row groups as they are, their footers moved (see `raybox.stream.footer`)."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._path = task.folder / "answers.parquet"
        self._path.write_bytes(footer.MAGIC)
        self._footers = list[bytes]()

    def add(self, path: Path, told: Told) -> None:
        if not told.rows:
            return
        data: Any = np.memmap(path, np.uint8, "r", shape=(told.length,))
        body, end = footer.split(memoryview(data))
        self._footers.append(footer.moved(end, self._path.stat().st_size - len(footer.MAGIC)))
        append(self._path, path, len(footer.MAGIC), len(body))

    def finish(self, rows: int) -> None:
        if not rows:
            sink = SINKS[".parquet"](self._task, {})
            sink.finish(0)
            sink.close()
            return
        with self._path.open("ab") as whole:
            whole.write(footer.closing(footer.merged(self._footers)))


class _Columns:
    """`.npz` and `.zarr`, which keep columns apart: rows of the parts are parted."""

    def __init__(self, task: Task, suffix: str) -> None:
        self._sink = SINKS[suffix](task, {})

    def add(self, path: Path, told: Told) -> None:
        rows: Any = np.load(path, mmap_mode="r", allow_pickle=False)
        self._sink.add({name: rows[name] for name in rows.dtype.names})

    def finish(self, rows: int) -> None:
        self._sink.finish(rows)
        self._sink.close()


def append(whole: Path, part: Path, start: int, length: int) -> None:
    """Append bytes of a part, within the system where it knows how."""
    with part.open("rb", buffering=0) as source, whole.open("r+b", buffering=0) as to:
        to.seek(0, os.SEEK_END)
        source.seek(start)
        while length:
            moved = _move(source, to, min(length, _AT_ONCE))
            if not moved:
                raise OSError(f"{part} has become shorter")
            length -= moved


def _move(source: Any, to: Any, length: int) -> int:
    if hasattr(os, "sendfile"):
        return os.sendfile(to.fileno(), source.fileno(), None, length)
    data = source.read(length)
    to.write(data)
    return len(data)
