"""What every reader shares: the question asked of a file, the answer, and errors in one line."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.errors import FileFormatError, InvalidInput, RayboxError
from raybox.geometry import Boxes, Mesh, Rays

Floats = NDArray[np.float64]
Labels = dict[str, list[str]]


class Want(NamedTuple):
    """What the caller hopes to find in a file (the keywords of :func:`raybox.load`)."""

    kind: str | None = None
    origin: tuple[float, ...] | None = None
    boxes: bool = False
    invalid: str = "raise"


class Loaded(NamedTuple):
    """What a file held: the geometry, an id for each row if the file names its rows, other text columns."""

    geometry: Boxes | Mesh | Rays
    ids: list[str] | None = None
    labels: Labels = {}  # noqa: RUF012 - a default that nobody writes to


class Parts(NamedTuple):
    """Arrays as a file gives them, unchecked; ``where(array, index)`` says where a number stands in the file.

    The names are ``lower upper``, ``origins directions [t_min t_max]`` and ``points``, where present.
    """

    arrays: dict[str, Floats]
    where: Callable[[str, tuple[int, ...]], str]
    labels: Labels = {}  # noqa: RUF012
    among: str = ""
    """Of what they are a part, if they are not all that the file holds."""


def broken(path: Path, problem: str, way_out: str, place: str = "") -> FileFormatError:
    """Word an error about a file in one line: file, place, problem, way out."""
    text = f"{path}{', ' + place if place else ''}: {problem}; {way_out}"
    return FileFormatError(" ".join(text.split()))


def shown(value: object) -> str:
    """Quote a piece of a file's content so that it fits into one line."""
    text = repr(value)
    return text if len(text) <= 48 else text[:44] + "...'"


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Turn whatever a reader raises into one line about the file; ``what`` names the format."""
    try:
        yield
    except InvalidInput as error:
        raise broken(path, str(error).rstrip("."), "correct the file") from error
    except RayboxError:
        raise
    except MemoryError as error:
        raise broken(path, "does not fit into memory", "split the file") from error
    except OSError as error:
        raise broken(
            path, f"cannot be read: {error.strerror or error}", "check the path and its permissions"
        ) from error
    except BaseException as error:
        # A reader in Rust (lazrs) reports some broken files by a panic, which is not an Exception.
        if not isinstance(error, Exception) and type(error).__module__ != "pyo3_runtime":
            raise
        problem = f"is not readable as {what} ({type(error).__name__}: {str(error)[:120]})"
        raise broken(
            path, problem, "check that the file is whole and its name has the right ending"
        ) from error


def require(module: str, extra: str, suffix: str) -> Any:
    """Import a reader that comes with an extra, or say which command installs it."""
    package = module.partition(".")[0]
    if find_spec(package) is None:
        command = f"pip install 'raybox[{extra}]'"
        raise RayboxError(f"{suffix} files need {package}, which is not installed; run: {command}")
    return import_module(module)
