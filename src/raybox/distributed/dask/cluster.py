"""The cluster: is it there, do its workers have this raybox, do they see the files."""

import pydoc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

from raybox.distributed.dask import worker
from raybox.errors import InvalidInput, RayboxError

SECONDS = 10.0  # to wait for a scheduler, and for its first worker


def engine() -> Any:
    """Import dask.distributed, or say which command installs it."""
    if find_spec("distributed") is None:
        raise RayboxError(
            "a cluster needs dask.distributed, which is not installed; run: pip install 'raybox[cluster]'"
        )
    return import_module("distributed")


@contextmanager
def connected(cluster: Any) -> Iterator[Any]:
    """Lend a client of a cluster, given as an address, a client or a cluster of Dask's."""
    client = engine().Client
    if isinstance(cluster, client):
        if cluster.asynchronous:
            raise InvalidInput("cluster must not be an asynchronous Client; make one that is not.")
        yield cluster
        return
    if not isinstance(cluster, str) and not hasattr(cluster, "scheduler_address"):
        came = type(cluster).__name__
        raise InvalidInput(
            f"cluster must be an address like 'tcp://host:8786', or Dask's Client or cluster; got {came}."
        )
    try:
        made = client(cluster, timeout=SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise RayboxError(
            f"no scheduler answers at {cluster} ({type(error).__name__}); "
            "check the address, or start one: dask scheduler"
        ) from error
    with made:
        yield made


def check_workers(client: Any) -> None:
    """Refuse a cluster without workers, or whose workers have no raybox, or another one."""
    try:
        client.wait_for_workers(1, timeout=SECONDS)
    except TimeoutError as error:
        raise RayboxError(
            f"the cluster at {client.scheduler.address} has no workers; start some: dask worker ADDRESS"
        ) from error
    here, stamp = worker.facts()
    for address, version in client.run(pydoc.locate, "raybox.__version__", on_error="return").items():
        if not isinstance(version, str):
            raise RayboxError(
                f"worker {address} has no raybox; install raybox {here} there, in the Python that runs it"
            )
        if version != here:
            raise RayboxError(f"worker {address} has raybox {version}, here it is {here}; install the same")
    for address, facts in client.run(worker.facts, on_error="return").items():
        if facts != (here, stamp):
            raise RayboxError(
                f"worker {address} has another raybox {here} than this one; install the same, and restart it"
            )


def check_folders(client: Any, folder: Path, *others: Path) -> None:
    """Refuse a folder for parts that workers do not share, and other paths that they do not see."""
    mark = folder / f"work-{uuid4().hex[:12]}"
    mark.mkdir()
    try:
        for address, unseen in client.run(worker.unseen, [mark, *others]).items():
            if unseen:
                shown = folder.parent if unseen[0] == mark else unseen[0]
                raise RayboxError(
                    f"worker {address} does not see {shown}; rays, output and parts of a scene must be in "
                    "folders that all machines share, under the same names"
                )
    finally:
        mark.rmdir()


def send(client: Any, plugin: Any) -> None:
    """Have all workers hold a scene, and those that come later; say what one of them cannot."""
    try:
        client.register_plugin(plugin)
    except RayboxError:
        raise
    except Exception as error:
        raise RayboxError(f"a worker cannot take the scene ({type(error).__name__}: {error})") from error


def take_back(client: Any, plugin: Any) -> None:
    """Have the workers let go of a scene; a cluster that is gone has done so."""
    with suppress(Exception):
        client.unregister_worker_plugin(plugin.name)
