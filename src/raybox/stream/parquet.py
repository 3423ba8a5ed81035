"""Appending to Parquet: each addition is a row group, whose footer waits in a file of its own.

Nothing is written twice, and what is appended does not depend on where the writer began, so that a resumed
file is the uninterrupted one, byte for byte. Numbers are laid out in `raybox.stream.pages`; the schema, and
ids of boxes, are Arrow's to encode.
"""

import io
import struct
from functools import lru_cache
from typing import Any

import numpy as np

from raybox.files.common import require
from raybox.files.parquet import write_nothing, write_table
from raybox.stream import footer, pages
from raybox.stream.answers import Columns, laid_out
from raybox.stream.growing import Part, Parts
from raybox.stream.plain import Task

_LENGTH = struct.Struct("<Q")


class Parquet:
    """A row group for each addition."""

    def __init__(self, task: Task, lengths: dict[str, int]) -> None:
        self._task, self._arrow = task, require("pyarrow", "io", ".parquet")
        self.parts = Parts(
            answers=Part(task.folder / "answers.parquet", lengths.get("answers", 0)),
            footers=Part(task.folder / "footers", lengths.get("footers", 0)),
        )
        self.close = self.parts.close
        self._names = None if task.ids is None else self._arrow.array([*task.ids, ""], self._arrow.string())
        self._template = _template(tuple(task.kinds.items()))
        if not self.parts["answers"].length:
            self.parts["answers"].write(footer.MAGIC)

    def add(self, columns: Columns) -> None:
        """Append a row group."""
        rows, part = len(columns["ray"]), self.parts["answers"]
        if not rows:
            return
        start, told = part.length, []
        for name, kind in self._task.kinds.items():
            self._task.check()
            text = kind.kind == "U"
            encoded = (
                self._ids(columns) if text else pages.encode(name, columns[name], part.length, name == "ray")
            )
            for piece in encoded.pieces:
                part.write(piece)
            told.append(encoded.column)
        self.keep(footer.of_group(self._template, (told, start), rows, part.length - start))

    def keep(self, end: bytes) -> None:
        """Keep the footer of row groups until the last one is there."""
        self.parts["footers"].write(_LENGTH.pack(len(end)) + end)

    def finish(self, rows: int) -> None:
        """Append the footer of all row groups."""
        self.parts["answers"].write(footer.closing(footer.merged(self._footers() or [self._template])))

    def _ids(self, columns: Columns) -> pages.Encoded:
        """Have Arrow encode the ids of boxes: those that occur, each once."""
        assert self._names is not None
        index = laid_out(columns["index"])
        known = self._names.take(self._arrow.array(np.where(index < 0, len(self._names) - 1, index)))
        body, end = _encoded(self._arrow.table({"id": known}))
        column = footer.columns_of(end)[0]
        footer.move(column, self.parts["answers"].length - len(footer.MAGIC))
        return pages.Encoded([body], column, len(body))

    def _footers(self) -> list[bytes]:
        data = io.BytesIO((self._task.folder / "footers").read_bytes())
        found = []
        while size := data.read(_LENGTH.size):
            found.append(data.read(_LENGTH.unpack(size)[0]))
        return found


@lru_cache(maxsize=16)
def _template(kinds: tuple[tuple[str, np.dtype[Any]], ...]) -> bytes:
    """Give the footer of a file without rows: Arrow takes 8 ms, and workers begin a file for each chunk."""
    out = io.BytesIO()
    write_nothing(out, dict(kinds))
    return footer.split(out.getbuffer())[1]


def _encoded(table: Any) -> tuple[memoryview, bytes]:
    """Encode a table as a file; return what stands between its magic and its footer, and the footer."""
    out = io.BytesIO()
    write_table(out, table, max(1, len(table)), compression="none", write_statistics=False)
    return footer.split(out.getbuffer())
