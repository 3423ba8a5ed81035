"""Threads for builds and refits. Kernels release the GIL; results do not depend on the threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Self, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class TaskRunner:
    """Runs a function once for each tuple of arguments, on so many threads.

    Results come in the order of the arguments. The threads start with the first call of several tasks, and
    end with the `with` statement.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None

    def __call__(  # noqa: D102
        self, work: Callable[[*Ts], T], items: Iterable[tuple[*Ts]]
    ) -> list[T]:
        items = list(items)
        if self.threads == 1 or len(items) == 1:  # submitting a small task costs more than running it
            return [work(*item) for item in items]
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # small trees need no threads

            self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="raybox-build")
        return [future.result() for future in [self._pool.submit(work, *item) for item in items]]

    def largest_first(
        self, work: Callable[[*Ts], T], items: list[tuple[*Ts]], sizes: Iterable[int]
    ) -> list[T]:
        """Run the largest items first; return the results in the order of the items."""
        order = [k for _, k in sorted((-size, k) for k, size in enumerate(sizes))]
        results = dict(zip(order, self(work, [items[k] for k in order]), strict=True))
        return [results[k] for k in range(len(order))]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the threads; tasks that have not begun are dropped."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


INLINE = TaskRunner(1)


def chunks(begin: int, end: int, size: int) -> list[tuple[int, int]]:
    """Return chunks (begin, end) of a range, each of this size but for the last."""
    return [(k, min(k + size, end)) for k in range(begin, end, size)]
