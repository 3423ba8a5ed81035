"""Pool of result buffers: memory of arrays that are gone is reused by later queries.

A query of a million rays returns 16 MB. Finding and clearing fresh pages for that can take a tenth of its
time.
"""

import os
import sys
from collections import deque
from math import prod
from typing import Any

import numpy as np

from raybox.compiler import huge_pages
from raybox.errors import InvalidInput

_MIN_BYTES = 1 << 20  # smaller arrays come from NumPy's allocator
_MAX_FREE_BYTES = 1 << 26
_MAX_RATIO = 2  # largest size of a reused buffer, relative to the size that is needed
_FREE: deque[Any] = deque()


def _machine_bytes() -> int:
    """Return the memory of the machine, as far as the system says it."""
    names = "SC_PAGE_SIZE", "SC_PHYS_PAGES"
    known = getattr(os, "sysconf_names", ())
    return prod(map(os.sysconf, names)) if all(name in known for name in names) else sys.maxsize


_MACHINE_BYTES = _machine_bytes()


class _Buffer:
    """Owner of a buffer, which the pool gets back at its deletion.

    All arrays in the buffer refer to it.
    """

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self.__array_interface__ = memory.__array_interface__

    def __del__(self, ending: Any = sys.is_finalizing) -> None:
        if not ending():  # at exit the names of this module may be None
            _release(self._memory)


def empty(shape: tuple[int, ...], kind: Any) -> Any:
    """Return an uninitialised array like `np.empty`, possibly in reused memory."""
    size = prod(shape) * np.dtype(kind).itemsize
    if size < _MIN_BYTES:
        return np.empty(shape, kind)
    try:
        memory = _acquire(size)
    except (MemoryError, OSError, OverflowError) as error:
        raise too_large(size) from error
    return np.asarray(_Buffer(memory))[:size].view(kind).reshape(shape)


def check_size(size: int) -> None:
    """Raise `InvalidInput` if so many bytes of results are more than the machine's memory."""
    if size > _MACHINE_BYTES:
        raise too_large(size)


def too_large(size: int) -> InvalidInput:
    """Return the error of results of so many bytes."""
    return InvalidInput(
        f"the results need {size:,} bytes of memory, more than there is; "
        "query fewer rays at a time, or return fewer hits of each."
    )


def _acquire(size: int) -> Any:
    """Return a free buffer of a fitting size in bytes, or a new one."""
    for _ in range(len(_FREE)):
        try:
            memory = _FREE.popleft()
        except IndexError:  # emptied by another thread
            break
        if size <= memory.size <= _MAX_RATIO * size:
            return memory
        _FREE.append(memory)
    return huge_pages.empty((size,), np.uint8)


def _release(memory: Any) -> None:
    """Add a buffer to the free ones.

    Drop the oldest beyond the limit.
    """
    if memory.size <= _MAX_FREE_BYTES:
        _FREE.append(memory)
    while sum(free.size for free in list(_FREE)) > _MAX_FREE_BYTES:
        _FREE.popleft()
