"""Shared by all readers: options, results, and errors of one line."""

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path, PurePath
from types import MappingProxyType, ModuleType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.errors import (
    FileFormatError,
    InvalidInput,
    MissingFile,
    RayboxError,
    SkippedWarning,
    UnitsWarning,
)
from raybox.geometry import Boxes, Grid, Instances, Invalid, Mesh, Planes, Rays
from raybox.geometry.colors import Colors
from raybox.geometry.file_facts import Up

Floats = NDArray[np.float64]
DEGREE = "degree"
PACKED = ".gz"
IN_DEGREES = "its coordinates are degrees, not lengths; project them to metres, or t and angles mean nothing"
TEXTURES = "textures that are not read"
_REASONS = 5  # named on one line
_SURROGATES = re.compile("[\ud800-\udfff]")
Labels = dict[str, NDArray[Any]]
Tessellation = Literal["opencascade", "hybrid"]
InvalidRows = Literal["raise", "miss", "skip"]
"""How to handle bad rows of a file: raise; rays miss; boxes are left out."""
ObjectsOf = Literal["surfaces"]


class ReadOptions(NamedTuple):
    """The keywords of :func:`raybox.load`."""

    kind: str | None = None
    origin: tuple[float, ...] | None = None
    boxes: bool = False
    invalid: InvalidRows = "raise"
    lod: str | None = None
    all_objects: bool = False
    progress: bool = False
    tessellation: Tessellation = "opencascade"
    objects: ObjectsOf | None = None
    up: Up | None = None
    layout: str | None = None

    @property
    def invalid_rays(self) -> Invalid:
        """How to handle bad rays, which are never left out."""
        return "miss" if self.invalid == "miss" else "raise"


SceneGeometry = Boxes | Grid | Instances | Mesh | Planes
Loadable = SceneGeometry | Rays | list[SceneGeometry]


class Loaded(NamedTuple):
    """The geometry of a file; counts by reason of losses, `skipped`, and of documented defaults."""

    geometry: Loadable
    skipped: Mapping[str, int] = MappingProxyType({})
    left_out: Mapping[str, int] = MappingProxyType({})
    units: str | None = None
    """what the file states: metre, millimetre, degree, …; None if nothing"""
    up: Up | None = None
    """the axis that is up, if the file or its format states it"""

    @property
    def ids(self) -> list[str | int] | None:
        """The id of each object; None without, and of a list of geometries."""
        ids = None if isinstance(self.geometry, Rays | list) else self.geometry.ids
        return None if ids is None else ids.tolist()

    @property
    def labels(self) -> dict[str, list[Any]]:
        """The labels of the objects, a list for each column."""
        if isinstance(self.geometry, Rays | list):
            return {}
        return {name: values.tolist() for name, values in self.geometry.labels.items()}

    def __repr__(self) -> str:
        notes = {"labels": [*self.labels], "skipped": {**self.skipped}, "left_out": {**self.left_out}}
        shown = [f"{name}={note}" for name, note in notes.items() if note]
        return f"Loaded({', '.join([repr(self.geometry), *shown])})"


class GridCells(NamedTuple):
    """The cells of a grid in a file; origin and pitch where the file has them."""

    occupied: NDArray[np.bool_]
    first: tuple[int, ...]
    """the place of the first cell, in cells from the origin"""
    origin: Floats | None = None
    pitch: Floats | None = None
    skipped: Mapping[str, int] = MappingProxyType({})
    colors: Colors | None = None


class FileArrays(NamedTuple):
    """Arrays of a file, unchecked: ``lower upper``, ``origins directions [t_min t_max]``, ``points``.

    ``where(array, index)`` returns the place of a number in the file.
    """

    arrays: dict[str, Floats]
    where: Callable[[str, tuple[int, ...]], str]
    labels: Labels = {}  # noqa: RUF012 - a default that is never written to
    among: str = ""
    """For errors: the rows that these are, if they are not the whole file."""
    skipped: Mapping[str, int] = MappingProxyType({})
    left_out: Mapping[str, int] = MappingProxyType({})
    units: str | None = None
    up: Up | None = None
    """the last four as of `Loaded`"""


def warn_of(path: str | os.PathLike[str], skipped: Mapping[str, int], units: str | None = None) -> None:
    """Warn of what is lost, and of degrees, at the line that called the public function that calls this."""
    if skipped:
        text = f"{path}: left out: {counts_in_words(skipped)}; see geometry.skipped"
        warnings.warn(text, SkippedWarning, stacklevel=4)
    if units == DEGREE:
        warnings.warn(f"{path}: {IN_DEGREES}", UnitsWarning, stacklevel=4)


def counts_in_words(counts: Mapping[str, int]) -> str:
    """Return reasons and counts on one line: the commonest, and how many others there are."""
    texts = [f"{reason} ({count:,})" for reason, count in Counter(counts).most_common(_REASONS)]
    texts += [f"{len(counts) - _REASONS:,} other reasons"] * (len(counts) > _REASONS)
    return ", ".join(texts)


def path_of(path: str | os.PathLike[str]) -> Path:
    """Return a path; raise for a NUL in it, and for a relative one in a folder that was deleted."""
    found = Path(path)
    if "\0" in str(found):
        raise InvalidInput(f"a path must not contain NUL; got {str(found)!r}. Correct it.")
    if not found.is_absolute():
        try:
            Path.cwd()
        except FileNotFoundError as error:
            way_out = "change to another folder, or give an absolute path"
            raise file_error(found, "the working folder was deleted", way_out, kind=MissingFile) from error
    return found


def resolved(path: Path) -> Path:
    """Return a path without links; raise for links in a circle."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:  # Python before 3.13 has a RuntimeError for it
        raise file_error(path, "has links in a circle", "give a path without them") from error


def file_below(folder: Path, name: str) -> Path | None:
    """Return the path of a file in a folder or below, links followed; None for any other."""
    parts = name.split("/")
    if {*"\\:\0"} & {*name} or not all(parts) or ".." in parts:
        return None
    try:
        root = folder.resolve()
        file = root.joinpath(*parts).resolve()
        return file if file.is_relative_to(root) and file.is_file() else None
    except (OSError, RuntimeError, ValueError):  # a loop of links, a name that no system has
        return None


class HoldsRays(FileFormatError):
    """A scene was wanted of a file of rays or points."""


def file_error(
    path: Path, problem: str, way_out: str, place: str = "", kind: type[FileFormatError] = FileFormatError
) -> FileFormatError:
    """Return an error about a file, of one line: file, place, problem, way out."""
    text = f"{path}{', ' + place if place else ''}: {problem}; {way_out}"
    return kind(" ".join(text.split()))


def extension_problem(path: Path) -> str:
    """Return what is wrong with the extension of a path that no format has."""
    if path.suffix:
        return f"unsupported file extension {path.suffix!r}"
    return "is a folder, not a file" if path.is_dir() else "has no file extension"


def suffix_of(path: PurePath) -> str:
    """Return the extension that names the format of a file, in small letters: of a.obj.gz, ``.obj``."""
    suffix = path.suffix.lower()
    return path.with_suffix("").suffix.lower() if suffix == PACKED else suffix


def missing_file(path: Path) -> FileFormatError:
    """Return the error for a path at which there is nothing."""
    problem = "cannot be read: No such file or directory"
    return file_error(path, problem, "check the path", kind=MissingFile)


def checked_texts(ids: Iterable[object], what: str = "ids") -> list[str]:
    """Return ids as text that files hold, else `InvalidInput`; what: the word for them in errors."""
    texts = [str(name) for name in ids]
    for row, text in enumerate(texts):  # NumPy drops NUL at the end, UTF-8 has no surrogates
        if text.endswith("\0") or (not text.isascii() and _SURROGATES.search(text)):
            problem = f"got {quoted(text)} of row {row}. Rename it."
            raise InvalidInput(f"{what} must be text without NUL at its end, without surrogates; {problem}")
    return texts


def quoted(value: object) -> str:
    """Return a value quoted, cut to fit into one line."""
    text = repr(value)
    return text if len(text) <= 48 else text[:44] + "...'"


@contextmanager
def reader_errors(path: Path, format_name: str, memory: str = "split the file") -> Iterator[None]:
    """Turn exceptions of a reader into a `FileFormatError`; memory: the way out if there is too little."""
    try:
        yield
    except MemoryError as error:
        raise file_error(path, "does not fit into memory", memory) from error
    except InvalidInput as error:
        raise file_error(path, str(error).rstrip("."), "correct the file") from error
    except RayboxError:
        raise
    except FileNotFoundError as error:
        raise missing_file(path) from error
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise file_error(path, problem, "check the path and its permissions") from error
    except BaseException as error:
        # A reader in Rust (lazrs) reports some broken files by a panic, which is not an Exception.
        if not isinstance(error, Exception) and type(error).__module__ != "pyo3_runtime":
            raise
        way_out = "check that the file is whole and its extension that of its format"
        raise file_error(path, f"is not readable as {format_name}{reason(error)}", way_out) from error


def reason(error: BaseException) -> str:
    """Return the text of a reader's error; none for errors such as TypeError, whose text is no sentence."""
    if isinstance(error, KeyError):
        return f" (it lacks {error})"
    is_sentence = isinstance(error, ValueError) or type(error).__module__ not in ("builtins", "struct")
    text = str(error)[:120].rstrip(".")
    return f" ({text})" if is_sentence and text else ""


def require(module: str, extra: str, suffix: str) -> ModuleType:
    """Return an optional package; raise `RayboxError` with the command that installs it."""
    package = module.partition(".")[0]
    if find_spec(package) is None:
        command = f"pip install 'raybox[{extra}]'"
        raise RayboxError(f"{suffix} files need {package}, which is not installed; run: {command}")
    return import_module(module)
