"""Exclusive locks of files, until they are closed: flock on POSIX, a locked byte on Windows."""

import errno
from importlib import import_module
from typing import Any

_NOT_OFFERED = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}  # by the file system


def lock(number: int) -> bool:
    """Lock an open file, by its descriptor; return False if another process has it.

    True, too, where neither the system nor the file system offers locks.
    """
    try:
        _lock_now(number)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:
        if error.errno not in _NOT_OFFERED:
            raise
    return True


def _lock_now(number: int) -> None:
    fcntl, msvcrt = _module("fcntl"), _module("msvcrt")
    if fcntl is not None:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    elif msvcrt is not None:
        msvcrt.locking(number, msvcrt.LK_NBLCK, 1)  # from the file's position on, which must be its start


def open_files_stay() -> bool:
    """Return whether the system refuses to remove files that are open, as Windows does."""
    return _module("fcntl") is None


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None
