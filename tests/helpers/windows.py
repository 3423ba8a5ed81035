"""A simulation of Windows on Linux, as a fixture: what raybox does there with files, locks and the console.

* No `fcntl`; `msvcrt` locks files, and refuses those that another open file has locked.
* Files that this process has open or mapped cannot be removed, renamed or replaced.
* `os.name` is "nt" and `sys.platform` "win32" in raybox's own modules, which find none of POSIX's functions.
* SO_REUSEADDR lets two sockets listen at one port; `socket.create_server` finds Windows, and does not set it.
* stdout and stderr of commands are in cp1252.

Only raybox's modules and `socket` see another `os`: pathlib and the libraries that raybox uses stay those of
Linux.
"""

import contextlib
import errno
import fcntl
import importlib
import io
import os
import pkgutil
import re
import socket
import sys
import types
from pathlib import Path

import pytest

import raybox

_ABSENT = {
    "getuid",
    "geteuid",
    "fchmod",
    "sched_getaffinity",
    "sched_setaffinity",
    "sendfile",
    "killpg",
    "fork",
}
_RENAME, _UNLINK = os.rename, os.unlink


class _Module:
    """A module less some names, with others replaced."""

    def __init__(self, module, absent=(), **replaced):
        self._module, self._absent = module, frozenset(absent)
        vars(self).update(replaced)

    def __getattr__(self, name):
        if name in self._absent:
            raise AttributeError(name)
        return getattr(self._module, name)


def paths_in_use():
    """Return the paths of all files that this process has open or mapped."""
    paths = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            paths.add(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            continue  # the descriptor of the listing itself
    maps = Path("/proc/self/maps").read_text()
    paths.update(re.findall(r"(?<= )/.*$", maps, re.MULTILINE))
    return {path for path in paths if path.startswith("/")}


def refuse_if_used(path, folder=None):
    """Raise PermissionError if a file, or a file of a folder, is in use."""
    parent = os.getcwd() if folder is None else os.readlink(f"/proc/self/fd/{folder}")
    name = os.path.join(parent, os.fspath(path))
    real = os.path.join(os.path.realpath(os.path.dirname(name)), os.path.basename(name))
    inside = (used for used in paths_in_use() if used == real or used.startswith(real + "/"))
    if any(os.path.isfile(used) for used in inside):
        raise PermissionError(errno.EACCES, "The process cannot access the file: it is in use", str(path))


def _unlink(path, *, dir_fd=None):
    if os.path.lexists(path) or dir_fd is not None:
        refuse_if_used(path, dir_fd)
    _UNLINK(path, dir_fd=dir_fd)


def _rename(source, target, *, src_dir_fd=None, dst_dir_fd=None):
    if os.path.exists(target):
        raise FileExistsError(errno.EEXIST, "Cannot create a file when that file already exists", str(target))
    refuse_if_used(source, src_dir_fd)
    _RENAME(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)


def _replace(source, target, *, src_dir_fd=None, dst_dir_fd=None):
    refuse_if_used(source, src_dir_fd)
    refuse_if_used(target, dst_dir_fd)
    _RENAME(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)


def _locking(number, mode, length):
    """Lock an open file, as `msvcrt.locking` does: PermissionError if another has it."""
    assert (mode, length) == (2, 1)
    assert os.lseek(number, 0, os.SEEK_CUR) == 0, "the lock begins at the position of the file"
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise PermissionError(errno.EACCES, "Permission denied") from error


def _setsockopt(self, level, name, *value):
    """Share the port, as SO_REUSEADDR does on Windows."""
    if (level, name) == (socket.SOL_SOCKET, socket.SO_REUSEADDR):
        name = socket.SO_REUSEPORT
    super(socket.socket, self).setsockopt(level, name, *value)


def raybox_modules():
    """Import and return all modules of raybox that can be imported here."""
    for found in pkgutil.walk_packages(raybox.__path__, "raybox.", onerror=lambda _: None):
        if not found.name.startswith(("raybox.bench", "raybox.__main__", "raybox.kernels.raybox-")):
            with contextlib.suppress(ModuleNotFoundError):  # of a compiler that is not installed
                importlib.import_module(found.name)
    return [module for name, module in list(sys.modules.items()) if name.startswith("raybox.")]


@pytest.fixture
def windows(monkeypatch):
    """Let this process find what it would find on Windows."""
    from raybox.threads import pool

    msvcrt = types.ModuleType("msvcrt")
    msvcrt.LK_NBLCK, msvcrt.locking = 2, _locking
    fake_os, fake_sys = _Module(os, _ABSENT, name="nt"), _Module(sys, platform="win32")
    for module in raybox_modules():
        for name, real, fake in (("os", os, fake_os), ("sys", sys, fake_sys)):
            if getattr(module, name, None) is real:
                monkeypatch.setattr(module, name, fake)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", msvcrt)
    for name, fake in (("unlink", _unlink), ("remove", _unlink), ("rename", _rename), ("replace", _replace)):
        monkeypatch.setattr(os, name, fake)
    monkeypatch.setattr(socket, "os", fake_os)
    monkeypatch.setattr(socket.socket, "setsockopt", _setsockopt, raising=False)
    pool._current_core.cache_clear()
    yield
    pool._current_core.cache_clear()


@contextlib.contextmanager
def cp1252():
    """Replace stdout and stderr by a console in cp1252; yield the bytes that it shows."""
    shown = io.BytesIO()
    stream = io.TextIOWrapper(shown, encoding="cp1252", errors="strict", write_through=True)
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        yield shown
