"""How parts become one file of each format.

``.npy .csv .parquet`` are appended to as they are. ``.npz`` and ``.zarr`` store columns apart: each column
has a file, and the output is assembled at the end.
"""

import base64
import io
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from raybox.casting import parquet_footer as footer
from raybox.casting import zarr_parts
from raybox.casting.append_file import AppendFile, sync_file
from raybox.casting.parquet import empty_footer
from raybox.casting.part import PartInfo
from raybox.casting.result_columns import SLICE_ROWS, OutputSpec
from raybox.casting.writers import table_dtype
from raybox.io.formats import csv_table
from raybox.io.formats.common import require
from raybox.io.formats.numpy_arrays import member
from raybox.io.formats.tables import QUERY_KEY
from raybox.store.checksum import Checksum
from raybox.store.folder import Folder
from raybox.store.record import BrokenRecord, Trailer
from raybox.validation import Array, Dtype

ZARR_ROWS = 1 << 20  # rows of a chunk of an array


class Appended(NamedTuple):
    """What a part has added."""

    checksums: dict[str, str]
    """Of the bytes of each file, read again."""
    extra: str = ""
    """What `JoinFormat.finish` needs of it."""


class JoinFormat(ABC):
    """Appends the rows of parts, and completes the output."""

    files: dict[str, AppendFile]
    """The files that are appended to."""

    def __init__(self, folder: Folder, spec: OutputSpec, suffix: str) -> None:
        self._folder, self._spec = folder, spec
        self.name = f"results{suffix}"
        """Of the complete output in the folder of the cast."""

    def header(self, rows: int) -> bytes:
        """Return the bytes of each file before the first part."""
        return b""

    @abstractmethod
    def append(self, part: PartInfo, source: BinaryIO, trailer: Trailer[PartInfo]) -> Appended:
        """Append a part; raise `BrokenRecord` if what was appended is not its bytes."""

    @abstractmethod
    def finish(self, rows: int, extras: Sequence[str]) -> None:
        """Complete the output, on the disk; it may be called again."""


class OneFile(JoinFormat):
    """A header, and then the bodies of parts."""

    def __init__(self, folder: Folder, spec: OutputSpec, suffix: str) -> None:
        super().__init__(folder, spec, suffix)
        self.files = {"results": AppendFile(folder, self.name)}

    def append(self, part: PartInfo, source: BinaryIO, trailer: Trailer[PartInfo]) -> Appended:
        """Append the body of a part."""
        file = self.files["results"]
        body = Checksum()
        for block in file.append_from(source, *part.body):
            body.update(block)
        _check(body.text(), trailer)
        return Appended({"results": trailer.data_checksum})

    def finish(self, rows: int, extras: Sequence[str]) -> None:
        """Write the header once more, with the number of rows."""
        self.files["results"].overwrite(0, self.header(rows))
        self.files["results"].sync()


class NpyFile(OneFile):
    """One table with named columns; NumPy leaves room for the number of rows."""

    def header(self, rows: int) -> bytes:
        """Return the header of the array."""
        return _array_header(table_dtype(self._spec), rows)


class CsvFile(OneFile):
    """Text, as `raybox.save` writes it."""

    def header(self, rows: int) -> bytes:
        """Return the line of names."""
        return csv_table.line([*self._spec.dtypes])


class ParquetFile(OneFile):
    """Row groups, and one footer for all."""

    def header(self, rows: int) -> bytes:
        """Return the first bytes of every file of Parquet."""
        return footer.MAGIC

    def append(self, part: PartInfo, source: BinaryIO, trailer: Trailer[PartInfo]) -> Appended:
        """Append the row groups of a part, and return their footer, with shifted offsets."""
        file = self.files["results"]
        begin, (start, length) = file.length, part.body
        whole, body = Checksum(), Checksum()
        whole.update(source.read(start))
        for block in file.append_from(source, start, length):
            whole.update(block)
            body.update(block)
        source.seek(start + length)
        whole.update(source.read(trailer.data_bytes - start - length))
        _check(whole.text(), trailer)
        end = footer.read_footer(source, trailer.data_bytes)
        shifted = footer.shift_offsets(end, begin - start) if part.rows else b""
        return Appended({"results": body.text()}, base64.b64encode(shifted).decode())

    def finish(self, rows: int, extras: Sequence[str]) -> None:
        """Append the footer of all row groups."""
        footers = [base64.b64decode(extra) for extra in extras if extra] or [empty_footer(self._spec)]
        file = self.files["results"]
        body = file.length
        file.write(footer.with_tail(footer.merge(footers)))
        file.sync()
        file.length = body


class ColumnFiles(JoinFormat):
    """A file for each column, named by its number: its own name may be of any characters."""

    def __init__(self, folder: Folder, spec: OutputSpec, suffix: str) -> None:
        super().__init__(folder, spec, suffix)
        self.files = {name: AppendFile(folder, f"column-{k:03}") for k, name in enumerate(spec.dtypes)}

    def append(self, part: PartInfo, source: BinaryIO, trailer: Trailer[PartInfo]) -> Appended:
        """Append the columns of a part."""
        dtype, whole = table_dtype(self._spec), Checksum()
        before = {name: file.length for name, file in self.files.items()}
        written = {name: Checksum() for name in self.files}
        for begin in range(0, part.rows, SLICE_ROWS):
            rows = np.fromfile(source, dtype, min(SLICE_ROWS, part.rows - begin))
            whole.update(rows)
            for name, file in self.files.items():
                column = np.ascontiguousarray(rows[name])
                written[name].update(column)
                file.write(column)
        _check(whole.text(), trailer)
        checksums = {name: file.checksum(before[name], file.length) for name, file in self.files.items()}
        if checksums != {name: checksum.text() for name, checksum in written.items()}:
            raise BrokenRecord("differs when it is read again")
        return Appended(checksums)


class NpzFile(ColumnFiles):
    """One array for each column."""

    def finish(self, rows: int, extras: Sequence[str]) -> None:
        """Write the columns into one archive."""
        with self._folder.create(self.name) as whole:
            with zipfile.ZipFile(whole, "w") as archive:
                for name, file in self.files.items():
                    with archive.open(member(name), "w", force_zip64=True) as out:
                        out.write(_array_header(self._spec.dtypes[name], rows))
                        for block in file.blocks(0, file.length):
                            out.write(block)
            whole.flush()
            sync_file(whole)


class ZarrGroup(ColumnFiles):
    """A group with one array for each column (Zarr version 3)."""

    def finish(self, rows: int, extras: Sequence[str]) -> None:
        """Write the columns into one group."""
        self._folder.remove(self.name)
        self._folder.subfolder(self.name).close()
        path, zarr = self._folder.path / self.name, require("zarr", "zarr", ".zarr")
        zarr.open_group(path, mode="a", zarr_format=3, attributes={QUERY_KEY: self._spec.query})
        for name, dtype in self._spec.dtypes.items():
            array = zarr_parts.make_array(zarr, path, name, dtype, (rows, min(ZARR_ROWS, rows)))
            for start in range(0, rows, ZARR_ROWS):
                some: Array = self.files[name].array(dtype, start, ZARR_ROWS)
                array[start : start + len(some)] = some.astype(zarr_parts.zarr_dtype(dtype), copy=False)
        zarr_parts.sync(path)


def _check(found: str, trailer: Trailer[Any]) -> None:
    if found != trailer.data_checksum:
        raise BrokenRecord("its checksum differs")


def _array_header(dtype: Dtype, rows: int) -> bytes:
    """Return the header of a `.npy` array."""
    out = io.BytesIO()
    fields = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (rows,)}
    np.lib.format.write_array_header_1_0(out, fields)
    return out.getvalue()


FORMATS: dict[str, Callable[[Folder, OutputSpec, str], JoinFormat]] = {
    ".npz": NpzFile,
    ".npy": NpyFile,
    ".csv": CsvFile,
    ".parquet": ParquetFile,
    ".zarr": ZarrGroup,
}
