"""Arrays in large pages, where the system has them, that share no cache line with other arrays.

A traversal reads a few megabytes in random order. Pages of 2 MB keep their addresses in the TLB; with pages
of 4 KB `nearest` is 5 to 20 % slower. NumPy requests large pages from 4 MB on.

Arrays that two threads write must not share a cache line, as small arrays of `np.empty` do: false sharing
takes most of the gain of a second thread.
"""

import math
import mmap
from contextlib import suppress
from typing import Any

import numpy as np

_PAGE = 1 << 21
_MIN_BYTES = 1 << 18  # smaller arrays stay in pages of the usual size
_ALIGNMENT = 128  # bytes: two cache lines, which processors fetch in pairs


def empty(shape: tuple[int, ...], kind: Any) -> Any:
    """Return an uninitialised array, aligned to pairs of cache lines."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    if size < _MIN_BYTES or not hasattr(mmap, "MADV_HUGEPAGE"):
        memory: Any = np.empty(size + 2 * _ALIGNMENT, np.uint8)
        skip = -memory.ctypes.data % _ALIGNMENT
    else:
        pages = mmap.mmap(-1, size + _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with suppress(OSError):  # a system built without large pages
            pages.madvise(mmap.MADV_HUGEPAGE)
        memory = np.frombuffer(pages, np.uint8)
        skip = -memory.ctypes.data % _PAGE
    return memory[skip : skip + size].view(kind).reshape(shape)
