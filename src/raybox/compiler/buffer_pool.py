"""Memory of answers, which goes round: fresh pages cost more than what is written to them.

The arrays of a question about a million rays take 16 MB. Where the system has to find, and clear, their
pages anew for each question, that takes 4 to 12 ms of 40 (`nearest`, 10^5 boxes, two threads; measured).
So memory is kept once the last array made of it is gone, and serves the next question.
"""

import sys
from collections import deque
from math import prod
from typing import Any

import numpy as np

from raybox.compiler import huge_pages

_WORTH = 1 << 20  # bytes: smaller ones come from what the process holds anyway
_MOST = 1 << 26  # bytes that are kept
_ROOMY = 2  # times as much memory as is needed will do
_KEPT: deque[Any] = deque()


class _Lent:
    """Memory that is kept when nobody looks at it any more: arrays made of this hold on to it."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self.__array_interface__ = memory.__array_interface__

    def __del__(self, ending: Any = sys.is_finalizing) -> None:
        if not ending():  # by then a name of this module may be None
            _keep(self._memory)


def empty(shape: tuple[int, ...], kind: Any) -> Any:
    """Return an array like `np.empty`, in memory that another may have had before."""
    size = prod(shape) * np.dtype(kind).itemsize
    if size < _WORTH:
        return np.empty(shape, kind)
    return np.asarray(_Lent(_take(size)))[:size].view(kind).reshape(shape)


def _take(size: int) -> Any:
    """Return what was kept and fits, or new memory."""
    for _ in range(len(_KEPT)):
        try:
            memory = _KEPT.popleft()
        except IndexError:  # another thread has it
            break
        if size <= memory.size <= _ROOMY * size:
            return memory
        _KEPT.append(memory)
    return huge_pages.empty((size,), np.uint8)


def _keep(memory: Any) -> None:
    """Keep memory, and rather the latest than what was kept before."""
    if memory.size <= _MOST:
        _KEPT.append(memory)
    while sum(kept.size for kept in list(_KEPT)) > _MOST:
        _KEPT.popleft()
