"""The plugin of Dask's workers that loads the scene of a job when a worker joins, and unloads it."""

import asyncio
from typing import TYPE_CHECKING

from raybox.cast.dask import worker_timers
from raybox.cast.dask.worker import WorkerJob, is_running, load_job, plugin_name, unload_job

if TYPE_CHECKING:
    import distributed


def make_plugin(job: WorkerJob) -> "distributed.WorkerPlugin":
    """Return a plugin that loads a job on workers when they join, and removes it."""
    from distributed import WorkerPlugin

    class JobPlugin(WorkerPlugin):  # type: ignore[misc]
        name = plugin_name(job)
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
                worker_timers.slow_down(worker)

        def teardown(self, worker: "distributed.Worker") -> None:
            self.is_removed = True
            if self.is_loaded:
                worker_timers.restore(worker)
            unload_job(job.token)

    return JobPlugin()
