"""The folder of parts as the output: a dataset of Parquet, or a group of Zarr.

Files of a finished dataset have no trailers: readers of Parquet look for the footer at the very end. Before
the trailers are removed, ``complete`` lists them; a call that continues from there restores them first.
"""

from collections import deque
from typing import Any

from raybox.casting import zarr_parts
from raybox.casting.append_file import sync_file
from raybox.casting.blocks import Position
from raybox.casting.job import ZARR, CastJob
from raybox.casting.output import Output, Totals
from raybox.casting.part import PART, PARTS, PartFile, PartInfo, open_part
from raybox.casting.result_columns import OutputSpec
from raybox.casting.steps import step
from raybox.casting.writers import WRITERS
from raybox.errors import FileFormatError
from raybox.store import record
from raybox.store.folder import Folder
from raybox.store.record import RecordKind, Trailer

COMPLETE = "complete"


def _parsed(value: Any) -> list[Trailer[PartInfo]]:
    return [Trailer(PART.parse(part), int(size), str(checksum)) for part, size, checksum in value]


DATASET = RecordKind("complete dataset", 1, _parsed)


class DatasetOutput(Output):
    """Leaves the parts where they are, and publishes their folder."""

    def __init__(self, folder: Folder, parts: Folder, spec: OutputSpec, job: CastJob) -> None:
        super().__init__()
        self._folder, self._parts, self._spec, self._job = folder, parts, spec, job
        self._is_zarr = job.suffix == ZARR
        self.name = zarr_parts.GROUP if self._is_zarr else PARTS
        if self._is_zarr:
            folder.subfolder(self.name).close()
        self._unsynced = deque[PartInfo]()

    def _append(self, part: PartInfo) -> None:
        """Note that a part is to be synced."""
        self._unsynced.append(part)

    def sync(self) -> None:
        """Make the parts durable that were added since."""
        for _ in range(len(self._unsynced)):
            part = self._unsynced[0]
            with self._parts.open(part.name, write=True) as file:
                sync_file(file)
            self._unsynced.popleft()

    def finish(self) -> Totals:
        """Check that all parts are there, and make a dataset of them."""
        if not self.parts and not self._is_zarr:
            self.add(self._empty_part())
        stored = list[Trailer[PartInfo]]()
        for part in self.parts:
            with open_part(self._parts, part, check=False) as opened:
                stored.append(opened.trailer)
        totals = self.totals
        if self._is_zarr:
            self._finish_group(totals.rows)
        else:
            self._finish_files(stored)
        return totals

    def _finish_files(self, stored: list[Trailer[PartInfo]]) -> None:
        self.sync()
        self._folder.write_record(COMPLETE, DATASET, stored, durable=True)
        names = {found.value.name for found in stored}
        for name in self._parts.names():
            if name not in names:
                self._parts.remove(name)
        for found in stored:
            with self._parts.open(found.value.name, write=True) as file:
                file.truncate(found.data_bytes)
                sync_file(file)
            step("trailer removed")
        self._parts.sync()

    def _finish_group(self, rows: int) -> None:
        path = self._folder.path / zarr_parts.GROUP
        zarr_parts.remove_others(path, self._spec.dtypes, len(self.parts))
        zarr_parts.write_metadata(path, self._spec, rows)
        zarr_parts.sync(path)

    def _empty_part(self) -> PartInfo:
        """Write a part without rows: a dataset needs a file that names the columns."""
        job, file = self._job, PartFile(self._parts, 0)
        body = WRITERS[job.part_format](self._spec, file).finish()
        return file.complete(PartInfo(job.id, 0, 0, Position(), job.part_format, 0, 0, "", body))


def complete_parts(folder: Folder) -> list[Trailer[PartInfo]]:
    """Return the parts of a dataset that are about to be published."""
    try:
        return folder.read_record(COMPLETE, DATASET).value
    except (FileNotFoundError, FileFormatError):
        return []


def restore_trailers(folder: Folder, parts: Folder) -> None:
    """Put back the trailers of a dataset whose publication was interrupted."""
    for found in complete_parts(folder):
        facts = parts.stat(found.value.name)
        if facts is not None and facts.st_size == found.data_bytes:
            with parts.open(found.value.name, write=True) as file:
                file.seek(found.data_bytes)
                record.append_trailer(PART, found.value, file, found.data_checksum)
    folder.remove(COMPLETE)
