"""The one lock: a single process at a time in a folder.

POSIX has ``flock``, Windows ``msvcrt.locking``; both end with the process. A file system may offer neither
(some network mounts). There, each process writes a record of its owner, ``lock-...``, and then reads all
others: it has the lock if those are of processes that have ended. Of two that start at the same moment both
may be refused, but never both succeed. A process of another container or machine, which this one cannot find,
counts as running; the error names the file to remove.
"""

import errno
import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, NamedTuple

from raybox.errors import FileFormatError
from raybox.store.disk import DiskError
from raybox.store.folder import Folder, make_folder
from raybox.store.owner import OWNER, this_process

LOCK = "lock"
_SHARED = "lock-shared-"
_ATTEMPTS = 1000
_NOT_OFFERED = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_IN_USE = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
_OPEN: set[BinaryIO] = set()


class _NoLocks(Exception):
    """The system, or the file system, has no locks of files."""


class _Lock(NamedTuple):
    """A lock: an open file that the system locks, or a record of this process."""

    name: str
    file: BinaryIO | None
    process: int
    is_shared: bool


def is_lock(name: str) -> bool:
    """Return whether a file in a locked folder is a lock."""
    return name == LOCK or name.startswith(LOCK + "-")


@contextmanager
def locked(target: Path, path: Path, *, shared: bool = False) -> Iterator[Folder]:
    """Yield the folder of an output, made and locked against other processes.

    At the end the lock is removed, and so is the folder if it is empty then. Raise `FileFormatError` if
    another process has it. target: the output, for errors; shared: others may have it likewise.
    """
    folder, lock = _acquire(target, path, shared)
    try:
        yield folder
    finally:
        _release(folder, lock)
        folder.close()
        if lock.process == os.getpid():
            with suppress(OSError):  # it holds results, or the lock of another process
                path.rmdir()


def _acquire(target: Path, path: Path, shared: bool) -> tuple[Folder, _Lock]:
    missing = None
    for _ in range(_ATTEMPTS):  # a process that ends at this moment removes the lock, and then the folder
        try:
            folder = make_folder(path)
        except FileNotFoundError as error:
            missing = error
            continue
        with suppress(FileNotFoundError):
            try:
                if lock := _lock(target, folder, shared):
                    return folder, lock
            except BaseException:
                folder.close()
                with suppress(OSError):
                    path.rmdir()
                raise
            folder.close()
    if missing is not None:
        raise DiskError(missing, path, "made")
    raise _in_use(target)


def _lock(target: Path, folder: Folder, shared: bool) -> _Lock | None:
    """Return the lock of a folder, None if another process has removed its file meanwhile."""
    try:
        return _system_lock(target, folder, shared)
    except _NoLocks:
        return _owner_record(target, folder, shared)


def _system_lock(target: Path, folder: Folder, shared: bool) -> _Lock | None:
    """Return a lock that ends with the process; None if its file is no longer the one of this name."""
    with ExitStack() as unlocked:
        file = unlocked.enter_context(folder.open_or_create(LOCK))
        if not _try_lock(target, file, shared):
            raise _in_use(target)
        names = (os.fstat(file.fileno()), folder.stat(LOCK)), (folder.facts(), _facts(folder.path))
        if not all(there is not None and os.path.samestat(opened, there) for opened, there in names):
            return None
        unlocked.pop_all()
    _OPEN.add(file)
    return _Lock(LOCK, file, os.getpid(), shared)


def _facts(path: Path) -> os.stat_result | None:
    with suppress(OSError):
        return path.lstat()
    return None


def _try_lock(target: Path, file: BinaryIO, shared: bool) -> bool:
    """Lock a file until this process ends, or the file is closed; False if another process has it."""
    try:
        _lock_descriptor(file.fileno(), shared)
    except OSError as error:
        if error.errno in _NOT_OFFERED:
            raise _NoLocks from error
        if error.errno in _IN_USE:
            return False
        problem = f"cannot be written: the file system locks no file there ({os.strerror(error.errno or 0)})"
        raise FileFormatError(f"{target}: {problem}; give an output on another one") from error
    return True


def _lock_descriptor(descriptor: int, shared: bool) -> None:
    with suppress(ImportError):
        fcntl = import_module("fcntl")
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        return
    with suppress(ImportError):
        if shared:  # Windows has no such lock for `msvcrt`
            raise _NoLocks
        msvcrt = import_module("msvcrt")
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # from the file's position on, which must be its start
        return
    raise _NoLocks


def _owner_record(target: Path, folder: Folder, shared: bool) -> _Lock:
    """Return a lock that is a record of this process; raise `FileFormatError` if others have one."""
    kind = _SHARED if shared else LOCK + "-"
    own = kind + token_hex(6)
    problem = "its file system offers no locks; do not write it from another machine at the same time"
    warnings.warn(f"{target}: {problem}", stacklevel=2)
    with suppress(OSError):
        folder.remove(LOCK)
    folder.write_record(own, OWNER, this_process())
    for name in folder.names():
        is_other = name != own and name.startswith(LOCK + "-") and not (shared and name.startswith(_SHARED))
        if is_other and not _has_ended(folder, name):
            folder.remove(own)
            raise _in_use(target, f" (if no process uses the output, remove {folder.path / name})")
    return _Lock(own, None, os.getpid(), shared)


def _has_ended(folder: Folder, name: str) -> bool:
    """Return whether the owner of a lock has ended, and remove the lock then."""
    try:
        has_ended = folder.read_record(name, OWNER).value.has_ended()
    except FileNotFoundError:
        return True
    except FileFormatError:  # damaged: unknown
        return False
    if has_ended:
        folder.remove(name)
    return has_ended


def _in_use(target: Path, more: str = "") -> FileFormatError:
    problem = f"is in use by another process{more}"
    return FileFormatError(f"{target}: {problem}; wait for that one, or give another output")


def _release(folder: Folder, lock: _Lock) -> None:
    """Remove a lock: its name first, where the system permits that of an open file."""
    if lock.process != os.getpid():  # a child process: the lock is its parent's
        return
    is_alone = not lock.is_shared or lock.file is None or _is_alone(lock.file)
    is_removed = not is_alone or _remove(folder, lock.name)
    if lock.file is not None:
        _OPEN.discard(lock.file)
        lock.file.close()
    if not is_removed:
        _remove(folder, lock.name)


def _is_alone(file: BinaryIO) -> bool:
    """Return whether no other process has a shared lock, which its file must outlast."""
    with suppress(OSError):
        _lock_descriptor(file.fileno(), False)
        return True
    return False


def _remove(folder: Folder, name: str) -> bool:
    """Remove a file; False if it is open, here or in another process."""
    try:
        folder.remove(name)
    except OSError:
        return False
    return True


def _close_in_child() -> None:
    """Close what a child process shares with its parent: the lock would last until both have ended."""
    for file in _OPEN:
        file.close()
    _OPEN.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
