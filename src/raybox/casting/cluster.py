"""Casts on a cluster of dask.distributed: its tasks cast blocks, and this process finishes the output.

Dask itself runs lost tasks again, and moves them. Workers need the same raybox, and see the same folders.
"""

import os
import pydoc
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from uuid import uuid4

from raybox._version import __version__
from raybox.casting import job_files
from raybox.casting.blocks import BlockSpan
from raybox.casting.cast_folder import FILES, system_errors
from raybox.casting.caster import BlockCaster
from raybox.casting.job import SUMS
from raybox.casting.part import CastPart, PartFolders, part_folders
from raybox.casting.runner import Done, ThreadRunner
from raybox.casting.sums import merge
from raybox.compiler.float_environment import in_default_environment
from raybox.compiler.fork import fork_safe_lock
from raybox.compiler.library import source_stamp
from raybox.errors import InvalidInput, RayboxError
from raybox.store.disk import DiskError
from raybox.store.folder import open_folder

if TYPE_CHECKING:
    import distributed

    ClusterInput: TypeAlias = str | distributed.Client | distributed.deploy.Cluster

SECONDS = 10.0  # to wait for a scheduler, and for its first worker
_TASKS_PER_WORKER = 2  # submitted at a time: one runs, one waits
_MOST_BLOCKS = 8  # of a task, which reads one while it queries others: Dask needs 10 ms for a task
_SUM_TASKS = 2  # at a time, of sums
_SUM_PARTS = 3  # on the disk, those of tasks that run included: each has the sums of a whole scene

# What runs on workers


class Task(NamedTuple):
    """What a worker needs: small, for any scene and rays."""

    folder: Path
    token: str
    """Of this run of the cast."""
    threads: int
    """-1: as many as the worker has."""
    version: str
    """`code_version` of the client."""


_LOCK = fork_safe_lock()


@in_default_environment
def cast_task(task: Task, spans: Sequence[BlockSpan]) -> list[CastPart]:
    """Cast the blocks of spans, one task at a time; return their parts."""
    from distributed import get_worker

    with _LOCK, system_errors(task.folder), open_folder(task.folder) as folder:
        threads = int(get_worker().state.nthreads) if task.threads == -1 else task.threads
        with part_folders(folder) as folders:
            steps = ThreadRunner(loaded(task), threads, once=True).run(folders, spans)
            return [done.part for done in steps if done.part is not None]


@lru_cache(1)
def loaded(task: Task) -> BlockCaster:
    """Return the caster of a run; the first task of a process loads it, in place of that of another run."""
    if code_version() != task.version:
        raise RayboxError(f"a worker {_version_problem(code_version(), task.version)}")
    loaded.cache_clear()  # two scenes need not fit into memory
    return job_files.caster_in(task.folder, large_pages=True)


def unload() -> None:
    """Remove the caster from memory."""
    with _LOCK:
        loaded.cache_clear()


def code_version() -> str:
    """Return the version of raybox in this process, with a checksum of the sources of compiled code."""
    return f"{__version__} (sources {source_stamp()[:8]})"


def _version_problem(there: str, client: str) -> str:
    return f"has raybox {there}, the client {client}; install the same, and restart it"


# What runs in the client


@contextmanager
def connect(cluster: "ClusterInput") -> "Iterator[distributed.Client]":
    """Yield a client of a cluster, given as an address, a client or a Dask cluster."""
    client_class = _distributed().Client
    if isinstance(cluster, client_class):
        if cluster.asynchronous:
            raise InvalidInput("cluster must not be an asynchronous Client; make one that is not.")
        yield cluster
        return
    if not isinstance(cluster, str) and not hasattr(cluster, "scheduler_address"):
        raise InvalidInput(
            "cluster must be an address like 'tcp://host:8786', or Dask's Client or cluster; "
            f"got {type(cluster).__name__}."
        )
    try:
        client = client_class(cluster, timeout=SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise RayboxError(
            f"no scheduler is reachable at {cluster}; check the address, or start one: dask scheduler"
        ) from error
    with client:
        yield client


def _distributed() -> ModuleType:
    if find_spec("distributed") is None:
        raise RayboxError(
            "a cluster needs dask.distributed, which is not installed; run: pip install 'raybox[cluster]'"
        )
    return import_module("distributed")


@contextmanager
def scheduler_watched(client: "distributed.Client") -> Iterator[None]:
    """Raise the error for a scheduler that has ended in place of those of a client that has lost it."""
    try:
        yield
    except (RayboxError, DiskError):
        raise
    except Exception as error:
        if not isinstance(error, OSError) and client.status == "running":
            raise
        address = f" at {client.scheduler.address}" if client.scheduler else ""  # None: the client is closed
        problem = f"the scheduler{address} does not answer any more ({error}); start it again"
        raise RayboxError(problem) from error


def _run_on_workers(client: "distributed.Client", function: Callable[..., Any], *args: object) -> Any:
    """Yield the address of every worker that answers, with what a function returns there, or its error."""
    try:
        client.wait_for_workers(1, timeout=SECONDS)
    except TimeoutError as error:
        raise RayboxError(
            f"the cluster at {client.scheduler.address} has no workers; start some: dask worker ADDRESS"
        ) from error
    for address, result in client.run(function, *args, on_error="return").items():
        if not isinstance(result, OSError):  # else the worker has ended
            yield address, result


def check_workers(client: "distributed.Client") -> None:
    """Raise `RayboxError` unless there are workers, all with this version of raybox."""
    for address, version in _run_on_workers(client, pydoc.locate, "raybox.__version__"):
        if not isinstance(version, str):
            way_out = f"install raybox {__version__} there, in the Python that runs it"
            raise RayboxError(f"worker {address} has no raybox; {way_out}")
        if version != __version__:
            raise RayboxError(f"worker {address} {_version_problem(version, __version__)}")


def check_folders(client: "distributed.Client", folder: Path, *others: Path) -> None:
    """Raise `RayboxError` unless workers see a folder that was made just now, and the other paths."""
    for path in (folder, *others):
        for address, is_there in _run_on_workers(client, os.path.exists, path):
            if is_there is not True:
                shown = folder.parent.parent if path == folder else path
                raise RayboxError(
                    f"worker {address} does not see {shown}; rays, output and parts of a scene must be in "
                    "folders that all machines share, under the same names and for the same user"
                )


class DaskRunner:
    """Casts blocks on the workers of a cluster; a `raybox.casting.runner.Runner`.

    threads: of the query in each worker process; -1 for as many as it has.
    """

    def __init__(self, client: "distributed.Client", caster: BlockCaster, *, threads: int) -> None:
        self._client, self._caster, self._threads = client, caster, threads

    def run(self, folders: PartFolders, spans: Iterable[BlockSpan]) -> Generator[Done, None, None]:
        """Write parts for all blocks of some spans: see `Runner`."""
        job, client = self._caster.job, self._client
        with scheduler_watched(client):
            check_workers(client)
        with open_folder(job.folder) as folder:
            folder.remove(FILES)
            job_files.write(folder, self._caster)
        with scheduler_watched(client):
            check_folders(client, job.folder / FILES, *map(Path.absolute, job.rays))
            task = Task(job.folder, uuid4().hex[:12], self._threads, code_version())
            sums = folders.listed() if job.part_format == SUMS else []
            tasks = self._submitted(task, spans, sums)
            try:
                for part in tasks:
                    yield Done(part.rays, None, part)
                    if job.part_format == SUMS:
                        sums.append(part)
                        if merged := _merged(self._caster, folders, sums):
                            yield Done(0, None, merged)
            finally:
                tasks.close()
                with suppress(Exception):  # the scheduler, or a worker, may have ended
                    client.run(unload, on_error="ignore")

    def _submitted(
        self, task: Task, spans: Iterable[BlockSpan], sums: Sequence[CastPart]
    ) -> Generator[CastPart, None, None]:
        """Submit tasks, and yield their parts; after a failure, those that are submitted are collected.

        sums: the parts of sums that are not merged yet.
        """
        client = self._client
        completed = _distributed().as_completed(loop=client.loop, raise_errors=False)
        at_once = max(1, len(client.nthreads())) * _TASKS_PER_WORKER
        tasks = _tasks(self._caster, spans, at_once)
        running: set[distributed.Future] = set()
        failure: RayboxError | None = None

        def submit() -> RayboxError | None:
            """Submit as many tasks as may run; return what is wrong with the next rays, if anything."""
            most = at_once
            if self._caster.sums:
                most = max(1, min(_SUM_TASKS, _SUM_PARTS - len(sums)))
            try:
                for some in islice(tasks, max(0, most - len(running))):
                    key = f"raybox-{task.token}-{some[0].number}"
                    future = client.submit(cast_task, task, some, key=key, pure=False)
                    running.add(future)
                    completed.add(future)
            except RayboxError as error:
                return error
            return None

        try:
            failure = submit()
            for future in completed:
                running.discard(future)
                try:
                    yield from self._parts(future)
                except RayboxError as error:
                    failure = failure or error
                future.release()  # a task whose future exists runs again when its worker dies
                failure = failure or submit()
        finally:
            with suppress(Exception):  # the scheduler may have ended
                client.cancel(list(running))
        if failure:
            raise failure

    def _parts(self, future: "distributed.Future") -> list[CastPart]:
        """Return the parts of a task; raise what went wrong."""
        try:
            return list(future.result())
        except (RayboxError, OSError):  # OSError: of the connection; tasks raise none
            raise
        except Exception as error:
            if self._client.status != "running":
                raise
            cause = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            problem = f"blocks of rays cannot be cast on the cluster ({cause})"
            raise RayboxError(f"{problem}; see the logs of the workers") from error


def _tasks(caster: BlockCaster, spans: Iterable[BlockSpan], at_once: int) -> Iterator[list[BlockSpan]]:
    """Yield the blocks of each task: so few that each worker gets some; of sums in floats, one."""
    count = caster.source.block_count(caster.job.size)
    most = _MOST_BLOCKS if count is None else max(1, min(_MOST_BLOCKS, count // (2 * at_once)))
    most = 1 if caster.sums and not caster.sums.shifts else most  # each block of these is a part
    blocks = chain.from_iterable(map(caster.spans_in, spans))
    while task := list(islice(blocks, most)):
        yield task


def _merged(caster: BlockCaster, folders: PartFolders, parts: list[CastPart]) -> CastPart | None:
    """Write one part of those that cover all blocks from the first on, in their place; None if one does."""
    parts.sort()
    run = parts[: parts[0].number == 0]
    for part in parts[len(run) :]:
        if run and part.number == run[-1].end:
            run.append(part)
    if len(run) < 2 or caster.sums is None:
        return None
    parts[: len(run)] = [merge(caster.job, caster.sums, folders, run)]
    return parts[0]
