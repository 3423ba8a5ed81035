"""`nearest`: the first hit of each ray."""

from raybox.queries.nearest.query import QUERY, NearestMethod

__all__ = ["QUERY", "NearestMethod"]
