"""The queries whose results can be written to a file: those of rays, and those of points and boxes."""

from raybox.hits.file_columns import Argument, FileColumns, Reads
from raybox.queries import segments
from raybox.queries.every import QUERIES
from raybox.queries.table import GROUPS
from raybox.spatial.table import FILE_COLUMNS


def file_queries() -> tuple[str, ...]:
    """Return the names of queries whose results can be written to a file."""
    return (*(name for name, query in QUERIES.items() if query.columns), *FILE_COLUMNS)


def columns_of(query: str) -> FileColumns:
    """Return the columns of a query of `file_queries`."""
    columns = QUERIES[query].columns if query in QUERIES else FILE_COLUMNS[query]
    assert columns is not None
    return columns


def arguments_of(query: str) -> dict[str, Argument]:
    """Return the arguments that a cast of a query may be given: its own, and the groups of rays."""
    groups = {} if query == segments.QUERY.name else {GROUPS: Argument.PER_RAY}  # a grid has none
    return {**columns_of(query).arguments, **groups}


def is_result_column(name: str, reads: Reads) -> bool:
    """Return whether a column of results of rays, points or boxes has this name, or ``integral_3``."""
    base, _, channel = name.rpartition("_")
    sums = {list(columns_of(q).dtypes(3, []))[-1] for q in file_queries() if columns_of(q).has_channels}
    return name in result_columns(reads) or (base in sums and channel.isdigit())


def result_columns(reads: Reads | None = None) -> list[str]:
    """Return the names of columns of results in files, each once; reads: of what, None for all."""
    found = [columns_of(query) for query in file_queries()]
    names = (name for own in found if reads in (None, own.reads) for name in own.dtypes(3, []))
    return list(dict.fromkeys(["object", *names]))
