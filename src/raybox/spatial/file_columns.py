"""Boxes that points and boxes of a file find, as rows of another file."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from raybox.hits import Rows
from raybox.hits.file_columns import (
    ChunkResults,
    Columns,
    FileColumns,
    FileRows,
    Reads,
    Scratch,
    hit_runs,
    index_dtypes,
)
from raybox.validation import Ints

ROW = {"row": np.dtype(np.int64)}
"""The first column: the number of the point or box."""


def found_columns(method: str, reads: Reads) -> FileColumns:
    """Return the columns of a scene's method that returns `Rows`."""
    return FileColumns(
        lambda _dimension, ids: {**ROW, **index_dtypes(ids)},
        lambda scene, *job, **how: _chunks(getattr(scene, method), *job, **how),
        rows="hits",
        reads=reads,
    )


def _chunks(
    method: Any, given: FileRows, first: int, workers: int, groups: Any = None, **how: Any
) -> Iterator[ChunkResults]:
    def run(rows: Any) -> Any:
        return method(given.rows[rows], workers=workers, **how, **groups_of(given, groups, rows))

    for begin, found in hit_runs(run, len(given.numbers)):
        yield ChunkResults(len(found.index), partial(_columns, found, given.numbers[begin:] + first))


def groups_of(given: FileRows, groups: Any, rows: Any) -> dict[str, Ints]:
    """Return the argument `groups` of some points or boxes; nothing without groups."""
    return {} if groups is None else {"groups": np.broadcast_to(groups, given.total)[given.numbers[rows]]}


def _columns(found: Rows, numbers: Ints, _scratch: Scratch) -> Columns:
    columns: Columns = {"row": numbers[found.row], "index": found.index}
    return columns | ({"geometry": found.geometry} if len(found._scene_rows.parts) > 1 else {})
