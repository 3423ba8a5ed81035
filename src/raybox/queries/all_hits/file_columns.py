"""Hits as rows of a file, several for each ray: those of `all` and of `segments`."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from raybox.geometry import Rays
from raybox.hits import AllHits
from raybox.hits.tables import part_columns
from raybox.queries.columns import ChunkResults, Columns, Scratch, hit_dtypes
from raybox.queries.query import FileColumns
from raybox.validation import Ints

CHUNK_HITS = 1 << 20  # hits of a file that are in memory at once, about; those of a ray stay together
_STRETCH = 64  # rays whose hits are estimated by those of one


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

    for begin, end in _runs(_estimated_counts(run, len(rays))):
        hits = run(slice(begin, end))
        yield ChunkResults(len(hits.index), partial(_columns, hits, first + begin))


def _estimated_counts(run: Callable[[Ints], AllHits], rays: int) -> Ints:
    """Return the number of hits of each ray, estimated by one ray of each stretch of rays.

    run: returns the hits of some rays, by their numbers.
    """
    starts = np.arange(0, rays, _STRETCH)
    lengths = np.minimum(rays - starts, _STRETCH)
    # not every 64th: rays of pictures and scanners repeat, and so would an error
    tried = starts + np.random.default_rng(0).integers(lengths)
    return np.repeat(np.diff(run(tried).offsets), lengths)


def _runs(counts: Ints) -> Iterator[tuple[int, int]]:
    """Cut a chunk into runs of rays that have few enough hits together."""
    ends = np.cumsum(counts)
    begin = 0
    while begin < len(counts):
        before = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + CHUNK_HITS, side="right")))
        yield begin, end
        begin = end


def _columns(hits: AllHits, first: int, _scratch: Scratch) -> Columns:
    columns: Columns = {"ray": hits.ray + first, "index": hits.index, "t": hits.t}
    columns |= part_columns(hits._source, hits)
    return columns | {"t_enter": hits.t_enter, "t_exit": hits.t_exit, "length": hits.lengths}
