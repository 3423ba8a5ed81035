"""Appending to Parquet: each addition is encoded as a file of its own, whose footer is then moved.

Nothing is written twice, and what is appended does not depend on where the writer began, so that a resumed
file is the uninterrupted one, byte for byte. Floats are neither compressed nor summed up in statistics: they
hardly shrink, and that took two fifths of the time (measured); numbers of rays and boxes are packed.
"""

import io
import struct
from typing import Any

import numpy as np

from raybox.files.common import require
from raybox.files.parquet import write
from raybox.stream import footer
from raybox.stream.answers import Columns
from raybox.stream.plain import Part, Parts, Task

_LENGTH = struct.Struct("<Q")
_ROOM = 1 << 20  # for what is not numbers: headers of pages, the footer


class Parquet:
    """A row group for each addition; the footers wait in a file of their own."""

    def __init__(self, task: Task, lengths: dict[str, int]) -> None:
        self._task, self._arrow = task, require("pyarrow", "io", ".parquet")
        self._scratch: Any = np.empty(0, np.uint8)
        self.parts = Parts(
            answers=Part(task.folder / "answers.parquet", lengths.get("answers", 0)),
            footers=Part(task.folder / "footers", lengths.get("footers", 0)),
        )
        self.close = self.parts.close
        self._names = None if task.ids is None else self._arrow.array([*task.ids, ""], self._arrow.string())
        if not self.parts["answers"].length:
            self.parts["answers"].write(footer.MAGIC)

    def add(self, columns: Columns) -> None:
        """Append a row group."""
        if len(columns["ray"]):
            self._append(columns)

    def finish(self, rows: int) -> None:
        """Append the footer of all row groups."""
        if not rows:
            self._append({name: np.empty(0, kind) for name, kind in self._task.kinds.items()})
        self.parts["answers"].write(footer.closing(footer.merged(self._footers())))

    def _append(self, columns: Columns) -> None:
        """Append a file without its magic and its footer."""
        self._task.check()
        kinds, part = self._task.kinds, self.parts["answers"]
        some: dict[str, Any] = dict(columns)
        if self._names is not None and "id" in kinds:
            index = columns["index"]
            some["id"] = self._names.take(self._arrow.array(np.where(index < 0, len(self._names) - 1, index)))
        body, end = footer.split(self._encoded({name: some[name] for name in kinds}))
        moved = footer.moved(end, part.length - len(footer.MAGIC))
        part.write(body)
        self.parts["footers"].write(_LENGTH.pack(len(moved)) + moved)

    def _encoded(self, columns: dict[str, Any]) -> memoryview:
        """Encode rows as a file, into memory that is used again, of which only what is needed is touched."""
        whole = [name for name, kind in self._task.kinds.items() if kind == np.int64]
        room = 2 * sum(column.nbytes for column in columns.values()) + _ROOM
        if len(self._scratch) < room:
            self._scratch = np.empty(room, np.uint8)
        out = self._arrow.FixedSizeBufferWriter(self._arrow.py_buffer(self._scratch))
        write(
            out,
            columns,
            max(1, len(columns["ray"])),
            compression="none",
            column_encoding=dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
            write_statistics=whole,
        )
        return memoryview(self._scratch)[: out.tell()]

    def _footers(self) -> list[bytes]:
        data = io.BytesIO((self._task.folder / "footers").read_bytes())
        found = []
        while size := data.read(_LENGTH.size):
            found.append(data.read(_LENGTH.unpack(size)[0]))
        return found
