"""Writers of each format: rows are appended in order; a complete file is made of them at the end.

`.npy`, `.csv` and `.parquet` are appended to as they are. `.npz` and `.zarr` store columns apart: each column
has a part file, and the output is assembled at the end. The writer of `.parquet` is in
`raybox.io.chunked.parquet`.
"""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np

from raybox.io import own_files
from raybox.io.chunked.journal import folder_of
from raybox.io.chunked.parquet import ParquetWriter
from raybox.io.chunked.part_files import PartFile, PartFiles
from raybox.io.chunked.result_columns import OutputSpec, id_array, row_slices
from raybox.io.formats import csv_table, point_files
from raybox.io.formats.common import file_error, require
from raybox.io.formats.numpy_arrays import member
from raybox.io.formats.saving import check_target
from raybox.io.formats.tables import QUERY_KEY
from raybox.queries.columns import Columns, row_count
from raybox.validation import Array, Dtype


class NpyWriter:
    """One table with named columns."""

    def __init__(self, spec: OutputSpec, lengths: dict[str, int]) -> None:
        self._spec, self._ids = spec, id_array(spec)
        self._output = spec.folder / "results.npy"
        self.files = PartFiles(results=PartFile(self._output, lengths.get("results", 0)))
        self.close = self.files.close
        self._dtype = np.dtype(list(spec.dtypes.items()))
        self.header_length = len(self._header(0))
        if self.files["results"].length:
            self._write_header(0)  # `finish` may have written another one
        else:
            self.files["results"].write(self._header(0))

    def add(self, columns: Columns) -> None:
        """Append rows."""
        for some in row_slices(columns, self._spec, self._ids):
            table = np.empty(row_count(some), self._dtype)
            for name, column in some.items():
                table[name] = column
            self.files["results"].write(table)

    def finish(self, rows: int) -> None:
        """Write the number of rows into the header, for which NumPy leaves room."""
        self._write_header(rows)

    def _write_header(self, rows: int) -> None:
        header = self._header(rows)
        assert len(header) == self.header_length
        with own_files.open_own(self._output) as file:
            file.write(header)

    def _header(self, rows: int) -> bytes:
        return _array_header(self._dtype, rows)


class CsvWriter:
    """Text, as `raybox.save` writes it."""

    def __init__(self, spec: OutputSpec, lengths: dict[str, int]) -> None:
        self._spec, self._ids = spec, id_array(spec)
        self.files = PartFiles(results=PartFile(spec.folder / "results.csv", lengths.get("results", 0)))
        self.close = self.files.close
        self.header_length = len(csv_table.line([*spec.dtypes]))
        if not self.files["results"].length:
            self.files["results"].write(csv_table.line([*spec.dtypes]))

    def add(self, columns: Columns) -> None:
        """Append rows."""
        for some in row_slices(columns, self._spec, self._ids):
            self.files["results"].write(csv_table.lines(some))

    def finish(self, rows: int) -> None:
        """Do nothing: the file is complete."""


class CsvStreamWriter:
    """Text to an open file, which cannot be truncated."""

    def __init__(self, spec: OutputSpec, file: BinaryIO) -> None:
        self._spec, self._ids, self._file = spec, id_array(spec), file
        self._has_header = False
        self.files = PartFiles()
        self.close = self.files.close

    def add(self, columns: Columns) -> None:
        """Write rows."""
        self._write_header()
        for some in row_slices(columns, self._spec, self._ids):
            self._file.write(csv_table.lines(some))

    def finish(self, rows: int) -> None:
        """Flush the file."""
        self._write_header()
        self._file.flush()

    def _write_header(self) -> None:
        if not self._has_header:
            self._file.write(csv_table.line([*self._spec.dtypes]))
        self._has_header = True


_COPIED = 1 << 22  # bytes that are copied at once
ZARR_ROWS = 1 << 20  # rows of a chunk of an array


class _ColumnFiles:
    """A part file for each column: its numbers, one after the other."""

    def __init__(self, spec: OutputSpec, lengths: dict[str, int]) -> None:
        self.spec, self._ids = spec, id_array(spec)
        paths = {name: spec.folder / f"column.{name}" for name in spec.dtypes}
        self.files = PartFiles({name: PartFile(path, lengths.get(name, 0)) for name, path in paths.items()})

    def add(self, columns: Columns) -> None:
        """Append rows."""
        for some in row_slices(columns, self.spec, self._ids):
            for name, column in some.items():
                self.files[name].write(np.ascontiguousarray(column, self.spec.dtypes[name]))

    def open(self, name: str) -> BinaryIO:
        """Open the file of a column."""
        return Path(self.spec.folder / f"column.{name}").open("rb")

    def read(self, name: str, file: BinaryIO, rows: int) -> Array:
        """Return the next rows of a column."""
        self.spec.check()
        return np.fromfile(file, self.spec.dtypes[name], rows)


class NpzWriter:
    """One array for each column."""

    def __init__(self, spec: OutputSpec, lengths: dict[str, int]) -> None:
        self._columns = _ColumnFiles(spec, lengths)
        self.files, self.add, self.close = self._columns.files, self._columns.add, self._columns.files.close
        self._output = spec.folder / "results.npz"

    def finish(self, rows: int) -> None:
        """Write the columns into one archive."""
        spec = self._columns.spec
        with own_files.open_new(self._output) as whole, zipfile.ZipFile(whole, "w") as archive:
            for name, dtype in spec.dtypes.items():
                with (
                    archive.open(member(name), "w", force_zip64=True) as out,
                    self._columns.open(name) as file,
                ):
                    out.write(_array_header(dtype, rows))
                    while data := file.read(_COPIED):
                        spec.check()
                        out.write(data)


class ZarrWriter:
    """A group with one array for each column (Zarr version 3), not compressed: floats hardly shrink."""

    def __init__(self, spec: OutputSpec, lengths: dict[str, int]) -> None:
        self._zarr = require("zarr", "zarr", ".zarr")
        self._columns = _ColumnFiles(spec, lengths)
        self.files, self.add, self.close = self._columns.files, self._columns.add, self._columns.files.close
        self._output = spec.folder / "results.zarr"

    def finish(self, rows: int) -> None:
        """Write the columns into one group."""
        own_files.remove(self._output)
        group = self._zarr.open_group(self._output, mode="w", zarr_format=3)
        group.attrs[QUERY_KEY] = self._columns.spec.query
        for name, dtype in self._columns.spec.dtypes.items():
            array = group.create_array(
                name,
                shape=(rows,),
                chunks=(min(ZARR_ROWS, max(1, rows)),),
                dtype=_zarr_dtype(dtype),
                compressors=None,
            )
            with self._columns.open(name) as file:
                for start in range(0, rows, ZARR_ROWS):
                    some = self._columns.read(name, file, ZARR_ROWS)
                    array[start : start + len(some)] = some.astype(_zarr_dtype(dtype), copy=False)


def _zarr_dtype(dtype: Dtype) -> type[str] | Dtype:
    """Return the dtype of an array.

    Zarr's stable type for text has no fixed length.
    """
    return str if dtype.kind == "U" else dtype


def _array_header(dtype: Dtype, rows: int) -> bytes:
    """Return the header of a `.npy` array."""
    out = io.BytesIO()
    fields = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (rows,)}
    np.lib.format.write_array_header_1_0(out, fields)
    return out.getvalue()


class Writer(Protocol):
    """Appends rows in order.

    ``finish`` makes a complete file of them, and may be called again.
    """

    @property
    def files(self) -> PartFiles:
        """The part files.

        Truncated to earlier lengths, they hold what they held then.
        """
        ...

    def add(self, columns: Columns) -> None:
        """Append rows; the writer adds the column ``id``."""
        ...

    def finish(self, rows: int) -> None:
        """Complete the output: headers, footers, archives."""
        ...

    def close(self) -> None:
        """Close the files."""
        ...


WRITERS: dict[str, Callable[[OutputSpec, dict[str, int]], Writer]] = {
    ".npz": NpzWriter,
    ".npy": NpyWriter,
    ".csv": CsvWriter,
    ".parquet": ParquetWriter,
    ".zarr": ZarrWriter,
}


def check_place(path: Path) -> None:
    """Raise if an output that is a folder exists: it is not replaced."""
    if path.suffix.lower() == ".zarr" and path.exists():
        raise file_error(path, "exists already", "remove it first, or give another name")


def check_out(path: Path) -> None:
    """Raise, before any work, if an output cannot be written there."""
    if path.suffix.lower() in point_files.SUFFIXES:
        way_out = "write a table, such as .parquet; in Python: raybox.save(path, scene.nearest(rays))"
        raise file_error(path, "cannot be written: cast writes no files of points", way_out)
    if path.suffix.lower() != ".zarr":
        check_target(path, tuple(WRITERS))
        return
    if not folder_of(path).exists():
        check_place(path)
    if not path.resolve().parent.is_dir():
        problem = f"cannot be written: there is no folder {path.parent}"
        raise file_error(path, problem, "make the folder first")
    require("zarr", "zarr", ".zarr")
