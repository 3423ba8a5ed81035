"""The library of kernels of this processor.

A library is made of raybox's sources when a wheel is built (`raybox.kernels`). It is loaded where it carries
the stamp of the sources that are installed.
"""

import ctypes
import hashlib
import json
import os
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

from raybox.compiler.calls import Found, level
from raybox.compiler.kinds import read_only_arrays, without_marks
from raybox.errors import RayboxError

FOLDER = Path(__file__).parent.parent / "kernels"
LEVELS = {"x86": ("v2", "v3", "v4"), "other": ("generic",)}
_SUFFIXES = {"win32": ".dll", "darwin": ".dylib"}


class Library(NamedTuple):
    """A loaded library, and what it has."""

    code: ctypes.CDLL
    entries: dict[str, tuple[str, str, int]]
    """name and kinds of an entry -> its symbol, the kinds of its results, which arrays must be writable"""


def find(name: str, kinds: str) -> Found | None:
    """Return the code of an entry point for arguments of some kinds; None if there is none."""
    loaded = library()
    entry = loaded and loaded.entries.get(f"{name}({without_marks(kinds)})")
    if not loaded or not entry:
        return None
    symbol, results, writable = entry
    if writable & read_only_arrays(kinds):
        raise TypeError(f"{name} writes to an array that is read-only: {kinds}")
    address = ctypes.cast(getattr(loaded.code, symbol), ctypes.c_void_p).value
    assert address
    return Found(address, results, writable)


@cache
def library() -> Library | None:
    """Return the library for this processor; None if there is none for it and these sources."""
    wanted = os.environ.get("RAYBOX_LEVEL", "")
    if wanted == "jit":
        return None
    best = level()
    levels = LEVELS["x86" if best in LEVELS["x86"] else "other"]
    usable = levels[: levels.index(best) + 1] if best in levels else ()
    if wanted and wanted not in usable:
        raise RayboxError(
            f"RAYBOX_LEVEL={wanted}: this processor has {' and '.join(usable) or 'none of the levels'}; "
            "unset it, or set one of these, or jit"
        )
    for name in [wanted] if wanted else reversed(usable):
        path = library_path(name)
        if path.exists() and (entries := _entries(path)) is not None:
            return Library(ctypes.CDLL(str(path)), entries)
    if wanted:
        raise RayboxError(f"RAYBOX_LEVEL={wanted}: {FOLDER} has no library of this level for these sources")
    return None


def library_path(level: str) -> Path:
    """Return where the library of a level lies; its manifest lies beside it."""
    return FOLDER / f"raybox-{level}{_SUFFIXES.get(sys.platform, '.so')}"


def _entries(path: Path) -> dict[str, tuple[str, str, int]] | None:
    """Return the manifest of a library; None if it was built of other sources, or by other rules."""
    try:
        manifest = json.loads(path.with_suffix(".json").read_text())
        made_of = manifest["sources"]
        entries: dict[str, tuple[str, str, int]] = manifest["entries"]
        return entries if manifest["stamp"] == stamp(made_of) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def code_source() -> str:
    """Return where machine code comes from, for people."""
    loaded = library()
    return f"kernels of {Path(loaded.code._name).name}" if loaded else "kernels compiled by Numba"


@cache
def source_stamp(folder: str = "") -> str:
    """Return a hash of all sources of raybox, or of those in a folder of it."""
    root = FOLDER.parent
    return stamp(sorted(path.relative_to(root).as_posix() for path in (root / folder).rglob("*.py")))


def stamp(names: list[str]) -> str:
    """Return a hash of sources of raybox, by their paths in the package."""
    digest = hashlib.blake2b(digest_size=16)
    for name in names:
        digest.update(f"\0{name}\0".encode())  # sources hold no null characters
        digest.update((FOLDER.parent / name).read_bytes())
    return digest.hexdigest()
