"""Have Dask look less often after workers that hold a scene.

A hundred times a second it samples what a worker's threads do, for its dashboard, and fifty times it looks
how late the worker is.
"""

from typing import Any
from weakref import WeakKeyDictionary

_TIMERS = "profile", "tick"
_MILLISECONDS = 500.0
_BEFORE = WeakKeyDictionary[Any, tuple[int, float]]()  # how many want a timer slow, and how it was


def slow(worker: Any) -> None:
    """Have a worker be looked after twice a second."""
    for timer in _timers(worker):
        wishes, before = _BEFORE.get(timer, (0, timer.callback_time))
        _BEFORE[timer] = wishes + 1, before
        timer.callback_time = max(before, _MILLISECONDS)


def hasten(worker: Any) -> None:
    """Have a worker be looked after as before, if nobody else wants it slow."""
    for timer in _timers(worker):
        wishes, before = _BEFORE.pop(timer, (0, timer.callback_time))
        if wishes > 1:
            _BEFORE[timer] = wishes - 1, before
        else:
            timer.callback_time = before


def _timers(worker: Any) -> list[Any]:
    timers = getattr(worker, "periodic_callbacks", {})
    return [timers[name] for name in _TIMERS if name in timers]
