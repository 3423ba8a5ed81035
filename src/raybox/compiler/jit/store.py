"""Object files that were compiled on this machine, stored in a folder of the user's own.

A file begins with the key of its code and a checksum. Both are verified before anything is loaded. It is
machine code: whoever can write the file can run code, so a folder that others can write to is not used.
"""

import hashlib
import json
import os
import stat
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

_FILES = 4096  # that stay: all kernels of a checkout are some 150
_MAX_AGE = 3600.0  # seconds after which a temporary file belongs to no running process
_FORMAT = b"raybox object 1\n"


class ObjectFile(NamedTuple):
    """An object file of one function."""

    symbol: str
    results: str
    """Kinds of its results; empty for a function of `apart`."""
    requires: tuple[str, ...]
    """Symbols that it calls."""
    code: bytes


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


def is_private(folder: Path) -> bool:
    """Return whether a folder exists and only this user can write to it.

    A link to it must be the user's own.
    """
    try:
        facts, link = folder.stat(), folder.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(facts.st_mode):
        return False
    return os.name == "nt" or (facts.st_uid == link.st_uid == os.getuid() and not facts.st_mode & 0o022)


def load(path: Path, key: bytes) -> ObjectFile | None:
    """Return the object file stored under a key; None if missing, damaged or foreign."""
    if not is_private(path.parent):
        return None
    try:
        content = path.read_bytes()
    except OSError:
        return None
    payload = content[len(_header(key, b"")) :]
    if content != _header(key, payload) + payload:
        return None
    with suppress(OSError):
        os.utime(path)
    facts, _, code = payload.partition(b"\n")
    symbol, results, requires = json.loads(facts)
    return ObjectFile(symbol, results, tuple(requires), code)


def save(path: Path, key: bytes, made: ObjectFile) -> None:
    """Write an object file atomically, after removing old ones. Ignore errors of the system."""
    payload = json.dumps([made.symbol, made.results, made.requires]).encode() + b"\n" + made.code
    new = path.with_name(f"{path.name}.{uuid4().hex[:8]}.tmp")
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_private(path.parent):
            return
        _prune(path.parent)
        try:
            new.write_bytes(_header(key, payload) + payload)
            os.replace(new, path)
        finally:
            new.unlink(missing_ok=True)


def _header(key: bytes, payload: bytes) -> bytes:
    """Return the first bytes of a file. key: 32 bytes."""
    return _FORMAT + key + hashlib.blake2b(payload, key=key, digest_size=32).digest()


@cache
def _prune(folder: Path) -> None:
    """Remove old temporary files and the object files that were not used for longest."""
    for path in folder.glob("*.tmp"):
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
