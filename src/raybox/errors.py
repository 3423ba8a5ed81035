"""The errors that raybox raises, with one base class."""


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


class OutOfMemory(RayboxError, MemoryError):
    """Not enough memory: the text gives the way out."""


class MissingFile(FileFormatError, FileNotFoundError):
    """No such file: Python's own error for it, and one of raybox."""
