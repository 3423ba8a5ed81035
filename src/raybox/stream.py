"""Casts of files larger than memory: see `raybox.casting`."""

from raybox.casting import QUERIES, Summary, cast

__all__ = ["QUERIES", "Summary", "cast"]
