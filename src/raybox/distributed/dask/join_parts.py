"""Parts put together, in order, as they come: bytes are moved, nothing is encoded again.

The output is what `raybox.stream.cast` writes of the same chunks, byte for byte. What is joined is noted once
it is on the disk (`raybox.distributed.dask.part_folder`), and its parts are removed: few of them ever get
there. Who resumes cuts the output's files back to what the last note says, and goes on with the part after
it.
"""

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from raybox.distributed.dask.part_folder import ROWS, Note, Told, line_of
from raybox.io.chunked import parquet_footer as footer
from raybox.io.chunked.part_files import Part
from raybox.io.chunked.result_columns import Task
from raybox.io.chunked.writers import SINKS


class Joiner:
    """Appends parts to an output, in order, after those that are noted."""

    def __init__(self, log: Path, task: Task, suffix: str, notes: list[Note]) -> None:
        self.notes = notes
        self._sink: Any = SINKS[suffix](task, notes[-1].files if notes else {})
        self._append = _APPEND.get(suffix, _rows)
        self._log = Part(log, sum(len(line_of(*numbered)) for numbered in enumerate(notes)))
        self._number = len(notes)
        self._waiting = deque[tuple[Path, bytes]]()

    def add(self, path: Path, told: Told) -> None:
        """Append the next part."""
        if told.rows:
            self._append(self._sink, path, told)
        note = Note(told, self._sink.parts.lengths())
        self._waiting.append((path, line_of(self._number, note)))
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
    """`.parquet`: row groups as they are, their footers moved (see `raybox.io.chunked.parquet_footer`)."""
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
