"""The one pass that makes the output of all parts; it may begin again at any time.

A file is written from the parts in their order, their checksums compared, then it alone is synced, renamed,
its folder synced; only then the parts go. A dataset of Parquet is the folder of the parts, each of which was
synced before it was renamed. The first error of a sync is final: the system reports it once.
"""

import filecmp
import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from raybox.casting import outputs
from raybox.casting.blocks import Position
from raybox.casting.cast_folder import CastFolder, cast_folder
from raybox.casting.caster import BlockCaster
from raybox.casting.job import SUMS, ZARR, CastJob
from raybox.casting.outputs import PartSource
from raybox.casting.part import BlockFacts, CastPart, PartFile, PartFolders
from raybox.casting.result_columns import OutputSpec
from raybox.casting.sum_parts import total_of
from raybox.casting.sums import Sums
from raybox.casting.writers import WRITERS
from raybox.errors import RayboxError
from raybox.io.formats import csv_table
from raybox.io.formats.common import file_error
from raybox.queries.columns import row_count
from raybox.store.disk import at, write_all
from raybox.store.folder import TEMPORARY, Folder, open_folder

_OUT = TEMPORARY + "out"
_ROWS, _ROW_RECORDS = TEMPORARY + "rows", TEMPORARY + "row-records"
_MARGIN = 1 << 20  # bytes for headers and footers, beside those of parts


class Totals(NamedTuple):
    """Totals of an output."""

    rays: int
    rows: int
    hit_count: int
    """Rays that hit anything; of queries with a row for each hit: hits."""

    @classmethod
    def of(cls, parts: Sequence[CastPart]) -> "Totals":
        """Return the totals of parts."""
        counts = ((part.rays, part.rows, part.hit_count) for part in parts)
        return cls(*map(sum, zip(*counts, strict=True))) if parts else cls(0, 0, 0)


def finish(caster: BlockCaster, cast: CastFolder, parts: Sequence[CastPart]) -> Totals:
    """Make the output of all parts, which cover all blocks, and remove them; return its totals."""
    source = source_of(caster, cast.folder, cast.parts, parts)
    if caster.job.is_parts:
        _place_parts(caster, cast, source)
    elif caster.job.suffix == ZARR:
        _place_group(caster, cast, source)
    else:
        _place_file(caster, cast, source)
    with open_folder(cast.target.parent, own=False) as parent:
        parent.sync()
    with suppress(OSError):  # the output is complete; what stays is of no harm to the next call
        cast.remove()
    return Totals.of(source.parts)._replace(rays=Totals.of(parts).rays)


def source_of(
    caster: BlockCaster, folder: Folder, folders: PartFolders, parts: Sequence[CastPart]
) -> PartSource:
    """Return the parts of rows: of sums, one that is written here, in the folder of the cast."""
    spec = caster.columns.spec
    if caster.job.part_format != SUMS:
        return PartSource(folders, parts, spec)
    for name in (_ROWS, _ROW_RECORDS):
        folder.remove(name)
    rows = PartFolders(folder.subfolder(_ROWS), folder.subfolder(_ROW_RECORDS))
    return PartSource(rows, [_rows_of_sums(caster, rows, total_of(caster, folders, parts))], spec)


def _rows_of_sums(caster: BlockCaster, folders: PartFolders, total: Sums) -> CastPart:
    """Write the rows of all primitives as a part; its hits are primitives whose sums are not zero."""
    job, spec = caster.job, caster.columns.spec
    file, rows, reached = PartFile(folders), 0, 0
    writer = WRITERS[job.rows_format](spec, file)
    names = [name for name in spec.dtypes if name not in ("index", "id")]
    for columns in total.rows(names):
        writer.add(columns)
        rows += row_count(columns)
        sums = np.stack([np.asarray(columns[name]) for name in names])
        reached += int(np.count_nonzero(sums.any(axis=0)))
    return _complete(caster, file, writer.finish(), rows, reached)


def _complete(caster: BlockCaster, file: PartFile, body: tuple[int, int], rows: int, hits: int) -> CastPart:
    """Complete a part that is of no single block."""
    job, block = caster.job, BlockFacts(0, 0, Position(), "", "")
    part = CastPart(job.digest, job.options.invalid, (block,), job.rows_format, rows, hits, 0, "", body)
    return file.complete(part, durable=job.is_dataset)


def _place_file(caster: BlockCaster, cast: CastFolder, source: PartSource) -> None:
    """Write a file, and rename it once it is on the disk."""
    _check_room(cast, source)
    with cast.folder.create(_OUT) as out:
        outputs.WRITERS[caster.job.suffix](source, out)
        out.sync()
    cast.folder.move_to(_OUT, cast.target)


def _check_room(cast: CastFolder, source: PartSource) -> None:
    """Raise `FileFormatError` unless the disk has room for the output beside its parts."""
    needed = sum(part.size for part in source.parts) + _MARGIN
    with at(cast.folder.path, "looked at"):
        usage = shutil.disk_usage(cast.folder.path)
    if usage.total > 0 and usage.free < needed:
        problem = f"needs {needed:,} bytes next to its parts, and {usage.free:,} are free"
        raise file_error(cast.target, problem, "make room, and cast again: only the file is written then")


def _place_parts(caster: BlockCaster, cast: CastFolder, source: PartSource) -> None:
    """Rename the folder of the parts; of no rays, it gets a part that names the columns."""
    folders, parts = source.folders, source.parts
    if not parts:
        file = PartFile(folders)
        body = WRITERS[caster.job.rows_format](source.spec, file).finish()
        parts = [_complete(caster, file, body, 0, 0)]
    folders.remove_others(parts)
    folders.parts.sync()
    mode = folders.parts.publish()
    _place_folder(cast, folders.parts.path.name)
    folders.parts.set_mode(mode)


def _place_group(caster: BlockCaster, cast: CastFolder, source: PartSource) -> None:
    """Write a group of Zarr, and rename its folder once all files are on the disk."""
    _check_room(cast, source)
    cast.folder.remove(_OUT)
    with cast.folder.subfolder(_OUT) as group:
        outputs.write_zarr(source, group.path, caster.job.size if caster.job.is_dataset else None)
        _sync_all(group.path)
        mode = group.publish()
        _place_folder(cast, _OUT)
        group.set_mode(mode)


def _sync_all(folder: Path) -> None:
    """Wait until all files and folders in a folder are on the disk."""
    for path in [folder, *folder.rglob("*")]:
        with at(path, "written to the disk"):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _place_folder(cast: CastFolder, name: str) -> None:
    """Move a folder to its place; one with the same content may be there, of a call that ended just then."""
    there = cast.target
    if there.exists() and not _is_same(filecmp.dircmp(there, cast.folder.path / name, ignore=[], hide=[])):
        raise _exists_already(there)
    if not there.exists():
        cast.folder.move_to(name, there)


def _is_same(found: "filecmp.dircmp[str]") -> bool:
    """Return whether two folders have the same files, byte for byte."""
    if found.left_only or found.right_only or found.common_funny:
        return False
    pairs = ((Path(found.left, name), Path(found.right, name)) for name in found.common_files)
    is_same = all(filecmp.cmp(*pair, shallow=False) for pair in pairs)
    return is_same and all(map(_is_same, found.subdirs.values()))


def check_place(path: Path, job: CastJob) -> None:
    """Raise if an output that is a folder exists, and no cast of it was begun: it is not replaced."""
    if (job.is_dataset or job.suffix == ZARR) and path.exists() and not cast_folder(path).exists():
        raise _exists_already(path)


def _exists_already(path: Path) -> RayboxError:
    return file_error(path, "exists already", "remove it first, or give another name")


class StreamOutput:
    """Writes the lines of parts to an open file, in order, as they come; each part is removed then."""

    def __init__(self, folders: PartFolders, spec: OutputSpec, file: BinaryIO) -> None:
        self._folders, self._file, self._waiting = folders, file, dict[int, CastPart]()
        self._number = 0
        self._path = Path(str(getattr(file, "name", "the open file")))
        write_all(file, csv_table.line([*spec.dtypes]), self._path)

    def add(self, part: CastPart) -> None:
        """Write a part, and those after it that wait for it; or let it wait."""
        self._waiting[part.number] = part
        while (following := self._waiting.pop(self._number, None)) is not None:
            with self._folders.open(following) as reader:
                for data in reader.blocks(following.body[1]):
                    write_all(self._file, data, self._path)
            self._folders.remove(following)
            self._number += 1

    def add_all(self, parts: Iterable[CastPart]) -> None:
        """Write the last parts, and what is buffered."""
        for part in parts:
            self.add(part)
        with at(self._path, "written"):
            self._file.flush()
