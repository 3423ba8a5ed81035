"""Put boxes in order along a curve: dealt out by the first bits of their places, sorted by the others.

When boxes are dealt, their rows go with them, so that all that comes after finds what it needs near by. Only
dealing itself goes far: to as many places at once as there are hands, whose ends a core's cache holds.
(10^6 boxes, one thread: a tree takes half as long as where keys are sorted, then boxes looked up; measured.)
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from raybox.bvh import sah_rows
from raybox.bvh.build_threads import Each, chunks
from raybox.bvh.frame import Boxes
from raybox.bvh.hilbert_curve import BITS, find_places, make_desk, make_grid
from raybox.bvh.sah_rows import ROW_OF
from raybox.compiler import buffer_pool
from raybox.compiler.decorators import entry
from raybox.compiler.intrinsics import prefetch_to_write
from raybox.compiler.struct_ref import held

_CHUNK = 2**16  # boxes that a thread takes at once
_AHEAD = 2  # rows of a hand between asking memory for one and writing it: a quarter faster (measured)
_DIGIT = 8  # bits that one pass sorts by
_EACH = 8  # boxes of a hand, as a power of two
_MOST = 11  # bits that boxes are dealt by, at most: so many places are written to at once


@held
class Hands(NamedTuple):
    """Boxes dealt out: their rows, their keys, and room for sorting these."""

    rows: Any
    keys: Any
    spare: Any


@entry
def _deal(boxes: Boxes, places: Any, span: Any, shift: int, ends: Any, hands: Hands) -> None:
    """Give each box to the hand that the first bits of its place say; ends: where each hand goes on.

    Of a key the last bits are the box's row, the others its place, less the first bits.
    """
    low = (1 << shift) - 1
    for i in range(span[0], span[1]):
        place = places[i]
        to = ends[place >> shift]
        ends[place >> shift] = to + 1
        prefetch_to_write(hands.rows, 8 * (to + _AHEAD))
        sah_rows.store(
            hands.rows, to, sah_rows.outward(boxes.lower, boxes.upper, i, boxes.center, boxes.scale)
        )
        hands.keys[to] = (place & low) << ROW_OF | to


@entry
def _sort(hands: Hands, starts: Any, span: Any, counts: Any) -> None:
    """Sort the keys of hands span[0] <= h < span[1] digit by digit, to and fro between both rooms."""
    passes = counts.shape[0]
    for h in range(span[0], span[1]):
        first, stop = starts[h], starts[h + 1]
        if first == stop:
            continue
        counts[:] = 0
        for i in range(first, stop):
            place = hands.keys[i] >> ROW_OF
            for turn in range(passes):
                counts[turn, place >> turn * _DIGIT & (1 << _DIGIT) - 1] += 1
        source, to = hands.keys, hands.spare
        for turn in range(passes):
            at = first
            for digit in range(1 << _DIGIT):
                number = counts[turn, digit]
                counts[turn, digit] = at
                at += number
            for i in range(first, stop):
                key = source[i]
                digit = key >> ROW_OF + turn * _DIGIT & (1 << _DIGIT) - 1
                to[counts[turn, digit]] = key
                counts[turn, digit] += 1
            source, to = to, source


def deal(each: Each, boxes: Boxes, reach: float) -> tuple[Any, Any]:
    """Return (rows of boxes, keys in order along the curve, whose low 31 bits say which row)."""
    number = len(boxes.lower)
    bits = min(max(number.bit_length() - _EACH, 1), _MOST)
    shift = BITS - bits
    places = buffer_pool.empty((number,), np.int64)
    spans = chunks(0, number, _CHUNK)
    grid = make_grid(boxes, reach)
    counts = np.zeros((len(spans), 1 << bits), np.int64)
    each(
        find_places,
        [(boxes, span, make_desk(grid), shift, places, row) for span, row in zip(spans, counts, strict=True)],
    )
    # boxes of one hand stand in the order of their chunks: no thread can change it
    ends = np.cumsum(counts.T.ravel()).reshape(counts.T.shape).T
    begins = np.ascontiguousarray(ends - counts)
    rows, keys = buffer_pool.empty((number, 8), np.float32), buffer_pool.empty((number,), np.int64)
    hands = Hands(rows, keys, places)  # which are read by then
    each(_deal, [(boxes, places, span, shift, row, hands) for span, row in zip(spans, begins, strict=True)])
    return hands.rows, _sorted(each, hands, counts.sum(axis=0), -(-shift // _DIGIT))


def _sorted(each: Each, hands: Hands, sizes: Any, passes: int) -> Any:
    """Return the keys of hands of so many boxes in order."""
    starts = np.append(0, np.cumsum(sizes))
    cuts = np.unique(np.searchsorted(starts, [*range(0, starts[-1], _CHUNK), starts[-1]])).tolist()
    counts = np.empty((len(cuts), passes, 1 << _DIGIT), np.int64)
    each(_sort, [(hands, starts, span, row) for span, row in zip(pairwise(cuts), counts, strict=False)])
    return hands.spare if passes % 2 else hands.keys
