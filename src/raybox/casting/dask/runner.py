"""Runs the blocks of a cast on a cluster: tasks submitted, a limited number at a time, and their parts."""

from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from raybox.casting import job_files
from raybox.casting.blocks import BlockSpan
from raybox.casting.cast_folder import FILES
from raybox.casting.caster import BlockCaster
from raybox.casting.dask import connection
from raybox.casting.dask.worker import Failure, Task, cast_task, code_version, unload
from raybox.casting.job import SUMS
from raybox.casting.part import CastPart, PartFolders
from raybox.casting.runner import Done
from raybox.casting.sum_parts import merge
from raybox.errors import RayboxError
from raybox.store.folder import open_folder

if TYPE_CHECKING:
    import distributed

_TASKS_PER_WORKER = 2  # submitted at a time: one runs, one waits
_MOST_BLOCKS = 8  # of a task, which reads one while it queries others: Dask needs 10 ms for a task
_RETRIES = 3  # of a task whose worker died, or that failed otherwise
_SUM_TASKS = 2  # at a time: each leaves the sums of a whole scene on the disk


class DaskRunner:
    """Casts blocks on the workers of a cluster; a `raybox.casting.runner.Runner`.

    threads: of the query in each worker process; -1 for as many as it has.
    """

    def __init__(self, client: "distributed.Client", caster: BlockCaster, *, threads: int) -> None:
        self._client, self._caster, self._threads = client, caster, threads

    def run(self, folders: PartFolders, spans: Iterable[BlockSpan]) -> Generator[Done, None, None]:
        """Write parts for all blocks of some spans: see `Runner`."""
        job, caster = self._caster.job, self._caster
        connection.check_workers(self._client)
        task = Task(job.folder, job.digest, uuid4().hex[:12], self._threads, code_version())
        with open_folder(job.folder) as folder:
            folder.remove(FILES)
            job_files.write(folder, caster)
        connection.check_folders(self._client, job.folder / FILES, *map(Path.absolute, job.rays))
        is_sum = job.part_format == SUMS
        tasks = self._submitted(task, _tasks(caster, spans, self._workers() * _TASKS_PER_WORKER), is_sum)
        merged = list[CastPart]()
        try:
            for part in tasks:
                yield Done(part.rays, None, part)
                if is_sum and (more := _merged(caster, folders, merged, part)):
                    yield Done(0, None, more)
        finally:
            tasks.close()
            with suppress(Exception):  # the scheduler, or a worker, may have ended
                self._client.run(unload, task.token, on_error="ignore")

    def _workers(self) -> int:
        return max(1, len(self._client.nthreads()))

    def _submitted(
        self, task: Task, tasks: Iterator[list[BlockSpan]], is_sum: bool
    ) -> Generator[CastPart, None, None]:
        """Submit tasks, and yield their parts; after a failure, those that are submitted are collected."""
        completed = connection.import_distributed().as_completed(loop=self._client.loop, raise_errors=False)
        most = _SUM_TASKS if is_sum else self._workers() * _TASKS_PER_WORKER
        running: set[distributed.Future] = set()
        failure: RayboxError | None = None

        def submit(count: int) -> RayboxError | None:
            """Return what is wrong with the rays of the next task, if anything."""
            try:
                for spans in islice(tasks, count):
                    key = f"raybox-{task.token}-{spans[0].number}"
                    future = self._client.submit(
                        cast_task, task, spans, key=key, pure=False, retries=_RETRIES
                    )
                    running.add(future)
                    completed.add(future)
            except RayboxError as error:
                return error
            return None

        try:
            failure = submit(most)
            for future in completed:
                running.discard(future)
                try:
                    yield from self._parts(future)
                except RayboxError as error:
                    failure = failure or error
                future.release()  # a task whose future exists runs again when its worker dies
                failure = failure or submit(1)
        finally:
            with suppress(Exception):  # the scheduler may have ended
                self._client.cancel(list(running))
        if failure:
            raise failure

    def _parts(self, future: "distributed.Future") -> list[CastPart]:
        """Return the parts of a task; raise what went wrong."""
        try:
            found = future.result()
        except Exception as error:
            if connection.is_closed(self._client, error):
                raise connection.lost_scheduler(self._client, error) from error
            cause = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            problem = f"blocks of rays cannot be cast on the cluster ({cause})"
            raise RayboxError(f"{problem}; see the logs of the workers") from error
        if isinstance(found, Failure):
            raise found.error_class(found.text)
        return list(found)


def _tasks(caster: BlockCaster, spans: Iterable[BlockSpan], at_once: int) -> Iterator[list[BlockSpan]]:
    """Yield the blocks of each task: of few blocks, so few that each worker gets some."""
    count = caster.source.block_count(caster.job.size)
    most = _MOST_BLOCKS if count is None else max(1, min(_MOST_BLOCKS, count // (2 * at_once)))
    blocks = chain.from_iterable(map(caster.spans_in, spans))
    while task := list(islice(blocks, most)):
        yield task


def _merged(
    caster: BlockCaster, folders: PartFolders, waiting: list[CastPart], part: CastPart
) -> CastPart | None:
    """Write one part of sums of those that follow the first one without a gap, in their place."""
    waiting.append(part)
    waiting.sort()
    run = [waiting[0]] if waiting[0].number == 0 else []
    for following in waiting[len(run) :]:
        if run and following.number == run[-1].end:
            run.append(following)
    if len(run) < 2:
        return None
    merged = merge(caster, folders, run)
    waiting[: len(run)] = [merged]
    return merged
