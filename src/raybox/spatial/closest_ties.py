"""Find the nearest boxes of query boxes, with all that tie with the farthest of them.

Distances are rounded once, which keeps their order: boxes at greater numbers are farther. Those at the same
number are compared exactly, as only some of them may tie.
"""

from typing import NamedTuple, cast

import numpy as np

from raybox.compiler.entry_points import entry
from raybox.exact.squares import order
from raybox.geometry import BoxRows
from raybox.hits.runs import offsets_of, places_of
from raybox.spatial.closest_search import find_closest
from raybox.spatial.gaps import gaps_between
from raybox.spatial.neighbor_heap import NearestRows
from raybox.spatial.query_boxes import NO_DISTANCES, QueryBoxes, corners_of, select_queries
from raybox.spatial.search import FoundRows, find_rows
from raybox.spatial.target import RunSettings, SearchTarget
from raybox.validation import Bools, Floats, Ints

_GROWTH = 4  # of how many boxes a query searches for, while all of them tie


class NearestAndTies(NamedTuple):
    """The rows that are nearest to queries."""

    found: FoundRows
    """those of each query by distance, then by number"""
    farthest: Floats
    """(N,): the distance of the last one; infinite if a query found none"""


class _SomeRows(NamedTuple):
    """What some of the queries found."""

    queries: Ints
    counts: Ints
    rows: Ints


@entry
def _drop_farther(boxes: BoxRows, queries: QueryBoxes, rows: Ints, k: int, counts: Ints) -> None:
    """Reduce how many rows each query has to those that are at most as far as row k - 1."""
    for q in range(counts.size):
        box = corners_of(queries.lower, queries.upper, q)
        last = gaps_between(box, corners_of(boxes.lower, boxes.upper, rows[q, k - 1]))
        while counts[q] > k:
            i = rows[q, counts[q] - 1]
            if order(gaps_between(box, corners_of(boxes.lower, boxes.upper, i)), last) == 0:
                break
            counts[q] -= 1


def find_closest_and_ties(
    target: SearchTarget, queries: QueryBoxes, k: int, how: RunSettings, *, ties: bool = True
) -> NearestAndTies:
    """Return the k boxes nearest to each query, and all that tie with the last of them.

    target: one geometry of boxes; ties: False for k boxes at most.
    """
    (part,) = target.parts
    boxes = cast(BoxRows, part.rows)
    size, total = max(1, part.size), len(queries.lower)
    k, left, wanted = min(k, size), np.arange(total), min(k + ties, size)
    farthest, parts = np.full(total, np.inf), list[_SomeRows]()
    while left.size:
        some = select_queries(queries, left)
        nearest = find_closest(target, some, wanted, how)
        counts = _tied_counts(boxes, some, nearest, k)
        last = np.maximum(counts, 1)[:, None] - 1
        farthest[left] = np.take_along_axis(nearest.distances, last, axis=1)[:, 0]
        is_cut = (counts == wanted) & (ties and wanted < size)
        touches = is_cut & (farthest[left] == 0.0)
        parts.append(_part_of(left, nearest.rows, counts, ~is_cut))
        if touches.any():
            parts.append(_overlapping(target, queries, left[touches], how))
        left, wanted = left[is_cut & ~touches], min(_GROWTH * wanted, size)
    return NearestAndTies(_joined(parts, total), farthest)


def _tied_counts(boxes: BoxRows, queries: QueryBoxes, nearest: NearestRows, k: int) -> Ints:
    """Return how many of the rows found are at most as far as the k-th, for each query."""
    farthest = nearest.distances[:, k - 1]
    counts: Ints = ((nearest.distances <= farthest[:, None]) & (nearest.rows >= 0)).sum(axis=1)
    (more,) = np.nonzero((counts > k) & (farthest > 0.0))
    if more.size:
        exact = counts[more]
        _drop_farther(boxes, select_queries(queries, more), nearest.rows[more], k, exact)
        counts[more] = exact
    return counts


def _part_of(queries: Ints, rows: Ints, counts: Ints, where: Bools) -> _SomeRows:
    """Return the first rows of those queries that are finished."""
    is_found = np.arange(rows.shape[1]) < counts[:, None]
    return _SomeRows(queries[where], counts[where], rows[where[:, None] & is_found])


def _overlapping(target: SearchTarget, queries: QueryBoxes, some: Ints, how: RunSettings) -> _SomeRows:
    """Return the rows at distance 0 of some queries."""
    found = find_rows(target, select_queries(queries, some)._replace(distances=NO_DISTANCES), how)
    return _SomeRows(some, np.diff(found.offsets), found.numbers)


def _joined(parts: list[_SomeRows], total: int) -> FoundRows:
    """Return the rows of all queries in their order."""
    counts = np.zeros(total, np.int64)
    for part in parts:
        counts[part.queries] = part.counts
    offsets = offsets_of(counts)
    numbers = np.empty(offsets[-1], np.int64)
    for part in parts:
        numbers[places_of(offsets[part.queries], part.counts)] = part.rows
    return FoundRows(offsets, numbers)
