"""Find the boxes of a tree that overlap query boxes, or are at most so far away: eight slots at a time.

A query box is rounded outward to float32 in tree coordinates, as slots are. Rounding is monotone, so that no
slot that the box overlaps is lost. Of the boxes among these slots, nearly all overlap for certain
(`raybox.spatial.slot_boxes.certain_margin`); float64 decides the others, exactly.
"""

from typing import NamedTuple

import numpy as np

from raybox.bvh.node import CHILD, EMPTY, ROW, WIDTH
from raybox.compiler.decorators import inlined
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import Fields, int64, lowest_bit, popcount, vector_code, void
from raybox.compiler.simd import F32, I64, Builder, Scalar, constant, greater, mask_of, splat
from raybox.compiler.simd_arrays import Memory
from raybox.spatial.found_rows import FoundRoom, end_query, put_row, sort_query
from raybox.spatial.gaps import gaps_between, grown, is_within, overlap
from raybox.spatial.query_boxes import (
    Corners,
    QueryBoxes,
    corners_of,
    distance_of,
    is_before,
    next_query,
    start_row,
)
from raybox.spatial.slot_boxes import NO_MARGIN, BoxTree, SlotBox, certain_margin, push_starts, slot_box
from raybox.traversal.job import RaySpan
from raybox.traversal.tree import is_allowed
from raybox.validation import Ints32

_POSSIBLE, _CERTAIN = 8, 16  # the bits at which these begin in the result of `_visit`
_ALL = 0xFF


class SlotQuery(NamedTuple):
    """What slots are compared with."""

    box: SlotBox
    """a slot that does not overlap it has no box that is found"""
    margin: np.float32
    """the box in a slot that overlaps it by so much on each axis is found; NaN: none is for certain"""


@vector_code(int64)
def _visit(b: Builder, nodes: Memory, row: Scalar, query: Fields, stack: Memory, top: Scalar) -> Scalar:
    """Push the inner nodes among the slots of a node; return how many there are, and boxes as bits.

    The boxes, of which each has a bit for its slot: those that may be found, and those that are for certain.
    Differences of bounds are signed right, though rounded. That of a free slot and no bound is NaN, which the
    greatest ignores: `EMPTY` is then among the boxes that may be found.
    """
    planes, gap = nodes.as_items(F32), constant(b, F32, WIDTH, -np.inf)
    for axis in range(3):
        low = planes.load(b.add(row, I64(axis * WIDTH)), WIDTH)
        up = planes.load(b.add(row, I64((axis + 3) * WIDTH)), WIDTH)
        gap = greater(low - splat(b, query.box.upper[axis], WIDTH), gap)
        gap = greater(splat(b, query.box.lower[axis], WIDTH) - up, gap)
    children = nodes.load(b.add(row, I64(CHILD)), WIDTH)
    possible, is_box = (gap <= 0.0).mask(), (children < 0).mask()
    certain = b.and_((gap <= -splat(b, query.margin, WIDTH)).mask(), is_box)
    boxes = b.and_(possible, is_box)
    inner = b.xor(possible, boxes)
    stack.squeeze(children, mask_of(b, inner, WIDTH), top)
    packed = b.or_(b.shl(boxes, I64(_POSSIBLE)), b.shl(certain, I64(_CERTAIN)))
    return b.or_(b.ctpop(inner), packed)


@vector_code(void)
def _store_boxes(b: Builder, nodes: Memory, row: Scalar, boxes: Scalar, rows: Memory, at: Scalar) -> None:
    """Store the numbers of the boxes of a node, a bit for each slot."""
    rows.squeeze(~nodes.load(b.add(row, I64(CHILD)), WIDTH), mask_of(b, boxes, WIDTH), at)


@inlined
def _is_found(boxes: BoxTree, queries: QueryBoxes, q: int, box: Corners, i: int) -> bool:
    """Return whether query q finds box i."""
    if not is_allowed(boxes.allowed, ~i) or not is_before(queries, q, boxes.first + i):
        return False
    other = corners_of(boxes.rows.lower, boxes.rows.upper, i)
    if queries.distances.size == 0:
        return overlap(box, other)
    return is_within(gaps_between(box, other), distance_of(queries, q))


@inlined
def _slot_query(boxes: BoxTree, queries: QueryBoxes, q: int, box: Corners) -> SlotQuery:
    """Return what slots are compared with; nothing is certain where boxes have more conditions to meet."""
    if queries.distances.size > 0:
        return SlotQuery(slot_box(boxes, grown(box, distance_of(queries, q))), NO_MARGIN)
    around = slot_box(boxes, box)
    conditions = boxes.allowed.size > 0 or queries.numbers.size > 0
    return SlotQuery(around, NO_MARGIN if conditions else certain_margin(around, boxes.is_flat))


@inlined
def _find(boxes: BoxTree, queries: QueryBoxes, q: int, stack: Ints32, room: FoundRoom) -> int:
    """Write the rows that query q finds, in any order; return how many there are."""
    nodes, box = boxes.tree.nodes, corners_of(queries.lower, queries.upper, q)
    query = _slot_query(boxes, queries, q, box)
    count, top = 0, push_starts(boxes.tree, start_row(queries.starts, q), stack)
    while top > 0:
        top -= 1
        node = int(stack[top])
        visited = _visit(nodes, node * ROW, query, stack, top)
        top += visited & _ALL
        certain = visited >> _CERTAIN
        open_ = (visited >> _POSSIBLE & _ALL) ^ certain
        at = room.used[0] + count
        if at + WIDTH <= room.rows.size:  # also if none is certain, which no processor could predict
            _store_boxes(nodes, node * ROW, certain, room.rows, at)
        count += popcount(certain)
        while open_ != 0:
            child = nodes[node, CHILD + lowest_bit(open_)]
            open_ &= open_ - 1
            if child != EMPTY and _is_found(boxes, queries, q, box, int(~child)):
                count = put_row(room, count, int(~child))
    return count


@entry
def find_in_tree(boxes: BoxTree, queries: QueryBoxes, span: RaySpan, stack: Ints32, room: FoundRoom) -> int:
    """Write the rows of queries, a span of their order; return the first without room, or its end."""
    for k in range(span.begin, span.end):
        q = next_query(queries, k)
        count = _find(boxes, queries, q, stack, room)
        sort_query(room, count)
        if not end_query(room, q, count):
            return k
    return span.end
