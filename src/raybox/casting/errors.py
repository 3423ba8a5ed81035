"""Errors of casts as users get them: one line, with the path, what was to be done there, and the way out."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raybox.casting.cast_folder import CastFolder
from raybox.casting.caster import BlockCaster
from raybox.errors import OutOfMemory, RayboxError
from raybox.io.formats.common import file_error
from raybox.store.disk import DiskError

_WAYS_OUT = {
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


@contextmanager
def system_errors(target: Path) -> Iterator[None]:
    """Turn errors of the system, and of memory, into errors about an output."""
    try:
        yield
    except RayboxError:
        raise
    except OSError as error:
        raise system_error(target, error) from error


def system_error(target: Path, error: OSError) -> RayboxError:
    """Return the error for a file that the system does not write, or read."""
    path = error.path if isinstance(error, DiskError) else Path(os.fsdecode(error.filename or target))
    step = error.step if isinstance(error, DiskError) else "written"
    reason = os.strerror(error.errno) if error.errno else str(error)
    way_out = _WAYS_OUT.get(error.errno or 0, "check its permissions")
    return file_error(path, f"cannot be {step}: {reason}", f"{way_out}, and cast again")


def explained(error: BaseException, cast: CastFolder, caster: BlockCaster, *, shared: bool) -> BaseException:
    """Return an error with the number of rays that are stored; remove the folder if there are none.

    shared: other processes may be about to store some.
    """
    stored = _stored_rays(cast)
    if isinstance(error, MemoryError):
        problem = f"chunks of {caster.job.size:,} rays do not fit into memory; give a smaller chunk"
        error = OutOfMemory(f"{caster.source.path}: {problem}")
    elif isinstance(error, OSError) and not isinstance(error, RayboxError):
        error = system_error(cast.target, error)
    if not stored:
        if stored == 0 and not shared:
            _remove(cast)
        return error
    done = f"{stored:,} rays are done and stored in {cast.folder.path.name}"
    text = f"{done}; the same command continues from there"
    if isinstance(error, RayboxError):
        return type(error)(f"{error}; {text}")
    error.add_note(text)
    return error


def _stored_rays(cast: CastFolder) -> int | None:
    """Return the number of rays whose parts are stored; None if the folder cannot be read."""
    try:
        blocks = {block.number: block.size for part in cast.parts.listed() for block in part.blocks}
    except (OSError, RayboxError):
        return None
    return sum(blocks.values())


def _remove(cast: CastFolder) -> None:
    """Remove a folder without results, if the system lets us: the error that ended the cast counts."""
    try:
        cast.remove()
    except OSError:
        return
