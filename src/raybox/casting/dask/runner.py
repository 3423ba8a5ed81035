"""Runs the blocks of a cast on a cluster: tasks submitted, a limited number at a time, and their parts."""

import shutil
from asyncio import CancelledError
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from uuid import uuid4

from raybox.casting import blocks as ray_blocks
from raybox.casting.block_caster import BlockCaster
from raybox.casting.blocks import BlockBuffers, BlockSpan, Position, RayFile
from raybox.casting.dask import connection, job_files, worker
from raybox.casting.dask.job_plugin import make_plugin
from raybox.casting.dask.worker import Failure, WorkerJob
from raybox.casting.job import CastJob
from raybox.casting.part import PartInfo
from raybox.errors import RayboxError
from raybox.split import SplitScene
from raybox.store.folder import open_folder

if TYPE_CHECKING:
    import distributed

_TASKS_PER_THREAD = 3  # submitted at a time, so that workers do not wait for the next
_PARTS_PER_TASK = 4  # at most: Dask needs 10 ms of a core for a task, a worker 170 for a part
_FULL_TASKS = 2  # tasks have fewer parts once fewer full ones are left than this, times those submitted
_RETRIES = 3  # of a task that failed


class DaskRunner:
    """Casts blocks on the workers of a cluster; a `raybox.casting.runner.Runner`.

    threads: of the query in each worker process; -1 for as many as it has.
    """

    def __init__(self, client: "distributed.Client", caster: BlockCaster, threads: int) -> None:
        self._client, self._caster, self._threads = client, caster, threads

    def run(self, job: CastJob, spans: Iterable[BlockSpan]) -> Generator[PartInfo, None, None]:
        """Yield the parts of all blocks of some spans, in any order, as `Runner.run` does."""
        source = self._caster.source
        blocks, count = blocks_of(source, job.size, spans), source.block_count(job.size)
        with self._loaded(job) as worker_job:
            tasks = _TaskQueue(self._client, worker_job, blocks, count)
            try:
                with connection.scheduler_watched(self._client):
                    yield from tasks.run()
            finally:
                with suppress(Exception):  # the scheduler may have ended
                    self._client.cancel(list(tasks.submitted))

    @contextmanager
    def _loaded(self, job: CastJob) -> Iterator[WorkerJob]:
        """Write the files for workers, and load them there; remove them at the end."""
        caster, scene = self._caster, self._caster.scene
        mine = WorkerJob(uuid4().hex[:12], job, caster.sums, self._threads, worker.code_version())
        plugin = make_plugin(mine)
        with open_folder(job.folder) as folder, folder.subfolder(mine.files.name):
            try:
                job_files.write(mine.files, scene, caster.ids, caster.arguments)
                others = [scene.folder.resolve()] if isinstance(scene, SplitScene) else []
                with connection.scheduler_watched(self._client):
                    connection.check_folders(self._client, mine.files, *job.rays, *others)
                    connection.register(self._client, plugin)
                yield mine
            finally:
                # before: a worker that loads the scene later looks for it afterwards
                shutil.rmtree(mine.files, ignore_errors=True)
                connection.unregister(self._client, plugin)


class _TaskQueue:
    """The tasks of a run: submitted, and collected.

    block_count: of the whole file; None: unknown before its end.
    """

    def __init__(
        self,
        client: "distributed.Client",
        job: WorkerJob,
        blocks: Iterator[BlockSpan],
        block_count: int | None,
    ) -> None:
        self._client, self._job, self._blocks, self._count = client, job, blocks, block_count
        self.submitted: dict[distributed.Future, list[BlockSpan]] = {}

    def run(self) -> Iterator[PartInfo]:
        """Submit all tasks, and yield their parts.

        After a failure, those that are submitted are still collected.
        """
        as_completed = connection.import_distributed().as_completed
        completed = as_completed(loop=self._client.loop, raise_errors=False)
        failure = self._submit_more(completed)
        for future in completed:
            blocks = self.submitted.pop(future)
            try:
                yield from self._results(future, blocks)
            except RayboxError as error:
                failure = failure or error
            future.release()  # a task whose future exists runs again when its worker dies
            failure = failure or self._submit_more(completed)
        if failure:
            raise failure

    def _submit_more(self, completed: "distributed.as_completed") -> RayboxError | None:
        """Submit as many tasks as allowed.

        Return what is wrong with the next rays, if anything.
        """
        most = _TASKS_PER_THREAD * max(1, sum(self._client.nthreads().values()))
        while len(self.submitted) < most:
            blocks, error = self._choose_blocks(most)
            if blocks:
                completed.add(self._submit(blocks))
            if error or not blocks:
                return error
        return None

    def _choose_blocks(self, most: int) -> tuple[list[BlockSpan], RayboxError | None]:
        """Return the blocks of the next task, and what is wrong with the rays after them."""
        blocks = list[BlockSpan]()
        while not blocks or len(blocks) < self._task_size(blocks[0].number, most):
            try:
                block = next(self._blocks, None)
            except RayboxError as error:  # the blocks before it are still to be cast
                return blocks, error
            if block is None:
                break
            blocks.append(block)
        return blocks, None

    def _task_size(self, first: int, most: int) -> int:
        """Return the number of blocks of the next task; 0 and 1 mean one.

        first: the number of its first block.
        """
        return min(_PARTS_PER_TASK, ((self._count or 0) - first) // (_FULL_TASKS * most))

    def _submit(self, blocks: list[BlockSpan]) -> "distributed.Future":
        numbers = ".".join(str(block.number) for block in blocks)
        options = {"key": f"raybox-{self._job.token}-{numbers}", "pure": False, "retries": _RETRIES}
        future = self._client.submit(worker.write_parts, self._job, blocks, **options)
        self.submitted[future] = blocks
        return future

    def _results(self, future: "distributed.Future", blocks: list[BlockSpan]) -> Iterator[PartInfo]:
        """Yield the parts of a task; raise what went wrong."""
        try:
            results = future.result()
        except (Exception, CancelledError) as error:
            raise self._broken(blocks, error) from error
        for result in results:
            if isinstance(result, Failure):
                raise result.error_class(result.text)
            yield result
        if len(results) < len(blocks):
            missing = blocks[len(results)].number
            raise RayboxError(f"a worker unloaded the scene before it wrote part {missing}; cast it again")

    def _broken(self, blocks: list[BlockSpan], error: BaseException) -> RayboxError:
        """Return the error for a task that did not return."""
        if connection.is_closed(self._client, error):
            return connection.lost_scheduler(self._client, error)
        cause = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        others = f" (or one of {len(blocks) - 1} after it)" if len(blocks) > 1 else ""
        problem = f"part {blocks[0].number}{others} cannot be written ({cause})"
        return RayboxError(f"{problem}; see the logs of the workers")


def blocks_of(source: RayFile, size: int, spans: Iterable[BlockSpan]) -> Iterator[BlockSpan]:
    """Yield the blocks of spans, each as a span of one; `size` rays each.

    Text has no index of rows, so files of it are read here.
    """
    count = source.block_count(size)
    is_indexed = source.block_at(0) is not None
    for span in spans:
        if count is None or not is_indexed:
            yield from _read_blocks(source, size, span)
            continue
        end = count if span.blocks is None else span.number + span.blocks
        for number in range(span.number, end):
            first = number * size
            yield BlockSpan(number, Position(first, *(source.block_at(first) or ())), 1)


def _read_blocks(source: RayFile, size: int, span: BlockSpan) -> Iterator[BlockSpan]:
    """Yield the blocks of a span by reading it here."""
    position, buffers = span.position, BlockBuffers()
    for block in ray_blocks.read(source, size, span, buffers):
        yield BlockSpan(block.number, position, 1)
        position = block.end
        buffers.release(block.buffers)
