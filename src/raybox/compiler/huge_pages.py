"""Arrays in large pages, where the system has them, that share no cache line with other arrays.

A traversal reads a few megabytes in random order. Pages of 2 MB keep their addresses in the TLB; with pages
of 4 KB `nearest` is 5 to 20 % slower. NumPy requests large pages from 4 MB on.

Arrays that two threads write must not share a cache line, as small arrays of `np.empty` do: false sharing
takes most of the gain of a second thread.

Results come from a pool of buffers: memory of arrays that are gone is reused by later queries. A query of a
million rays returns 16 MB, and finding and clearing fresh pages for that can take a tenth of its time.
"""

import math
import mmap
import os
import sys
from collections import deque
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from raybox.errors import OutOfMemory

_PAGE = 1 << 21
_MIN_BYTES = 1 << 18  # smaller arrays stay in pages of the usual size
_ALIGNMENT = 128  # bytes: two cache lines, which processors fetch in pairs
_MIN_POOLED_BYTES = 1 << 20  # smaller arrays come from NumPy's allocator
_MAX_FREE_BYTES = 1 << 26
_MAX_RATIO = 2  # largest size of a reused buffer, relative to the size that is needed
_FREE: deque[Any] = deque()


def machine_bytes() -> int:
    """Return the memory of the machine, as far as the system says it."""
    names = "SC_PAGE_SIZE", "SC_PHYS_PAGES"
    known = getattr(os, "sysconf_names", ())
    return prod(map(os.sysconf, names)) if all(name in known for name in names) else sys.maxsize


_MACHINE_BYTES = machine_bytes()


def empty(shape: tuple[int, ...], kind: Any) -> Any:
    """Return an uninitialised array, aligned to pairs of cache lines."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    if not _has_own_pages(size):
        memory: Any = np.empty(size + 2 * _ALIGNMENT, np.uint8)
        skip = -memory.ctypes.data % _ALIGNMENT
    else:
        pages = mmap.mmap(-1, size + _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with suppress(OSError):  # a system built without large pages
            pages.madvise(mmap.MADV_HUGEPAGE)
        memory = np.frombuffer(pages, np.uint8)
        skip = -memory.ctypes.data % _PAGE
    return memory[skip : skip + size].view(kind).reshape(shape)


def _has_own_pages(size: int) -> bool:
    return size >= _MIN_BYTES and hasattr(mmap, "MADV_HUGEPAGE")


def zeros(shape: tuple[int, ...], kind: Any) -> Any:
    """Return an array of zeros like `empty`; pages of its own are not touched before they are written."""
    made = empty(shape, kind)
    if not _has_own_pages(made.nbytes):
        made[...] = 0
    return made


def shortened(array: Any, size: int) -> Any:
    """Return the first items of a flat array of `empty`; the memory of the others is freed."""
    pages: Any = array
    while isinstance(pages, np.ndarray | memoryview):
        pages = pages.base if isinstance(pages, np.ndarray) else pages.obj
    if not isinstance(pages, mmap.mmap):
        return array[:size].copy()
    skip = array.ctypes.data - np.frombuffer(pages, np.uint8).ctypes.data
    begin, end = (
        -(-(skip + k * array.itemsize) // mmap.PAGESIZE) * mmap.PAGESIZE for k in (size, array.size)
    )
    if begin < end:
        pages.madvise(mmap.MADV_DONTNEED, begin, end - begin)
    return array[:size]


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


def pooled(shape: tuple[int, ...], kind: Any) -> Any:
    """Return an uninitialised array like `np.empty`, possibly in reused memory."""
    size = prod(shape) * np.dtype(kind).itemsize
    if size < _MIN_POOLED_BYTES:
        return np.empty(shape, kind)
    try:
        memory = _acquire(size)
    except (MemoryError, OSError, OverflowError) as error:
        raise too_large(size) from error
    return np.asarray(_Buffer(memory))[:size].view(kind).reshape(shape)


def pooled_input(shape: tuple[int, ...], kind: Any) -> Any:
    """Return `pooled` for an array that is no result: without memory, the error has its shape."""
    try:
        return pooled(shape, kind)
    except OutOfMemory:
        return np.empty(shape, kind)  # raises the MemoryError of NumPy


_FEWER_RAYS = "query fewer rays at a time, or return fewer hits of each"


def check_size(size: int, way_out: str = _FEWER_RAYS) -> None:
    """Raise `OutOfMemory` if so many bytes of results are more than the machine's memory."""
    if size > _MACHINE_BYTES:
        raise too_large(size, way_out)


def too_large(size: int, way_out: str = _FEWER_RAYS) -> OutOfMemory:
    """Return the error of results of so many bytes."""
    return OutOfMemory(f"the results need {size:,} bytes of memory, more than there is; {way_out}.")


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
    return empty((size,), np.uint8)


def _release(memory: Any) -> None:
    """Add a buffer to the free ones.

    Drop the oldest beyond the limit.
    """
    if memory.size <= _MAX_FREE_BYTES:
        _FREE.append(memory)
    while sum(free.size for free in list(_FREE)) > _MAX_FREE_BYTES:
        _FREE.popleft()
