"""Run blocks by threads of this process: one reads, two query, one writes parts; the caller joins them."""

import queue
from collections.abc import Generator, Iterable
from threading import Lock
from typing import NamedTuple

from raybox.cast.block_caster import BlockCaster, PartWriter
from raybox.cast.blocks import BlockRays, BlockSpan
from raybox.cast.job import SUMS, CastJob
from raybox.cast.part import PartInfo
from raybox.cast.scenes import AnyScene
from raybox.cast.threads import StageThreads, Stopped
from raybox.queries.columns import ChunkResults
from raybox.scene.scene import Scene


class _Result(NamedTuple):
    """Results of some rays of a block; None after its last, and `failed` instead of these."""

    block: BlockRays
    results: ChunkResults | None
    failed: bool = False


def split_workers(scene: AnyScene, job: CastJob, workers: int) -> list[int]:
    """Return the workers of each block that is queried at the same time: two blocks, half the workers each.

    While the workers of one block wait for each other, between the steps of a query, those of the other run.
    A scene in parts opens its parts for one block at a time. Results for all primitives of a scene may be
    large: there is one at a time.
    """
    if workers == 1 or not isinstance(scene, Scene) or job.part_format == SUMS:
        return [workers]
    return [workers - workers // 2, workers // 2]


class ThreadRunner:
    """Runs blocks in threads of this process."""

    def __init__(self, caster: BlockCaster, workers: int) -> None:
        self._caster, self._workers = caster, workers

    def run(self, job: CastJob, spans: Iterable[BlockSpan]) -> Generator[PartInfo, None, None]:
        """Write a part for each block of some spans: see `raybox.cast.runner.Runner`."""
        return _Pipeline(self._caster, spans, split_workers(self._caster.scene, job, self._workers)).run()


class _Pipeline:
    """The threads of one run, and the queues between them."""

    def __init__(self, caster: BlockCaster, spans: Iterable[BlockSpan], workers: list[int]) -> None:
        self._caster, self._spans, self._workers = caster, spans, workers
        self._threads = StageThreads()
        self._blocks: queue.Queue[BlockRays | None] = queue.Queue(1)
        self._results: queue.Queue[_Result | None] = queue.Queue(1)
        self._parts: queue.Queue[PartInfo | None] = queue.Queue(1)
        self._lock, self._querying = Lock(), len(workers)
        self._errors: list[tuple[float, BaseException]] = []

    def run(self) -> Generator[PartInfo, None, None]:
        """Yield the parts; raise the error of the first block that failed, after all that were written."""
        threads = self._threads
        threads.start(self._read)
        for workers in self._workers:
            threads.start(self._query, workers)
        threads.start(self._write)
        try:
            while (part := threads.get(self._parts)) is not None:
                yield part
        except Stopped:
            pass
        finally:
            threads.stop.set()
            threads.join()
        if threads.failure:
            raise threads.failure
        if self._errors:
            raise min(self._errors, key=lambda failed: failed[0])[1]

    def _read(self) -> None:
        """Read blocks, until one fails, here or in a query."""
        try:
            for span in self._spans:
                for block in self._caster.read(span):
                    self._threads.put(self._blocks, block)
                    del block
                    if self._errors:
                        return
        except Stopped:
            raise
        except Exception as error:  # blocks before this one are still written
            self._errors.append((float("inf"), error))
        finally:
            for _ in self._workers:
                self._threads.put(self._blocks, None)

    def _query(self, workers: int) -> None:
        """Query blocks until there are no more."""
        while (block := self._threads.get(self._blocks)) is not None:
            failed = False
            try:
                for results in self._caster.results(block, workers):
                    self._threads.put(self._results, _Result(block, results))
                    del results
            except Stopped:
                raise
            except BaseException as error:
                self._errors.append((block.number, error))
                failed = True
            self._threads.put(self._results, _Result(block, None, failed))
            del block
        with self._lock:
            self._querying -= 1
            if not self._querying:
                self._threads.put(self._results, None)

    def _write(self) -> None:
        """Write results to the parts of their blocks, until there are no more."""
        writers: dict[int, PartWriter] = {}
        try:
            while (item := self._threads.get(self._results)) is not None:
                self._write_results(writers, item)
                del item
        finally:
            for writer in writers.values():
                writer.close()
        self._threads.put(self._parts, None)

    def _write_results(self, writers: dict[int, PartWriter], item: _Result) -> None:
        number = item.block.number
        if number not in writers:
            writers[number] = PartWriter(self._caster, item.block)
        if item.results is not None:
            writers[number].add(item.results)
            return
        writer = writers.pop(number)
        try:
            part = None if item.failed else writer.complete()
        finally:
            writer.close()
        if part is not None:
            self._threads.put(self._parts, part)
