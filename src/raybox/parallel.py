"""Run a loop over many rays in chunks: on threads, with progress, stopped by Ctrl-C within a second.

Kernels release the GIL, so plain threads are enough, and safe where Numba's own threading layers
are not (several Python threads, forks). Each ray's answer is its own: chunks change nothing.
"""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

from raybox.errors import InvalidInput

T = TypeVar("T")
Work = Callable[[int, int], T]

_FIRST = 1024  # rays of the first chunks, before their time is known
_LARGEST = 1 << 20
_SMALLEST = 16384
_SECONDS = 0.5  # what a chunk should take: Ctrl-C waits for one
_GROWTH = 1024


def cores() -> int:
    """Return how many threads this process may run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_workers(workers: Any) -> int:
    """Return the number of threads that ``workers`` asks for."""
    if isinstance(workers, bool) or not hasattr(workers, "__index__") or (workers := int(workers)) == 0:
        raise InvalidInput(
            f"workers must be a whole number of threads, or -1 for all cores; got {workers!r}."
        )
    if workers < -1:
        raise InvalidInput(f"workers must be at least 1, or -1 for all cores; got {workers}.")
    return cores() if workers == -1 else workers


class _Chunks:
    """Hand out ranges of a total, each about as long as _SECONDS allow at the rate seen so far."""

    def __init__(self, total: int, threads: int) -> None:
        self.total = total
        # the larger a chunk, the faster its rays are answered: as large as leaves one to each thread
        rounds = -(-total // (threads * _LARGEST))
        self.share = max(_SMALLEST, -(-total // (threads * max(1, rounds))))
        self.next = 0
        self.size = _FIRST
        self.stopped = False
        self.lock = Lock()

    def take(self) -> tuple[int, int] | None:
        with self.lock:
            if self.stopped or self.next >= self.total:
                return None
            begin = self.next
            self.next = min(self.total, begin + min(self.size, self.share))
            return begin, self.next

    def learn(self, rays: int, seconds: float) -> None:
        fitting = int(rays * _SECONDS / max(seconds, 1e-6))
        with self.lock:
            self.size = max(1, min(fitting, _GROWTH * self.size, _LARGEST))


def run_chunks(work: Work[T], total: int, *, workers: int = -1, progress: bool = False) -> list[T]:
    """Call ``work(begin, end)`` over all of ``range(total)``; return the answers in order."""
    threads = check_workers(workers)
    if 0 < total <= _FIRST and not progress:
        return [work(0, total)]
    threads = min(threads, max(1, total // _FIRST))
    chunks = _Chunks(total, threads)
    with _bar(total, progress) as advance:
        if threads == 1:
            done = _drain(work, chunks, advance)
        else:
            done = _drain_on_threads(work, chunks, advance, threads)
    return [answer for _, answer in sorted(done, key=lambda item: item[0])]


def _drain(work: Work[T], chunks: _Chunks, advance: Callable[[int], Any]) -> list[tuple[int, T]]:
    """Do chunks until there are none left."""
    done = []
    while (chunk := chunks.take()) is not None:
        start = time.perf_counter()
        done.append((chunk[0], work(*chunk)))
        rays = chunk[1] - chunk[0]
        chunks.learn(rays, time.perf_counter() - start)
        advance(rays)
    return done


def _drain_on_threads(
    work: Work[T], chunks: _Chunks, advance: Callable[[int], Any], threads: int
) -> list[tuple[int, T]]:
    """Do chunks on several threads; whatever goes wrong in one stops the others after their chunk."""
    with ThreadPoolExecutor(threads, thread_name_prefix="raybox") as pool:
        waiting: set[Future[list[tuple[int, T]]]] = {
            pool.submit(_drain, work, chunks, advance) for _ in range(threads)
        }
        done: list[tuple[int, T]] = []
        try:
            while waiting:
                # a wait without an end would keep Ctrl-C out on some systems
                finished, waiting = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
                for future in finished:
                    done.extend(future.result())
        finally:
            chunks.stopped = True
    return done


@contextmanager
def _bar(total: int, shown: bool) -> Iterator[Callable[[int], Any]]:
    """Show progress on stderr, once the work has taken half a second."""
    if not shown:
        yield lambda _rays: None
        return
    from tqdm import tqdm

    with tqdm(total=total, unit=" rays", unit_scale=True, delay=0.5) as bar:
        yield bar.update
