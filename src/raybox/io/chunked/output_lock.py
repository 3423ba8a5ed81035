"""The lock of an output's folder: one process at a time writes there.

POSIX has ``flock``, Windows ``msvcrt.locking``; both end with the process. A file system may offer neither
(some network mounts). There, each process makes a file of its own, ``lock-HOST-PID-...``, and then reads the
names of all others: it has the lock if those are of processes of this host that have ended. Of two that start
at the same moment both may be refused, but never both succeed. Such a file of another host must be removed by
hand if that host has crashed; the error names it.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, NamedTuple

from raybox.compiler.fork import after_fork_in_child
from raybox.errors import RayboxError
from raybox.io import own_files
from raybox.io.chunked.file_lock import NoLocks, try_lock
from raybox.io.formats.common import file_error

LOCK = "lock"
_ATTEMPTS = 1000
_OPEN: set[BinaryIO] = set()


@after_fork_in_child
def _close_locks() -> None:
    """Close what a child process shares with its parent: the lock would last until both have ended."""
    for file in _OPEN:
        file.close()
    _OPEN.clear()


class _LockFile(NamedTuple):
    """A lock file, and the open file if the system locks it."""

    path: Path
    file: BinaryIO | None


def is_lock(name: str) -> bool:
    """Return whether a file in an output's folder is a lock."""
    return name == LOCK or name.startswith(LOCK + "-")


@contextmanager
def locked(target: Path, folder: Path) -> Iterator[None]:
    """Make an output's folder, and lock it against other processes.

    At the end the lock is removed, and so is the folder if it is empty then.
    """
    try:
        lock = _acquire(target, folder)
        try:
            yield
        finally:
            _release(lock)
    finally:
        with suppress(OSError):  # it holds results, or the lock of another process
            folder.rmdir()


def _acquire(target: Path, folder: Path) -> _LockFile:
    """Return the lock of a folder; raise `FileFormatError` if another process has it."""
    for _ in range(_ATTEMPTS):  # a process that ends at this moment removes the lock, and then the folder
        with suppress(FileNotFoundError):
            own_files.make_folder(folder)
            if lock := _lock(target, folder):
                return lock
    raise _in_use(target)


def _lock(target: Path, folder: Path) -> _LockFile | None:
    """Return the lock of an existing folder, None if another process has removed its file meanwhile."""
    try:
        return _system_lock(target, folder)
    except NoLocks:
        return _own_file(target, folder)


def _system_lock(target: Path, folder: Path) -> _LockFile | None:
    """Return a lock that ends with the process; None if its file is no longer the one of this name."""
    path = folder / LOCK
    file = own_files.open_own(path)
    try:
        if not _try_lock(target, file):
            raise _in_use(target)
        is_current = path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())
    except BaseException:
        file.close()
        raise
    if not is_current:
        file.close()
        return None
    _OPEN.add(file)
    return _LockFile(path, file)


def _try_lock(target: Path, file: BinaryIO) -> bool:
    """Lock a file, as `try_lock`; raise `FileFormatError` where the file system fails at it."""
    try:
        return try_lock(file.fileno())
    except OSError as error:
        problem = f"cannot be written: the file system locks no file there ({os.strerror(error.errno or 0)})"
        raise file_error(target, problem, "give an output on another one") from error


def _own_file(target: Path, folder: Path) -> _LockFile:
    """Return a lock that is a file of this process; raise `FileFormatError` if others have one."""
    with suppress(OSError):
        (folder / LOCK).unlink()
    prefix = f"{LOCK}-{socket.gethostname()}-"
    own = folder / f"{prefix}{os.getpid()}-{token_hex(6)}"
    own_files.open_new(own).close()
    for other in folder.glob(LOCK + "-*"):
        if other == own:
            continue
        if not other.name.startswith(prefix) or _is_running(int(other.name.split("-")[-2])):
            own.unlink()
            raise _in_use(target, f" (if that process has ended, remove {other})")
        other.unlink(missing_ok=True)
    return _LockFile(own, None)


def _is_running(process: int) -> bool:
    if os.name != "posix":
        return True  # os.kill would end it
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _in_use(target: Path, more: str = "") -> RayboxError:
    return file_error(
        target, f"is in use by another process{more}", "wait for that one, or give another output"
    )


def _release(lock: _LockFile) -> None:
    """Remove a lock: its name first, where the system permits that of an open file."""
    if lock.file is None:
        _unlink(lock.path)
    elif not lock.file.closed:  # else this is a child process: the lock is its parent's
        is_removed = _unlink(lock.path)
        _OPEN.discard(lock.file)
        lock.file.close()
        if not is_removed:
            _unlink(lock.path)


def _unlink(path: Path) -> bool:
    """Remove a file; False if it is open, here or in another process."""
    try:
        path.unlink()
    except OSError:
        return False
    return True
