"""The table of queries: a query is one file (or folder) beside this one, and one line of `QueryMethods`."""

from raybox.queries.all_hits import AllMethod
from raybox.queries.count import CountMethod
from raybox.queries.deposit import DepositMethod
from raybox.queries.first import FirstMethod
from raybox.queries.integrate import IntegrateMethod
from raybox.queries.nearest import NearestMethod
from raybox.queries.occluded import OccludedMethod
from raybox.queries.query import FileColumns, Query
from raybox.queries.segments import SegmentsMethod
from raybox.traversal.protocol import register


class QueryMethods(
    NearestMethod,
    OccludedMethod,
    CountMethod,
    AllMethod,
    FirstMethod,
    SegmentsMethod,
    IntegrateMethod,
    DepositMethod,
):
    """The methods of a scene that run queries."""


QUERIES: dict[str, Query] = {}
"""Queries by name."""


def add(query: Query) -> None:
    """Add a query: from now on compiled code calls its hooks."""
    register(*query.hooks)
    QUERIES[query.name] = query


def file_queries() -> tuple[str, ...]:
    """Return the names of queries whose results can be written to a file."""
    return tuple(name for name, query in QUERIES.items() if query.columns)


def columns_of(query: str) -> FileColumns:
    """Return the columns of a query of `file_queries`."""
    columns = QUERIES[query].columns
    assert columns is not None
    return columns


for _base in QueryMethods.__bases__:
    add(_base.query)  # type: ignore[attr-defined]  # each of them has one
