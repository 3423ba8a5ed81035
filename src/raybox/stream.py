"""Casts of files larger than memory: see `raybox.io.chunked`."""

from raybox.io.chunked import QUERIES, Summary, cast

__all__ = ["QUERIES", "Summary", "cast"]
