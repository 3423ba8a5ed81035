"""Run blocks by threads of this process: one reads, two query and write parts."""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import BoundedSemaphore, Event
from typing import NamedTuple, Protocol

from raybox.casting.blocks import BlockSpan
from raybox.casting.caster import BlockCaster, ReadBlock
from raybox.casting.job import SUMS
from raybox.casting.part import BlockFacts, CastPart, PartFolders
from raybox.casting.sums import Sums, total_of

_CASTING = 2  # threads, each with a block in memory: one writes its part while the other queries
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
    """Runs blocks in threads of this process, and yields them in order.

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
        blocks = (block for span in spans for block in caster.read(span))
        if caster.job.part_format == SUMS:
            writer = SumWriter(caster, folders, self._workers, extends=self._extends, once=self._once)
            return _in_order(blocks, 1, writer.add, writer.finish)
        queries = 1 if self._workers == 1 else _CASTING
        steps, workers = _Steps(queries), -(-self._workers // queries)
        cast = lambda block: caster.write_part(block, folders, workers, steps)  # noqa: E731
        return _in_order(blocks, _CASTING, cast, stop=steps.stop)


def _in_order(
    blocks: Iterator[ReadBlock],
    threads: int,
    cast: Callable[[ReadBlock], CastPart | None],
    finish: Callable[[], CastPart | None] = lambda: None,
    stop: Callable[[], None] = lambda: None,
) -> Generator[Done, None, None]:
    """Yield what is done of blocks, in their order; raise the first error after those that have started.

    cast: writes the part of a block, or adds its sums; finish: writes what is left at the end; stop: ends
    `cast` early, in all threads.
    """
    running, failures = deque[Future[Done | None]](), list[Exception]()

    def step(read: Future[ReadBlock | None]) -> Done | None:
        block = read.result()
        return block and Done(block.facts.size, block.block.fraction, cast(block))

    with (
        ThreadPoolExecutor(1, "raybox-read") as reading,
        ThreadPoolExecutor(threads, "raybox-cast") as casting,
    ):

        def submit() -> None:
            running.append(casting.submit(step, reading.submit(next, blocks, None)))

        try:
            for _ in range(threads + 1):
                submit()
            while running:
                try:
                    done = running.popleft().result()
                except Exception as error:
                    failures.append(error)
                    continue
                if done is not None:  # else there are no more blocks
                    if not failures:
                        submit()
                    yield done
            if (part := finish()) is not None:
                yield Done(0, None, part)
        finally:
            stop()
            for pool in (reading, casting):
                pool.shutdown(wait=False, cancel_futures=True)
    if failures:
        raise failures[0]


class _Stopped(Exception):
    """The caller has stopped the threads."""


class _Steps:
    """A ``with`` block that some threads at a time enter, and none once it is stopped."""

    def __init__(self, threads: int) -> None:
        self._free, self._stopped = BoundedSemaphore(threads), Event()

    def stop(self) -> None:
        """Let no thread enter any more: `_Stopped` is raised there."""
        self._stopped.set()

    def __enter__(self) -> None:
        self._free.acquire()
        if self._stopped.is_set():
            self._free.release()
            raise _Stopped

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
        is_next = covered and block.facts.number == covered[-1].number + 1
        if covered and (is_alone or not is_next or not self._total.is_whole):
            done = self.finish()
            self._parts, self._blocks = [], []
        if not self._covered:
            self._begin(block.facts.number)
        caster.add_to(self._total, block, self._workers)
        self._blocks.append(block.facts)
        return self.finish() if time.monotonic() >= self._next_write else done

    def _begin(self, number: int) -> None:
        """Begin with no sums, or with those of all blocks before, if a part covers them."""
        self._total = Sums(self._job)
        for part in self._folders.listed() if self._extends else ():
            if (part.number, part.end) == (0, number) and part.job == self._caster.job.digest:
                self._total, self._parts = total_of(self._job, self._folders, [part]), [part]

    def finish(self) -> CastPart | None:
        """Write a part of all blocks so far, in place of those that it covers; None without new blocks."""
        if not self._blocks or not self._total.is_whole:
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
