"""`first`: the k nearest hits of each ray, in order."""

from raybox.queries.first.query import QUERY, FirstMethod

__all__ = ["QUERY", "FirstMethod"]
