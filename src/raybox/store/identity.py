"""The identity of files that are read: it changes when one is written to, or replaced by an equal one."""

from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

FileIdentity: TypeAlias = tuple[str, int, int, int, int, int]
"""Path, device, inode, size, and when the file and its inode were changed (in ns; on Windows, made)."""


def identity(path: Path) -> tuple[FileIdentity, ...]:
    """Return the identity of a file, or of all files of a folder; none for a missing one."""
    try:
        is_folder = path.is_dir()
        files = sorted(item for item in path.rglob("*") if item.is_file()) if is_folder else [path]
        return tuple(_identity(file) for file in files)
    except FileNotFoundError:  # it was removed, or a file of it was
        return ()


def _identity(path: Path) -> FileIdentity:
    stat = path.stat()
    return str(path), stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


class InputFiles:
    """Files and folders that must not change while they are read."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._before = {path: identity(path) for path in paths}

    def changed(self) -> list[Path]:
        """Return those that were changed, replaced or removed since."""
        return [path for path, before in self._before.items() if identity(path) != before]
