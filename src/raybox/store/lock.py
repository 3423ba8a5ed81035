"""The lock of a folder: one process, or several that share it. The system ends it with the process."""

import errno
import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from raybox.errors import FileFormatError
from raybox.store.disk import DiskError
from raybox.store.folder import Folder, make_folder

LOCK = "lock"
_ATTEMPTS = 1000
_NOT_OFFERED = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_IN_USE = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
_OPEN: set[BinaryIO] = set()


@contextmanager
def locked(target: Path, path: Path, *, shared: bool = False) -> Iterator[Folder]:
    """Yield the folder of an output, made and locked against other processes.

    At the end the lock is removed, and so is the folder if it is empty then. Raise `FileFormatError` if
    another process has it. target: the output, for errors; shared: others may have it likewise.
    """
    process, (folder, file) = os.getpid(), _acquire(target, path, shared)
    try:
        yield folder
    finally:
        is_owner = process == os.getpid()  # else this is a child process: the lock is its parent's
        if is_owner:
            _release(folder, file, shared)
        folder.close()
        if is_owner:
            with suppress(OSError):  # it holds results, or the lock of another process
                path.rmdir()


def _acquire(target: Path, path: Path, shared: bool) -> tuple[Folder, BinaryIO]:
    missing = None
    for _ in range(_ATTEMPTS):  # a process that ends at this moment removes the lock, and then the folder
        try:
            folder = make_folder(path)
        except FileNotFoundError as error:
            missing = error
            continue
        with suppress(FileNotFoundError):
            try:
                if file := _lock(target, folder, shared):
                    return folder, file
            except BaseException:
                folder.close()
                with suppress(OSError):
                    path.rmdir()
                raise
        folder.close()
    if missing is not None:
        raise DiskError(missing, path, "made")
    raise _in_use(target)


def _lock(target: Path, folder: Folder, shared: bool) -> BinaryIO | None:
    """Return the lock of a folder; None if its file is no longer the one of this name."""
    with ExitStack() as unlocked:
        file = unlocked.enter_context(folder.open_or_create(LOCK))
        try:
            _lock_file(file, shared)
        except OSError as error:
            if error.errno in _IN_USE:
                raise _in_use(target) from error
            if error.errno not in _NOT_OFFERED:
                raise DiskError(error, folder.path / LOCK, "locked") from error
            problem = "its file system offers no locks; do not write it by two processes at the same time"
            warnings.warn(f"{target}: {problem}", stacklevel=2)  # their parts state what they are made of
        names = (os.fstat(file.fileno()), folder.stat(LOCK)), (folder.facts(), _facts(folder.path))
        if not all(there is not None and os.path.samestat(opened, there) for opened, there in names):
            return None
        unlocked.pop_all()
    _OPEN.add(file)
    return file


def _facts(path: Path) -> os.stat_result | None:
    with suppress(OSError):
        return path.lstat()
    return None


def _lock_file(file: BinaryIO, shared: bool) -> None:
    """Lock a file until this process ends, or the file is closed; raise `OSError` if it cannot be had."""
    with suppress(ImportError):
        fcntl = import_module("fcntl")
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        return
    if not shared:  # Windows has no lock that several share
        msvcrt = import_module("msvcrt")
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # from the file's position on: its start


def _in_use(target: Path) -> FileFormatError:
    problem = "is in use by another process; wait for that one, or give another output"
    return FileFormatError(f"{target}: {problem}")


def _release(folder: Folder, file: BinaryIO, shared: bool) -> None:
    """Remove a lock: its name first, where the system permits that of an open file."""
    is_removed = False
    with suppress(OSError):  # other processes share it, or it is open
        if shared:
            _lock_file(file, False)
        folder.remove(LOCK)
        is_removed = True
    _OPEN.discard(file)
    with suppress(OSError):  # it is closed all the same
        file.close()
    if not is_removed and not shared:
        with suppress(OSError):
            folder.remove(LOCK)


def _close_in_child() -> None:
    """Close what a child process shares with its parent: the lock would last until both have ended."""
    for file in _OPEN:
        file.close()
    _OPEN.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
