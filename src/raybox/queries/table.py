"""The table of queries: a query is one file (or folder) beside this one, and two lines here."""

from typing import Any

from raybox.queries import all_hits, count, deposit, first, integrate, nearest, occluded, segments
from raybox.queries.query import Opt, Public, Query, Res
from raybox.traversal.protocol import register


class QueryMethods(
    nearest.NearestMethod,
    occluded.OccludedMethod,
    count.CountMethod,
    all_hits.AllMethod,
    first.FirstMethod,
    segments.SegmentsMethod,
    integrate.IntegrateMethod,
    deposit.DepositMethod,
):
    """The methods of a scene that run queries."""


GROUPS = "groups"
QUERIES: dict[str, Query[Any, Any, Any]] = {}
"""Queries by name."""


def add(query: Query[Opt, Res, Public]) -> None:
    """Add a query: from now on compiled code calls its hooks."""
    register(*query.hooks)
    QUERIES[query.name] = query


add(nearest.QUERY)
add(occluded.QUERY)
add(count.QUERY)
add(all_hits.QUERY)
add(first.QUERY)
add(segments.QUERY)
add(integrate.QUERY)
add(deposit.QUERY)
