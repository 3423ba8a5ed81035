"""The library of kernels of this processor.

A library is made of raybox's sources when a wheel is built (`raybox.kernels`). It is loaded if its bytes are
those that its manifest names, and its stamp is that of the sources that are installed.
"""

import ctypes
import os
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import NamedTuple

from raybox.compiler.calls import Found
from raybox.compiler.kinds import read_only_arrays, without_marks
from raybox.compiler.processor import level
from raybox.errors import FileFormatError, RayboxError
from raybox.store import checksum, record
from raybox.store.record import RecordKind

FOLDER = Path(__file__).parent.parent / "kernels"
LEVELS = {"x86": ("v2", "v3", "v4"), "other": ("generic",)}
_SUFFIXES = {"win32": ".dll", "darwin": ".dylib"}


Entries = dict[str, tuple[str, str, int]]
"""name and kinds of an entry -> its symbol, the kinds of its results, which arrays must be writable"""


class LibraryManifest(NamedTuple):
    """What a library must be, and what it has."""

    size: int
    """Bytes of the library."""
    checksum: str
    """Of all of them."""
    stamp: str
    """Of the sources that it was made of."""
    sources: list[str]
    entries: Entries


_WAY_OUT = "reinstall raybox"
MANIFEST = RecordKind[LibraryManifest](
    "manifest of kernels", 1, lambda value: LibraryManifest(**value), _WAY_OUT
)


class Library(NamedTuple):
    """A loaded library, and what it has."""

    code: ctypes.CDLL
    entries: Entries


class Refusal(NamedTuple):
    """Why the library of this processor is not loaded."""

    problem: str
    """File, problem and way out."""
    is_damage: bool = True
    """False if it was built of other sources, as in a checkout after an edit."""


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


def library() -> Library | None:
    """Return the library for this processor; None if there is none, or none that may be loaded."""
    found = _find_library()
    return found if isinstance(found, Library) else None


def refusal() -> Refusal | None:
    """Return why the library for this processor is not loaded; None if it is, or if there is none."""
    found = _find_library()
    return found if isinstance(found, Refusal) else None


@cache
def warn_of_damage() -> None:
    """Warn, once a process, that Numba compiles the kernels of a damaged library."""
    refused = refusal()
    if refused and refused.is_damage:
        text = f"{refused.problem}. Numba compiles the kernels instead."
        warnings.warn(text, RuntimeWarning, stacklevel=1)


@cache
def _find_library() -> Library | Refusal | None:
    """Return the library of the highest level that this processor has, if it may be loaded."""
    wanted = os.environ.get("RAYBOX_LEVEL", "")
    if wanted == "jit":
        return None
    usable = usable_levels()
    if wanted and wanted not in usable:
        raise RayboxError(
            f"RAYBOX_LEVEL={wanted}: this processor has {' and '.join(usable) or 'none of the levels'}; "
            "unset it, or set one of these, or jit"
        )
    paths = map(library_path, [wanted] if wanted else reversed(usable))
    path = next((path for path in paths if path.exists() or path.with_suffix(".json").exists()), None)
    found = _load(path) if path else None
    if wanted and not isinstance(found, Library):
        problem = found.problem if found else f"{FOLDER} has no library of this level"
        raise RayboxError(f"RAYBOX_LEVEL={wanted}: {problem}")
    return found


def usable_levels() -> tuple[str, ...]:
    """Return the levels of libraries that this processor can run, the highest last."""
    best = level()
    levels = LEVELS["x86" if best in LEVELS["x86"] else "other"]
    return levels[: levels.index(best) + 1] if best in levels else ()


def _load(path: Path) -> Library | Refusal:
    """Return a library, loaded after its bytes and the installed sources were compared with its manifest."""
    manifest_path = path.with_suffix(".json")
    try:
        with manifest_path.open("rb") as file:
            manifest = record.read(MANIFEST, manifest_path, file).value
        if not _is_of(manifest):
            return Refusal(f"{path} was built of other sources; build it again, or {_WAY_OUT}", False)
        with path.open("rb") as file:
            size, found = os.fstat(file.fileno()).st_size, checksum.of_file(file)
        if size != manifest.size:
            return Refusal(f"{path} has {size:,} bytes in place of {manifest.size:,}; {_WAY_OUT}")
        if found != manifest.checksum:
            return Refusal(f"{path} is damaged: its checksum differs; {_WAY_OUT}")
        return Library(ctypes.CDLL(str(path)), manifest.entries)
    except FileFormatError as error:
        return Refusal(str(error))
    except OSError as error:
        return Refusal(f"{path} cannot be loaded: {error}; {_WAY_OUT}")


def _is_of(manifest: LibraryManifest) -> bool:
    """Return whether a library was built of the sources that are installed."""
    try:
        return manifest.stamp == stamp(manifest.sources)
    except OSError:  # a source that is gone
        return False


def library_path(level: str) -> Path:
    """Return where the library of a level lies; its manifest lies beside it."""
    return FOLDER / f"raybox-{level}{_SUFFIXES.get(sys.platform, '.so')}"


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
    root, total = str(FOLDER.parent), checksum.Checksum()
    for name in names:
        total.update(f"\0{name}\0".encode())  # sources hold no null characters
        with open(f"{root}/{name}", "rb", buffering=0) as file:  # half the time of `Path.read_bytes`
            total.update(file.read())
    return total.text()
