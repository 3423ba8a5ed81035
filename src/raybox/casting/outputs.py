"""How parts become an output of each format: read once, in their order, their checksums compared.

`.npy`, `.csv` and `.parquet` get the bodies of the parts as they are; `.npz` and `.zarr` store columns apart.
"""

import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.casting import parquet_footer as footer
from raybox.casting.parquet import empty_footer
from raybox.casting.part import CastPart, PartFolders, PartReader
from raybox.casting.result_columns import OutputSpec
from raybox.casting.writers import table_dtype
from raybox.io.formats import csv_table
from raybox.io.formats.common import require
from raybox.io.formats.numpy_arrays import member
from raybox.io.formats.tables import QUERY_KEY
from raybox.store.checksum import as_bytes
from raybox.store.disk import OutFile, at
from raybox.validation import Dtype

_ZARR_ROWS = 1 << 20  # rows of a chunk of an array
_READ_ROWS = 1 << 14  # rows that are read at once: a megabyte


class PartSource(NamedTuple):
    """The parts of an output, in order."""

    folders: PartFolders
    parts: Sequence[CastPart]
    spec: OutputSpec

    @property
    def rows(self) -> int:
        """How many rows all parts have."""
        return sum(part.rows for part in self.parts)

    def opened(self) -> Iterator[tuple[CastPart, PartReader]]:
        """Yield the parts, each open; raise `FileFormatError` after one whose bytes are damaged."""
        for part in self.parts:
            with self.folders.open(part) as reader:
                yield part, reader

    def tables(self) -> Iterator[NDArray[np.void]]:
        """Yield the rows of parts that are tables, some at a time."""
        dtype = table_dtype(self.spec)
        for part, reader in self.opened():
            for data in reader.blocks(part.size, _READ_ROWS * dtype.itemsize):
                yield np.frombuffer(data, dtype)


def _copy_bodies(source: PartSource, out: OutFile) -> None:
    for part, reader in source.opened():
        for data in reader.blocks(part.body[1]):
            out.write(data)


def write_npy(source: PartSource, out: OutFile) -> None:
    """Write one table with named columns."""
    out.write(_array_header(table_dtype(source.spec), source.rows))
    _copy_bodies(source, out)


def write_csv(source: PartSource, out: OutFile) -> None:
    """Write text, as `raybox.save` does."""
    out.write(csv_table.line([*source.spec.dtypes]))
    _copy_bodies(source, out)


def write_parquet(source: PartSource, out: OutFile) -> None:
    """Write the row groups of all parts, and one footer."""
    footers, position = list[bytes](), out.write(footer.MAGIC)
    for part, reader in source.opened():
        start, length = part.body
        reader.read(start)
        for data in reader.blocks(length):
            out.write(data)
        end = footer.footer_in(reader.read())
        if part.rows:
            footers.append(footer.shift_offsets(end, position - start))
        position += length
    out.write(footer.with_tail(footer.merge(footers or [empty_footer(source.spec)])))


def write_npz(source: PartSource, out: OutFile) -> None:
    """Write one array for each column; the parts are read once for each."""
    with zipfile.ZipFile(out, "w") as archive:
        for name, dtype in source.spec.dtypes.items():
            with archive.open(member(name), "w", force_zip64=True) as column:
                column.write(_array_header(dtype, source.rows))
                for rows in source.tables():
                    column.write(as_bytes(rows[name]))


def write_zarr(source: PartSource, path: Path, chunk: int | None) -> None:
    """Write a group with one array for each column (Zarr version 3); chunk: its rows, at most."""
    zarr, spec, count = require("zarr", "zarr", ".zarr"), source.spec, source.rows
    with at(path, "written"):
        zarr.open_group(path, mode="a", zarr_format=3, attributes={QUERY_KEY: spec.query})
        size = max(1, chunk or min(_ZARR_ROWS, count))
        arrays = {
            name: zarr.create_array(  # not compressed: floats hardly shrink
                path, name=name, shape=(count,), chunks=(size,), dtype=_zarr_dtype(dtype), compressors=None
            )
            for name, dtype in spec.dtypes.items()
        }
        start = 0
        for rows in _of_size(source.tables(), size):
            for name, array in arrays.items():
                kind = _zarr_dtype(spec.dtypes[name])
                array[start : start + len(rows)] = rows[name].astype(kind, copy=False)
            start += len(rows)


def _of_size(tables: Iterator[NDArray[np.void]], size: int) -> Iterator[NDArray[np.void]]:
    """Yield the rows of tables in tables of `size` rows; the last one may have fewer."""
    waiting, count = list[NDArray[np.void]](), 0
    for rows in tables:
        start = 0
        while start < len(rows):
            some = rows[start : start + size - count]
            waiting.append(some)
            start, count = start + len(some), count + len(some)
            if count == size:
                yield np.concatenate(waiting)
                waiting, count = [], 0
    if waiting:
        yield np.concatenate(waiting)


def _zarr_dtype(dtype: Dtype) -> type[str] | Dtype:
    """Return the dtype of an array: Zarr's stable type for text has no fixed length."""
    return str if dtype.kind == "U" else dtype


def _array_header(dtype: Dtype, rows: int) -> bytes:
    """Return the header of a `.npy` array."""
    out = io.BytesIO()
    fields = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (rows,)}
    np.lib.format.write_array_header_1_0(out, fields)
    return out.getvalue()


WRITERS: dict[str, Callable[[PartSource, OutFile], None]] = {
    ".npy": write_npy,
    ".csv": write_csv,
    ".npz": write_npz,
    ".parquet": write_parquet,
}
"""Formats of one file; of folders, there are `write_zarr`, and the folder of parts itself."""
