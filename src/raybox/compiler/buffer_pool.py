"""Memory that calls reuse: of one kind, or of one kind by size. Threads may share a pool."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Generic, TypeVar

M = TypeVar("M")
_MAX_FREE = max(4, os.cpu_count() or 1)  # free items that a pool stores


class BufferPool(Generic[M]):
    """Memory of one kind that calls reuse; made if none is free."""

    def __init__(self, make: Callable[[], M], max_free: int = _MAX_FREE) -> None:
        self._make, self._max_free = make, max_free
        self._free: list[M] = []

    def __iter__(self) -> Iterator[M]:
        return iter(self._free)

    def __len__(self) -> int:
        return len(self._free)

    def take(self) -> M:
        """Return free memory, or new one."""
        try:
            return self._free.pop()
        except IndexError:  # no test before: another thread may take the last one between
            return self._make()

    def put_back(self, memory: M) -> None:
        """Store memory for the next call."""
        if len(self._free) < self._max_free:
            self._free.append(memory)


class SizedPool(Generic[M]):
    """A pool for each size of memory. make: returns memory of a size, given as `take` has it."""

    def __init__(self, make: Callable[..., M], max_free: int = _MAX_FREE) -> None:
        self._make, self._max_free = make, max_free
        self._free: dict[tuple[int, ...], BufferPool[M]] = {}

    def take(self, *size: int) -> M:
        """Return free memory of a size, or new one."""
        return self._of(size).take()

    def put_back(self, memory: M, *size: int) -> None:
        """Store memory of a size for the next call."""
        self._of(size).put_back(memory)

    def _of(self, size: tuple[int, ...]) -> BufferPool[M]:
        return self._free.setdefault(size, BufferPool(partial(self._make, *size), self._max_free))
