"""The table of queries: a query is one file (or folder) beside this one, and two lines here."""

from typing import Any

from raybox.queries import all_hits, count, deposit, first, integrate, nearest, occluded, segments
from raybox.queries.query import Argument, FileColumns, Opt, Public, Query, Res
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


def file_queries() -> tuple[str, ...]:
    """Return the names of queries whose results can be written to a file."""
    return tuple(name for name, query in QUERIES.items() if query.columns)


def is_result_column(name: str) -> bool:
    """Return whether a column of results has this name, or ``integral_3``."""
    base, _, channel = name.rpartition("_")
    sums = {list(columns_of(q).dtypes(3, []))[-1] for q in file_queries() if columns_of(q).arguments}
    return name in result_columns() or (base in sums and channel.isdigit())


def result_columns() -> list[str]:
    """Return the names of columns of results in files, each once."""
    names = (name for q in file_queries() for name in columns_of(q).dtypes(3, []))
    return list(dict.fromkeys(["object", *names]))


def columns_of(query: str) -> FileColumns:
    """Return the columns of a query of `file_queries`."""
    columns = QUERIES[query].columns
    assert columns is not None
    return columns


def arguments_of(query: str) -> dict[str, Argument]:
    """Return the arguments that a cast of a query may be given: its own, and the groups of rays."""
    groups = {} if query == segments.QUERY.name else {GROUPS: Argument.PER_RAY}  # a grid has none
    return {**columns_of(query).arguments, **groups}


add(nearest.QUERY)
add(occluded.QUERY)
add(count.QUERY)
add(all_hits.QUERY)
add(first.QUERY)
add(segments.QUERY)
add(integrate.QUERY)
add(deposit.QUERY)
