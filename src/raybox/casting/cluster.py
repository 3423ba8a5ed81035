"""Casts on a cluster of dask.distributed: its tasks cast blocks, and this process finishes the output.

Dask itself runs lost tasks again, and moves them. Workers need the same raybox, and see the same folders.
"""

import pydoc
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from uuid import uuid4

from raybox._version import __version__
from raybox.casting import job_files
from raybox.casting.blocks import BlockSpan
from raybox.casting.cast_folder import FILES, system_errors
from raybox.casting.caster import BlockCaster
from raybox.casting.part import CastPart, PartFolders, part_folders
from raybox.casting.runner import Done, ThreadRunner
from raybox.casting.sums import merge
from raybox.compiler.float_environment import in_default_environment
from raybox.compiler.fork import fork_safe_lock
from raybox.compiler.library import source_stamp
from raybox.errors import InvalidInput, RayboxError
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
def cast_task(task: Task, spans: list[BlockSpan]) -> list[CastPart]:
    """Cast the blocks of spans, one task at a time; return their parts."""
    from distributed import get_worker

    worker = get_worker()
    threads = int(worker.state.nthreads) if task.threads == -1 else task.threads
    with _LOCK, system_errors(task.folder):
        caster = loaded(task, worker.address)
        with open_folder(task.folder) as folder, part_folders(folder) as folders:
            steps = ThreadRunner(caster, threads, once=True).run(folders, spans)
            return [done.part for done in steps if done.part is not None]


@lru_cache(1)
def loaded(task: Task, address: str) -> BlockCaster:
    """Return the caster of a run; the first task of a process loads it, in place of that of another run.

    Raise `RayboxError` for a worker, at an address, with another raybox, or without the files.
    """
    if (version := code_version()) != task.version:
        problem = f"worker {address} has raybox {version}, the client {task.version}"
        raise RayboxError(f"{problem}; install the same, and restart it")
    for path in chain([task.folder / FILES], job_files.rays_in(task.folder)):
        if not path.exists():
            raise RayboxError(
                f"worker {address} does not see {path}; rays and output must be in folders that all machines "
                "share, under the same names and for the same user"
            )
    loaded.cache_clear()  # two scenes need not fit into memory
    return job_files.caster_in(task.folder, large_pages=True)


def unload() -> None:
    """Remove the caster from memory."""
    with _LOCK:
        loaded.cache_clear()


def code_version() -> str:
    """Return the version of raybox in this process, with a checksum of the sources of compiled code."""
    return f"{__version__} (sources {source_stamp()[:8]})"


# What runs in the client


@contextmanager
def connect(cluster: "ClusterInput") -> "Iterator[distributed.Client]":
    """Yield a client of a cluster with workers, given as an address, a client or a Dask cluster."""
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        problem = "a cluster needs dask.distributed, which is not installed"
        raise RayboxError(f"{problem}; run: pip install 'raybox[cluster]'") from error
    opened: AbstractContextManager[Client]
    if isinstance(cluster, Client):
        if cluster.asynchronous:
            raise InvalidInput("cluster must not be an asynchronous Client; make one that is not.")
        opened = nullcontext(cluster)
    elif not isinstance(cluster, str) and not hasattr(cluster, "scheduler_address"):
        raise InvalidInput(
            "cluster must be an address like 'tcp://host:8786', or Dask's Client or cluster; "
            f"got {type(cluster).__name__}."
        )
    else:
        try:
            opened = Client(cluster, timeout=SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            problem = f"no scheduler is reachable at {cluster}"
            raise RayboxError(f"{problem}; check the address, or start one: dask scheduler") from error
    with opened as client:
        with _dask_errors(client):
            try:
                client.wait_for_workers(1, timeout=SECONDS)
            except TimeoutError as error:
                problem = f"the cluster at {client.scheduler.address} has no workers"
                raise RayboxError(f"{problem}; start some: dask worker ADDRESS") from error
            # first of all: a worker that cannot unpickle a task ends, without an error of the task
            versions = client.run(pydoc.locate, "raybox.__version__", on_error="return")
        for address, version in versions.items():
            if not isinstance(version, (str, OSError)):  # OSError: the worker has ended
                way_out = f"install raybox {__version__} there, in the Python that runs it"
                raise RayboxError(f"worker {address} has no raybox; {way_out}")
        yield client


@contextmanager
def _dask_errors(client: "distributed.Client") -> Iterator[None]:
    """Turn errors of Dask, and of tasks, into `RayboxError`."""
    try:
        yield
    except RayboxError:
        raise
    except Exception as error:
        if isinstance(error, OSError) or client.status != "running":  # a task raises no OSError
            address = f" at {client.scheduler.address}" if client.scheduler else ""  # None: it is closed
            problem = f"the scheduler{address} does not answer any more ({error}); start it again"
        else:
            cause = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            problem = f"blocks of rays cannot be cast on the cluster ({cause}); see the logs of the workers"
        raise RayboxError(problem) from error


class DaskRunner:
    """Casts blocks on the workers of a cluster; a `raybox.casting.runner.Runner`.

    threads: of the query in each worker process; -1 for as many as it has.
    """

    def __init__(self, client: "distributed.Client", caster: BlockCaster, *, threads: int) -> None:
        self._client, self._caster, self._threads = client, caster, threads

    def run(self, folders: PartFolders, spans: Iterable[BlockSpan]) -> Generator[Done, None, None]:
        """Write parts for all blocks of some spans: see `Runner`."""
        caster, client, folder = self._caster, self._client, self._caster.job.folder
        with open_folder(folder) as opened:
            opened.remove(FILES)
            job_files.write(opened, caster)
        task = Task(folder, uuid4().hex[:12], self._threads, code_version())
        sums = folders.listed() if caster.sums else []  # parts that are not merged yet
        try:
            with closing(self._cast(task, spans, sums)) as parts:
                for part in parts:
                    yield Done(part.rays, None, part)
                    if caster.sums:
                        sums.append(part)
                        if merged := _merged(caster, folders, sums):
                            yield Done(0, None, merged)
        finally:
            with suppress(Exception):  # the scheduler, or a worker, may have ended
                client.run(unload, on_error="ignore")

    def _cast(
        self, task: Task, spans: Iterable[BlockSpan], sums: Sequence[CastPart]
    ) -> Generator[CastPart, None, None]:
        """Submit tasks, and yield their parts; after a failure, collect those that run, and raise it.

        sums: the parts of sums that are not merged yet.
        """
        from distributed import as_completed

        client, running, failure = self._client, set["distributed.Future"](), None
        with _dask_errors(client):
            at_once = max(1, len(client.nthreads())) * _TASKS_PER_WORKER
            completed = as_completed(loop=client.loop, raise_errors=False)
        tasks = _tasks(self._caster, spans, at_once)
        try:
            while True:
                most = max(1, min(_SUM_TASKS, _SUM_PARTS - len(sums))) if self._caster.sums else at_once
                try:
                    for blocks in islice(tasks, 0 if failure else max(0, most - len(running))):
                        key = f"raybox-{task.token}-{blocks[0].number}"
                        with _dask_errors(client):
                            future = client.submit(cast_task, task, blocks, key=key, pure=False)
                        running.add(future)
                        completed.add(future)
                except RayboxError as error:
                    failure = error
                if not running:
                    break
                future = next(completed)
                running.discard(future)
                try:
                    with _dask_errors(client):
                        parts: list[CastPart] = future.result()
                except RayboxError as error:
                    failure = failure or error
                else:
                    yield from parts
                future.release()  # else Dask runs the task again when its worker dies
        finally:
            with suppress(Exception):  # the scheduler may have ended
                client.cancel(list(running))
        if failure:
            raise failure


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
    assert caster.sums is not None
    parts.sort(key=lambda part: part.number)
    run, end = list[CastPart](), 0
    for part in parts:
        if part.number == end:
            run.append(part)
            end = part.end
    if len(run) < 2:
        return None
    parts[: len(run)] = [merge(caster.job, caster.sums, folders, run)]
    return parts[0]
