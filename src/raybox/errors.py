"""The errors that raybox raises, with one base class."""


class RayboxError(Exception):
    """Base class of all errors of raybox."""


class InvalidInput(RayboxError, ValueError):
    """Invalid argument: the text gives the rule, the value, the rows and the way out."""


class FileFormatError(RayboxError):
    """Unreadable, truncated or inconsistent file: the text gives file, place and way out."""
