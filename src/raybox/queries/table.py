"""The table of queries: a query is one file (or folder) beside this one, and two lines here.

Of those that are imported when one runs first, the second line is in `raybox.queries.every`.
"""

from typing import Any

from raybox.queries import count, methods, nearest, occluded
from raybox.queries.query import Opt, Public, Query, Res
from raybox.traversal.protocol import register


class QueryMethods(
    nearest.NearestMethod,
    occluded.OccludedMethod,
    count.CountMethod,
    methods.AllMethod,
    methods.FirstMethod,
    methods.SegmentsMethod,
    methods.IntegrateMethod,
    methods.DepositMethod,
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
