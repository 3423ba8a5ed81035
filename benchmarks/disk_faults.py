"""Faults at any call that changes what is on a disk: an error of the system, or the end of the process."""

import errno
import os
import shutil  # noqa: F401 - looks at the functions of os once, before they are wrapped
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from raybox.store import disk

_CALLS = ("replace", "unlink", "rmdir", "mkdir", "fsync", "open", "fchmod")
_FILE_CALLS = ("write", "close")
ERRORS = (errno.EIO, errno.ENOSPC, errno.EINTR, errno.EMFILE, errno.EACCES)


class Calls:
    """The calls of a process so far; before the one of a number, `act` is called, which may raise."""

    def __init__(self, number: int | None, act: Callable[[], None]) -> None:
        self.names = list[str]()
        self._number, self._act, self._lock = number, act, threading.Lock()

    def wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that counts its calls."""

        def call(*args: Any, **options: Any) -> Any:
            with self._lock:
                self.names.append(name)
                is_it = len(self.names) - 1 == self._number
            if is_it:
                self._act()
            return function(*args, **options)

        return call


@contextmanager
def faults(number: int | None = None, act: Callable[[], None] = lambda: None) -> Iterator[Calls]:
    """Count the calls in a block, and act at one of them; yield them."""
    calls, before = Calls(number, act), list[tuple[Any, str, Any]]()
    for place, names in ((os, _CALLS), (disk.OutFile, _FILE_CALLS)):
        for name in names:
            before.append((place, name, getattr(place, name)))
            setattr(place, name, calls.wrapped(name, getattr(place, name)))
    try:
        yield calls
    finally:
        for place, name, function in before:
            setattr(place, name, function)


def error(number: int) -> Callable[[], None]:
    """Return what raises an error of the system."""

    def act() -> None:
        raise OSError(number, os.strerror(number))

    return act


def kill() -> None:
    """End this process."""
    os.kill(os.getpid(), signal.SIGKILL)


_FOR_GOOD = ExitStack()
"""A context that is not referenced ends when it is collected, and the faults with it."""


def kill_at(number: int) -> None:
    """End this process at a call, from now on."""
    _FOR_GOOD.enter_context(faults(number, kill))


def killed(work: Callable[[], object], number: int) -> str | None:
    """Run work in a fork that is killed at a call; return the name of the call, None if it has ended."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:

            def act() -> None:
                os.write(write, calls.names[-1].encode())
                kill()

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
