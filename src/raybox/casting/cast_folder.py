"""The folder of an unfinished output, ``OUT.raybox`` next to it.

===========  ====================================================================================
name         holds
===========  ====================================================================================
``job``      a record: what determines the results, but for rays; for the error of another command
``files``    the scene and the arguments, for processes that did not begin the cast
``parts``    results of blocks of rays
``records``  what each part is made of
``lock``     one process at a time, or several that cast blocks
===========  ====================================================================================
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from raybox.casting.part import PartFolders, part_folders
from raybox.errors import FileFormatError, RayboxError
from raybox.io.formats.common import file_error, resolved
from raybox.store.checksum import Facts
from raybox.store.disk import DiskError
from raybox.store.folder import TEMPORARY, Folder
from raybox.store.lock import LOCK, locked
from raybox.store.record import RecordKind

SUFFIX = ".raybox"
FILES = "files"
_JOB = "job"
_NOT_OURS = "rename or remove it, or give another output"
JOB = RecordKind[Facts]("cast", 2, dict)
_WAYS_OUT = {
    errno.EACCES: "check its permissions",
    errno.EPERM: "check its permissions",
    errno.ENOSPC: "make room on the disk",
    errno.EDQUOT: "make room: the quota is used up",
    errno.ENOMEM: "free memory, or give a smaller chunk",
    errno.EMFILE: "close files, or raise the limit of open files (ulimit -n)",
    errno.ENFILE: "close files of other programs",
    errno.ENAMETOOLONG: "give a shorter name",
    errno.ELOOP: "give a path without links in a circle",
    errno.EIO: "check the disk",
    errno.EROFS: "give an output on a disk that can be written",
}


class CastFolder(NamedTuple):
    """The open, locked folder of one output."""

    folder: Folder
    parts: PartFolders
    target: Path
    """Of the output, links followed."""

    def remove(self) -> None:
        """Empty the folder; the record of the job, by which raybox recognises the others, is the last."""
        for name in sorted(self.folder.names(), key=_JOB.__eq__):
            if name != LOCK:
                self.folder.remove(name)


def cast_folder(target: Path) -> Path:
    """Return the folder of an output, while it is unfinished."""
    place = resolved(target)
    return place.with_name(place.name + SUFFIX)


def target_of(folder: Path) -> Path:
    """Return the output of a folder."""
    if not folder.name.endswith(SUFFIX):
        raise file_error(folder, "is no folder of a cast", f"give OUT{SUFFIX}")
    return folder.with_name(folder.name.removesuffix(SUFFIX))


@contextmanager
def open_cast(target: Path, facts: Facts, *, shared: bool = False) -> Iterator[CastFolder]:
    """Yield the folder of an output, locked; raise `FileFormatError` if another job has started it.

    shared: others may have it open meanwhile, likewise.
    """
    with locked(target, cast_folder(target), shared=shared) as folder:
        _check_job(folder, target, facts)
        with part_folders(folder) as parts:
            yield CastFolder(folder, parts, resolved(target))


def _check_job(folder: Folder, target: Path, facts: Facts) -> None:
    """Store the job in a new folder; raise `FileFormatError` if there is another one."""
    if folder.stat(_JOB) is None:
        if any(name != LOCK and not name.startswith(TEMPORARY) for name in folder.names()):
            raise file_error(folder.path, f"exists, but has no {_JOB}", _NOT_OURS)
        folder.write_record(_JOB, JOB, facts, durable=True)
        return
    try:
        there = folder.read_record(_JOB, JOB).value
    except FileFormatError as error:
        raise file_error(folder.path, f"has a {_JOB} that is damaged", _NOT_OURS) from error
    differ = [name for name in {**there, **facts} if there.get(name) != facts.get(name)]
    if differ:
        words = [
            ["none" if own.get(name) is None else own[name] for name in differ] for own in (there, facts)
        ]
        changes = ", ".join(f"{name} {a} there, {b} now" for name, a, b in zip(differ, *words, strict=True))
        raise file_error(
            target,
            f"another command has started it, in {folder.path.name} ({changes})",
            "finish that command, or remove the folder, or give another output",
        )


@contextmanager
def system_errors(target: Path) -> Iterator[None]:
    """Turn errors of the system into errors about an output, with the path, the step and a way out.

    A closed pipe stays a `BrokenPipeError`: commands then end without a message.
    """
    try:
        yield
    except (RayboxError, BrokenPipeError):
        raise
    except OSError as error:
        raise system_error(target, error) from error


def system_error(target: Path, error: OSError) -> RayboxError:
    """Return the error for a file that the system does not write, or read."""
    path = error.path if isinstance(error, DiskError) else Path(os.fsdecode(error.filename or target))
    step = error.step if isinstance(error, DiskError) else "written"
    reason = os.strerror(error.errno) if error.errno else str(error)
    way_out = _WAYS_OUT.get(error.errno or 0, "check its name and the disk")
    return file_error(path, f"cannot be {step}: {reason}", f"{way_out}, and cast again")
