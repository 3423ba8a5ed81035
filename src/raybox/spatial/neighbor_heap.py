"""The nearest boxes of a query so far: a heap whose root is the farthest, ordered exactly."""

from typing import NamedTuple

import numpy as np

from raybox.compiler.decorators import device, inlined
from raybox.exact.squares import Gaps, certain_order, distance, order, squared
from raybox.spatial.gaps import are_finite, is_within
from raybox.validation import Floats, Ints

_WIDER = 1.0 + 2.0**-40  # than a sum of squares with all of its roundings
_TINY = 2.0**-100  # more than squares of float32 lose by underflow


class NeighborHeap(NamedTuple):
    """Rows in a heap, of one thread."""

    rows: Ints
    """(k,): among those of all geometries"""
    squares: Floats
    """(k,): their squared distances, rounded"""
    gaps: Floats
    """(k, 6): their gaps, the upper ends first"""
    size: Ints
    """(1,): how many there are"""


class Candidate(NamedTuple):
    """A row that may be among the nearest."""

    row: int
    square: float
    """its squared distance, rounded"""
    gaps: Gaps


class NearestRows(NamedTuple):
    """The nearest rows of queries, in order; -1 and infinity where there are fewer."""

    rows: Ints
    """(N, k): among those of all geometries"""
    distances: Floats
    """(N, k)"""
    gaps: Floats
    """(N, k, 6): of geometries so far, as in `NeighborHeap`; (0, k, 6): there is one geometry"""


def make_heap(k: int) -> NeighborHeap:
    """Return the heap of a thread."""
    return NeighborHeap(np.empty(k, np.int64), np.empty(k), np.empty((k, 6)), np.zeros(1, np.int64))


@inlined
def gaps_at(gaps: Floats, i: int) -> Gaps:
    """Return row i of gaps."""
    return Gaps((gaps[i, 0], gaps[i, 1], gaps[i, 2]), (gaps[i, 3], gaps[i, 4], gaps[i, 5]))


@inlined
def _put(heap: NeighborHeap, at: int, one: Candidate) -> None:
    heap.rows[at], heap.squares[at] = one.row, one.square
    heap.gaps[at, 0], heap.gaps[at, 1], heap.gaps[at, 2] = one.gaps.high
    heap.gaps[at, 3], heap.gaps[at, 4], heap.gaps[at, 5] = one.gaps.low


@inlined
def _entry(heap: NeighborHeap, at: int) -> Candidate:
    return Candidate(heap.rows[at], heap.squares[at], gaps_at(heap.gaps, at))


@inlined
def _is_after(heap: NeighborHeap, at: int, one: Candidate) -> bool:
    """Return whether an entry of the heap comes after a candidate: by distance, then by number."""
    found = certain_order(heap.squares[at], one.square)
    if found == 0:
        found = order(gaps_at(heap.gaps, at), one.gaps)
    return found > 0 or (found == 0 and heap.rows[at] > one.row)


@device
def _insert(heap: NeighborHeap, one: Candidate) -> None:
    """Add a candidate to the heap."""
    at = heap.size[0]
    heap.size[0] = at + 1
    while at > 0:
        parent = (at - 1) >> 1
        if _is_after(heap, parent, one):
            break
        _put(heap, at, _entry(heap, parent))
        at = parent
    _put(heap, at, one)


@device
def _replace_root(heap: NeighborHeap, size: int, one: Candidate) -> None:
    """Replace the root of the first `size` entries by a candidate."""
    at = 0
    while True:
        child = 2 * at + 1
        if child + 1 < size and _is_after(heap, child + 1, _entry(heap, child)):
            child += 1
        if child >= size or not _is_after(heap, child, one):
            break
        _put(heap, at, _entry(heap, child))
        at = child
    _put(heap, at, one)


@inlined
def is_full(heap: NeighborHeap) -> bool:
    """Return whether the heap has as many rows as are wanted."""
    return bool(heap.size[0] == heap.rows.size)


@device
def record(heap: NeighborHeap, row: int, gaps: Gaps, farthest: float) -> bool:
    """Record a row, if it is at most `farthest` away; return whether the heap has changed."""
    one = Candidate(row, squared(gaps), gaps)
    if not are_finite(gaps) or (is_full(heap) and not _is_after(heap, 0, one)):
        return False
    if farthest < np.inf and not is_within(gaps, farthest):
        return False
    if is_full(heap):
        _replace_root(heap, heap.rows.size, one)
    else:
        _insert(heap, one)
    return True


@device
def load(heap: NeighborHeap, found: NearestRows, q: int) -> None:
    """Fill the heap with what query q has found in the geometries before."""
    heap.size[0] = 0
    if found.gaps.shape[0] > 0:
        for k in range(heap.rows.size):
            if found.rows[q, k] >= 0:
                gaps = gaps_at(found.gaps[q], k)
                _insert(heap, Candidate(found.rows[q, k], squared(gaps), gaps))


@device
def store(heap: NeighborHeap, found: NearestRows, q: int) -> None:
    """Sort the heap, and write it as what query q has found."""
    size = heap.size[0]
    for end in range(size - 1, 0, -1):
        last = _entry(heap, end)
        _put(heap, end, _entry(heap, 0))
        _replace_root(heap, end, last)
    for k in range(size):
        found.rows[q, k] = heap.rows[k]
        found.distances[q, k] = distance(gaps_at(heap.gaps, k))
        if found.gaps.shape[0] > 0:
            for j in range(6):
                found.gaps[q, k, j] = heap.gaps[k, j]
    for k in range(size, heap.rows.size):
        found.rows[q, k], found.distances[q, k] = -1, np.inf


@device
def square_above(x: float, y: float, z: float) -> float:
    """Return a number that is at least the squared length of a vector that was rounded once."""
    return (x * x + y * y + z * z) * _WIDER + _TINY
