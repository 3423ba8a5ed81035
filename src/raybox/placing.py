"""On which cores threads run while they share a question.

A thread that is woken goes to an idle core, if the system sees one. A virtual machine halts its idle cores,
and Linux takes a halted one for one that may be busy: it wakes a thread on the core of whoever woke it,
though that has all to do, and both share it, 4 ms each, until someone looks. Threads are woken all the time,
if only by Python's lock. (Measured on two cores: a question of 17 ms took 21 to 26 after any pause, one core
idle for 10 to 30 ms.) So who asks stays where it is for as long as a question takes, and those who help stay
elsewhere.
"""

import ctypes
import os
from collections.abc import Iterable, Set
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple


class Place(NamedTuple):
    """Where a thread is, and all the cores that it may be moved to; none where there is no way to tell."""

    here: frozenset[int]
    allowed: frozenset[int]


NOWHERE = Place(frozenset(), frozenset())


def cores() -> int:
    """Return how many threads this process may run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def find() -> Place:
    """Return where this thread is."""
    tell = _teller()
    if tell is None or (here := int(tell())) < 0:
        return NOWHERE
    return Place(frozenset({here}), frozenset(os.sched_getaffinity(0)))


def stay(place: Place) -> None:
    """Have this thread stay where it is."""
    move(0, place.here)


def keep_off(place: Place, threads: Iterable[int] = (0,)) -> None:
    """Have threads, by their native numbers, run anywhere but there; 0 is this one."""
    for thread in threads:
        move(thread, place.allowed - place.here)


def leave(place: Place) -> None:
    """Let this thread go wherever it might before."""
    move(0, place.allowed)


def move(thread: int, cores: Set[int]) -> None:
    """Have a thread run on these cores, if there are any."""
    with suppress(OSError):  # it is no more, or may not be moved: then it runs where it likes
        if cores and os.sched_getaffinity(thread) != cores:
            os.sched_setaffinity(thread, cores)


@cache
def _teller() -> Any:
    """Return what tells the number of the core that it runs on, or None: only Linux lets threads be moved."""
    return getattr(ctypes.CDLL(None), "sched_getcpu", None) if hasattr(os, "sched_setaffinity") else None
