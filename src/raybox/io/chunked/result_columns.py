"""The results of a chunk of rays as columns: those that `raybox.save` writes, and the number of the ray."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.geometry import Rays
from raybox.io.chunked import passing_kernels
from raybox.queries import table
from raybox.queries.columns import ChunkResults, Column, Columns, Sparse
from raybox.queries.query import FileColumns

QUERIES = table.file_queries()
AT_ONCE = 1 << 16  # rows that are laid out at once, where that takes memory


def kinds(query: str, dimension: int, ids: Sequence[str] | None) -> dict[str, np.dtype[Any]]:
    """Return the columns of a query's results, and their dtypes."""
    return _columns_of(query).dtypes(dimension, ids)


def run_query(scene: Any, query: str, rays: Rays, first: int, workers: int) -> Iterator[ChunkResults]:
    """Yield the results of a chunk of rays, in their order; first: the number of its first ray."""
    return _columns_of(query).chunks(scene, rays, first, workers)


def laid_out(column: Column) -> NDArray[Any]:
    """Return a column as an array, with NaN where there is nothing."""
    if isinstance(column, Sparse):
        out = np.empty(len(column))
        passing_kernels.spread(column.there, column.numbers, out)
        return out
    return np.arange(column.start, column.stop) if isinstance(column, range) else column


class Task(NamedTuple):
    """What a writer has to know: where, which columns, the ids of the boxes, when to give up."""

    folder: Path
    kinds: dict[str, np.dtype[Any]]
    ids: list[str] | None
    check: Callable[[], None] = lambda: None


def slices(columns: Columns, task: Task, names: NDArray[Any] | None) -> Iterator[dict[str, NDArray[Any]]]:
    """Give columns some rows at a time, with the column ``id`` where it belongs."""
    whole = {
        name: laid_out(column) if isinstance(column, Sparse) else column for name, column in columns.items()
    }
    for start in range(0, len(columns["ray"]), AT_ONCE):
        task.check()
        some = {name: laid_out(column[start : start + AT_ONCE]) for name, column in whole.items()}
        if names is not None and "id" in task.kinds:
            some["id"] = names[some["index"]]
        yield {name: some[name] for name in task.kinds}


def names_of(task: Task) -> NDArray[Any] | None:
    """Give the boxes' ids as an array whose last is of a miss; None if they have none."""
    return None if task.ids is None else np.array([*task.ids, ""], dtype=str)


def _columns_of(query: str) -> FileColumns:
    columns = table.QUERIES[query].columns
    assert columns is not None  # as `QUERIES` says
    return columns
