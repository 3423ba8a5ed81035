"""The threads of a cast: one reads, two query (one is the caller's), one writes, one saves progress."""

import errno
import os
import queue
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, NamedTuple

from raybox.io.chunked import chunks
from raybox.io.chunked.chunks import Chunk, ChunkBuffers, Position, RayFile
from raybox.io.chunked.journal import CastProgress, Journal
from raybox.io.chunked.partitioned import AnyScene
from raybox.io.chunked.stages import (
    OrderedQueries,
    ReadItem,
    ResultItem,
    StageThreads,
    Stopped,
    split_workers,
)
from raybox.io.chunked.writers import Writer
from raybox.queries.columns import Scratch

SECONDS = 0.25  # between two writes of the journal, so that little is left to sync at the end

Advance = Callable[[int, float | None], None]


class CastJob(NamedTuple):
    """A cast of one file of rays."""

    source: RayFile
    scene: AnyScene
    query: str
    size: int
    """Rays in a chunk."""
    workers: int
    threads: StageThreads
    progress: bool
    buffers: ChunkBuffers
    arguments: dict[str, Any] = {}  # noqa: RUF012
    """What the query takes beside rays."""


def run(job: CastJob, writer: Writer, journal: Journal | None = None) -> CastProgress:
    """Cast the remaining chunks.

    Return the progress, or raise. The journal stores it in both cases.
    """
    threads, start = job.threads, journal.progress if journal else CastProgress()
    with progress(job.source, start.position.first, job.progress) as advance:
        stage = _WriterStage(writer, journal, advance, start, job.buffers)
        chunk_queue: queue.Queue[ReadItem] = queue.Queue(1)
        result_queue: queue.Queue[ResultItem | None] = queue.Queue(1)
        threads.start(_read, job, chunk_queue, start.position)
        threads.start(stage.save_progress, threads)
        writing = threads.start(stage.run, threads, result_queue)
        queries = OrderedQueries(threads, chunk_queue, result_queue)
        own_workers, *other_workers = split_workers(job.scene, job.workers)
        try:
            for workers in other_workers:
                threads.start(queries.run, job.scene, job.query, workers, job.arguments)
            with suppress(Stopped):
                queries.run(job.scene, job.query, own_workers, job.arguments)
                writing.join()  # the reader may still wait to pass a chunk on
        finally:
            threads.stop.set()
            threads.join()
            stage.close(threads.failure is not None)
    error = queries.error or threads.failure
    if error:
        raise error
    threads.stop.clear()
    return stage.progress


def _read(job: CastJob, chunk_queue: "queue.Queue[ReadItem]", start: Position) -> None:
    """Read chunks; an error follows the chunks before it, whose results are still written."""
    error: Exception | None = None
    try:
        for chunk in chunks.read(job.source, job.size, start, job.buffers):
            job.threads.put(chunk_queue, chunk)
            del chunk
    except Stopped:
        raise
    except Exception as failure:
        error = failure
    job.threads.put(chunk_queue, error)


class _WriterStage:
    """Appends results, and saves the progress."""

    def __init__(
        self,
        writer: Writer,
        journal: Journal | None,
        advance: Advance,
        start: CastProgress,
        buffers: ChunkBuffers,
    ) -> None:
        self._writer, self._journal, self._advance, self._buffers = writer, journal, advance, buffers
        self.progress = start
        self._rows, self._hit_count = start.rows, start.hit_count
        self._saved_at = time.monotonic()
        self._to_save: queue.Queue[CastProgress | None] = queue.Queue(1)
        self._scratch: Scratch = {}

    def run(self, threads: StageThreads, result_queue: "queue.Queue[ResultItem | None]") -> None:
        """Write results until there are no more."""
        while (item := threads.get(result_queue)) is not None:
            results, chunk = item
            columns = results.columns(self._scratch)
            self._writer.add(columns)
            self._rows, self._hit_count = self._rows + len(columns["ray"]), self._hit_count + results.hit
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
        self._advance(rays, chunk.fraction)

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


@contextmanager
def progress(source: RayFile, done: int, shown: bool) -> Iterator[Advance]:
    """Show a bar on stderr with the rate and the time left, after half a second of work."""
    if not shown:
        yield lambda _rays, _fraction: None
        return
    from tqdm import tqdm

    with tqdm(total=source.total, initial=done, unit=" rays", unit_scale=True, delay=0.5) as bar:

        def advance(rays: int, fraction: float | None) -> None:
            if fraction:  # the number of rays is not known: it is estimated from the bytes read
                bar.total = max(bar.n + rays, round((bar.n + rays) / fraction))
            bar.update(rays)

        yield advance


def reason(error: OSError) -> str:
    """Return why a file cannot be written."""
    return os.strerror(error.errno) if error.errno else str(error)


def way_out(error: OSError) -> str:
    """Return what to do about a file that cannot be written."""
    if error.errno == errno.ENOMEM:
        return "free memory, or give a smaller chunk"
    return "make room, or check its permissions"
