"""Alternated timing: contestants take turns, round by round; noise of the machine falls on all alike."""

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Any

Calls = Mapping[str, Callable[[], Any]]
_MOST = 5  # times as many rounds, where they are short


def alternate(
    calls: Calls, rounds: int, clock: Callable[[], float] = time.perf_counter, *, least: float = 0.0
) -> dict[str, list[float]]:
    """Time each call once in every round; every second round goes through them backwards.

    least: seconds that all rounds take at least, or there are more of them, up to five times as many: the
    median of five calls of 20 ms says what the machine was doing then.

    Returns
    -------
    dict
        The seconds of each call, one number a round, in the order of the rounds.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    with without_collector():
        began = clock()
        for turn in range(_MOST * rounds):
            if turn >= rounds and clock() - began >= least:
                break
            names = list(calls) if turn % 2 == 0 else list(calls)[::-1]
            for name in names:
                started = clock()
                answer = calls[name]()
                seconds[name].append(clock() - started)
                del answer  # let go before the next one starts, not inside of its time
    return seconds


@contextmanager
def without_collector() -> Iterator[None]:
    """Keep Python's garbage collector out of the clock."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def once(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a call returns, and its seconds."""
    started = time.perf_counter()
    return call(), time.perf_counter() - started


def ratio(ours: list[float], theirs: list[float]) -> tuple[float, float, float]:
    """Return median, least and greatest of theirs / ours, each of one round: the same minute."""
    quotients = [b / a for a, b in zip(ours, theirs, strict=True)]
    return median(quotients), min(quotients), max(quotients)
