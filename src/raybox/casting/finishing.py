"""The one pass that makes the output of all parts; it may begin again at any time.

A file is written from the parts in their order, their checksums compared, then it alone is synced, renamed,
its folder synced; only then the parts go. A dataset of Parquet is the folder of the parts, each of which was
synced before it was renamed. The first error of a sync is final: the system reports it once.

`.npy`, `.csv` and `.parquet` get the bodies of the parts as they are; `.npz` and `.zarr` store columns apart.
"""

import io
import os
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.casting import parquet_footer as footer
from raybox.casting.cast_folder import CastFolder, cast_folder
from raybox.casting.caster import BlockCaster
from raybox.casting.columns import OutputSpec
from raybox.casting.job import ZARR, CastJob
from raybox.casting.part import CastPart, PartFile, PartFolders, PartReader, part_folders
from raybox.casting.sums import Sums, total_of
from raybox.casting.writers import WRITERS, empty_footer, table_dtype
from raybox.errors import RayboxError
from raybox.hits.file_columns import row_count
from raybox.io.formats import csv_table
from raybox.io.formats.common import file_error, require
from raybox.io.formats.numpy_arrays import member
from raybox.io.formats.tables import QUERY_KEY
from raybox.store import checksum
from raybox.store.checksum import as_bytes
from raybox.store.disk import OutFile, at, write_all
from raybox.store.folder import TEMPORARY, Folder, open_folder
from raybox.validation import Dtype

_OUT = TEMPORARY + "out"
_ROWS, _ROW_RECORDS = TEMPORARY + "rows", TEMPORARY + "row-records"
_MARGIN = 1 << 20  # bytes for headers and footers, in addition to those of parts
_ZARR_ROWS = 1 << 20  # rows of a chunk of an array
_READ_ROWS = 1 << 14  # rows that are read at once: a megabyte


class Summary(NamedTuple):
    """The totals of a cast."""

    rays: int
    """Rays of the file."""
    hit_count: int
    """Rays that hit anything; of ``all`` and ``segments``: hits; of ``deposit``: sums that are not zero."""
    rows: int
    """Rows of the output."""
    resumed: int
    """Rays that an earlier call had done."""
    seconds: float
    """Time for the others, reading and writing included."""


def summary_of(
    parts: Iterable[CastPart], resumed: Iterable[CastPart] = (), rays: Iterable[CastPart] | None = None
) -> Summary:
    """Return the totals of parts, without time; rays: the parts that have the rays, if others."""
    parts = list(parts)
    counts = (sum(part.rays for part in some) for some in (parts if rays is None else rays, resumed))
    total, before = counts
    return Summary(total, sum(p.hit_count for p in parts), sum(p.rows for p in parts), before, 0.0)


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
        """Yield the parts, each open; raise `FileFormatError` after one with damaged bytes."""
        for part in self.parts:
            with self.folders.open(part) as reader:
                yield part, reader

    def tables(self) -> Iterator[NDArray[np.void]]:
        """Yield the rows of parts that are tables, some at a time."""
        dtype = table_dtype(self.spec)
        for part, reader in self.opened():
            for data in reader.blocks(part.size, _READ_ROWS * dtype.itemsize):
                yield np.frombuffer(data, dtype)


def finish(caster: BlockCaster, cast: CastFolder, parts: Sequence[CastPart]) -> Sequence[CastPart]:
    """Make the output of all parts, which cover all blocks, and remove them; return the parts of its rows."""
    with source_of(caster, cast.folder, cast.parts, parts) as source:
        if caster.job.is_parts:
            _place_parts(caster, cast, source)
        else:
            _check_room(cast, source)
            (_place_group if caster.job.suffix == ZARR else _place_file)(caster, cast, source)
    with open_folder(cast.target.parent, own=False) as parent:
        parent.sync()
    with suppress(OSError):  # the output is complete; what stays is of no harm to the next call
        cast.remove()
    return source.parts


@contextmanager
def source_of(
    caster: BlockCaster, folder: Folder, folders: PartFolders, parts: Sequence[CastPart]
) -> Iterator[PartSource]:
    """Yield the parts of rows: of sums, one that is written here, in the folder of the cast."""
    spec = caster.columns.spec
    if caster.sums is None:
        yield PartSource(folders, parts, spec)
        return
    for name in (_ROWS, _ROW_RECORDS):
        folder.remove(name)
    with part_folders(folder, _ROWS, _ROW_RECORDS) as rows:
        yield PartSource(rows, [_rows_of_sums(caster, rows, total_of(caster.sums, folders, parts))], spec)


def _rows_of_sums(caster: BlockCaster, folders: PartFolders, total: Sums) -> CastPart:
    """Write the rows of all primitives as a part; its hits are sums that are not zero."""
    job, spec, rows, reached = caster.job, caster.columns.spec, 0, 0
    names = [name for name in spec.dtypes if name not in ("index", "id")]
    with PartFile(folders) as file:
        writer = WRITERS[job.rows_format](spec, file)
        for columns in total.rows(names):
            writer.add(columns)
            rows += row_count(columns)
            sums = np.stack([np.asarray(columns[name]) for name in names])
            reached += int(np.count_nonzero(sums.any(axis=0)))
        return file.complete(job, job.rows_format, counts=(rows, reached), body=writer.finish())


# Where outputs are put


def _check_room(cast: CastFolder, source: PartSource) -> None:
    """Raise `FileFormatError` unless the disk has room for the output beside its parts."""
    needed = sum(part.size for part in source.parts) + _MARGIN
    with at(cast.folder.path, "looked at"):
        usage = shutil.disk_usage(cast.folder.path)
    if usage.total > 0 and usage.free < needed:
        problem = f"needs {needed:,} bytes next to its parts, and {usage.free:,} are free"
        raise file_error(cast.target, problem, "make room, and cast again: only the file is written then")


def _place_file(caster: BlockCaster, cast: CastFolder, source: PartSource) -> None:
    """Write a file, and rename it once it is on the disk."""
    with cast.folder.create(_OUT) as out:
        FILE_WRITERS[caster.job.suffix](source, out)
        out.sync()
    cast.folder.move_to(_OUT, cast.target)


def _place_parts(caster: BlockCaster, cast: CastFolder, source: PartSource) -> None:
    """Rename the folder of the parts; of no rays, it gets a part that names the columns."""
    folders, parts, form = source.folders, source.parts, caster.job.rows_format
    if not parts:
        with PartFile(folders) as file:
            parts = [file.complete(caster.job, form, body=WRITERS[form](source.spec, file).finish())]
    folders.remove_others(parts)
    folders.parts.sync()
    mode = folders.parts.publish()
    _place_folder(cast, folders.parts.path.name)
    folders.parts.set_mode(mode)


def _place_group(caster: BlockCaster, cast: CastFolder, source: PartSource) -> None:
    """Write a group of Zarr, and rename its folder once all files are on the disk."""
    cast.folder.remove(_OUT)
    with cast.folder.subfolder(_OUT) as group:
        _write_zarr(source, group.path, caster.job.size if caster.job.is_dataset else None)
        for path in [group.path, *group.path.rglob("*")]:
            with at(path, "written to the disk"):
                descriptor = os.open(path, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
        mode = group.publish()
        _place_folder(cast, _OUT)
        group.set_mode(mode)


def _place_folder(cast: CastFolder, name: str) -> None:
    """Move a folder to its place; one with the same content may be there, of a call that ended just then."""
    if not cast.target.exists():
        cast.folder.move_to(name, cast.target)
    elif _checksums(cast.target) != _checksums(cast.folder.path / name):
        raise _exists_already(cast.target)


def _checksums(folder: Path) -> dict[Path, str]:
    """Return the checksum of each file in a folder, by its path there."""
    found = dict[Path, str]()
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                found[path.relative_to(folder)] = checksum.of_file(file)
    return found


def check_place(path: Path, job: CastJob) -> None:
    """Raise if an output that is a folder exists, and no cast of it was begun: it is not replaced."""
    if (job.is_dataset or job.suffix == ZARR) and path.exists() and not cast_folder(path).exists():
        raise _exists_already(path)


def _exists_already(path: Path) -> RayboxError:
    return file_error(path, "exists already", "remove it first, or give another name")


class StreamOutput:
    """Writes the lines of parts to an open file."""

    def __init__(self, spec: OutputSpec, file: BinaryIO) -> None:
        self._file, self._path = file, Path(str(getattr(file, "name", "the open file")))
        write_all(file, csv_table.line([*spec.dtypes]), self._path)

    def add(self, folders: PartFolders, part: CastPart) -> None:
        """Write the next part, and remove it."""
        with folders.open(part) as reader:
            for data in reader.blocks(part.body[1]):
                write_all(self._file, data, self._path)
        folders.remove(part)

    def flush(self) -> None:
        """Write what is buffered."""
        with at(self._path, "written"):
            self._file.flush()


# Formats of one file, or of a group


def _write_npy(source: PartSource, out: OutFile) -> None:
    """Write one table with named columns."""
    out.write(_array_header(table_dtype(source.spec), source.rows))
    _copy_bodies(source, out)


def _write_csv(source: PartSource, out: OutFile) -> None:
    """Write text, as `raybox.save` does."""
    out.write(csv_table.line([*source.spec.dtypes]))
    _copy_bodies(source, out)


def _copy_bodies(source: PartSource, out: OutFile) -> None:
    for part, reader in source.opened():
        for data in reader.blocks(part.body[1]):
            out.write(data)
        reader.free_pages()


def _write_parquet(source: PartSource, out: OutFile) -> None:
    """Write the row groups of all parts, and one footer."""
    ends, position = list[tuple[bytes, int]](), out.write(footer.MAGIC)
    for part, reader in source.opened():
        start, length = part.body
        reader.read(start)
        for data in reader.blocks(length):
            out.write(data)
        if part.rows:
            ends.append((reader.read(), position - start))  # parsed once all bytes are compared
        reader.free_pages()
        position += length
    footers = [footer.shift_offsets(footer.footer_in(end), shift) for end, shift in ends]
    out.write(footer.with_tail(footer.merge(footers or [empty_footer(source.spec)])))


def _write_npz(source: PartSource, out: OutFile) -> None:
    """Write one array for each column; the parts are read once for each."""
    opened: Any = out
    with zipfile.ZipFile(opened, "w") as archive:
        for name, dtype in source.spec.dtypes.items():
            with archive.open(member(name), "w", force_zip64=True) as column:
                column.write(_array_header(dtype, source.rows))
                for rows in source.tables():
                    column.write(as_bytes(rows[name]))


def _array_header(dtype: Dtype, rows: int) -> bytes:
    """Return the header of a `.npy` array."""
    out = io.BytesIO()
    fields = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (rows,)}
    np.lib.format.write_array_header_1_0(out, fields)
    return out.getvalue()


FILE_WRITERS: dict[str, Callable[[PartSource, OutFile], None]] = {
    ".npy": _write_npy,
    ".csv": _write_csv,
    ".npz": _write_npz,
    ".parquet": _write_parquet,
}


def _write_zarr(source: PartSource, path: Path, chunk: int | None) -> None:
    """Write a group with one array for each column (Zarr version 3); chunk: its rows, at most."""
    zarr, spec, count, start = require("zarr", "zarr", ".zarr"), source.spec, source.rows, 0
    size = max(1, chunk or min(_ZARR_ROWS, count))
    # Zarr's stable type for text has no fixed length
    types: dict[str, Any] = {name: str if d.kind == "U" else d for name, d in spec.dtypes.items()}
    with at(path, "written"), _reading_back(path):
        zarr.open_group(path, mode="a", zarr_format=3, attributes={QUERY_KEY: spec.query})
        arrays = {
            name: zarr.create_array(  # not compressed: floats hardly shrink
                path, name=name, shape=(count,), chunks=(size,), dtype=dtype, compressors=None
            )
            for name, dtype in types.items()
        }
        for rows in _of_size(source, min(size, count)):
            for name, array in arrays.items():
                array[start : start + len(rows)] = rows[name].astype(types[name], copy=False)
            start += len(rows)


@contextmanager
def _reading_back(path: Path) -> Iterator[None]:
    """Turn errors of Zarr at its own files, which it reads again, into `FileFormatError`."""
    try:
        yield
    except RayboxError:
        raise
    except (ValueError, TypeError, KeyError) as error:
        problem = "cannot be read just after it was written"
        raise file_error(path, problem, "check the disk, and cast again") from error


def _of_size(source: PartSource, size: int) -> Iterator[NDArray[np.void]]:
    """Yield rows in tables of `size` rows, in memory that is reused; the last one may have fewer."""
    table, filled = np.empty(size, table_dtype(source.spec)), 0
    for rows in source.tables():
        used = 0
        while used < len(rows):
            some = rows[used : used + size - filled]
            table[filled : filled + len(some)] = some
            used, filled = used + len(some), filled + len(some)
            if filled == size:
                yield table
                filled = 0
    if filled:
        yield table[:filled]
