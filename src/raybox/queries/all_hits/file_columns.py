"""Hits as rows of a file, several for each ray: those of `all` and of `segments`."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from raybox.geometry import Rays
from raybox.hits import AllHits
from raybox.hits.file_columns import ChunkResults, Columns, FileColumns, Scratch, hit_runs
from raybox.hits.tables import part_columns
from raybox.queries.columns import hit_dtypes


def file_columns(method: str) -> FileColumns:
    """Return the columns of a scene's method that returns `AllHits`."""
    return FileColumns(
        lambda _dimension, ids: hit_dtypes(ids, ("t_enter", "t_exit", "length")),
        lambda scene, *job, **how: _chunks(getattr(scene, method), *job, **how),
        rows="hits",
    )


def _chunks(
    method: Any, rays: Rays, first: int, workers: int, groups: Any = None, **how: Any
) -> Iterator[ChunkResults]:
    def run(rows: Any) -> Any:
        own = {} if groups is None else {"groups": np.broadcast_to(groups, len(rays))[rows]}
        return method(rays[rows], workers=workers, **how, **own)

    for begin, hits in hit_runs(run, len(rays)):
        yield ChunkResults(len(hits.index), partial(_columns, hits, first + begin))


def _columns(hits: AllHits, first: int, _scratch: Scratch) -> Columns:
    columns: Columns = {"ray": hits.ray + first, "index": hits.index, "t": hits.t}
    columns |= part_columns(hits._source, hits)
    return columns | {"t_enter": hits.t_enter, "t_exit": hits.t_exit, "length": hits.lengths}
