"""Run loops over many rays in chunks: on threads, with progress, stopped by Ctrl-C within a second.

Kernels release the GIL, so plain threads are enough, and safe where Numba's own threading layers
are not (several Python threads, forks). Each ray's answer is its own: chunks change nothing.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from math import ceil
from threading import Lock
from typing import Any, NamedTuple, Protocol, TypeVar

from raybox import helpers
from raybox.errors import InvalidInput
from raybox.placing import cores

T = TypeVar("T")
Work = Callable[[int, int], T]
Advance = Callable[[int], Any]
Done = list[tuple[int, T]]  # where chunks begin, and their answers

_FIRST = 1024  # rays of the first chunks, before their time is known
_LARGEST = 1 << 20
_SMALLEST = 16384
_SECONDS = 0.5  # what a chunk should take: Ctrl-C waits for one
_GROWTH = 1024
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

    def stop(self) -> None:
        self.stopped = True

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
    with bar(total, progress) as advance, _crew(threads - 1) as crew:
        yield Team(threads, crew, advance)


@contextmanager
def _crew(number: int) -> Iterator[helpers.Crew]:
    crew = helpers.lend(number)
    try:
        yield crew
    finally:
        crew.let_go()


def uncounted(_answer: Any) -> int:
    """Tell how many rays are now done with, where they were counted before: see `Run`."""
    return 0


class AtOnce(NamedTuple):
    """Nobody but who asks, who does all of it as one chunk."""

    threads: int = 1

    def __call__(self, work: Work[T], total: int, **_how: Any) -> list[T]:  # noqa: D102
        return [work(0, total)] if total else []


class Team(NamedTuple):
    """So many threads, those of them that help, and whom to tell how far they are."""

    threads: int
    crew: helpers.Crew
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

        answers = drain(0) if threads == 1 else self.crew.share(drain, threads, chunks.stop)
        return [answer for _, answer in sorted(answers, key=lambda item: item[0])]


@contextmanager
def bar(total: int, shown: bool) -> Iterator[Advance]:
    """Show progress on stderr, once the work has taken half a second."""
    if not shown:
        yield lambda _rays: None
        return
    from tqdm import tqdm

    with tqdm(total=total, unit=" rays", unit_scale=True, delay=0.5) as shown_bar:
        yield shown_bar.update
