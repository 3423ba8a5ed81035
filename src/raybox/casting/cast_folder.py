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

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from raybox.casting.part import PARTS, RECORDS, PartFolders
from raybox.errors import FileFormatError, RayboxError
from raybox.io.formats.common import file_error, resolved
from raybox.store import checksum
from raybox.store.checksum import Facts
from raybox.store.folder import TEMPORARY, Folder
from raybox.store.lock import LOCK, locked
from raybox.store.record import RecordKind

SUFFIX = ".raybox"
FILES = "files"
_JOB = "job"


def _parsed(value: Any) -> Facts:
    return dict(value)


JOB = RecordKind("cast", 2, _parsed)


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


def digest_of(facts: Facts) -> str:
    """Return the digest of a job."""
    return checksum.of_facts(facts)


@contextmanager
def open_cast(target: Path, facts: Facts, *, shared: bool = False) -> Iterator[CastFolder]:
    """Yield the folder of an output, locked; raise `FileFormatError` if another job has started it.

    shared: others may have it open meanwhile, likewise.
    """
    with locked(target, cast_folder(target), shared=shared) as folder:
        _check_job(folder, target, facts)
        with folder.subfolder(PARTS) as parts, folder.subfolder(RECORDS) as records:
            yield CastFolder(folder, PartFolders(parts, records), resolved(target))


def read_job(folder: Folder) -> Facts:
    """Return what determines the results of a folder; raise if it is no folder of a cast."""
    try:
        return folder.read_record(_JOB, JOB).value
    except FileNotFoundError as error:
        raise _foreign(folder.path, f"exists, but has no {_JOB}") from error
    except FileFormatError as error:
        raise _foreign(folder.path, f"has a {_JOB} that is damaged") from error


def _check_job(folder: Folder, target: Path, facts: Facts) -> None:
    """Store the job in a new folder; raise `FileFormatError` if there is another one."""
    if folder.stat(_JOB) is None:
        if any(name != LOCK and not name.startswith(TEMPORARY) for name in folder.names()):
            raise _foreign(folder.path, f"exists, but has no {_JOB}")
        folder.write_record(_JOB, JOB, facts, durable=True)
        return
    there = read_job(folder)
    differ = [name for name in {**there, **facts} if there.get(name) != facts.get(name)]
    if differ:
        changes = ", ".join(
            f"{name} {_as_text(there.get(name))} there, {_as_text(facts.get(name))} now" for name in differ
        )
        raise file_error(
            target,
            f"another command has started it, in {folder.path.name} ({changes})",
            "finish that command, or remove the folder, or give another output",
        )


def _foreign(folder: Path, problem: str) -> RayboxError:
    """Return the error for a folder that is not one of raybox."""
    return file_error(folder, problem, "rename or remove it, or give another output")


def _as_text(value: object) -> str:
    return "none" if value is None else str(value)
