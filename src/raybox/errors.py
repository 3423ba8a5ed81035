"""The errors that raybox raises, with one base class."""

from math import prod


def printable(text: str) -> str:
    """Return a text with characters that could control a terminal as escapes, as in Python's `repr`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class RayboxError(Exception):
    """Base class of all errors of raybox; names of files and rows in their texts are `printable`."""

    def __str__(self) -> str:
        return printable(super().__str__())


class InvalidInput(RayboxError, ValueError):
    """Invalid argument: the text gives the rule, the value, the rows and the way out."""


class FileFormatError(RayboxError):
    """Unreadable, truncated or inconsistent file: the text gives file, place and way out."""


class SkippedWarning(UserWarning):
    """A reader left out content of a file: ``geometry.skipped`` counts it."""


class AngleWarning(UserWarning):
    """An angle in degrees looks like radians: the text says what to pass if it is."""


class UnitsWarning(UserWarning):
    """Coordinates of a file are angles: ``geometry.units`` is "degree"."""


class OutOfMemory(InvalidInput, MemoryError):
    """Not enough memory for an argument or a result: the text gives the size and the way out."""


class MissingFile(FileFormatError, FileNotFoundError):
    """No such file: Python's own error for it, and one of raybox."""


def out_of_memory(error: MemoryError, what: str, way_out: str) -> OutOfMemory:
    """Return the error of raybox for one of Python or NumPy, with the size of the array if it is known."""
    if isinstance(error, OutOfMemory):
        return error
    shape, dtype = (getattr(error, name, None) for name in ("shape", "dtype"))
    size = 0 if shape is None or dtype is None else prod(shape) * dtype.itemsize
    wanted = f"an array of shape {shape}, {size:,} bytes, more" if size else "more memory"
    return OutOfMemory(f"{what} needs {wanted} than there is; {way_out}.")
