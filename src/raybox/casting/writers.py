"""Writers of part files, by format: the results of one block, as bytes.

============  ==================================================================================
format        bytes
============  ==================================================================================
``.rows``     rows of a NumPy table, without a header: for ``.npy .npz .zarr``
``.csv``      lines, without a header
``.parquet``  a file of Parquet, with a row group for each addition, encoded by Arrow
============  ==================================================================================

One file of all parts gets the row groups of Parquet as they are, and one footer for all
(`parquet_footer`): nothing is encoded twice.
"""

from collections.abc import Callable
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from raybox.casting import parquet_footer
from raybox.casting.columns import OutputSpec, as_array, row_slices
from raybox.casting.job import ROWS
from raybox.casting.part import PartFile
from raybox.hits.file_columns import Column, Columns, Sparse, row_count
from raybox.io.formats import csv_table
from raybox.io.formats.common import require
from raybox.io.formats.tables import QUERY_KEY
from raybox.store.checksum import Data
from raybox.validation import Array

if TYPE_CHECKING:
    import pyarrow

_PAGE = 1 << 17  # rows: a megabyte of floats


class RowsWriter:
    """Rows of one table with named columns; each writer adds the column ``id``."""

    def __init__(self, spec: OutputSpec, file: PartFile) -> None:
        self._spec, self._file = spec, file
        self._ids = None if spec.ids is None else np.array([*spec.ids, ""], dtype=str)

    @cached_property
    def _dtype(self) -> np.dtype[np.void]:
        return table_dtype(self._spec)

    def add(self, columns: Columns) -> None:
        """Append rows."""
        for some in row_slices(columns, self._spec, self._ids):
            self._file.write(self._encoded(some))

    def _encoded(self, columns: dict[str, Array]) -> Data:
        """Return some rows as bytes."""
        table = np.empty(row_count(columns), self._dtype)
        for name, column in columns.items():
            table[name] = column
        return table

    def finish(self) -> tuple[int, int]:
        """Return the body, which one file of all parts gets: all bytes, from where on and how many."""
        return 0, self._file.length


class CsvWriter(RowsWriter):
    """Text, as `raybox.save` writes it."""

    def _encoded(self, columns: dict[str, Array]) -> Data:
        return csv_table.lines(columns)


def table_dtype(spec: OutputSpec) -> np.dtype[np.void]:
    """Return the dtype of a table of all columns."""
    return np.dtype(list(spec.dtypes.items()))


def schema_of(spec: OutputSpec) -> "pyarrow.Schema":
    """Return the schema of a file of results."""
    arrow = require("pyarrow", "io", ".parquet")
    types = {
        name: spec.arrow_types.get(name)
        or (arrow.string() if dtype.kind == "U" else arrow.from_numpy_dtype(dtype))
        for name, dtype in spec.dtypes.items()
    }
    metadata = {QUERY_KEY: spec.query} if spec.query else None
    return arrow.schema(list(types.items()), metadata=metadata)


class ParquetWriter:
    """A row group for each addition."""

    def __init__(self, spec: OutputSpec, file: PartFile) -> None:
        self._spec, self._file, self._arrow = spec, file, require("pyarrow", "io", ".parquet")
        self._ids = None if spec.ids is None else self._arrow.array([*spec.ids, ""], self._arrow.string())
        self._schema = schema_of(spec)
        self._writer = _encoder(file, self._schema)

    def add(self, columns: Columns) -> None:
        """Append a row group."""
        if rows := row_count(columns):
            arrays = [self._array(columns, name) for name in self._spec.dtypes]
            self._writer.write_table(self._arrow.table(arrays, self._schema), rows)

    def finish(self) -> tuple[int, int]:
        """Write the footer; return the body: the row groups."""
        begin = len(parquet_footer.MAGIC)
        end = max(begin, self._file.length)
        self._writer.close()
        return begin, end - begin

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


def empty_footer(spec: OutputSpec) -> bytes:
    """Return the footer of a file without rows."""
    out = require("pyarrow", "io", ".parquet").BufferOutputStream()
    _encoder(out, schema_of(spec)).close()
    data: bytes = out.getvalue().to_pybytes()
    return parquet_footer.footer_in(data)


def _encoder(out: Any, schema: "pyarrow.Schema") -> Any:
    """Return Arrow's writer of a file that is not compressed."""
    arrow, parquet = require("pyarrow", "io", ".parquet"), require("pyarrow.parquet", "io", ".parquet")
    integer_columns = [field.name for field in schema if arrow.types.is_int64(field.type)]
    # pyarrow has this option from 23 on
    pages = {"max_rows_per_page": _PAGE} if int(arrow.__version__.split(".")[0]) >= 23 else {}
    return parquet.ParquetWriter(
        out,
        schema,
        compression="none",
        use_dictionary=["id"] if "id" in schema.names else False,
        write_statistics=[schema.names[0]],  # ray, or index
        column_encoding=dict.fromkeys(integer_columns, "DELTA_BINARY_PACKED"),
        write_batch_size=_PAGE,
        **pages,
    )


def _arrow_array(arrow: ModuleType, column: Column) -> "pyarrow.Array":
    """Return a column as an Arrow array, with null where a sparse one has no number."""
    if not isinstance(column, Sparse):
        return arrow.array(as_array(column))
    bits = np.packbits(column.there, bitorder="little")
    buffers = [arrow.py_buffer(bits), arrow.py_buffer(as_array(column))]
    return arrow.DoubleArray.from_buffers(arrow.float64(), len(column), buffers)


WRITERS: dict[str, Callable[[OutputSpec, PartFile], RowsWriter | ParquetWriter]] = {
    ROWS: RowsWriter,
    ".csv": CsvWriter,
    ".parquet": ParquetWriter,
}
