"""Facts about files that are read: whether they are what they were.

`content_facts` stay the same when a file is moved or copied with its times; `identity` changes also when it
is replaced by an equal one. A folder counts as all its files.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from raybox.store import checksum
from raybox.store.checksum import Facts

_END_BYTES = 1 << 16  # read at each end of a file


class FileIdentity(NamedTuple):
    """A file as the system names it, and when it was last changed; 0 for what it does not offer."""

    path: str
    device: int
    inode: int
    size: int
    modified: int
    """Nanoseconds."""
    changed: int
    """Nanoseconds; of the inode. On Windows, when it was made."""


def identity(path: Path) -> tuple[FileIdentity, ...]:
    """Return the identity of a file, or of all files of a folder; none for a missing one."""
    try:
        return tuple(_identity(item) for item in _files(path))
    except FileNotFoundError:  # it was removed, or a file of it was
        return ()


def _identity(path: Path) -> FileIdentity:
    stat = path.stat()
    return FileIdentity(str(path), stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


class InputFiles:
    """Files and folders that must not change while they are read."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._before = {path: identity(path) for path in paths}

    def changed(self) -> list[Path]:
        """Return those that were changed, replaced or removed since."""
        return [path for path, before in self._before.items() if identity(path) != before]


def fingerprint(path: Path) -> Facts:
    """Return the content facts of a file, and a checksum of its inode and that one's time.

    Unlike `identity`, it is the same on all machines that share a file system.
    """
    inodes = (f"{file.inode} {file.changed}" for file in identity(path))
    return content_facts(path) | {"inodes": checksum.of_texts(*inodes)}


def content_facts(path: Path) -> Facts:
    """Return facts that change with a file's content, but not with its name.

    Size, modification time, checksum of both ends. Of a folder: the total size, and a checksum of the names,
    sizes and times of its files.
    """
    if path.is_dir():
        stats = [(item.relative_to(path).as_posix(), item.stat()) for item in _files(path)]
        lines = (f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in stats)
        return {"bytes": sum(stat.st_size for _, stat in stats), "files": checksum.of_texts(*lines)}
    with path.open("rb") as file:
        stat = os.fstat(file.fileno())
        head = file.read(_END_BYTES)
        file.seek(max(0, stat.st_size - _END_BYTES))
        ends = checksum.of_bytes(head, file.read(_END_BYTES))
    return {"bytes": stat.st_size, "modified": stat.st_mtime_ns, "ends": ends}


def _files(path: Path) -> list[Path]:
    """Return the files of a folder in order, or the one file."""
    return sorted(item for item in path.rglob("*") if item.is_file()) if path.is_dir() else [path]
