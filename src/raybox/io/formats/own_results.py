"""Files of results: of which query, and how many rays hit."""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from raybox.errors import RayboxError
from raybox.io.formats.common import ReadOptions, reader_errors
from raybox.io.formats.table import format_of
from raybox.io.formats.tables import Table, Wanted
from raybox.scene import file_queries as queries


class Results(NamedTuple):
    """What a file of results holds."""

    query: str
    columns: list[str]
    rows: int
    rays: int  # that the file names; of hits, those that hit
    hit_count: int  # rays that hit, or rows of sums that are not zero

    @property
    def text(self) -> str:
        """The query, the rays and the share of hits in words."""
        kind = queries.columns_of(self.query)
        if kind.rows == "hits":
            return f"results of {self.query}: {self.rows:,} rows of {self.rays:,} {kind.reads}"
        rows = "rays" if kind.reads == "rays" else f"rows of {kind.reads}"
        rows = "boxes or cells" if kind.rows == "primitives" else rows
        word = "not zero" if kind.has_channels else "hit" if kind.reads == "rays" else "with a box"
        share = self.hit_count / max(self.rows, 1)
        shown = f", {100 * share:.1f} % {word}" if self.rows else ""
        return f"results of {self.query}: {self.rows:,} {rows}{shown}"


def results_in(path: Path) -> Results | None:
    """Return what a file of results holds; None for any other."""
    with suppress(RayboxError):  # the reader of scenes and rays raises it again
        form = format_of(path)
        with reader_errors(path, form.name):
            table = form.open(path, ReadOptions()) if form.open else None
            query = None if table is None else table.query or _query_of(table.names)
            return None if table is None or query is None else _counted(table, query)
    return None


def _query_of(names: list[str]) -> str | None:
    """Return the query whose columns a table has, most of them."""
    sums = {name.rpartition("_")[0] for name in names if name.rpartition("_")[2].isdigit()}
    found = dict[str, int]()
    for query in queries.file_queries():
        for dimension in (2, 3):
            columns = list(queries.columns_of(query).dtypes(dimension, None))
            if names[:1] == columns[:1] and sums.union(names).issuperset(columns):
                found[query] = max(len(columns), found.get(query, 0))
    return max(found, key=found.__getitem__, default=None)


def _counted(table: Table, query: str) -> Results:
    """Return the counts of a table of results."""
    kind = queries.columns_of(query)
    is_index = "index" in table.names and kind.rows == "rays"
    own = [*kind.dtypes(3, None)]
    number = "index" if is_index else own[0] if kind.rows == "hits" else own[-1]
    decides = next(n for n in table.names if n == number or n.startswith(f"{number}_"))  # the first channel
    rows, rays, hits, last = 0, 0, 0, np.full(1, -1.0)
    for block in table.blocks(Wanted(others=[decides])):
        values = np.asarray(block.columns[decides]).astype(np.float64)
        rows += block.rows
        rays += int(np.count_nonzero(np.diff(np.concatenate([last, values]))))
        hits += int(np.count_nonzero(values >= 0 if is_index else values))
        last = values[-1:]
    of_hits = kind.rows == "hits"
    return Results(query, table.names, rows, rays if of_hits else rows, rays if of_hits else hits)
