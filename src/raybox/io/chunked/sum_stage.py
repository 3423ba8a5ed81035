"""The last stage of a cast whose output has a row for each primitive: adds up the results of all chunks.

The sums are stored as a file beside the journal, ``sums-N`` after the first N rays: the journal that names N
is written once that file is on the disk, and files of other N are then removed.
"""

import os
import time
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np

from raybox.io import checksums, own_files
from raybox.io.chunked import output_folder, writer_stage
from raybox.io.chunked.chunks import Chunk, ChunkBuffers
from raybox.io.chunked.journal import CastProgress, Journal
from raybox.io.chunked.part_files import PartFile, PartFiles, sync_file
from raybox.io.chunked.result_columns import Dtypes
from raybox.io.chunked.writer_stage import WriterStage
from raybox.io.chunked.writers import Writer
from raybox.queries.columns import Columns
from raybox.validation import Floats

_SHARE = 20.0  # how many times as long as they took to store, sums are not stored again
_ROWS = 1 << 20  # rows that are passed to a writer at once
_SUMS = "sums"


class Sums:
    """The sums of all primitives over the chunks so far, a column for each channel."""

    def __init__(self, dtypes: Dtypes, primitives: int) -> None:
        names = [name for name in dtypes if name not in ("index", "id")]
        self._sums: Floats = np.zeros((len(names), primitives))
        self._names = names
        self.files = PartFiles()

    def add(self, columns: Columns) -> None:
        """Add the sums of a chunk."""
        with np.errstate(invalid="ignore", over="ignore"):
            for k, name in enumerate(self._names):
                self._sums[k] += columns[name]

    def finish(self, rows: int) -> None:
        """Do nothing: `write` writes the output."""

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def store(self, path: Path) -> int:
        """Write the sums to a file, so that they survive a crash of the machine; return its checksum."""
        with own_files.open_new(path) as file:
            file.write(self._sums.reshape(-1).view(np.uint8).data)
            file.flush()
            sync_file(file.fileno())
        return checksums.of_bytes(self._sums)

    def load(self, path: Path, checksum: int | None) -> None:
        """Read the sums of a file; raise `RayboxError` unless it is whole."""
        file = PartFile(path, self._sums.nbytes)
        file.close()
        self._sums = np.fromfile(path, np.float64).reshape(self._sums.shape)
        if checksums.of_bytes(self._sums) != checksum:
            raise file.damaged()

    def write(self, writer: Writer) -> tuple[int, int]:
        """Append a row for each primitive; return how many, and how many of them are not zero."""
        size, reached = self._sums.shape[1], 0
        for begin in range(0, size, _ROWS):
            some = self._sums[:, begin : begin + _ROWS]
            rows: Columns = {"index": range(begin, begin + some.shape[1])}
            writer.add(rows | dict(zip(self._names, some, strict=True)))
            reached += int(np.count_nonzero(some.any(axis=0)))
        return size, reached


class SumStage(WriterStage):
    """Adds up results, and stores the sums from time to time."""

    def __init__(self, sums: Sums, journal: Journal | None, buffers: ChunkBuffers) -> None:
        super().__init__(sums, journal, buffers)
        self._sums, self._pause = sums, writer_stage.SECONDS
        self._is_stored = True
        if journal and journal.progress.position.first:
            sums.load(self._path(journal), journal.progress.checksums.get(_SUMS))

    def _end(self, chunk: Chunk) -> None:
        """Count a chunk as done."""
        rays = chunk.end.first - self.progress.position.first
        self.progress, self._is_stored = CastProgress(chunk.end), False
        if time.monotonic() - self._saved_at >= self._pause:
            self._save(self.progress)
        self._buffers.release(chunk.buffers)
        self.advance(rays, chunk.fraction)

    def _save(self, progress: CastProgress) -> None:
        """Store the sums, then the journal that names them."""
        if self._journal is None or self._is_stored:
            return
        started, folder = time.monotonic(), self._journal.folder
        path = folder / f"{_SUMS}-{progress.position.first}"
        checksum = self._sums.store(path)
        output_folder.sync_folder(folder)
        self._journal.save(progress._replace(checksums={_SUMS: checksum}))
        self.progress, self._is_stored = self._journal.progress, True
        for other in folder.glob(f"{_SUMS}-*"):
            if other != path:
                os.unlink(other)
        self._saved_at = time.monotonic()
        self._pause = max(writer_stage.SECONDS, _SHARE * (self._saved_at - started))

    def close(self, failed: bool) -> None:
        """Store the sums of all chunks so far."""
        # if that fails, too, the last journal is valid
        with suppress(OSError) if failed else nullcontext():
            self._save(self.progress)

    @staticmethod
    def _path(journal: Journal) -> Path:
        return journal.folder / f"{_SUMS}-{journal.progress.position.first}"
