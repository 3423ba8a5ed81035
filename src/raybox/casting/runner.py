"""Run blocks by threads of this process: one reads, two query and write parts."""

import queue
import time
from collections.abc import Callable, Generator, Iterable
from threading import BoundedSemaphore, Event, Thread
from typing import NamedTuple, Protocol, TypeVar

from raybox.casting.blocks import BlockSpan
from raybox.casting.caster import BlockCaster, ReadBlock
from raybox.casting.job import SUMS
from raybox.casting.part import BlockFacts, CastPart, PartFolders
from raybox.casting.sums import Sums, total_of

T = TypeVar("T")

_CASTING = 2  # threads, each with a block in memory: one writes its part while the other queries
_WAIT = 0.1  # seconds between checks for a stop while a thread waits
_SHARE = 20.0  # how many times as long as they took to write, sums are not written again
_SECONDS = 0.25  # at least, between two parts of sums


class Done(NamedTuple):
    """A step of a run."""

    rays: int
    """That were cast since the last one."""
    fraction: float | None
    """Of the file that is read; None: the number of its rays is known."""
    part: CastPart | None
    """That was written; None: sums of more blocks are added to it first."""


class Runner(Protocol):
    """Casts blocks: the threads of this process, or a cluster."""

    def run(self, folders: PartFolders, spans: Iterable[BlockSpan]) -> Generator[Done, None, None]:
        """Write parts for all blocks of some spans; yield after each block, or each part, in any order.

        A span without a count ends with the file. If a block fails, those that have started are still
        written and yielded; then the error of the first is raised. Closing the iterator stops the runner.
        """
        ...


class ThreadRunner:
    """Runs blocks in threads of this process.

    Two blocks are queried at the same time, by half the workers each: while the workers of one wait for each
    other, between the steps of a query, those of the other run. Sums are added one block after the other;
    extends, once: see `SumWriter`.
    """

    def __init__(
        self, caster: BlockCaster, workers: int, *, extends: bool = False, once: bool = False
    ) -> None:
        self._caster, self._workers, self._extends, self._once = caster, workers, extends, once

    def run(self, folders: PartFolders, spans: Iterable[BlockSpan]) -> Generator[Done, None, None]:
        """Write parts for all blocks of some spans: see `Runner`."""
        caster = self._caster
        if caster.job.part_format == SUMS:
            writer = SumWriter(caster, folders, self._workers, extends=self._extends, once=self._once)
            return _Pipeline(caster, spans, 1).run(writer.add, writer.finish)
        queries = 1 if self._workers == 1 else _CASTING
        pipeline = _Pipeline(caster, spans, _CASTING)
        slots, workers = _Slots(pipeline, queries), -(-self._workers // queries)
        return pipeline.run(lambda block: caster.write_part(block, folders, workers, slots), lambda: None)


class _Stopped(Exception):
    """Another thread has failed, or the caller has stopped the threads."""


class _Pipeline:
    """The threads of one run, and the queues between them."""

    def __init__(self, caster: BlockCaster, spans: Iterable[BlockSpan], threads: int) -> None:
        self._caster, self._spans, self._count = caster, spans, threads
        self._blocks: queue.Queue[ReadBlock | None] = queue.Queue(1)
        self._done: queue.Queue[Done | None] = queue.Queue(1)
        self._errors: list[tuple[float, BaseException]] = []
        self._stop, self._failure = Event(), list[BaseException]()

    def run(
        self, cast: Callable[[ReadBlock], CastPart | None], finish: Callable[[], CastPart | None]
    ) -> Generator[Done, None, None]:
        """Yield what is done; raise the error of the first block that failed, after all that were written.

        cast: writes the part of a block, or adds its sums; finish: writes what is left at the end.
        """
        works = [self._read, *[lambda: self._cast(cast)] * self._count]
        threads = [Thread(target=self._guarded, args=(w,), name="raybox-cast", daemon=True) for w in works]
        for thread in threads:
            thread.start()
        running = self._count
        try:
            while running:
                done = self.wait(self._done.get)
                if done is None:
                    running -= 1
                else:
                    yield done
            if (part := finish()) is not None:
                yield Done(0, None, part)
        except _Stopped:
            pass
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()
        for error in self._failure:
            raise error
        if self._errors:
            raise min(self._errors, key=lambda failed: failed[0])[1]

    def _guarded(self, work: Callable[[], None]) -> None:
        """Run a thread's work; its failure stops all threads."""
        try:
            work()
        except _Stopped:
            pass
        except BaseException as error:
            self._failure.append(error)
            self._stop.set()

    def wait(self, step: Callable[..., T]) -> T:
        """Return what a step returns that may have to wait; raise `_Stopped` once all threads are to stop."""
        while not self._stop.is_set():
            try:
                return step(timeout=_WAIT)
            except (queue.Empty, queue.Full):
                continue
        raise _Stopped

    def _put(self, items: "queue.Queue[T]", item: T) -> None:
        self.wait(lambda timeout: items.put(item, timeout=timeout))

    def _read(self) -> None:
        """Read blocks, until one fails, here or later."""
        try:
            for span in self._spans:
                for block in self._caster.read(span):
                    self._put(self._blocks, block)
                    del block
                    if self._errors:
                        return
        except _Stopped:
            raise
        except Exception as error:  # blocks before this one are still written
            self._errors.append((float("inf"), error))
        finally:
            for _ in range(self._count):
                self._put(self._blocks, None)

    def _cast(self, cast: Callable[[ReadBlock], CastPart | None]) -> None:
        """Query blocks, and write their parts, until there are no more."""
        while (block := self.wait(self._blocks.get)) is not None:
            try:
                done = Done(block.facts.size, block.block.fraction, cast(block))
                self._put(self._done, done)
            except _Stopped:
                raise
            except BaseException as error:  # blocks that have started are still written
                self._errors.append((block.facts.number, error))
            del block
        self._put(self._done, None)


class _Slots:
    """Lets so many threads at a time into a ``with`` block; all stop with the pipeline."""

    def __init__(self, pipeline: _Pipeline, count: int) -> None:
        self._pipeline, self._free = pipeline, BoundedSemaphore(count)

    def __enter__(self) -> None:
        self._pipeline.wait(self._acquire)

    def _acquire(self, timeout: float) -> None:
        if not self._free.acquire(timeout=timeout):
            raise queue.Empty

    def __exit__(self, *_: object) -> None:
        self._free.release()


class SumWriter:
    """Adds up the terms of blocks that follow one another, and writes parts of them from time to time.

    A longer part replaces those that it covers. extends: continue the part of all blocks before the first
    one; no other process may use it meanwhile. once: write no part before the last of such blocks.
    """

    def __init__(
        self, caster: BlockCaster, folders: PartFolders, workers: int, *, extends: bool, once: bool
    ) -> None:
        assert caster.sums is not None
        self._caster, self._folders, self._workers, self._extends = caster, folders, workers, extends
        self._job = caster.sums
        self._total, self._parts, self._blocks = Sums(self._job), list[CastPart](), list[BlockFacts]()
        self._seconds = float("inf") if once else _SECONDS
        self._next_write = time.monotonic() + self._seconds

    @property
    def _covered(self) -> list[BlockFacts]:
        """The blocks in the sums so far."""
        return [*(block for part in self._parts for block in part.blocks), *self._blocks]

    def add(self, block: ReadBlock) -> CastPart | None:
        """Add a block; return the part that was written, if one was."""
        caster, done, covered = self._caster, None, self._covered
        is_alone = not self._job.shifts and covered and covered[0].number > 0  # order counts for floats
        if covered and (is_alone or block.facts.number != covered[-1].number + 1):
            done = self.finish()
            self._total, self._parts, self._blocks = Sums(self._job), [], []
        if not self._covered and self._extends:
            self._begin(block.facts.number)
        caster.add_to(self._total, block, self._workers)
        self._blocks.append(block.facts)
        return self.finish() if time.monotonic() >= self._next_write else done

    def _begin(self, number: int) -> None:
        """Begin with the sums of the blocks before the first one, if a part covers all of them."""
        for part in self._folders.listed():
            if (part.number, part.end) == (0, number) and part.job == self._caster.job.digest:
                self._total, self._parts = total_of(self._job, self._folders, [part]), [part]

    def finish(self) -> CastPart | None:
        """Write a part of all blocks so far, in place of those that it covers; None without new blocks."""
        if not self._blocks:
            return None
        started = time.monotonic()
        self._caster.check_scene()
        part = self._total.write(self._caster.job, self._folders, self._covered)
        for old in self._parts:
            self._folders.remove(old)
        self._parts, self._blocks = [part], []
        now = time.monotonic()
        self._next_write = now + max(self._seconds, _SHARE * (now - started))
        return part
