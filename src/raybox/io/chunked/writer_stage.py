"""The last stage of a cast: appends the results of chunks, and saves the progress."""

import queue
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress

from raybox.io.chunked.carried_columns import CarriedReader
from raybox.io.chunked.chunks import Chunk, ChunkBuffers
from raybox.io.chunked.journal import CastProgress, Journal
from raybox.io.chunked.object_columns import ObjectColumns
from raybox.io.chunked.stages import ResultItem, StageThreads
from raybox.io.chunked.writers import Writer
from raybox.queries.columns import Scratch, row_count

SECONDS = 0.25  # between two writes of the journal, so that little is left to sync at the end

Advance = Callable[[int, float | None], None]
"""(rays that are done, fraction of the file that is)"""


class WriterStage:
    """Appends results, and saves the progress."""

    def __init__(
        self,
        writer: Writer,
        journal: Journal | None,
        buffers: ChunkBuffers,
        carried: CarriedReader | None = None,
        objects: ObjectColumns | None = None,
    ) -> None:
        self._writer, self._journal, self._buffers = writer, journal, buffers
        self._carried, self._objects = carried, objects
        self.advance: Advance = lambda _rays, _fraction: None
        self.progress = journal.progress if journal else CastProgress()
        self._rows, self._hit_count = self.progress.rows, self.progress.hit_count
        self._saved_at = time.monotonic()
        self._to_save: queue.Queue[CastProgress | None] = queue.Queue(1)
        self._scratch: Scratch = {}

    def run(self, threads: StageThreads, result_queue: "queue.Queue[ResultItem | None]") -> None:
        """Write results until there are no more."""
        while (item := threads.get(result_queue)) is not None:
            results, chunk = item
            columns = results.columns(self._scratch)
            if self._objects:
                columns = self._objects.with_rows(columns)
            if self._carried and row_count(columns):
                columns = columns | self._carried.rows(columns)
            self._writer.add(columns)
            self._rows, self._hit_count = self._rows + row_count(columns), self._hit_count + results.hit
            del results, columns
            if chunk is not None:
                self._end(chunk)
            del item, chunk
        threads.put(self._to_save, None)

    def _end(self, chunk: Chunk) -> None:
        """Count a chunk as done."""
        files = self._writer.files
        rays = chunk.end.first - self.progress.position.first
        self.progress = CastProgress(
            chunk.end, self._rows, self._hit_count, files.lengths(), files.checksums()
        )
        if time.monotonic() - self._saved_at >= SECONDS and self._to_save.empty():
            self._to_save.put(self.progress)
        self._buffers.release(chunk.buffers)
        self.advance(rays, chunk.fraction)

    def save_progress(self, threads: StageThreads) -> None:
        """Save the progress from time to time.

        The other threads do not wait for the disk.
        """
        while (progress := threads.get(self._to_save)) is not None:
            self._save(progress)

    def _save(self, progress: CastProgress) -> None:
        if self._journal is None:
            return
        for file in self._writer.files.values():
            file.sync()
        self._journal.save(progress)
        self._saved_at = time.monotonic()

    def close(self, failed: bool) -> None:
        """Truncate the files to complete chunks, which frees space on a full disk; save the progress."""
        if self._journal is None or not self.progress.position.first:
            return
        for name, file in self._writer.files.items():
            file.truncate(self.progress.lengths[name])
        # if that cannot be saved either, the last journal is valid
        with suppress(OSError) if failed else nullcontext():
            self._save(self.progress)
