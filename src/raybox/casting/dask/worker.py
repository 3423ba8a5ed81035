"""What runs on workers: some blocks of a cast, one task at a time, its query by all threads of the worker."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from raybox._version import __version__
from raybox.casting.blocks import BlockSpan
from raybox.casting.caster import BlockCaster
from raybox.casting.errors import system_errors
from raybox.casting.job_files import caster_in
from raybox.casting.part import PARTS, RECORDS, CastPart, PartFolders
from raybox.casting.runner import ThreadRunner
from raybox.compiler.float_environment import in_default_environment
from raybox.compiler.fork import fork_safe_lock
from raybox.compiler.library import source_stamp
from raybox.errors import RayboxError
from raybox.store.folder import open_folder


class CodeVersion(NamedTuple):
    """The raybox of a process."""

    raybox: str
    sources: str
    """Checksum of the sources of compiled code."""


class Task(NamedTuple):
    """What a worker needs: small, for any scene and rays."""

    folder: Path
    digest: str
    token: str
    """Of this run of the cast: each has files of its own."""
    threads: int
    """-1: as many as the worker has."""
    version: CodeVersion


class Failure(NamedTuple):
    """An error that a retry would raise again."""

    error_class: type[RayboxError]
    text: str


_LOCK = fork_safe_lock()
_LOADED: dict[str, BlockCaster] = {}
"""The caster of the last run, by its token."""


@in_default_environment
def cast_task(task: Task, spans: Sequence[BlockSpan]) -> list[CastPart] | Failure:
    """Cast the blocks of spans; return their parts, or why they cannot be cast."""
    try:
        with _LOCK, system_errors(task.folder), open_folder(task.folder) as folder:
            caster = _loaded(task)
            with folder.subfolder(PARTS) as parts, folder.subfolder(RECORDS) as records:
                steps = ThreadRunner(caster, _threads(task)).run(PartFolders(parts, records), spans)
                return [done.part for done in steps if done.part is not None]
    except RayboxError as error:
        return Failure(type(error), str(error))


def _loaded(task: Task) -> BlockCaster:
    """Return the caster of a run; the first task of a process loads it, in place of that of another run."""
    if task.token not in _LOADED:
        if code_version() != task.version:
            raise RayboxError(f"a worker {version_problem(code_version(), task.version)}")
        _LOADED.clear()
        caster = caster_in(task.folder, large_pages=True)
        caster.job = caster.job._replace(digest=task.digest)
        _LOADED[task.token] = caster
    return _LOADED[task.token]


def unload(token: str) -> None:
    """Forget the caster of a run."""
    with _LOCK:
        _LOADED.pop(token, None)


def _threads(task: Task) -> int:
    from distributed import get_worker

    return int(get_worker().state.nthreads) if task.threads == -1 else task.threads


def code_version() -> CodeVersion:
    """Return the raybox of this process."""
    return CodeVersion(__version__, source_stamp())


def version_problem(there: CodeVersion, client: CodeVersion) -> str:
    """Return what is wrong with the raybox of a worker, and the way out."""
    if there.raybox != client.raybox:
        return f"has raybox {there.raybox}, the client {client.raybox}; install the same"
    return f"has other sources of raybox {there.raybox} than the client; install the same, and restart it"


def missing_paths(paths: Sequence[Path]) -> list[Path]:
    """Return the paths that this process does not see."""
    return [path for path in paths if not os.path.exists(path)]
