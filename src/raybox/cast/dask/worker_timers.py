"""Slow down the timers of Dask workers that have a scene loaded.

By default, Dask samples the stacks of a worker's threads a hundred times a second for its dashboard, and
measures the delay of its event loop fifty times.
"""

from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import distributed

_TIMERS = "profile", "tick"
_MILLISECONDS = 500.0


class _Timer(Protocol):
    """A `PeriodicCallback` of Tornado."""

    callback_time: float


# how often a timer was slowed, and its first interval
_SLOWED = WeakKeyDictionary[_Timer, tuple[int, float]]()


def slow_down(worker: "distributed.Worker") -> None:
    """Run the timers of a worker twice a second."""
    for timer in _timers(worker):
        times, before = _SLOWED.get(timer, (0, timer.callback_time))
        _SLOWED[timer] = times + 1, before
        timer.callback_time = max(before, _MILLISECONDS)


def restore(worker: "distributed.Worker") -> None:
    """Undo one call of `slow_down`; the last one restores the intervals."""
    for timer in _timers(worker):
        times, before = _SLOWED.pop(timer, (0, timer.callback_time))
        if times > 1:
            _SLOWED[timer] = times - 1, before
        else:
            timer.callback_time = before


def _timers(worker: "distributed.Worker") -> list[_Timer]:
    timers = getattr(worker, "periodic_callbacks", {})
    return [timers[name] for name in _TIMERS if name in timers]
