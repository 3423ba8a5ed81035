"""The lock of an output's folder: one process at a time writes there.

POSIX has ``flock``, Windows ``msvcrt.locking``; both end with the process. A file system may offer neither
(some network mounts). There, each process makes a file of its own, ``lock-HOST-PID-...``, and then reads the
names of all others: it has the lock if those are of processes of this host that have ended. Of two that start
at the same moment both may be refused, but never both succeed. Such a file of another host must be removed by
hand if that host has crashed; the error names it.
"""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

from raybox.errors import RayboxError
from raybox.io.chunked.file_lock import NoLocks, try_lock
from raybox.io.formats.common import file_error

LOCK = "lock"
_ATTEMPTS = 1000


class _LockFile(NamedTuple):
    """A lock file, and its descriptor if the system locks it."""

    path: Path
    descriptor: int | None


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
            _make(folder)
            if lock := _lock(target, folder):
                return lock
    raise _in_use(target)


def _lock(target: Path, folder: Path) -> _LockFile | None:
    """Return the lock of an existing folder, None if another process has removed its file meanwhile."""
    try:
        return _system_lock(target, folder)
    except NoLocks:
        return _own_file(target, folder)


def _make(folder: Path) -> None:
    try:
        folder.mkdir()
    except FileExistsError:
        if not stat.S_ISDIR(folder.stat().st_mode):  # FileNotFoundError: it has been removed meanwhile
            raise


def _system_lock(target: Path, folder: Path) -> _LockFile | None:
    """Return a lock that ends with the process; None if its file is no longer the one of this name."""
    path = folder / LOCK
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if not try_lock(descriptor):
            raise _in_use(target)
        is_current = path.exists() and os.path.samestat(os.fstat(descriptor), path.stat())
    except BaseException:
        os.close(descriptor)
        raise
    if not is_current:
        os.close(descriptor)
        return None
    return _LockFile(path, descriptor)


def _own_file(target: Path, folder: Path) -> _LockFile:
    """Return a lock that is a file of this process; raise `FileFormatError` if others have one."""
    with suppress(OSError):
        (folder / LOCK).unlink()
    prefix = f"{LOCK}-{socket.gethostname()}-"
    own = folder / f"{prefix}{os.getpid()}-{token_hex(6)}"
    own.touch(exist_ok=False)
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
    is_removed = _unlink(lock.path)
    if lock.descriptor is not None:
        os.close(lock.descriptor)
        if not is_removed:
            _unlink(lock.path)


def _unlink(path: Path) -> bool:
    """Remove a file; False if it is open, here or in another process."""
    try:
        path.unlink()
    except OSError:
        return False
    return True
