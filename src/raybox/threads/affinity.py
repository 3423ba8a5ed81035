"""Which cores the threads of a pool run on.

A halted core of a virtual machine can look busy to Linux, which then wakes a thread on the core of the
thread that woke it: both share that core, 4 ms each, while another is idle. Workers are therefore kept off
the core of the calling thread during a query. The affinity of the calling thread is never changed, and
RAYBOX_PIN_THREADS=0 in the environment leaves that of the workers unchanged, too.
"""

import ctypes
import os
from collections.abc import Iterable, Set
from contextlib import suppress
from functools import cache
from typing import Any

from raybox.threads.control_group import cpu_limit

_SWITCH = "RAYBOX_PIN_THREADS"


def cores() -> int:
    """Return how many threads this process may run at once, by its affinity and its control group."""
    if hasattr(os, "sched_getaffinity"):
        number = len(os.sched_getaffinity(0))
    else:
        number = getattr(os, "process_cpu_count", os.cpu_count)() or 1
    limit = cpu_limit()
    return number if limit is None else min(number, limit)


def other_cores() -> frozenset[int]:
    """Return the cores that this thread may run on, less its current one.

    Empty if workers are not to be pinned, or cannot be: only Linux has the system calls.
    """
    current_core = _current_core()
    if current_core is None or os.environ.get(_SWITCH) == "0" or (core := int(current_core())) < 0:
        return frozenset()
    return frozenset(os.sched_getaffinity(0)) - {core}


def pin(threads: Iterable[int], cores: Set[int]) -> None:
    """Restrict threads, by native id, to these cores; an empty set changes nothing."""
    for thread in threads if cores else ():
        with suppress(OSError):  # it has ended, or may not be moved
            if os.sched_getaffinity(thread) != cores:
                os.sched_setaffinity(thread, cores)


@cache
def _current_core() -> Any:
    """Return the C function for the number of the current core, or None."""
    return getattr(ctypes.CDLL(None), "sched_getcpu", None) if hasattr(os, "sched_setaffinity") else None
