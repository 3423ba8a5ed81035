"""The plugin of Dask's workers that loads the scene of a job when a worker joins, and unloads it.

Meanwhile, timers of the worker run more slowly: by default, Dask samples the stacks of its threads a hundred
times a second for its dashboard, and measures the delay of its event loop fifty times.
"""

import asyncio
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

from raybox.casting.dask.worker import WorkerJob, is_running, load_job, unload_job

if TYPE_CHECKING:
    import distributed

_TIMERS = "profile", "tick"
_MILLISECONDS = 500.0


class _Timer(Protocol):
    """A `PeriodicCallback` of Tornado."""

    callback_time: float


# how often a timer was slowed, and its first interval
_SLOWED = WeakKeyDictionary[_Timer, tuple[int, float]]()


def make_plugin(job: WorkerJob) -> "distributed.WorkerPlugin":
    """Return a plugin that loads a job on workers when they join, and removes it."""
    from distributed import WorkerPlugin

    class JobPlugin(WorkerPlugin):  # type: ignore[misc]
        name = job.plugin_name
        is_loaded = is_removed = False

        async def setup(self, worker: "distributed.Worker") -> None:
            # Dask may call this after the plugin was removed, and then never calls `teardown`.
            if not await asyncio.to_thread(is_running, job):
                return
            await asyncio.to_thread(load_job, job, worker.state.nthreads)
            if not await asyncio.to_thread(is_running, job) or self.is_removed:
                unload_job(job.token)
            else:
                self.is_loaded = True
                slow_down(worker)

        def teardown(self, worker: "distributed.Worker") -> None:
            self.is_removed = True
            if self.is_loaded:
                restore(worker)
            unload_job(job.token)

    return JobPlugin()


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
