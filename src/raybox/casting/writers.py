"""Writers of part files, by format: the results of one block, as bytes.

==========  ====================================================================================
format      bytes
==========  ====================================================================================
``.rows``   rows of a NumPy table, without a header: for ``.npy .npz .zarr``
``.csv``    lines, without a header
``.parquet``  a file of Parquet, with a row group for each addition: see `raybox.casting.parquet`
==========  ====================================================================================
"""

from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np

from raybox.casting.job import ROWS
from raybox.casting.parquet import ParquetWriter
from raybox.casting.part import PartFile
from raybox.casting.result_columns import OutputSpec, id_array, row_slices
from raybox.io.formats import csv_table
from raybox.queries.columns import Columns, row_count
from raybox.store.checksum import Data
from raybox.validation import Array


class Writer(Protocol):
    """Writes the rows of one block, in order."""

    def add(self, columns: Columns) -> None:
        """Append rows; the writer adds the column ``id``."""
        ...

    def finish(self) -> tuple[int, int]:
        """Complete the bytes; return the body: from where on, and how many a joined file gets."""
        ...


class RowsWriter:
    """Rows of one table with named columns."""

    def __init__(self, spec: OutputSpec, file: PartFile) -> None:
        self._spec, self._ids, self._file = spec, id_array(spec), file

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
        """Return the body: all bytes."""
        return 0, self._file.length


class CsvWriter(RowsWriter):
    """Text, as `raybox.save` writes it."""

    def _encoded(self, columns: dict[str, Array]) -> Data:
        return csv_table.lines(columns)


def table_dtype(spec: OutputSpec) -> np.dtype[np.void]:
    """Return the dtype of a table of all columns."""
    return np.dtype(list(spec.dtypes.items()))


WRITERS: dict[str, Callable[[OutputSpec, PartFile], Writer]] = {
    ROWS: RowsWriter,
    ".csv": CsvWriter,
    ".parquet": ParquetWriter,
}
