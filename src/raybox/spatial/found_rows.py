"""Rows that queries find: those of one geometry as they are found, and those of a scene in order."""

from typing import NamedTuple

from raybox.bvh.node import WIDTH
from raybox.compiler.decorators import device, inlined
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import prefetch, prefetch_to_write, vector_code, void
from raybox.compiler.simd import I32, I64, Builder, Scalar, splat, steps
from raybox.compiler.simd_arrays import Memory, Register, loop, on_stack
from raybox.validation import Ints, Ints32

_AHEAD = 12  # queries
_SHORT = 64  # rows
_NO_ROW = 2**31 - 1  # behind all others


class FoundRoom(NamedTuple):
    """Room for the rows of queries, one query after the other."""

    rows: Ints | Ints32
    """empty, if they are only counted; of cells int64, of boxes int32, with room for a node more"""
    used: Ints
    """(1,): how many are written"""
    counts: Ints
    """(N,): how many each query found, also the one that had no room"""


class FoundPart(NamedTuple):
    """The rows of queries begin to end, in the order in which they were searched."""

    begin: int
    end: int
    rows: Ints | Ints32


@inlined
def put_row(room: FoundRoom, count: int, row: int) -> int:
    """Write the next row of a query, if there is room; return how many it has now, also without."""
    at = room.used[0] + count
    if at < room.rows.size:
        room.rows[at] = row
    return count + 1


@inlined
def end_query(room: FoundRoom, q: int, count: int) -> bool:
    """End query q, and write how many rows it found; return False if they had no room."""
    room.counts[q] = count
    if room.rows.size == 0:
        return True
    begin = room.used[0]
    if begin + count + WIDTH > room.rows.size:
        return False
    room.used[0] = begin + count
    return True


@vector_code(void)
def _rank(b: Builder, rows: Memory, begin: Scalar, count: Scalar) -> None:
    """Sort up to `_SHORT` rows: each goes to where as many begin as are less."""
    spare = on_stack(b, I32, _SHORT + WIDTH)
    with loop(b, count, WIDTH) as at:
        spare.store(rows.load(b.add(begin, at), WIDTH), at)
    with loop(b, count) as k:
        row, place = spare.get(k), Register(b, begin)
        with loop(b, count, WIDTH) as at:
            there = steps(b, at, WIDTH) < splat(b, count, WIDTH)
            less = (spare.load(at, WIDTH) < splat(b, row, WIDTH)) & there
            place.value = b.add(place.value, b.ctpop(less.mask()))
        rows.put(row, place.value)


@vector_code(void)
def _rank_eight(
    b: Builder, source: Memory, first: Scalar, count: Scalar, rows: Memory, begin: Scalar
) -> None:
    """Write up to eight rows in order; what is behind them is overwritten."""
    valid = steps(b, I64(0), WIDTH) < splat(b, count, WIDTH)
    some = valid.choose(source.load(first, WIDTH), _NO_ROW)
    for k in range(WIDTH):
        place = b.ctpop((some < some.permuted([k] * WIDTH)).mask())
        rows.put(some.lane(k), b.add(begin, place))


@inlined
def _sort(rows: Ints | Ints32, begin: int, count: int) -> None:
    """Sort the rows from `begin` on."""
    if count <= _SHORT:
        _rank(rows, begin, count)
    else:
        _shell_sort(rows, begin, begin + count)


@inlined
def put_sorted(source: Ints32, first: int, count: int, rows: Ints | Ints32, begin: int) -> None:
    """Write rows in order; up to `WIDTH` items behind them may be overwritten."""
    if count <= WIDTH:
        _rank_eight(source, first, count, rows, begin)
        return
    for k in range(count):
        rows[begin + k] = source[first + k]
    _sort(rows, begin, count)


@device
def _shell_sort(rows: Ints | Ints32, begin: int, end: int) -> None:
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


@inlined
def sort_query(room: FoundRoom, count: int) -> None:
    """Sort the rows of the last query, if they have room."""
    begin = room.used[0]
    if count > 1 and begin + count + WIDTH <= room.rows.size:
        _sort(room.rows, begin, count)


@inlined
def _next_placed(order: Ints32, k: int, counts: Ints, ends: Ints, rows: Ints) -> int:
    """Return the number of the query whose rows are placed k-th; prefetch what later ones need."""
    if order.size == 0:
        return k
    last = order.size - 1
    later = int(order[min(k + 2 * _AHEAD, last)])
    prefetch(counts, later)
    prefetch_to_write(ends, later)
    prefetch_to_write(rows, int(ends[order[min(k + _AHEAD, last)]]))
    return int(order[k])


@entry
def place_rows(found: FoundPart, order: Ints32, counts: Ints, first: int, ends: Ints, rows: Ints) -> None:
    """Copy the rows of one geometry to their places, as numbers among those of the scene.

    counts: of this geometry; ends: where the next row of each query goes.
    """
    at = 0
    for k in range(found.begin, found.end):
        q = _next_placed(order, k, counts, ends, rows)
        to = ends[q]
        for _ in range(counts[q]):
            rows[to] = found.rows[at] + first
            to += 1
            at += 1
        ends[q] = to
