"""The errors that raybox raises, with one base class."""


class RayboxError(Exception):
    """Base class of all errors of raybox."""


class InvalidInput(RayboxError, ValueError):
    """Invalid argument: the text gives the rule, the value, the rows and the way out."""


class FileFormatError(RayboxError):
    """Unreadable, truncated or inconsistent file: the text gives file, place and way out."""


class OutOfMemory(RayboxError, MemoryError):
    """Not enough memory: the text gives the way out."""


class MissingFile(FileFormatError, FileNotFoundError):
    """No such file: Python's own error for it, and one of raybox."""
