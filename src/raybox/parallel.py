"""Run loops over many rays in chunks: on threads, with progress, stopped by Ctrl-C within a second.

Kernels release the GIL, so plain threads are enough, and safe where Numba's own threading layers
are not (several Python threads, forks). Each ray's answer is its own: chunks change nothing.
"""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from math import ceil
from threading import Lock
from typing import Any, NamedTuple, Protocol, TypeVar

from raybox.errors import InvalidInput

T = TypeVar("T")
Work = Callable[[int, int], T]
Advance = Callable[[int], Any]
Done = list[tuple[int, T]]  # where chunks begin, and their answers

_FIRST = 1024  # rays of the first chunks, before their time is known
_LARGEST = 1 << 20
_SMALLEST = 16384
_SECONDS = 0.5  # what a chunk should take: Ctrl-C waits for one
_GROWTH = 1024
_MOST = 1024  # threads that help
_TOGETHER = 16  # chunks begin at multiples of it: neighbours in a picture that go as one stay together
_EACH = 1  # chunks a thread, at least,
_ENDING = 0.75  # each of no more than this share of what is left: between two, Python takes 0.1 to 0.3 ms


class Run(Protocol):
    """Call ``work(begin, end)`` over all of ``range(total)``; return the answers in order.

    done: of an answer, how many rays it is that are now done with; without it, all of a chunk.
    least: chunks are of no fewer, but for the first and the last; some thousands if not given.
    """

    @property
    def threads(self) -> int:
        """How many there are."""
        ...

    def __call__(  # noqa: D102
        self, work: Work[T], total: int, *, done: Callable[[T], int] | None = None, least: int | None = None
    ) -> list[T]: ...


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
    """Hand out ranges of a total, each about as long as _SECONDS allow at the rate seen so far.

    Each thread goes through a part of its own, so that what it writes stays in its core's cache; then it
    helps the one that is most behind, from the far end. No chunk is more than three quarters of what is left
    there, or one thread would wait for the other's last (of two, 4 to 8 % of the time).
    """

    def __init__(self, total: int, threads: int, least: int) -> None:
        self.size = min(_FIRST, least)
        self.least, self.ending = least, _ENDING if threads > 1 else 1.0
        share = -(-total // (_EACH * threads)) if threads > 1 else _LARGEST
        self.share = max(least, -(-share // self.size) * self.size)
        ends = [min(total, -(-total * k // (threads * self.size)) * self.size) for k in range(threads + 1)]
        self.left = [list(part) for part in pairwise(ends)]
        self.stopped = False
        self.lock = Lock()

    def take(self, thread: int) -> tuple[int, int] | None:
        with self.lock:
            own = self.left[thread]
            part = own if own[0] < own[1] else max(self.left, key=lambda part: part[1] - part[0])
            begin, end = part
            if self.stopped or begin == end:
                return None
            some = ceil(self.ending * (end - begin) / self.least) * self.least
            size = min(self.size, self.share, some, end - begin)
            if part is own:
                part[0] = begin + size
                return begin, begin + size
            part[1] = max(begin, end - size - (end - size) % _TOGETHER)
            return part[1], end

    def learn(self, rays: int, seconds: float) -> None:
        fitting = int(rays * _SECONDS / max(seconds, 1e-6))
        with self.lock:
            size = max(1, min(fitting, _GROWTH * self.size, _LARGEST))
            self.size = size if size < _TOGETHER else size - size % _TOGETHER


def run_chunks(work: Work[T], total: int, *, workers: int = -1, progress: bool = False) -> list[T]:
    """Call ``work(begin, end)`` over all of ``range(total)``; return the answers in order."""
    with team(total, workers=workers, progress=progress) as run:
        return run(work, total)


@contextmanager
def team(total: int, *, workers: int = -1, progress: bool = False) -> Iterator[Run]:
    """Lend threads for so many rays, as a function that has them do one piece of work after the other."""
    threads = min(check_workers(workers), max(1, total // _FIRST))
    if total <= _FIRST and not progress:
        yield AtOnce()
        return
    with bar(total, progress) as advance:
        yield Team(threads, advance)


def uncounted(_answer: Any) -> int:
    """Tell how many rays are now done with, where they were counted before: see `Run`."""
    return 0


class AtOnce(NamedTuple):
    """Nobody but who asks, who does all of it as one chunk."""

    threads: int = 1

    def __call__(self, work: Work[T], total: int, **_how: Any) -> list[T]:  # noqa: D102
        return [work(0, total)] if total else []


@cache
def _helpers() -> ThreadPoolExecutor:
    """Return threads that wait for work as long as the process lives: starting one took 0.3 ms."""
    return ThreadPoolExecutor(_MOST, "raybox")


if hasattr(os, "register_at_fork"):  # a child has no threads but the one that forked
    os.register_at_fork(after_in_child=_helpers.cache_clear)


class Team(NamedTuple):
    """So many threads, and whom to tell how far they are."""

    threads: int
    advance: Advance

    def __call__(  # noqa: D102
        self,
        work: Work[T],
        total: int,
        *,
        done: Callable[[T], int] | None = None,
        least: int | None = None,
    ) -> list[T]:
        least = least or _SMALLEST
        threads = min(self.threads, max(1, total // least))
        chunks = _Chunks(total, threads, least)

        def drain(thread: int) -> Done[T]:
            """Do chunks until there are none left."""
            answers = []
            while (chunk := chunks.take(thread)) is not None:
                start = time.perf_counter()
                answers.append((chunk[0], work(*chunk)))
                rays = chunk[1] - chunk[0]
                chunks.learn(rays, time.perf_counter() - start)
                self.advance(done(answers[-1][1]) if done else rays)
            return answers

        answers = drain(0) if threads == 1 else _share(chunks, drain, threads)
        return [answer for _, answer in sorted(answers, key=lambda item: item[0])]


def _share(chunks: _Chunks, drain: Callable[[int], Done[T]], threads: int) -> Done[T]:
    """Drain chunks here and in other threads; what goes wrong in one stops the others after their chunk."""

    def help_out(thread: int) -> Done[T]:
        try:
            return drain(thread)
        except BaseException:
            chunks.stopped = True
            raise

    helping = {_helpers().submit(help_out, thread) for thread in range(1, threads)}
    try:
        done = drain(0)
        helping = _begun(helping)
        while helping:
            # a wait without an end would keep Ctrl-C out on some systems
            finished, helping = wait(helping, timeout=0.1, return_when=FIRST_COMPLETED)
            for future in finished:
                done.extend(future.result())
    finally:
        chunks.stopped = True
        wait(_begun(helping))
    return done


def _begun(helping: set[Future[T]]) -> set[Future[T]]:
    """Call off those for whom there was no thread, or no time."""
    return {future for future in helping if not future.cancel()}


@contextmanager
def bar(total: int, shown: bool) -> Iterator[Advance]:
    """Show progress on stderr, once the work has taken half a second."""
    if not shown:
        yield lambda _rays: None
        return
    from tqdm import tqdm

    with tqdm(total=total, unit=" rays", unit_scale=True, delay=0.5) as shown_bar:
        yield shown_bar.update
