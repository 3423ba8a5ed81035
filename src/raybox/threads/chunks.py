"""Run loops over many rays in chunks: on threads, with progress, stopped by Ctrl-C within a second.

Kernels release the GIL, so plain threads are enough, and safe where Numba's own threading layers
are not (several Python threads, forks). The result of a ray does not depend on its chunk.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from math import ceil
from typing import NamedTuple, Protocol, TypeVar

from raybox.compiler.cores import cores
from raybox.compiler.fork import fork_safe_lock
from raybox.errors import InvalidInput
from raybox.threads.pool import ThreadPool, acquire
from raybox.threads.progress import progress_bar

T = TypeVar("T")
Work = Callable[[int, int], T]
Advance = Callable[[int], object]
Done = list[tuple[int, T]]  # first rays of chunks, and their results

_FIRST = 1024  # rays of the first chunks, before their speed is measured
_LARGEST = 1 << 20
_SMALLEST = 16384
_SECONDS = 0.5  # intended time of a chunk, and so the longest wait after Ctrl-C
_GROWTH = 1024
_ALIGNMENT = 16  # chunks begin at multiples of it, so that packets of neighbours stay whole
_MIN_PER_THREAD = 1  # chunks
_LAST_SHARE = 0.75  # largest share of the remaining rays in one chunk; Python needs 0.1 to 0.3 ms a chunk


class Run(Protocol):
    """Call ``work(begin, end)`` over all of ``range(total)``; return the results in order.

    done: maps a result to the number of rays that are now finished; all of the chunk if not given.
    min_chunk: least number of rays in a chunk, except the first and the last; thousands if not given.
    """

    @property
    def threads(self) -> int:
        """Number of threads, the calling one included."""
        ...

    def __call__(  # noqa: D102
        self,
        work: Work[T],
        total: int,
        *,
        done: Callable[[T], int] | None = None,
        min_chunk: int | None = None,
    ) -> list[T]: ...


def check_workers(workers: int) -> int:
    """Return the number of threads that ``workers`` stands for."""
    if isinstance(workers, bool) or not hasattr(workers, "__index__") or (workers := int(workers)) == 0:
        raise InvalidInput(
            f"workers must be a whole number of threads, or -1 for all cores; got {workers!r}."
        )
    if workers < -1:
        raise InvalidInput(f"workers must be at least 1, or -1 for all cores; got {workers}.")
    return cores() if workers == -1 else workers


class _Chunks:
    """Ranges of a total for several threads, each sized to take _SECONDS at the last speed.

    Each thread has a contiguous share, so that its output stays in its core's cache. A thread whose share is
    finished continues at the far end of the share with most left. A chunk is at most _LAST_SHARE of what is
    left there: otherwise the other threads wait for the last one (of two, 4 to 8 % of the time).
    """

    def __init__(self, total: int, threads: int, min_chunk: int) -> None:
        self.size = min(_FIRST, min_chunk)
        self.min_chunk, self.last_share = min_chunk, _LAST_SHARE if threads > 1 else 1.0
        limit = -(-total // (_MIN_PER_THREAD * threads)) if threads > 1 else _LARGEST
        self.limit = max(min_chunk, -(-limit // self.size) * self.size)
        ends = [min(total, -(-total * k // (threads * self.size)) * self.size) for k in range(threads + 1)]
        self.left = [list(share) for share in pairwise(ends)]
        self.stopped = False
        self.lock = fork_safe_lock()

    def next_chunk(self, thread: int) -> tuple[int, int] | None:
        """Return the next range for a thread, removed from what is left; None at the end."""
        with self.lock:
            own = self.left[thread]
            share = own if own[0] < own[1] else max(self.left, key=lambda share: share[1] - share[0])
            begin, end = share
            if self.stopped or begin == end:
                return None
            largest = ceil(self.last_share * (end - begin) / self.min_chunk) * self.min_chunk
            size = min(self.size, self.limit, largest, end - begin)
            if share is own:
                share[0] = begin + size
                return begin, begin + size
            share[1] = max(begin, end - size - (end - size) % _ALIGNMENT)
            return share[1], end

    def stop(self) -> None:
        """Let all threads end after their present chunk."""
        self.stopped = True

    def adjust_size(self, rays: int, seconds: float) -> None:
        """Set the size of later chunks by the speed of one."""
        fitting = int(rays * _SECONDS / max(seconds, 1e-6))
        with self.lock:
            size = max(1, min(fitting, _GROWTH * self.size, _LARGEST))
            self.size = size if size < _ALIGNMENT else size - size % _ALIGNMENT


def run_chunks(
    work: Work[T], total: int, *, workers: int = -1, progress: bool = False, min_chunk: int | None = None
) -> list[T]:
    """Call ``work(begin, end)`` over all of ``range(total)``; return the results in order; see `Run`."""
    with chunk_runner(total, workers=workers, progress=progress) as run:
        return run(work, total, min_chunk=min_chunk)


@contextmanager
def chunk_runner(
    total: int, *, workers: int = -1, progress: bool = False, least: int = _FIRST, noun: str = "rays"
) -> Iterator[Run]:
    """Yield a function that runs chunk loops over so many rays, with threads for all of its calls.

    least: rays for each thread, at least; noun: of what is counted, for the bar.
    """
    threads = min(check_workers(workers), max(1, total // least))
    if total <= _FIRST and not progress:
        yield InlineRun()
        return
    with progress_bar(noun, total, shown=progress) as bar, _thread_pool(threads - 1) as pool:
        yield ThreadedRun(threads, pool, bar.update)


@contextmanager
def _thread_pool(workers: int) -> Iterator[ThreadPool]:
    pool = acquire(workers)
    try:
        yield pool
    finally:
        pool.release()


def uncounted(_result: object) -> int:
    """Return 0, as ``done`` of a `Run` whose rays are counted elsewhere."""
    return 0


class InlineRun(NamedTuple):
    """A `Run` of one chunk on the calling thread."""

    threads: int = 1

    def __call__(self, work: Work[T], total: int, **_options: object) -> list[T]:  # noqa: D102
        return [work(0, total)] if total else []


class ThreadedRun(NamedTuple):
    """A `Run` on a thread pool; ``advance`` moves the progress bar."""

    threads: int
    pool: ThreadPool
    advance: Advance

    def __call__(  # noqa: D102
        self,
        work: Work[T],
        total: int,
        *,
        done: Callable[[T], int] | None = None,
        min_chunk: int | None = None,
    ) -> list[T]:
        min_chunk = min_chunk or _SMALLEST
        threads = min(self.threads, max(1, total // min_chunk))
        chunks = _Chunks(total, threads, min_chunk)

        def drain(thread: int) -> Done[T]:
            """Run chunks until none are left."""
            results = []
            while (chunk := chunks.next_chunk(thread)) is not None:
                start = time.perf_counter()
                results.append((chunk[0], work(*chunk)))
                rays = chunk[1] - chunk[0]
                chunks.adjust_size(rays, time.perf_counter() - start)
                self.advance(done(results[-1][1]) if done else rays)
            return results

        results = drain(0) if threads == 1 else self.pool.run(drain, threads, chunks.stop)
        return [result for _, result in sorted(results, key=lambda item: item[0])]
