"""Run blocks by threads of this process: one reads, two query and write parts; the caller joins them."""

import queue
from collections.abc import Generator, Iterable

from raybox.casting.block_caster import BlockCaster
from raybox.casting.blocks import BlockRays, BlockSpan
from raybox.casting.job import SUMS, CastJob
from raybox.casting.part import PartInfo
from raybox.casting.scenes import AnyScene
from raybox.casting.threads import StageThreads, Stopped, ThreadSlots
from raybox.scene.scene import Scene

_CASTING = 2  # threads, each with a block in memory: one writes its part while the other queries


def queries_at_once(scene: AnyScene, job: CastJob, workers: int) -> int:
    """Return how many blocks are queried at the same time: two, by half the workers each.

    While the workers of one block wait for each other, between the steps of a query, those of the other run.
    A scene in parts opens its parts for one block at a time. Results for all primitives of a scene may be
    large: there is one at a time.
    """
    return 1 if workers == 1 or not isinstance(scene, Scene) or job.part_format == SUMS else _CASTING


class ThreadRunner:
    """Runs blocks in threads of this process."""

    def __init__(self, caster: BlockCaster, workers: int) -> None:
        self._caster, self._workers = caster, workers

    def run(self, job: CastJob, spans: Iterable[BlockSpan]) -> Generator[PartInfo, None, None]:
        """Write a part for each block of some spans: see `raybox.casting.runner.Runner`."""
        queries = queries_at_once(self._caster.scene, job, self._workers)
        return _Pipeline(self._caster, spans, queries, -(-self._workers // queries)).run()


class _Pipeline:
    """The threads of one run, and the queues between them.

    queries: at the same time; workers: of each.
    """

    def __init__(self, caster: BlockCaster, spans: Iterable[BlockSpan], queries: int, workers: int) -> None:
        self._caster, self._spans, self._workers = caster, spans, workers
        self._threads = StageThreads()
        self._slots = ThreadSlots(self._threads, queries)
        self._blocks: queue.Queue[BlockRays | None] = queue.Queue(1)
        self._parts: queue.Queue[PartInfo | None] = queue.Queue(1)
        self._errors: list[tuple[float, BaseException]] = []

    def run(self) -> Generator[PartInfo, None, None]:
        """Yield the parts; raise the error of the first block that failed, after all that were written."""
        threads, running = self._threads, _CASTING
        threads.start(self._read)
        for _ in range(_CASTING):
            threads.start(self._cast)
        try:
            while running:
                part = threads.get(self._parts)
                if part is None:
                    running -= 1
                else:
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
        """Read blocks, until one fails, here or later."""
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
            for _ in range(_CASTING):
                self._threads.put(self._blocks, None)

    def _cast(self) -> None:
        """Query blocks, and write their parts, until there are no more."""
        while (block := self._threads.get(self._blocks)) is not None:
            try:
                part = self._caster.write_part(block, self._workers, self._slots)
                self._threads.put(self._parts, part)
            except Stopped:
                raise
            except BaseException as error:  # blocks that have started are still written
                self._errors.append((block.number, error))
            del block
        self._threads.put(self._parts, None)
