"""Object files that were compiled on this machine, stored in a folder of the user's own.

A file is the code, and a record of its key and symbols. Both are verified before anything is loaded. Another
user who can write the file can run code, so only a folder that nobody else can write to is used.
"""

import os
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

from raybox.errors import FileFormatError
from raybox.store import checksum, record
from raybox.store.folder import TEMPORARY, Folder, make_folder, open_folder
from raybox.store.record import BrokenRecord, RecordKind

_FILES = 4096  # that stay: all kernels of a checkout are some 150
_MAX_AGE = 3600.0  # seconds after which a temporary file belongs to no running process


class ObjectFile(NamedTuple):
    """An object file of one function."""

    symbol: str
    results: str
    """Kinds of its results; empty for a function of `apart`."""
    requires: tuple[str, ...]
    """Symbols that it calls."""
    code: bytes


class _Facts(NamedTuple):
    """What the record of an object file holds."""

    key: str
    symbol: str
    results: str
    requires: list[str]


_OBJECT = RecordKind[_Facts]("stored object file", 2, lambda value: _Facts(*value))


def cache_folder() -> Path | None:
    """Return the folder of object files: in `RAYBOX_CACHE_DIR`, or in the user's cache folder.

    It may not exist.
    """
    base = os.environ.get("RAYBOX_CACHE_DIR") or _user_cache()
    return Path(base).absolute() / "raybox" if base else None


def _user_cache() -> str | Path | None:
    with suppress(RuntimeError):  # no home
        if sys.platform == "win32":
            return os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches"
        folder = os.environ.get("XDG_CACHE_HOME", "")
        return folder if os.path.isabs(folder) else Path.home() / ".cache"
    return None


def is_writable() -> bool:
    """Return whether object files can be stored; make the folder."""
    folder = cache_folder()
    if folder is not None:
        with suppress(OSError, FileFormatError):
            folder.parent.mkdir(parents=True, exist_ok=True)
            make_folder(folder).close()
            return os.access(folder, os.W_OK)
    return False


def load(path: Path, key: bytes) -> ObjectFile | None:
    """Return the object file stored under a key; None if missing, damaged or foreign."""
    try:
        with open_folder(path.parent) as folder, folder.open(path.name) as file:
            facts, size, _ = record.read_trailer(_OBJECT, file, check=True)
            code = file.read(size)
    except (OSError, FileFormatError, BrokenRecord):
        return None
    if facts.key != key.hex():
        return None
    with suppress(OSError):
        os.utime(path)
    return ObjectFile(facts.symbol, facts.results, tuple(facts.requires), code)


def save(path: Path, key: bytes, made: ObjectFile) -> None:
    """Write an object file atomically, after removing old ones. Ignore errors of the system."""
    new, facts = TEMPORARY + token_hex(6), _Facts(key.hex(), made.symbol, made.results, list(made.requires))
    with suppress(OSError, FileFormatError):
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        with make_folder(path.parent) as folder:
            _prune(path.parent)
            try:
                _write(folder, new, facts, made.code)
                folder.rename(new, path.name)
            finally:
                folder.remove(new)


def _write(folder: Folder, name: str, facts: _Facts, code: bytes) -> None:
    with folder.create(name) as file:
        file.write(code)
        record.append_trailer(_OBJECT, facts, file, checksum.of_bytes(code))


@cache
def _prune(folder: Path) -> None:
    """Remove old temporary files and the object files that were not used for longest."""
    for path in folder.glob(TEMPORARY + "*"):
        if _age(path) > _MAX_AGE:
            path.unlink(missing_ok=True)
    for path in sorted(folder.glob("*.o"), key=_age)[_FILES:]:
        path.unlink(missing_ok=True)


def _age(path: Path) -> float:
    """Return the seconds since a file was last used."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
