"""The threads of a cast: one reads, two query (one is the caller's), one writes, one saves progress."""

import errno
import os
import queue
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from raybox.io.chunked import chunks
from raybox.io.chunked.carried_columns import CarriedColumns
from raybox.io.chunked.cast_arguments import Arguments
from raybox.io.chunked.chunks import ChunkBuffers, Position, RayFile
from raybox.io.chunked.journal import CastProgress
from raybox.io.chunked.object_columns import ObjectColumns
from raybox.io.chunked.partitioned import AnyScene
from raybox.io.chunked.stages import (
    OrderedQueries,
    ReadItem,
    ResultItem,
    StageThreads,
    Stopped,
    split_workers,
)
from raybox.io.chunked.writer_stage import Advance, WriterStage


class CastJob(NamedTuple):
    """A cast of a file of rays, or of several joined."""

    source: RayFile
    scene: AnyScene
    query: str
    size: int
    """Rays in a chunk."""
    workers: int
    threads: StageThreads
    progress: bool
    buffers: ChunkBuffers
    arguments: Arguments = {}  # noqa: RUF012
    """What the query takes beside rays, `where` among it."""
    carried: CarriedColumns | None = None
    """Columns of the file that the output gets, too."""
    objects: ObjectColumns | None = None
    """Objects, ids and labels."""


def run(job: CastJob, stage: WriterStage) -> CastProgress:
    """Cast the remaining chunks.

    Return the progress, or raise. The journal stores it in both cases.
    """
    threads, start = job.threads, stage.progress
    with progress(job.source, start.position.first, job.progress) as stage.advance:
        chunk_queue: queue.Queue[ReadItem] = queue.Queue(1)
        result_queue: queue.Queue[ResultItem | None] = queue.Queue(1)
        threads.start(_read, job, chunk_queue, start.position)
        threads.start(stage.save_progress, threads)
        writing = threads.start(stage.run, threads, result_queue)
        queries = OrderedQueries(threads, chunk_queue, result_queue)
        own_workers, *other_workers = split_workers(job.scene, job.query, job.workers)
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
