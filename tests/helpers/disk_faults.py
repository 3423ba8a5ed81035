"""Faults at any call that changes what is on a disk: an error of the system, or the end of the process."""

import errno
import os
import signal
import threading
from contextlib import contextmanager

import pytest

from raybox.store import disk

_CALLS = ("replace", "unlink", "rmdir", "mkdir", "fsync", "open", "fchmod")
_FILE_CALLS = ("write", "close")
ERRORS = (errno.EIO, errno.ENOSPC, errno.EINTR, errno.EMFILE, errno.EACCES)


class Calls:
    """The calls of a process so far; before the one of a number, `act` is called, which may raise."""

    def __init__(self, number, act):
        self.names, self._number, self._act = [], number, act
        self._lock = threading.Lock()

    def wrapped(self, name, function):
        def call(*args, **options):
            with self._lock:
                self.names.append(name)
                is_it = len(self.names) - 1 == self._number
            if is_it:
                self._act()
            return function(*args, **options)

        return call


@contextmanager
def faults(number=None, act=lambda: None):
    """Count the calls in a block; make one of them fail. Yield them."""
    calls = Calls(number, act)
    with pytest.MonkeyPatch.context() as patch:
        for name in _CALLS:
            patch.setattr(os, name, calls.wrapped(name, getattr(os, name)))
        for name in _FILE_CALLS:
            patch.setattr(disk.OutFile, name, calls.wrapped(name, getattr(disk.OutFile, name)))
        yield calls


def error(number):
    """Return what raises an error of the system."""

    def act():
        raise OSError(number, os.strerror(number))

    return act


def killed(work, number):
    """Run work in a fork that is killed at a call; return the name of the call, None if it has ended."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:

            def act():
                os.write(write, calls.names[-1].encode())
                os.kill(os.getpid(), signal.SIGKILL)

            with faults(number, act) as calls:
                work()
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        name = pipe.read().decode()
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) == bool(name)
    assert name or os.WEXITSTATUS(status) == 0
    return name or None
