"""Threads for builds and refits. Kernels release the GIL; what they make does not depend on the threads."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

Each = Callable[..., list[Any]]  # (function, arguments of the first call, of the second, ...) -> answers


@contextmanager
def crew(threads: int) -> Iterator[Each]:
    """Give a function that calls another for each of many arguments, on so many threads."""
    if threads == 1:
        yield lambda work, items: [work(*item) for item in items]
        return
    pool = ThreadPoolExecutor(threads, thread_name_prefix="raybox-build")

    def each(work: Callable[..., Any], items: Iterable[tuple[Any, ...]]) -> list[Any]:
        items = list(items)
        if len(items) == 1:  # a hand over to another thread costs more than a small piece of work
            return [work(*items[0])]
        return [future.result() for future in [pool.submit(work, *item) for item in items]]

    try:
        yield each
    finally:
        pool.shutdown(cancel_futures=True)


def chunks(begin: int, end: int, size: int) -> list[tuple[int, int]]:
    """Cut a range into chunks of a size, whatever the number of threads."""
    return [(k, min(k + size, end)) for k in range(begin, end, size)]
