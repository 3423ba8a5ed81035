"""Append to Parquet: each addition is a row group, whose footer is stored in a file of its own.

Nothing is written twice, and a row group does not depend on where the writer started, so the output of a
resumed cast is byte-identical to that of an uninterrupted one. Arrow encodes the row groups.
"""

import io
import struct
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from raybox.io.chunked import parquet_footer as footer
from raybox.io.chunked.part_files import PartFile, PartFiles
from raybox.io.chunked.result_columns import OutputSpec, as_array
from raybox.io.formats.common import require
from raybox.io.formats.tables import QUERY_KEY
from raybox.queries.columns import Column, Columns, Sparse, row_count
from raybox.validation import Dtype

if TYPE_CHECKING:
    import pyarrow

_LENGTH = struct.Struct("<Q")
_PAGE = 1 << 17  # rows: a megabyte of floats


class ParquetWriter:
    """A row group for each addition."""

    def __init__(self, spec: OutputSpec, lengths: dict[str, int]) -> None:
        self._spec, self._arrow = spec, require("pyarrow", "io", ".parquet")
        self._parquet = require("pyarrow.parquet", "io", ".parquet")
        self.files = PartFiles(
            results=PartFile(spec.folder / "results.parquet", lengths.get("results", 0)),
            footers=PartFile(spec.folder / "footers", lengths.get("footers", 0)),
        )
        self.close = self.files.close
        self._ids = None if spec.ids is None else self._arrow.array([*spec.ids, ""], self._arrow.string())
        self._schema = self._arrow.schema(
            [
                (name, spec.arrow_types.get(name) or _arrow_type(self._arrow, dtype))
                for name, dtype in spec.dtypes.items()
            ],
            metadata={QUERY_KEY: spec.query} if spec.query else None,
        )
        if not self.files["results"].length:
            self.files["results"].write(footer.MAGIC)

    def add(self, columns: Columns) -> None:
        """Append a row group."""
        if not row_count(columns):
            return
        self._spec.check()
        table = self._arrow.table([self._array(columns, name) for name in self._spec.dtypes], self._schema)
        self._spec.check()
        start = self.files["results"].length
        end = self._encode(table, self.files["results"].write)
        self.add_footer(footer.shift_offsets(end, start - len(footer.MAGIC)))

    def add_footer(self, end: bytes) -> None:
        """Store the footer of row groups until the output is complete."""
        self.files["footers"].write(_LENGTH.pack(len(end)) + end)

    def finish(self, rows: int) -> None:
        """Append the footer of all row groups."""
        footers = self._footers() or [self._encode(self._schema.empty_table(), lambda _: None)]
        self.files["results"].write(footer.with_tail(footer.merge(footers)))

    def _array(self, columns: Columns, name: str) -> "pyarrow.Array":
        """Return a column as an Arrow array."""
        if name in self._spec.arrow_types:
            column = columns[name]
            text = isinstance(column, np.ndarray)
            return self._arrow.array(column, self._arrow.string()) if text else column
        if name != "id":
            return _arrow_array(self._arrow, columns[name])
        assert self._ids is not None
        index = as_array(columns["id" if "id" in columns else "index"])
        return self._ids.take(self._arrow.array(np.where(index < 0, len(self._ids) - 1, index)))

    def _encode(self, table: "pyarrow.Table", write: Callable[[bytes | memoryview], None]) -> bytes:
        """Write a table as a row group that is not compressed.

        Return its footer.
        """
        integer_columns = [field.name for field in table.schema if self._arrow.types.is_int64(field.type)]
        out = _RowGroup(write)
        # pyarrow has this option from 23 on
        pages = {"max_rows_per_page": _PAGE} if int(self._arrow.__version__.split(".")[0]) >= 23 else {}
        writer = self._parquet.ParquetWriter(
            out,
            table.schema,
            compression="none",
            use_dictionary=["id"] if "id" in self._spec.dtypes else False,
            write_statistics=[table.column_names[0]],  # ray, or index
            column_encoding=dict.fromkeys(integer_columns, "DELTA_BINARY_PACKED"),
            write_batch_size=_PAGE,
            **pages,
        )
        with writer:
            if len(table):
                writer.write_table(table, len(table))
            out.at_footer = True
        return out.footer()

    def _footers(self) -> list[bytes]:
        data = io.BytesIO((self._spec.folder / "footers").read_bytes())
        found = []
        while size := data.read(_LENGTH.size):
            found.append(data.read(_LENGTH.unpack(size)[0]))
        return found


class _RowGroup:
    """A file that Arrow writes.

    Bytes between the magic and the footer are passed on at once.
    """

    closed = False

    def __init__(self, write: Callable[[bytes | memoryview], None]) -> None:
        self._write, self._length, self._tail = write, 0, bytearray()
        self.at_footer = False
        """Whether all that follows is the footer."""

    def write(self, data: bytes | memoryview) -> int:
        """Pass data on, or store it if it is of the footer."""
        if self.at_footer:
            self._tail += data
        elif self._length:
            self._write(data)
        else:
            self._write(memoryview(data)[len(footer.MAGIC) :])
        self._length += len(data)
        return len(data)

    def footer(self) -> bytes:
        """Return the footer."""
        return footer.read_footer(io.BytesIO(self._tail), len(self._tail))[1]

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._length

    def flush(self) -> None:
        """Do nothing: all data is passed on at once."""

    close = flush


def _arrow_type(arrow: ModuleType, dtype: Dtype) -> "pyarrow.DataType":
    return arrow.string() if dtype.kind == "U" else arrow.from_numpy_dtype(dtype)


def _arrow_array(arrow: ModuleType, column: Column) -> "pyarrow.Array":
    """Return a column as an Arrow array, with null where a sparse one has no number."""
    if not isinstance(column, Sparse):
        return arrow.array(as_array(column))
    bits = np.packbits(column.there, bitorder="little")
    buffers = [arrow.py_buffer(bits), arrow.py_buffer(as_array(column))]
    return arrow.DoubleArray.from_buffers(arrow.float64(), len(column), buffers)
