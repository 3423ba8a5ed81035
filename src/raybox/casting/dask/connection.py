"""The connection to a cluster, and checks of its workers: raybox installed, folders shared."""

import pydoc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, ParamSpec, TypeAlias, TypeVar

from raybox.casting.dask import worker
from raybox.errors import InvalidInput, RayboxError

if TYPE_CHECKING:
    import distributed

    ClusterInput: TypeAlias = str | distributed.Client | distributed.deploy.Cluster

P = ParamSpec("P")
T = TypeVar("T")

SECONDS = 10.0  # to wait for a scheduler, and for its first worker


def import_distributed() -> ModuleType:
    """Return dask.distributed; raise `RayboxError` with the command that installs it."""
    if find_spec("distributed") is None:
        raise RayboxError(
            "a cluster needs dask.distributed, which is not installed; run: pip install 'raybox[cluster]'"
        )
    return import_module("distributed")


@contextmanager
def connect(cluster: "ClusterInput") -> "Iterator[distributed.Client]":
    """Yield a client of a cluster, given as an address, a client or a Dask cluster."""
    client_class = import_distributed().Client
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


def run_on_workers(
    client: "distributed.Client", function: Callable[P, T], *args: P.args, **options: P.kwargs
) -> dict[str, T | Exception]:
    """Return what a function returns, or the error that it raises, on every worker that answers.

    Raise `RayboxError` if there is none.
    """
    try:
        results: dict[str, T | Exception] = client.run(function, *args, on_error="return")
        if not results or all(map(_is_lost, results.values())):
            client.wait_for_workers(1, timeout=SECONDS)
            results = client.run(function, *args, on_error="return")
    except TimeoutError as error:
        raise RayboxError(
            f"the cluster at {client.scheduler.address} has no workers; start some: dask worker ADDRESS"
        ) from error
    except OSError as error:
        raise lost_scheduler(client, error) from error
    return {address: result for address, result in results.items() if not _is_lost(result)}


def lost_scheduler(client: "distributed.Client", error: BaseException) -> RayboxError:
    """Return the error for a scheduler that has ended."""
    address = f" at {client.scheduler.address}" if client.scheduler else ""  # None once the client is closed
    return RayboxError(f"the scheduler{address} does not answer any more ({error}); start it again")


@contextmanager
def scheduler_watched(client: "distributed.Client") -> Iterator[None]:
    """Raise the error for a scheduler that has ended in place of those of a client that has lost it."""
    try:
        yield
    except RayboxError:
        raise
    except Exception as error:
        if isinstance(error, OSError) or client.status != "running":
            raise lost_scheduler(client, error) from error
        raise


def is_closed(client: "distributed.Client", error: BaseException) -> bool:
    """Return whether the connection to the scheduler has ended, given the error of a task.

    The client's status may still be that of before. Other errors of files are those of the worker.
    """
    closed: type[OSError] = import_module("distributed.comm").CommClosedError
    return isinstance(error, closed) or client.status != "running"


def _is_lost(result: object) -> bool:
    """Return whether a worker ended before it returned: no function that runs here raises `OSError`."""
    return isinstance(result, OSError)


def check_workers(client: "distributed.Client") -> None:
    """Raise `RayboxError` unless there are workers, all with this version of raybox."""
    here = worker.code_version()
    for address, version in run_on_workers(client, pydoc.locate, "raybox.__version__").items():
        if not isinstance(version, str):
            raise RayboxError(
                f"worker {address} has no raybox; "
                f"install raybox {here.raybox} there, in the Python that runs it"
            )
        if version != here.raybox:
            there = worker.CodeVersion(version, "")
            raise RayboxError(f"worker {address} {worker.version_problem(there, here)}")
    for address, found in run_on_workers(client, worker.code_version).items():
        if isinstance(found, Exception):
            raise RayboxError(f"worker {address} cannot load raybox ({found!r}); see its log")
        if found != here:
            raise RayboxError(f"worker {address} {worker.version_problem(found, here)}")


def check_folders(client: "distributed.Client", folder: Path, *others: Path) -> None:
    """Raise `RayboxError` unless workers see a folder that was made just now, and the other paths."""
    for address, missing in run_on_workers(client, worker.missing_paths, [folder, *others]).items():
        if isinstance(missing, Exception):
            raise RayboxError(f"worker {address} cannot look for files ({missing!r}); see its log")
        if missing:
            path = folder.parent.parent if missing[0] == folder else missing[0]
            raise RayboxError(
                f"worker {address} does not see {path}; rays, output and parts of a scene must be in "
                "folders that all machines share, under the same names and for the same user"
            )
