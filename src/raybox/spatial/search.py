"""Run box queries on all geometries of a scene, in batches on threads."""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from raybox.compiler import huge_pages
from raybox.geometry import GridRows
from raybox.hits.runs import offsets_of
from raybox.spatial.cells import Cells
from raybox.spatial.found_rows import FoundPart, FoundRoom, place_rows
from raybox.spatial.overlap_cells import find_in_cells
from raybox.spatial.overlap_tree import find_in_tree, make_shared
from raybox.spatial.query_boxes import QueryBoxes, batch_of
from raybox.spatial.slot_boxes import BoxTree, make_stack
from raybox.spatial.target import RunSettings, SearchTarget, TargetPart
from raybox.threads.chunks import Run, chunk_runner, uncounted
from raybox.traversal.job import RaySpan
from raybox.validation import Ints, Ints32

BATCH = 1 << 20  # queries that are sorted together
_LEAST = 256  # queries of a chunk, at least
_FIRST_ROOM, _PER_QUERY = 1 << 12, 4  # rows


class FoundRows(NamedTuple):
    """The rows that queries found, as numbers among those of all geometries."""

    offsets: Ints
    """(N + 1,): those of query i are offsets[i] <= k < offsets[i + 1], in order"""
    numbers: Ints


def searched(target: SearchTarget, part: TargetPart) -> BoxTree | Cells:
    """Return the boxes of a geometry as kernels read them."""
    tree: Any = part.tree
    if isinstance(part.rows, GridRows):
        return Cells(tree, part.rows, part.allowed, part.first)
    return BoxTree(tree, part.rows, part.allowed, part.first, target.dimension == 2)


def _find(boxes: BoxTree | Cells, queries: QueryBoxes, span: RaySpan, room: FoundRoom) -> int:
    if isinstance(boxes, Cells):
        return find_in_cells(boxes, queries, span, room)
    return find_in_tree(boxes, queries, span, make_stack(), make_shared(), room)


def count_rows(target: SearchTarget, queries: QueryBoxes, how: RunSettings) -> Ints:
    """Return how many boxes each query finds, (N,)."""
    total = len(queries.lower) * len(target.parts)
    found = np.zeros(len(queries.lower), np.int64)
    with chunk_runner(total, workers=how.workers, progress=how.progress, noun="queries") as threads:
        for number, batch in enumerate(batches(queries)):
            some = slice(number * BATCH, (number + 1) * BATCH)
            for part in target.parts:
                found[some] += _search_part(searched(target, part), batch, threads, stores=False).counts
    return found


def find_rows(target: SearchTarget, queries: QueryBoxes, how: RunSettings) -> FoundRows:
    """Return the boxes that each query finds, sorted by number."""
    total = len(queries.lower) * len(target.parts)
    with chunk_runner(total, workers=how.workers, progress=how.progress, noun="queries") as threads:
        found = [_find_batch(target, batch, threads) for batch in batches(queries)]
    if len(found) == 1:
        return found[0]
    offsets = offsets_of(np.concatenate([np.diff(one.offsets) for one in found]))
    return FoundRows(offsets, np.concatenate([one.numbers for one in found]))


def batches(queries: QueryBoxes) -> Iterator[QueryBoxes]:
    """Yield up to `BATCH` queries at a time; an empty batch, if there are none."""
    total = len(queries.lower)
    for begin in range(0, max(1, total), BATCH):
        yield batch_of(queries, begin, min(begin + BATCH, total))


class _PartRows(NamedTuple):
    """What queries found in one geometry."""

    counts: Ints
    found: list[FoundPart]


def _memory(boxes: BoxTree | Cells, size: int) -> Ints | Ints32:
    """Return memory for rows: numbers of boxes are below 2^31."""
    found: Ints | Ints32 = huge_pages.pooled_input(
        (size,), np.int64 if isinstance(boxes, Cells) else np.int32
    )
    return found


def found_parts(
    boxes: BoxTree | Cells, queries: QueryBoxes, span: RaySpan, counts: Ints, *, stores: bool = True
) -> list[FoundPart]:
    """Return the rows of one geometry that queries find, a span of their order, and write how many.

    Queries without room are searched again, with twice as much as the first of them needs.
    """
    (begin, end), found = span, list[FoundPart]()
    size = max(_FIRST_ROOM, _PER_QUERY * (end - begin)) if stores else 0
    while begin < end:
        room = FoundRoom(_memory(boxes, size), np.zeros(1, np.int64), counts)
        stop = _find(boxes, queries, RaySpan(begin, end), room)
        found.append(FoundPart(begin, stop, room.rows[: room.used[0]]))
        needed = counts[queries.order[stop] if queries.order.size else stop] if stop < end else 0
        begin, size = stop, max(2 * size, 2 * int(needed))
    return found


def _search_part(boxes: BoxTree | Cells, queries: QueryBoxes, threads: Run, *, stores: bool) -> _PartRows:
    """Return the rows of one geometry, or only how many there are."""
    counts = np.zeros(len(queries.lower), np.int64)

    def work(begin: int, end: int) -> list[FoundPart]:
        return found_parts(boxes, queries, RaySpan(begin, end), counts, stores=stores)

    parts = threads(work, len(counts), min_chunk=_LEAST)
    return _PartRows(counts, [one for found in parts for one in found])


def _find_batch(target: SearchTarget, queries: QueryBoxes, threads: Run) -> FoundRows:
    """Return the boxes that the queries of a batch find."""
    parts = [_search_part(searched(target, part), queries, threads, stores=True) for part in target.parts]
    offsets = offsets_of(np.sum([part.counts for part in parts], axis=0))
    numbers = huge_pages.pooled((int(offsets[-1]),), np.int64)
    ends = offsets[:-1].copy()
    for own, part in zip(parts, target.parts, strict=True):
        place = partial(_place, queries.order, own, part.first, (ends, numbers))
        threads(place, len(own.found), done=uncounted, min_chunk=1)
    return FoundRows(offsets, numbers)


def _place(order: Ints32, part: _PartRows, first: int, to: tuple[Ints, Ints], begin: int, end: int) -> None:
    """Copy some of the rows of a geometry to where queries have the next, and to the rows of all."""
    for one in part.found[begin:end]:
        place_rows(one, order, part.counts, first, *to)
