"""Submit tasks to a cluster, a limited number at a time; collect their parts, and join them in order."""

from asyncio import CancelledError
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from raybox.distributed.dask import worker
from raybox.distributed.dask.cluster import import_distributed
from raybox.distributed.dask.join_parts import Joiner
from raybox.distributed.dask.part_folder import (
    JoinedPart,
    PartFolder,
    PartInfo,
    check_joined,
    part_path,
    read_trailer,
)
from raybox.distributed.dask.worker import Failure, PartTask, WorkerJob
from raybox.errors import RayboxError
from raybox.io.chunked import chunks
from raybox.io.chunked.chunks import ChunkBuffers, Position, RayFile
from raybox.io.chunked.writer_stage import Advance
from raybox.io.formats.common import require

if TYPE_CHECKING:
    import distributed

BlockOf = Callable[[int], tuple[int, int]]
"""row -> `row` and `offset` of the block that holds it"""


def positions(source: RayFile, size: int) -> Iterator[Position]:
    """Yield the positions of all chunks."""
    open_index = _BLOCK_INDEX.get(source.path.suffix.lower())
    if open_index is None or source.total is None:
        yield from _read_positions(source, size)
        return
    block_of = open_index(source.path)
    for first in range(0, source.total, size):
        yield Position(first, *block_of(first))


def chunk_count(source: RayFile, size: int) -> int | None:
    """Return the number of chunks; None: unknown before the end."""
    return None if source.total is None else -(-source.total // size)


def _read_positions(source: RayFile, size: int) -> Iterator[Position]:
    """Yield positions by reading all chunks here.

    Text and LAZ have no index of rows.
    """
    position, buffers = Position(), ChunkBuffers()
    for chunk in chunks.read(source, size, position, buffers):
        yield position._replace(checksum="")
        position = chunk.end
        buffers.release(chunk.buffers)


def _any_row(_: Path) -> BlockOf:
    return lambda row: (row, row)


def _row_groups(path: Path) -> BlockOf:
    with require("pyarrow.parquet", "io", ".parquet").ParquetFile(path) as file:
        sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
    starts = [0, *accumulate(sizes)]
    return lambda row: (row, bisect_right(starts, row) - 1)


def _zarr_chunks(path: Path) -> BlockOf:
    group = require("zarr", "zarr", ".zarr").open_group(path, mode="r")
    step = max(array.chunks[0] for _, array in group.arrays())
    return lambda row: (row // step * step, row // step * step)


_BLOCK_INDEX: dict[str, Callable[[Path], BlockOf]] = {
    ".npy": _any_row,
    ".npz": _any_row,
    ".pcd": _any_row,
    ".ply": _any_row,
    ".las": _any_row,
    ".laz": _any_row,
    ".parquet": _row_groups,
    ".zarr": _zarr_chunks,
}


_TASKS_PER_THREAD = 3  # submitted at a time, so that workers do not wait for the next
_PARTS_PER_TASK = 4  # at most: Dask needs 10 ms of a core for a task, a worker 170 for a part
_FULL_TASKS = 2  # tasks have fewer parts once fewer full ones are left than this, times those submitted
_RETRIES = 3  # of a task that failed


class ClusterJob(NamedTuple):
    """A cast on a cluster."""

    client: "distributed.Client"
    worker_job: WorkerJob
    folder: PartFolder
    positions: Iterator[Position]
    part_count: int | None
    """None: unknown before the end."""
    advance: Advance


class CastTotals(NamedTuple):
    """Totals of the parts that are done."""

    rays: int = 0
    rows: int = 0
    hit_count: int = 0
    resumed: int = 0
    """Rays of parts that earlier calls have written."""


def still_valid(
    job: ClusterJob, joined: list[JoinedPart], part_positions: Iterator[Position]
) -> list[JoinedPart]:
    """Return the first of the joined parts, as far as the file still has the same rays."""
    most = _max_tasks(job)
    for begin in range(0, len(joined), most):
        some = joined[begin : begin + most]
        futures = [
            job.client.submit(worker.rays_checksum, job.worker_job, position, pure=False)
            for position in islice(part_positions, len(some))
        ]
        checksums = job.client.gather(futures)
        valid = [now == part.info.rays_checksum for part, now in zip(some, checksums, strict=False)]
        if not all(valid) or len(valid) < len(some):
            return joined[: begin + [*valid, False].index(False)]
    return joined


def _max_tasks(job: ClusterJob) -> int:
    """Return how many tasks may be submitted at a time."""
    threads: int = sum(job.client.nthreads().values())
    return _TASKS_PER_THREAD * max(1, threads)


def run(job: ClusterJob, joiner: Joiner) -> CastTotals:
    """Write all parts that are missing; return when all are joined."""
    tasks = _TaskQueue(job, joiner)
    try:
        tasks.run()
    finally:
        job.client.cancel(list(tasks.submitted))
    return tasks.totals


class _TaskQueue:
    """The tasks of a cast: submitted, collected, joined."""

    def __init__(self, job: ClusterJob, joiner: Joiner) -> None:
        self._job, self._joiner = job, joiner
        before = [part.info for part in joiner.joined]
        self._next_to_join = len(before)
        self._numbered = islice(enumerate(job.positions), self._next_to_join, None)
        self.submitted: dict[distributed.Future, list[PartTask]] = {}
        self._collected: dict[int, PartInfo] = {}  # parts that wait for those before them
        rays = sum(info.rays for info in before)
        rows, hit_count = sum(info.rows for info in before), sum(info.hit_count for info in before)
        self.totals = CastTotals(rays, rows, hit_count, rays)
        job.advance(rays, None)

    def run(self) -> None:
        """Submit and collect all tasks.

        After a failure, those that are submitted are still collected.
        """
        completed = import_distributed().as_completed(loop=self._job.client.loop, raise_errors=False)
        failure = self._submit_more(completed)
        for future in completed:
            parts = self.submitted.pop(future)
            try:
                for part, info in zip(parts, self._results(future, parts), strict=False):
                    self._collect(part.number, info)
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
        most = _max_tasks(self._job)
        while len(self.submitted) < most:
            parts, error = self._choose_parts(most)
            if parts:
                completed.add(self._submit(parts))
            if error or not parts:
                return error
        return None

    def _choose_parts(self, most: int) -> tuple[list[PartTask], RayboxError | None]:
        """Return the parts of the next task, and what is wrong with the rays after them.

        Parts that exist are collected on the way.
        """
        job, parts = self._job, list[PartTask]()
        while not parts or len(parts) < self._task_size(parts[0].number, most):
            try:
                number, position = next(self._numbered, (-1, Position()))
            except RayboxError as error:  # the parts before it are still to be written
                return parts, error
            if number < 0:
                break
            stored = read_trailer(part_path(job.folder.path, number), job.folder.job_id)
            if stored and job.folder.same_input:
                self.totals = self.totals._replace(resumed=self.totals.resumed + stored.rays)
                self._collect(number, stored)
            else:
                parts.append(PartTask(number, position, stored and stored.rays_checksum))
        return parts, None

    def _task_size(self, first: int, most: int) -> int:
        """Return the number of parts of a task whose first is given.

        0 and 1 mean one.
        """
        return min(_PARTS_PER_TASK, ((self._job.part_count or 0) - first) // (_FULL_TASKS * most))

    def _submit(self, parts: list[PartTask]) -> "distributed.Future":
        worker_job = self._job.worker_job
        key = f"raybox-{worker_job.token}-{parts[0].number}:{len(parts)}"
        options = {"key": key, "pure": False, "retries": _RETRIES}
        future = self._job.client.submit(worker.write_parts, worker_job, parts, **options)
        self.submitted[future] = parts
        return future

    def _results(self, future: "distributed.Future", parts: list[PartTask]) -> Iterator[PartInfo]:
        """Yield the parts of a task; raise what went wrong."""
        try:
            results = future.result()
        except (Exception, CancelledError) as error:
            cause = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            others = f" (or one of {len(parts) - 1} after it)" if len(parts) > 1 else ""
            problem = f"part {parts[0].number}{others} cannot be written ({cause})"
            raise RayboxError(f"{problem}; see the logs of the workers") from error
        for result in results:
            if isinstance(result, Failure):
                raise result.error_class(result.text)
            yield PartInfo(*result)
        if len(results) < len(parts):
            missing = parts[len(results)].number
            raise RayboxError(f"a worker unloaded the scene before it wrote part {missing}; cast it again")

    def _collect(self, number: int, info: PartInfo) -> None:
        """Count a part, and join those that are next."""
        job, totals = self._job, self.totals
        self._collected[number] = info
        self.totals = totals._replace(
            rays=totals.rays + info.rays,
            rows=totals.rows + info.rows,
            hit_count=totals.hit_count + info.hit_count,
        )
        job.advance(info.rays, None)
        while (part := self._collected.pop(self._next_to_join, None)) is not None:
            path = part_path(job.folder.path, self._next_to_join)
            check_joined(path, job.folder.job_id, part)
            self._joiner.add(path, part)
            self._next_to_join += 1
