"""Folders that only this user writes to, and the files in them.

Other users who can write to the folder of an output may make the folder of its unfinished part first, with
links under the names of its files. So a `Folder` is created with mode 0700, or it exists, belongs to this
user, and nobody else can write to it. It is opened once, and all names in it are looked up from its
descriptor: no name is followed as a link, no file has a second name, and renaming the folder changes nothing.

Windows has neither descriptors of folders nor modes. There, names are looked up by path, and the folder and
its files must be no links; who may write is as the folder above permits.
"""

import errno
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO, Self, TypeVar

from raybox.errors import FileFormatError
from raybox.store import checksum, record
from raybox.store.checksum import Json
from raybox.store.disk import OutFile, at
from raybox.store.record import Record, RecordKind

T = TypeVar("T")

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL
_FLAGS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY", "O_CLOEXEC"))
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _FLAGS
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)
TEMPORARY = "new-"  # names begin with it until their files are complete


class Folder:
    """An open folder that only this user writes to; made by `make_folder` or `open_folder`."""

    def __init__(self, path: Path, descriptor: int | None) -> None:
        self.path = path
        self._opened = descriptor  # None on Windows
        self._is_closed = False

    @property
    def _descriptor(self) -> int | None:
        if self._is_closed:
            raise ValueError(f"the folder {self.path} is closed")
        return self._opened

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder, which then can no longer be used. It may be closed twice."""
        if self._opened is None or self._is_closed:
            return
        self._is_closed = True  # also after an error: the descriptor's number may soon be another file's
        with suppress(OSError):  # nothing was written by it
            os.close(self._opened)

    __del__ = close

    def _name(self, name: str) -> str:
        """Return what the system finds a name by, with `_descriptor`."""
        if name in ("", ".", "..") or "/" in name or os.sep in name:
            raise ValueError(f"{name!r} is no name of a file")
        return name if self._descriptor is not None else str(self.path / name)

    def facts(self) -> os.stat_result:
        """Return the facts of the folder itself."""
        return os.stat(self.path if self._descriptor is None else self._descriptor)

    def names(self) -> list[str]:
        """Return the names in the folder, in order."""
        with at(self.path, "listed"):
            return sorted(os.listdir(self.path if self._descriptor is None else self._descriptor))

    def stat(self, name: str) -> os.stat_result | None:
        """Return the facts of a name, a link not followed; None if there is none."""
        try:
            with at(self.path / name, "looked at"):
                return os.stat(self._name(name), dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def create(self, name: str) -> OutFile:
        """Return a new file, in place of any with that name."""
        self.remove(name)
        return OutFile(self._open(name, _NEW, 0), self.path / name)

    def open(self, name: str) -> BinaryIO:
        """Return an existing file, open for reading.

        Raise `FileNotFoundError` without one, `FileFormatError` unless it is a regular file of one name.
        """
        return self._open(name, os.O_RDONLY)

    def open_or_create(self, name: str) -> BinaryIO:
        """Return a file, open for reading and writing, made if there is none; errors as of `open`."""
        return self._open(name, os.O_RDWR | os.O_CREAT)

    def _open(self, name: str, flags: int, buffering: int = -1) -> BinaryIO:
        there = self.stat(name)
        if there is not None and not stat.S_ISREG(there.st_mode):
            raise self._foreign(name, "is a symbolic link, or no regular file")
        with at(self.path / name, "opened"):
            descriptor = os.open(self._name(name), flags | _FLAGS, 0o666, dir_fd=self._descriptor)
            facts = os.fstat(descriptor)
        if stat.S_ISREG(facts.st_mode) and facts.st_nlink <= 1:  # 0: another process has removed it
            return open(descriptor, "rb" if flags & os.O_ACCMODE == os.O_RDONLY else "r+b", buffering)
        os.close(descriptor)
        raise self._foreign(name, "is no regular file, or has a second name")

    def _foreign(self, name: str, problem: str) -> FileFormatError:
        way_out = f"find out who made it; remove the folder {self.path}, or give an output in another folder"
        return FileFormatError(f"{self.path / name}: {problem}; {way_out}")

    def rename(self, name: str, new: str) -> None:
        """Rename a file, in place of any with the new name."""
        names = self._name(name), self._name(new)
        with at(self.path / new, "named"):
            os.replace(*names, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def move_to(self, name: str, target: Path) -> None:
        """Move a file or folder out, to a path on the same file system."""
        with at(target, "put in its place"):
            os.replace(self._name(name), target, src_dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        """Remove a file, a link, or a folder with all that is in it; nothing if there is none."""
        facts = self.stat(name)
        with suppress(FileNotFoundError), at(self.path / name, "removed"):
            if facts and stat.S_ISDIR(facts.st_mode):
                shutil.rmtree(self._name(name), dir_fd=self._descriptor)
            else:
                os.unlink(self._name(name), dir_fd=self._descriptor)

    def subfolder(self, name: str) -> "Folder":
        """Return a folder in this one, made if there is none; errors as of `make_folder`."""
        with suppress(FileExistsError), at(self.path / name, "made"):
            os.mkdir(self._name(name), 0o700, dir_fd=self._descriptor)
        with at(self.path / name, "opened"):
            return _open_trusted(self.path / name, self._name(name), self._descriptor)

    def sync(self) -> None:
        """Wait until the names of the folder are on the disk, where the file system offers that."""
        if self._descriptor is None:
            return
        try:
            with at(self.path, "written to the disk"):
                os.fsync(self._descriptor)
        except OSError as error:
            if error.errno not in _NO_SYNC:
                raise

    def publish(self) -> int:
        """Let others read the folder, as a new one of this user; return the mode of a new one.

        Where the umask lets a group write, give it that mode by `set_mode` once it is in its place: a folder
        that others write to is not trusted.
        """
        if self._descriptor is None:
            return 0
        probe = TEMPORARY + token_hex(6)
        with at(self.path, "made readable"):
            os.mkdir(probe, dir_fd=self._descriptor)  # the umask cannot be read without setting it
            mode = os.stat(probe, dir_fd=self._descriptor, follow_symlinks=False).st_mode
            os.rmdir(probe, dir_fd=self._descriptor)
        self.set_mode(mode & ~_OTHERS_WRITE)
        return mode

    def set_mode(self, mode: int) -> None:
        """Give the folder a mode; nothing on Windows."""
        if self._descriptor is not None:
            with at(self.path, "made readable"):
                os.fchmod(self._descriptor, stat.S_IMODE(mode))

    def write_record(self, name: str, kind: RecordKind[Any], value: Json, *, durable: bool = False) -> str:
        """Write a record under a new name, which replaces the old one; return its checksum.

        durable: it is on the disk before it replaces the old one.
        """
        new, data = TEMPORARY + token_hex(6), record.encode(kind, value)
        try:
            with self.create(new) as file:
                file.write(data)
                if durable:
                    file.sync()
            self.rename(new, name)
        except BaseException:
            with suppress(OSError):  # the first error counts
                self.remove(new)
            raise
        if durable:
            self.sync()
        return checksum.of_bytes(data)

    def read_record(self, name: str, kind: RecordKind[T]) -> Record[T]:
        """Return a record; raise `FileFormatError` for a damaged one, `FileNotFoundError` without one."""
        with self.open(name) as file:
            return record.read(kind, self.path / name, file)


def make_folder(path: Path) -> Folder:
    """Return a folder, made with mode 0700 if there is none.

    Raise `FileFormatError` for a link, for another user's, and for one that others can write to.
    """
    with suppress(FileExistsError), at(path, "made"):
        path.mkdir(mode=0o700)
    return open_folder(path)


def open_folder(path: Path, *, own: bool = True) -> Folder:
    """Return an existing folder; raise as `make_folder`, or `FileNotFoundError`.

    own=False: one that the user named, which may be a link, another user's, or one of a group.
    """
    with at(path, "opened"):
        if own:
            return _open_trusted(path, str(path), None)
        is_posix = os.name == "posix"
        return Folder(path, os.open(path, _FOLDER_FLAGS & ~os.O_NOFOLLOW) if is_posix else None)


def _open_trusted(path: Path, name: str, parent: int | None) -> Folder:
    """Return a folder by its name in a parent, or by its path without one."""
    facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if not stat.S_ISDIR(facts.st_mode):
        raise FileFormatError(f"{path}: is no folder; rename or remove it, or give another output")
    if os.name != "posix":
        return Folder(path, None)
    descriptor = os.open(name, _FOLDER_FLAGS, dir_fd=parent)
    if problem := _problem(descriptor):
        os.close(descriptor)
        raise FileFormatError(f"{path}: {problem}, or give an output in another folder")
    return Folder(path, descriptor)


def _problem(descriptor: int) -> str:
    """Return why a folder is not trusted, and a way out; empty text if only this user writes to it."""
    facts = os.fstat(descriptor)
    if facts.st_uid == os.geteuid() and not facts.st_mode & _OTHERS_WRITE:
        return ""
    try:
        new = _facts_of_new(descriptor)
    except PermissionError:
        return "belongs to another user; remove it"
    if facts.st_uid not in (os.geteuid(), new.st_uid):
        return "belongs to another user; remove it"
    if facts.st_mode & _OTHERS_WRITE & ~new.st_mode:
        return "can be written to by other users; if all in it is yours, run chmod go-w for it"
    return ""


def _facts_of_new(folder: int) -> os.stat_result:
    """Return the facts of a new, private file: some mounted file systems give all the same owner and mode."""
    name = TEMPORARY + token_hex(6)
    descriptor = os.open(name, _NEW | _FLAGS, 0o600, dir_fd=folder)
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)
        os.unlink(name, dir_fd=folder)
