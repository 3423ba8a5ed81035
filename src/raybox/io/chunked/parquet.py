"""Append to Parquet: each addition is a row group, whose footer waits in a file of its own.

Nothing is written twice, and a row group does not depend on where the writer started, so the output of a
resumed cast is byte-identical to that of an uninterrupted one. Arrow encodes the row groups.
"""

import io
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from raybox.io.chunked import parquet_footer as footer
from raybox.io.chunked.part_files import Part, Parts
from raybox.io.chunked.result_columns import Task, laid_out
from raybox.io.formats.common import require
from raybox.queries.columns import Column, Columns, Sparse

_LENGTH = struct.Struct("<Q")
_PAGE = 1 << 17  # rows: a megabyte of floats


class Parquet:
    """A row group for each addition."""

    def __init__(self, task: Task, lengths: dict[str, int]) -> None:
        self._task, self._arrow = task, require("pyarrow", "io", ".parquet")
        self._parquet = require("pyarrow.parquet", "io", ".parquet")
        self.parts = Parts(
            answers=Part(task.folder / "answers.parquet", lengths.get("answers", 0)),
            footers=Part(task.folder / "footers", lengths.get("footers", 0)),
        )
        self.close = self.parts.close
        self._names = None if task.ids is None else self._arrow.array([*task.ids, ""], self._arrow.string())
        self._schema = self._arrow.schema(
            [(name, _arrow_type(self._arrow, kind)) for name, kind in task.kinds.items()]
        )
        if not self.parts["answers"].length:
            self.parts["answers"].write(footer.MAGIC)

    def add(self, columns: Columns) -> None:
        """Append a row group."""
        if not len(columns["ray"]):
            return
        self._task.check()
        table = self._arrow.table([self._array(columns, name) for name in self._task.kinds], self._schema)
        self._task.check()
        start = self.parts["answers"].length
        end = self._encode(table, self.parts["answers"].write)
        self.keep(footer.moved(end, start - len(footer.MAGIC)))

    def keep(self, end: bytes) -> None:
        """Keep the footer of row groups until the last one is there."""
        self.parts["footers"].write(_LENGTH.pack(len(end)) + end)

    def finish(self, rows: int) -> None:
        """Append the footer of all row groups."""
        footers = self._footers() or [self._encode(self._schema.empty_table(), lambda _: None)]
        self.parts["answers"].write(footer.closing(footer.merged(footers)))

    def _array(self, columns: Columns, name: str) -> Any:
        """Return a column as an array of Arrow's."""
        if name != "id":
            return _arrow_array(self._arrow, columns[name])
        assert self._names is not None
        index = laid_out(columns["index"])
        return self._names.take(self._arrow.array(np.where(index < 0, len(self._names) - 1, index)))

    def _encode(self, table: Any, write: Callable[[Any], None]) -> bytes:
        """Write a table as a row group that is not compressed; return its footer."""
        whole = [field.name for field in table.schema if self._arrow.types.is_int64(field.type)]
        out = _RowGroup(write)
        writer = self._parquet.ParquetWriter(
            out,
            table.schema,
            compression="none",
            use_dictionary=["id"] if "id" in self._task.kinds else False,
            write_statistics=["ray"],
            column_encoding=dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
            write_batch_size=_PAGE,
            max_rows_per_page=_PAGE,
        )
        with writer:
            if len(table):
                writer.write_table(table, len(table))
            out.ends = True
        return out.footer()

    def _footers(self) -> list[bytes]:
        data = io.BytesIO((self._task.folder / "footers").read_bytes())
        found = []
        while size := data.read(_LENGTH.size):
            found.append(data.read(_LENGTH.unpack(size)[0]))
        return found


class _RowGroup:
    """A file for Arrow to write: what is between the magic and the footer is passed on at once."""

    closed = False

    def __init__(self, write: Callable[[Any], None]) -> None:
        self._write, self._length, self._tail = write, 0, bytearray()
        self.ends = False
        """Whether only the footer is still to come."""

    def write(self, data: Any) -> int:
        """Pass data on, or keep it where it is the footer's."""
        if self.ends:
            self._tail += data
        elif self._length:
            self._write(data)
        else:
            self._write(memoryview(data)[len(footer.MAGIC) :])
        self._length += len(data)
        return len(data)

    def footer(self) -> bytes:
        """Return the footer."""
        return footer.split(memoryview(footer.MAGIC + self._tail))[1]

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._length

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    close = flush


def _arrow_type(arrow: Any, kind: np.dtype[Any]) -> Any:
    return arrow.string() if kind.kind == "U" else arrow.from_numpy_dtype(kind)


def _arrow_array(arrow: Any, column: Column) -> Any:
    """Return a column as an array of Arrow's, with null where a sparse one has no number."""
    if not isinstance(column, Sparse):
        return arrow.array(laid_out(column))
    bits = np.packbits(column.there, bitorder="little")
    buffers = [arrow.py_buffer(bits), arrow.py_buffer(laid_out(column))]
    return arrow.DoubleArray.from_buffers(arrow.float64(), len(column), buffers)
