"""Rows that queries find: those of one geometry as they are found, and those of a scene in order."""

from typing import NamedTuple

import numpy as np

from raybox.compiler.decorators import device, inlined
from raybox.compiler.entry_points import entry
from raybox.validation import Ints, Ints32

_FIRST_ROOM = 1 << 12
_GAPS = 701, 301, 132, 57, 23, 10, 4, 1  # of a Shell sort, by Ciura 2001


class FoundRoom(NamedTuple):
    """Room for the rows of queries, one query after the other."""

    rows: Ints
    """empty, if they are only counted"""
    used: Ints
    """(1,): how many are written"""
    counts: Ints
    """(N,): how many each query found, also the one that had no room"""


class FoundPart(NamedTuple):
    """The rows of queries begin to end, in the order in which they were searched."""

    begin: int
    end: int
    rows: Ints


@inlined
def put_row(room: FoundRoom, count: int, row: int) -> int:
    """Write a row of a query that has so many; return how many it has now, if there was room or not."""
    at = room.used[0] + count
    if at < room.rows.size:
        room.rows[at] = row
    return count + 1


@inlined
def end_query(room: FoundRoom, q: int, count: int) -> bool:
    """End query q, which found so many rows, and sort them; return False if they had no room."""
    room.counts[q] = count
    if room.rows.size == 0:
        return True
    begin = room.used[0]
    if begin + count > room.rows.size:
        return False
    if count > 1:
        _sort(room.rows, begin, begin + count)
    room.used[0] = begin + count
    return True


@device
def _sort(rows: Ints, begin: int, end: int) -> None:
    """Sort rows in place: they are a handful nearly always."""
    gap = 1
    while gap < (end - begin) // 5:
        gap = gap * 9 // 4 + 1
    while True:
        for k in range(begin + gap, end):
            row, at = rows[k], k
            while at >= begin + gap and rows[at - gap] > row:
                rows[at] = rows[at - gap]
                at -= gap
            rows[at] = row
        if gap == 1:
            return
        gap = max(1, gap * 4 // 9)


@entry
def place_rows(found: FoundPart, order: Ints32, counts: Ints, first: int, ends: Ints, rows: Ints) -> None:
    """Copy the rows of one geometry to their places, as numbers among those of the scene.

    counts: of this geometry; ends: where the next row of each query goes.
    """
    at = 0
    for k in range(found.begin, found.end):
        q = order[k] if order.size else k
        to = ends[q]
        for _ in range(counts[q]):
            rows[to] = found.rows[at] + first
            to += 1
            at += 1
        ends[q] = to


def make_room(counts: Ints, *, stores: bool) -> FoundRoom:
    """Return room for the first queries."""
    return FoundRoom(np.empty(_FIRST_ROOM if stores else 0, np.int64), np.zeros(1, np.int64), counts)
