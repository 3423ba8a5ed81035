"""Find the boxes of a tree that overlap query boxes, or are at most so far away: eight slots at a time.

A query box is rounded outward to float32 in tree coordinates, as slots are. Rounding is monotone, so that no
slot that the box overlaps is lost. Of the boxes among these slots, nearly all overlap for certain
(`raybox.spatial.slot_boxes.certain_margin`); float64 decides the others, exactly.

The test of a node is a long chain from the node's number to those of its children. So the nodes of 32 queries
wait in one queue, and tests of several overlap: in two thirds of the time of queries one by one. Queries that
need more memory than is shared are searched again, one by one.
"""

from typing import NamedTuple

import numpy as np

from raybox.bvh.node import CHILD, EMPTY, ROW, WIDTH
from raybox.compiler.decorators import inlined
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import Fields, int64, lowest_bit, popcount, vector_code, void
from raybox.compiler.simd import F32, I32, I64, Builder, Lanes, Scalar, constant, greater, mask_of, splat
from raybox.compiler.simd_arrays import Memory
from raybox.primitives.ray import start_row
from raybox.spatial.found_rows import FoundRoom, end_query, put_row, put_sorted, sort_query
from raybox.spatial.gaps import gaps_between, grown, is_within, overlap
from raybox.spatial.query_boxes import (
    Corners,
    QueryBoxes,
    corners_of,
    distance_of,
    is_before,
    next_query,
)
from raybox.spatial.slot_boxes import NO_MARGIN, BoxTree, SlotBox, certain_margin, push_starts, slot_box
from raybox.traversal.job import RaySpan
from raybox.traversal.tree import is_allowed
from raybox.validation import Floats32, Ints, Ints32

_POSSIBLE, _CERTAIN = 8, 16  # the bits at which these begin in the result of `_visit`
_ALL = 0xFF
TOGETHER = 32  # queries
_NODES, _FOUND = 1 << 11, 1 << 12  # of all queries that are searched together
_BOX, _MARGIN = 8, 6  # numbers of a slot box in `Shared.boxes`, and which of them is the margin


class SlotQuery(NamedTuple):
    """What slots are compared with."""

    box: SlotBox
    """a slot that does not overlap it has no box that is found"""
    margin: np.float32
    """the box in a slot that overlaps it by so much on each axis is found; NaN: none is for certain"""


class Shared(NamedTuple):
    """Memory of queries that are searched together, each numbered from 0 on."""

    numbers: Ints32
    """(TOGETHER,): their numbers among all queries"""
    boxes: Floats32
    """(TOGETHER * _BOX,): `SlotQuery` of each"""
    nodes: Ints32
    """nodes to visit, the first one first; here and below with room for all slots of a node more"""
    node_query: Ints32
    """the query of each node"""
    rows: Ints32
    """rows that were found"""
    row_query: Ints32
    """the query of each row"""
    grouped: Ints32
    """these rows, query by query"""
    ends: Ints
    """(TOGETHER,): the end of each query's rows"""


def make_shared() -> Shared:
    """Return the memory of a thread."""
    sizes = TOGETHER, TOGETHER * _BOX, *[_NODES + WIDTH] * 2, *[_FOUND + WIDTH] * 3, TOGETHER
    kinds = np.int32, np.float32, *[np.int32] * 5, np.int64
    return Shared(*(np.empty(size, kind) for size, kind in zip(sizes, kinds, strict=True)))


class _Compared(NamedTuple):
    """The slots of a node compared with a query: children, and bits for each kind of slot."""

    children: Lanes
    inner: Scalar
    boxes: Scalar
    """boxes that may be found"""
    certain: Scalar
    """boxes that are found for certain"""


def _compare(b: Builder, nodes: Memory, row: Scalar, query: list[Lanes]) -> _Compared:
    """Return how the slots of a node compare with a query: lower and upper bounds, and the margin.

    Differences of bounds are signed right, though rounded. That of a free slot and no bound is NaN, which the
    greatest ignores: `EMPTY` is then among the boxes that may be found.
    """
    planes, gap = nodes.as_items(F32), constant(b, F32, WIDTH, -np.inf)
    for axis in range(3):
        low = planes.load(b.add(row, I64(axis * WIDTH)), WIDTH)
        up = planes.load(b.add(row, I64((axis + 3) * WIDTH)), WIDTH)
        gap = greater(query[axis] - up, greater(low - query[axis + 3], gap))
    children = nodes.load(b.add(row, I64(CHILD)), WIDTH)
    possible, is_box = (gap <= 0.0).mask(), (children < 0).mask()
    boxes = b.and_(possible, is_box)
    certain = b.and_((gap <= -query[_MARGIN]).mask(), is_box)
    return _Compared(children, b.xor(possible, boxes), boxes, certain)


def _packed(b: Builder, slots: _Compared) -> Scalar:
    """Return the number of inner nodes, and boxes as bits: possible and certain ones."""
    packed = b.or_(b.shl(slots.boxes, I64(_POSSIBLE)), b.shl(slots.certain, I64(_CERTAIN)))
    return b.or_(b.ctpop(slots.inner), packed)


class _Visited(NamedTuple):
    """The slots of a node that a query overlaps."""

    inner: int
    """how many inner nodes"""
    undecided: int
    """a bit for each box that float64 decides"""
    certain: int
    """a bit for each box that is found for certain"""


@inlined
def _unpack(packed: int) -> _Visited:
    """Return what `_packed` holds."""
    certain = packed >> _CERTAIN
    return _Visited(packed & _ALL, (packed >> _POSSIBLE & _ALL) ^ certain, certain)


@vector_code(int64)
def _visit(b: Builder, nodes: Memory, row: Scalar, query: Fields, stack: Memory, top: Scalar) -> Scalar:
    """Push the inner nodes among the slots of a node; return `_packed`."""
    numbers = *query.box.lower, *query.box.upper, query.margin
    slots = _compare(b, nodes, row, [splat(b, x, WIDTH) for x in numbers])
    stack.squeeze(slots.children, mask_of(b, slots.inner, WIDTH), top)
    return _packed(b, slots)


class _Visit(NamedTuple):
    """A query that visits a node, and how many nodes and rows there are so far."""

    query: int
    nodes: int
    rows: int


@vector_code(int64)
def _visit_shared(b: Builder, nodes: Memory, row: Scalar, shared: Fields, visit: Fields) -> Scalar:
    """Append the inner nodes of a node to the queue, and certain boxes to the rows; return `_packed`."""
    place, owner = b.mul(visit.query, I64(_BOX)), splat(b, b.trunc(visit.query, I32), WIDTH)
    numbers = [shared.boxes.splat(b.add(place, I64(k)), WIDTH) for k in range(_MARGIN + 1)]
    slots = _compare(b, nodes, row, numbers)
    shared.nodes.squeeze(slots.children, mask_of(b, slots.inner, WIDTH), visit.nodes)
    shared.node_query.store(owner, visit.nodes)
    shared.rows.squeeze(~slots.children, mask_of(b, slots.certain, WIDTH), visit.rows)
    shared.row_query.store(owner, visit.rows)
    return _packed(b, slots)


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
    count, top = 0, push_starts(boxes.tree, start_row(queries.starts, q), stack, 0)
    while top > 0:
        top -= 1
        node = int(stack[top])
        inner, undecided, certain = _unpack(_visit(nodes, node * ROW, query, stack, top))
        top += inner
        at = room.used[0] + count
        if at + WIDTH <= room.rows.size:  # also if none is certain, which no processor could predict
            _store_boxes(nodes, node * ROW, certain, room.rows, at)
        count += popcount(certain)
        while undecided != 0:
            child = nodes[node, CHILD + lowest_bit(undecided)]
            undecided &= undecided - 1
            if child != EMPTY and _is_found(boxes, queries, q, box, int(~child)):
                count = put_row(room, count, int(~child))
    return count


@inlined
def _start_shared(boxes: BoxTree, queries: QueryBoxes, span: RaySpan, shared: Shared) -> int:
    """Write the queries of a span, and where they start; return how many nodes wait."""
    top = 0
    for k in range(span.end - span.begin):
        q = next_query(queries, span.begin + k)
        shared.numbers[k] = q
        query = _slot_query(boxes, queries, q, corners_of(queries.lower, queries.upper, q))
        for axis in range(3):
            shared.boxes[_BOX * k + axis] = query.box.lower[axis]
            shared.boxes[_BOX * k + axis + 3] = query.box.upper[axis]
        shared.boxes[_BOX * k + _MARGIN] = query.margin
        first, top = top, push_starts(boxes.tree, start_row(queries.starts, q), shared.nodes, top)
        for at in range(first, top):
            shared.node_query[at] = k
    return top


@inlined
def _find_shared(boxes: BoxTree, queries: QueryBoxes, span: RaySpan, shared: Shared) -> int:
    """Write the rows that queries of a span find, in any order; return how many, -1 without memory."""
    nodes, found, first = boxes.tree.nodes, 0, 0
    top = _start_shared(boxes, queries, span, shared)
    while first < top:
        if top > _NODES or found > _FOUND - WIDTH:
            return -1
        node, k, first = int(shared.nodes[first]), int(shared.node_query[first]), first + 1
        inner, undecided, certain = _unpack(_visit_shared(nodes, node * ROW, shared, _Visit(k, top, found)))
        top += inner
        found += popcount(certain)
        while undecided != 0:
            child = nodes[node, CHILD + lowest_bit(undecided)]
            undecided &= undecided - 1
            q = int(shared.numbers[k])
            box = corners_of(queries.lower, queries.upper, q)
            if child != EMPTY and _is_found(boxes, queries, q, box, int(~child)):
                shared.rows[found], shared.row_query[found] = ~child, k
                found += 1
    return found


@inlined
def _count_rows(size: int, found: int, shared: Shared, counts: Ints) -> None:
    """Write how many rows each of the first `size` queries has, and where they begin."""
    ends = shared.ends
    for k in range(size):
        ends[k] = 0
    for at in range(found):
        ends[shared.row_query[at]] += 1
    begin = 0
    for k in range(size):
        count = ends[k]
        counts[shared.numbers[k]] = count
        ends[k] = begin
        begin += count


@inlined
def _end_shared(size: int, found: int, shared: Shared, room: FoundRoom) -> bool:
    """End the first `size` queries, and write their rows; return False if these had no room."""
    _count_rows(size, found, shared, room.counts)
    if room.rows.size == 0:
        return True
    at, begin = room.used[0], 0
    if at + found + WIDTH > room.rows.size:
        room.counts[shared.numbers[0]] = found  # so that there is room for all of them next time
        return False
    for row in range(found):
        k = shared.row_query[row]
        shared.grouped[shared.ends[k]] = shared.rows[row]
        shared.ends[k] += 1
    for k in range(size):
        count = shared.ends[k] - begin
        put_sorted(shared.grouped, begin, count, room.rows, at + begin)
        begin += count
    room.used[0] = at + found
    return True


@inlined
def _find_each(boxes: BoxTree, queries: QueryBoxes, span: RaySpan, stack: Ints32, room: FoundRoom) -> int:
    """Write the rows of queries one by one; return the first without room, or the end of the span."""
    for k in range(span.begin, span.end):
        q = next_query(queries, k)
        count = _find(boxes, queries, q, stack, room)
        sort_query(room, count)
        if not end_query(room, q, count):
            return k
    return span.end


@entry
def find_in_tree(
    boxes: BoxTree, queries: QueryBoxes, span: RaySpan, stack: Ints32, shared: Shared, room: FoundRoom
) -> int:
    """Write the rows of queries, a span of their order; return the first without room, or its end."""
    begin = span.begin
    while begin < span.end:
        some = RaySpan(begin, min(begin + TOGETHER, span.end))
        found = _find_shared(boxes, queries, some, shared)
        if found < 0:
            begin = _find_each(boxes, queries, some, stack, room)
            if begin < some.end:
                return begin
        elif _end_shared(some.end - begin, found, shared, room):
            begin = some.end
        else:
            return begin
    return span.end
