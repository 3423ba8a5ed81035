"""Folders and files that only this user writes to, where others may write, too.

Someone who can write to the folder of an output may make the folder of its unfinished part first, with
symbolic links under the names of its files. So no link is followed there, no folder of another owner is used,
and no file is written that has a second name.
"""

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from raybox.errors import FileFormatError
from raybox.io.formats.common import file_error

_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def make_folder(folder: Path) -> None:
    """Make a folder unless it exists; raise `FileFormatError` for a link, and for another user's."""
    with suppress(FileExistsError):
        folder.mkdir()
        return
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode):
        raise file_error(folder, "is no folder", "rename or remove it, or give another output")
    is_own = os.name != "posix" or facts.st_uid == os.geteuid()
    if not is_own and facts.st_uid != _owner_of_new(folder):
        raise file_error(folder, "belongs to another user", "remove it, or give an output in another folder")


def _owner_of_new(folder: Path) -> int:
    """Return the owner of a new file: some mounted file systems give all files one owner."""
    path = folder / f"lock-{token_hex(6)}"  # a name that other processes do not take for results
    try:
        with open_new(path) as file:
            return os.fstat(file.fileno()).st_uid
    finally:
        path.unlink(missing_ok=True)


def open_new(path: Path) -> BinaryIO:
    """Return a new file, open for writing, in place of any that has the name."""
    path.unlink(missing_ok=True)
    return _open(path, os.O_EXCL)


def open_own(path: Path, *, buffering: int = -1) -> BinaryIO:
    """Return a file, open for reading and writing, made if there is none.

    Raise `FileFormatError` for a link, and for a file that has a second name.
    """
    if path.is_symlink():
        raise _foreign(path, "is a symbolic link")
    file = _open(path, 0, buffering)
    facts = os.fstat(file.fileno())
    if stat.S_ISREG(facts.st_mode) and facts.st_nlink <= 1:  # 0: another process has removed it
        return file
    file.close()
    raise _foreign(path, "is no regular file, or has a second name")


def _open(path: Path, flags: int, buffering: int = -1) -> BinaryIO:
    number = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS | flags, 0o666)
    return open(number, "r+b", buffering=buffering)


def _foreign(path: Path, problem: str) -> FileFormatError:
    way_out = f"find out who made it; remove the folder {path.parent}, or give an output in another folder"
    return file_error(path, problem, way_out)


def remove(path: Path, *, ignore_errors: bool = False) -> None:
    """Remove a file, a link, or a folder with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=ignore_errors)
    else:
        path.unlink(missing_ok=True)
