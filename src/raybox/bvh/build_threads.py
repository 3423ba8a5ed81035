"""Threads for builds and refits. Kernels release the GIL; results do not depend on the threads."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class TaskRunner(NamedTuple):
    """Runs a function once for each tuple of arguments, on so many threads.

    Results come in the order of the arguments.
    """

    threads: int
    pool: ThreadPoolExecutor | None = None

    def __call__(  # noqa: D102
        self, work: Callable[[*Ts], T], items: Iterable[tuple[*Ts]]
    ) -> list[T]:
        items = list(items)
        if self.pool is None or len(items) == 1:  # submitting a small task costs more than running it
            return [work(*item) for item in items]
        return [future.result() for future in [self.pool.submit(work, *item) for item in items]]

    def largest_first(
        self, work: Callable[[*Ts], T], items: list[tuple[*Ts]], sizes: Iterable[int]
    ) -> list[T]:
        """Run the largest items first; return the results in the order of the items."""
        order = [k for _, k in sorted((-size, k) for k, size in enumerate(sizes))]
        results = dict(zip(order, self(work, [items[k] for k in order]), strict=True))
        return [results[k] for k in range(len(order))]


INLINE = TaskRunner(1)


@contextmanager
def build_pool(threads: int) -> Iterator[TaskRunner]:
    """Yield a `TaskRunner` on so many threads."""
    if threads == 1:
        yield INLINE
        return
    pool = ThreadPoolExecutor(threads, thread_name_prefix="raybox-build")
    try:
        yield TaskRunner(threads, pool)
    finally:
        pool.shutdown(cancel_futures=True)


def chunks(begin: int, end: int, size: int) -> list[tuple[int, int]]:
    """Return chunks (begin, end) of a range, each of this size but for the last."""
    return [(k, min(k + size, end)) for k in range(begin, end, size)]
