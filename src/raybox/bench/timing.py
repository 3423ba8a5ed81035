"""Alternated timing: round by round, so that noise of the machine affects all calls alike."""

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import TypeVar

T = TypeVar("T")
Calls = Mapping[str, Callable[[], object]]
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
_MOST = 5  # times as many rounds, if they are short


def alternate(
    calls: Calls, rounds: int, clock: Callable[[], float] = time.perf_counter, *, least: float = 0.0
) -> dict[str, list[float]]:
    """Return the times of calls, each once a round; every second round is backwards.

    least: seconds of all rounds; shorter ones are repeated, up to five times as many, because a median of a
    few short calls varies with the machine's load.

    Returns
    -------
    dict
        The seconds of each call, one number a round, in the order of the rounds.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    with without_collector():
        start = clock()
        for turn in range(_MOST * rounds):
            if turn >= rounds and clock() - start >= least:
                break
            names = list(calls) if turn % 2 == 0 else list(calls)[::-1]
            for name in names:
                started = clock()
                result = calls[name]()
                seconds[name].append(clock() - started)
                del result  # freed here, not within the next call's time
    return seconds


@contextmanager
def without_collector() -> Iterator[None]:
    """Disable the cyclic garbage collector within this context."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def once(call: Callable[[], T]) -> tuple[T, float]:
    """Return a call's result and its seconds."""
    started = time.perf_counter()
    return call(), time.perf_counter() - started


def ratio(ours: list[float], theirs: list[float]) -> tuple[float, float, float]:
    """Return median, least and greatest of theirs / ours, round by round."""
    quotients = [b / a for a, b in zip(ours, theirs, strict=True)]
    return median(quotients), min(quotients), max(quotients)
