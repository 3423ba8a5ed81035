"""What runs on workers: load a scene, cast blocks of rays, each into a part.

A plugin (`job_plugin`) loads the scene when a worker joins, or joins again. Its arrays are mapped from files,
so that workers of one machine share the memory. Of a worker's threads, one at a time runs the query, with as
many threads of raybox as the worker has; a few others read the next block, or write the last part.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import BoundedSemaphore
from typing import NamedTuple

from raybox._version import __version__
from raybox.casting.block_caster import BlockCaster
from raybox.casting.blocks import BlockSpan
from raybox.casting.dask import job_files
from raybox.casting.job import CastJob
from raybox.casting.part import PartInfo, part_name, read_part
from raybox.casting.sums import SumJob
from raybox.compiler.float_environment import in_default_environment
from raybox.compiler.fork import after_fork_in_child, fork_safe_lock
from raybox.compiler.library import source_stamp
from raybox.errors import RayboxError

_WAITING = 2  # blocks that are read or written while another is queried


class CodeVersion(NamedTuple):
    """The raybox of a process."""

    raybox: str
    sources: str
    """Checksum of the sources of compiled code."""


class WorkerJob(NamedTuple):
    """What workers need for a cast: small, for any scene and rays."""

    token: str
    """Of this run of the cast."""
    cast: CastJob
    sums: SumJob | None
    """As in `BlockCaster`."""
    threads: int
    """-1: as many as the worker has."""
    version: CodeVersion

    @property
    def files(self) -> Path:
        """The folder of the scene and the arguments, which exists as long as this run does."""
        return self.cast.folder / f"scene-{self.token}"

    @property
    def plugin_name(self) -> str:
        """The name of the plugin that loads it."""
        return f"raybox-{self.token}"


class Failure(NamedTuple):
    """An error of the rays, which a retry would raise again."""

    error_class: type[RayboxError]
    text: str


class LoadedJob:
    """A job that this process has loaded, and the locks of its threads."""

    def __init__(self, job: WorkerJob, worker_threads: int) -> None:
        if code_version() != job.version:
            raise RayboxError(f"a worker {version_problem(code_version(), job.version)}")
        self.job = job
        self.threads = worker_threads if job.threads == -1 else job.threads
        files = job_files.read(job.files, large_pages=True)
        self.caster = BlockCaster(job.cast, files.scene, files.arguments, files.ids, job.sums)
        self.query_lock, self.slots = fork_safe_lock(), BoundedSemaphore(1 + _WAITING)


_LOADED: dict[str, LoadedJob] = {}
_LOCK = fork_safe_lock()
after_fork_in_child(_LOADED.clear)  # other threads may own the slots of a job


@in_default_environment
def load_job(job: WorkerJob, worker_threads: int) -> LoadedJob:
    """Return a loaded job; the first call of a process loads it, and unloads those that have ended."""
    with _LOCK:
        if job.token not in _LOADED:
            for token, loaded in list(_LOADED.items()):
                if not is_running(loaded.job):  # its client was killed, and another continues the cast
                    del _LOADED[token]
            _LOADED[job.token] = LoadedJob(job, worker_threads)
        return _LOADED[job.token]


def is_running(job: WorkerJob) -> bool:
    """Return whether the run of a job has not ended."""
    return job.files.exists()


def unload_job(token: str) -> None:
    """Remove a job from this process."""
    with _LOCK:
        _LOADED.pop(token, None)


@in_default_environment
def write_parts(job: WorkerJob, blocks: Sequence[BlockSpan]) -> list[PartInfo | Failure]:
    """Write the parts of blocks one after the other, until one fails or the job is removed."""
    results = list[PartInfo | Failure]()
    for block in blocks:
        if results and (isinstance(results[-1], Failure) or job.token not in _LOADED):
            break
        results.append(_try_part(job, block))
    _unload_if_removed(job)
    return results


def _try_part(job: WorkerJob, block: BlockSpan) -> PartInfo | Failure:
    """Write a part, unless a worker did that died before it reported it; return it, or the error."""
    try:
        with _in_slot(job) as loaded:
            caster = loaded.caster
            name = part_name(block.number, caster.job.part_format)
            if stored := read_part(caster.folder, name, caster.job.id, check=True):
                return stored.value
            return caster.cast_block(block, loaded.threads, loaded.query_lock)
    except RayboxError as error:
        return Failure(type(error), str(error))


def _unload_if_removed(job: WorkerJob) -> None:
    """Remove a job from this process if its plugin is gone: a task that starts late loads the job again."""
    from distributed import get_worker

    if job.plugin_name not in get_worker().plugins:
        unload_job(job.token)


@contextmanager
def _in_slot(job: WorkerJob) -> Iterator[LoadedJob]:
    """Yield the loaded job to a limited number of threads at a time."""
    from distributed import get_worker

    loaded = load_job(job, get_worker().state.nthreads)
    with loaded.slots:
        yield loaded


def code_version() -> CodeVersion:
    """Return the raybox of this process."""
    return CodeVersion(__version__, source_stamp())


def version_problem(there: CodeVersion, client: CodeVersion) -> str:
    """Return what is wrong with the raybox of a worker, and the way out."""
    if there.raybox != client.raybox:
        return f"has raybox {there.raybox}, the client {client.raybox}; install the same"
    return f"has other sources of raybox {there.raybox} than the client; install the same, and restart it"


def missing_paths(paths: list[Path]) -> list[Path]:
    """Return the paths that this process does not see."""
    return [path for path in paths if not os.path.exists(path)]
