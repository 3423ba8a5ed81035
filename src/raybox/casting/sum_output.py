"""Sums of all parts, from which the rows of the output are written at the end.

The sums so far are stored as ``sums``, with a trailer that lists the parts in them: it is replaced at once,
and the parts are removed then.
"""

import time
from collections.abc import Callable

import numpy as np

from raybox.casting.append_file import sync_file
from raybox.casting.blocks import Position
from raybox.casting.job import CastJob
from raybox.casting.output import Output, Totals
from raybox.casting.part import PART, PartFile, PartInfo, open_part
from raybox.casting.result_columns import OutputSpec
from raybox.casting.steps import step
from raybox.casting.sums import SumTotal
from raybox.casting.writers import WRITERS
from raybox.queries.columns import Columns
from raybox.store import record
from raybox.store.checksum import Checksum, as_bytes
from raybox.store.folder import TEMPORARY, Folder
from raybox.store.record import BrokenRecord, RecordKind

SUMS = "sums"
_SHARE = 20.0  # how many times as long as they took to store, sums are not stored again
_ROWS = 1 << 20  # rows that are passed to a writer at once

STORED = RecordKind("sums", 1, lambda value: [PART.parse(part) for part in value])


def summed_parts(folder: Folder) -> list[PartInfo]:
    """Return the parts in the sums that are stored."""
    try:
        with folder.open(SUMS) as file:
            return record.read_trailer(STORED, file, check=False).value
    except (FileNotFoundError, BrokenRecord):
        return []


class SumOutput(Output):
    """Adds up parts, in order; they are listed and removed as those of a joined file."""

    def __init__(
        self,
        folder: Folder,
        parts: Folder,
        total: SumTotal,
        make_output: Callable[[], Output],
        job: CastJob,
        spec: OutputSpec,
    ) -> None:
        self._folder, self._parts, self._total = folder, parts, total
        self._make_output, self._job, self._spec = make_output, job, spec
        super().__init__(self._load())
        self._stored, self._next_store = len(self.parts), 0.0

    def _load(self) -> list[PartInfo]:
        """Read the sums so far; return the parts in them."""
        try:
            with self._folder.open(SUMS) as file:
                found = record.read_trailer(STORED, file, check=True).value
                self._total.load(file)
        except (FileNotFoundError, BrokenRecord):
            return []
        return found

    def cut(self, count: int) -> None:
        """Forget all parts, unless none is to be forgotten: sums cannot be taken apart."""
        if count < len(self.parts):
            self.parts, self._stored = [], 0
            self._total.clear()

    def add(self, part: PartInfo) -> None:
        """Add a part, and store the sums if that is worth its time."""
        super().add(part)
        if len(self.parts) > self._stored and time.monotonic() >= self._next_store:
            self._store()

    def _append(self, part: PartInfo) -> None:
        """Add the sums of a part."""
        with open_part(self._parts, part, check=True) as opened:
            self._total.add(opened.file)
        step("part joined")

    def sync(self) -> None:
        """Do nothing: sums are stored between two parts."""

    def _store(self) -> None:
        """Store the sums, and remove the parts in them."""
        started, new, checksum = time.monotonic(), f"{TEMPORARY}{SUMS}", Checksum()
        with self._folder.create(new) as file:
            for data in self._total.data():
                checksum.update(data)
                file.write(as_bytes(data))
            record.append_trailer(STORED, self.parts, file, checksum.text())
            file.flush()
            sync_file(file)
        step("prefix synced")
        self._folder.rename(new, SUMS)
        self._folder.sync()
        step("prefix stored")
        for part in self.parts[self._stored :]:
            self._parts.remove(part.name)
            step("part removed")
        self._stored = len(self.parts)
        now = time.monotonic()
        self._next_store = now + max(0.25, _SHARE * (now - started))

    def finish(self) -> Totals:
        """Write a row for each primitive; of the totals, hits are primitives whose sums are not zero."""
        self._store()
        output, rays = self._make_output(), sum(part.rays for part in self.parts)
        self.name = output.name
        try:
            output.cut(0)
            output.add(self._rows_part())
            output.sync()
            return output.finish()._replace(rays=rays)
        finally:
            output.close()

    def _rows_part(self) -> PartInfo:
        """Write the rows of all primitives as a part."""
        job, names = self._job, [name for name in self._spec.dtypes if name not in ("index", "id")]
        file, size, reached = PartFile(self._parts, 0), self._total.primitives, 0
        writer = WRITERS[job.rows_format](self._spec, file)
        for begin in range(0, size, _ROWS):
            some = self._total.floats(begin, begin + _ROWS)
            rows: Columns = {"index": range(begin, begin + len(some))}
            writer.add(rows | {name: some[:, k] for k, name in enumerate(names)})
            reached += int(np.count_nonzero(some.any(axis=1)))
        body = writer.finish()
        return file.complete(PartInfo(job.id, 0, 0, Position(), job.rows_format, size, reached, "", body))
