"""The errors raybox raises: one small family, so that one ``except`` can catch them all."""


class RayboxError(Exception):
    """Anything raybox refuses to do; catch this to catch every error of the library."""


class InvalidInput(RayboxError, ValueError):
    """An argument breaks a rule: the text says the rule, what came, which rows, and the way out."""


class FileFormatError(RayboxError):
    """A file is unreadable, truncated or not what it claims: the text names file, place and way out."""
