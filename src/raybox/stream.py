"""Casts of files larger than memory: see `raybox.cast`."""

from raybox.cast import QUERIES, Summary, cast

__all__ = ["QUERIES", "Summary", "cast"]
