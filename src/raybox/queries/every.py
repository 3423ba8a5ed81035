"""All queries by name, those included that scenes import when one runs first."""

from raybox.queries import all_hits, deposit, first, integrate, segments
from raybox.queries.table import QUERIES, add

__all__ = ["QUERIES"]

add(all_hits.QUERY)
add(first.QUERY)
add(segments.QUERY)
add(integrate.QUERY)
add(deposit.QUERY)
