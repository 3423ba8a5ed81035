"""The identity of files that are read: it changes when one is written to, or replaced by an equal one."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


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


def _files(path: Path) -> list[Path]:
    """Return the files of a folder in order, or the one file."""
    return sorted(item for item in path.rglob("*") if item.is_file()) if path.is_dir() else [path]
