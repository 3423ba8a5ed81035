"""`all`: every hit of every ray, sorted along it."""

from raybox.queries.all_hits.query import QUERY

__all__ = ["QUERY"]
