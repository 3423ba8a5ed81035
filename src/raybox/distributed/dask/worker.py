"""What runs on workers: load a scene, cast chunks of rays, each into a part of its own.

A plugin (`job_plugin`) loads the scene when a worker joins, or joins again. Its arrays are mapped from files,
so that workers of one machine share the memory. Of a worker's threads, one at a time runs the query, with as
many threads of raybox as the worker has; a few others read the next chunk, or write the last one.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import BoundedSemaphore
from typing import NamedTuple

from raybox._version import __version__
from raybox.compiler.float_environment import in_default_environment
from raybox.compiler.fork import after_fork_in_child, fork_safe_lock
from raybox.compiler.library import source_stamp
from raybox.distributed.dask import job_files
from raybox.distributed.dask.job_files import SplitPlace
from raybox.distributed.dask.part_folder import (
    PART_SUFFIX,
    SCENE,
    PartInfo,
    make_work_folder,
    part_path,
    read_trailer,
    running_mark,
    write_trailer,
)
from raybox.errors import RayboxError
from raybox.geometry import Rays
from raybox.io import checksums, scene_files
from raybox.io.chunked import chunks
from raybox.io.chunked.chunks import Chunk, ChunkBuffers, Position, RayFile
from raybox.io.chunked.object_columns import object_columns, spec_of
from raybox.io.chunked.partitioned import AnyScene
from raybox.io.chunked.readers import open_ray_file
from raybox.io.chunked.result_columns import run_query
from raybox.io.chunked.writers import WRITERS
from raybox.io.formats.common import ReadOptions
from raybox.queries.columns import ChunkResults, Scratch, row_count

_WAITING = 2  # chunks that are read or written while another is queried


class CodeVersion(NamedTuple):
    """The raybox of a process."""

    raybox: str
    sources: str
    """Checksum of the sources of compiled code."""


class WorkerJob(NamedTuple):
    """What workers need for a cast.

    It is small, whatever the scene and the rays.
    """

    token: str
    folder: Path
    """Of the parts, and of the scene."""
    split: SplitPlace | None
    """None: the scene is in `folder`."""
    path: Path
    """Of the rays."""
    options: ReadOptions
    query: str
    size: int
    """Rays in a chunk."""
    threads: int
    """-1: as many as the worker has."""
    suffix: str
    """Of the output."""
    dimension: int
    version: CodeVersion
    job_id: str
    """Of the folder: its parts hold it."""


class Failure(NamedTuple):
    """An error of the rays, which a retry would raise again."""

    error_class: type[RayboxError]
    text: str


class PartTask(NamedTuple):
    """A part to write."""

    number: int
    position: Position
    stored_checksum: str | None
    """Of the rays of the part that exists, if one does."""


class PartWorkspace(NamedTuple):
    """A folder and memory for unfinished parts, reused.

    Removing a folder waits for the disk.
    """

    folder: Path
    scratch: Scratch


class LoadedJob:
    """A job on this process: scene, columns of its objects, file of rays, buffers."""

    def __init__(self, job: WorkerJob, worker_threads: int) -> None:
        if code_version() != job.version:
            raise RayboxError(
                f"a worker has another raybox than {job.version.raybox} of the client; install the same"
            )
        self.job = job
        self.threads = worker_threads if job.threads == -1 else job.threads
        folder = job.folder / SCENE
        self.scene: AnyScene = (
            job_files.open_split(job.split) if job.split else scene_files.read_scene(folder, large_pages=True)
        )
        self.objects = object_columns(self.scene, job_files.read_ids(folder))
        self._source: RayFile | None = None
        self.buffers, self._workspaces = ChunkBuffers(), list[PartWorkspace]()
        self.query_lock, self.slots = fork_safe_lock(), BoundedSemaphore(1 + _WAITING)

    def source(self) -> RayFile:
        """Return the file of rays, opened once."""
        with self.query_lock:
            if self._source is None:
                self._source = open_ray_file(self.job.path, self.job.options)
            return self._source

    @contextmanager
    def workspace(self) -> Iterator[PartWorkspace]:
        """Yield a workspace, reused after a part that is complete."""
        workspaces = self._workspaces
        workspace = workspaces.pop() if workspaces else PartWorkspace(make_work_folder(self.job.folder), {})
        yield workspace
        workspaces.append(workspace)


_LOADED: dict[str, LoadedJob] = {}
_LOCK = fork_safe_lock()
after_fork_in_child(_LOADED.clear)  # other threads may own the slots of a job


@in_default_environment
def load_job(job: WorkerJob, worker_threads: int) -> LoadedJob:
    """Return a loaded job; the first call of a process loads it."""
    with _LOCK:
        if job.token not in _LOADED:
            _LOADED[job.token] = LoadedJob(job, worker_threads)
        return _LOADED[job.token]


def is_running(job: WorkerJob) -> bool:
    """Return whether the cast of a job has not ended."""
    return running_mark(job.folder, job.token).exists()


def unload_job(token: str) -> None:
    """Remove a job from this process."""
    with _LOCK:
        _LOADED.pop(token, None)


@in_default_environment
def write_parts(job: WorkerJob, parts: Sequence[PartTask]) -> list[PartInfo | Failure]:
    """Write parts one after the other, until one fails or the job is removed; return their trailers."""
    results = list[PartInfo | Failure]()
    for part in parts:
        if results and (isinstance(results[-1], Failure) or job.token not in _LOADED):
            break
        results.append(_try_part(job, part))
    _unload_if_removed(job)
    return results


def _try_part(job: WorkerJob, part: PartTask) -> PartInfo | Failure:
    """Write a part; return its trailer, or the error."""
    try:
        with _in_slot(job) as loaded:
            return _write_part(loaded, part)
    except RayboxError as error:
        return Failure(type(error), str(error))


@in_default_environment
def rays_checksum(job: WorkerJob, position: Position) -> str | None:
    """Return the checksum of the rays of a chunk, as in its part; None if they are invalid or missing."""
    try:
        with _in_slot(job) as loaded:
            chunk, checksum = _read(loaded, position)
            loaded.buffers.release(chunk.buffers)
            return checksum
    except (RayboxError, StopIteration):  # the latter: no ray is there
        return None
    finally:
        _unload_if_removed(job)


def _unload_if_removed(job: WorkerJob) -> None:
    """Remove a job from this process if its plugin is gone: a task that starts late loads the job again."""
    from distributed import get_worker

    if plugin_name(job) not in get_worker().plugins:
        unload_job(job.token)


@contextmanager
def _in_slot(job: WorkerJob) -> Iterator[LoadedJob]:
    """Yield the loaded job to a limited number of threads at a time."""
    from distributed import get_worker

    loaded = load_job(job, get_worker().state.nthreads)
    with loaded.slots:
        yield loaded


def _read(loaded: LoadedJob, position: Position) -> tuple[Chunk, str]:
    """Return a chunk of rays, and their checksum as in its part."""
    chunk = next(chunks.read(loaded.source(), loaded.job.size, position, loaded.buffers))
    return chunk, checksums.of_text(chunk.end.checksum)


def _write_part(loaded: LoadedJob, part: PartTask) -> PartInfo:
    """Write a part, unless a valid one exists; return its trailer.

    One that has appeared since the task was made is this chunk's, by a worker that died before it reported
    it.
    """
    job = loaded.job
    path = part_path(job.folder, part.number)
    if part.stored_checksum is None and (stored := read_trailer(path, job.job_id)):
        return stored
    chunk, checksum = _read(loaded, part.position)
    if part.stored_checksum == checksum and (stored := read_trailer(path, job.job_id)):
        loaded.buffers.release(chunk.buffers)
        return stored
    with loaded.workspace() as workspace:
        rows, hit_count = _write_results(loaded, chunk, workspace)
        unfinished = workspace.folder / f"results{PART_SUFFIX[job.suffix]}"
        info = PartInfo(chunk.end.first - chunk.first, rows, hit_count, unfinished.stat().st_size, checksum)
        write_trailer(unfinished, info, job.job_id, part.number)
        os.replace(unfinished, path)
    loaded.buffers.release(chunk.buffers)
    return info


def _write_results(loaded: LoadedJob, chunk: Chunk, workspace: PartWorkspace) -> tuple[int, int]:
    """Write the results of a chunk of rays to a file.

    Return its rows, and the hits.
    """
    job, rows, hit_count = loaded.job, 0, 0
    spec = spec_of(job.query, job.dimension, loaded.objects, job.suffix)._replace(folder=workspace.folder)
    with closing(WRITERS[PART_SUFFIX[job.suffix]](spec, {})) as writer:
        for results in _run_query(loaded, chunk.rays, chunk.first):
            columns = loaded.objects.with_rows(results.columns(workspace.scratch))
            writer.add(columns)
            rows, hit_count = rows + row_count(columns), hit_count + results.hit
            del results, columns
        writer.finish(rows)
    return rows, hit_count


def _run_query(loaded: LoadedJob, rays: Rays, first: int) -> Iterator[ChunkResults]:
    """Yield the results of rays.

    One thread of this process at a time runs a query.
    """
    results = run_query(loaded.scene, loaded.job.query, rays, first, loaded.threads)
    while True:
        with loaded.query_lock:
            some = next(results, None)
        if some is None:
            return
        yield some


def code_version() -> CodeVersion:
    """Return the raybox of this process."""
    return CodeVersion(__version__, source_stamp())


def missing_paths(paths: list[Path]) -> list[Path]:
    """Return the paths that this process does not see."""
    return [path for path in paths if not os.path.exists(path)]


def plugin_name(job: WorkerJob) -> str:
    """Return the name of the plugin that loads a job."""
    return f"raybox-{job.token}"
