"""Exclusive locks of open files: flock on POSIX, a locked byte on Windows."""

import errno
from importlib import import_module
from types import ModuleType

_NOT_OFFERED = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_IN_USE = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)


class NoLocks(Exception):
    """The system, or the file system, has no locks of files."""


def try_lock(descriptor: int) -> bool:
    """Lock a file until this process ends, or the descriptor is closed.

    False if another process has it. Raise `NoLocks` if nothing offers locks.
    """
    try:
        _lock(descriptor)
    except OSError as error:
        if error.errno in _NOT_OFFERED:
            raise NoLocks from error
        if error.errno in _IN_USE:
            return False
        raise
    return True


def _lock(descriptor: int) -> None:
    fcntl, msvcrt = _module("fcntl"), _module("msvcrt")
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    elif msvcrt is not None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # from the file's position on, which must be its start
    else:
        raise NoLocks


def _module(name: str) -> ModuleType | None:
    try:
        return import_module(name)
    except ImportError:
        return None
