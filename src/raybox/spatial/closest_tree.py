"""Find the boxes of a tree that are nearest to points: nodes nearest first, eight slots at a time.

**Why no box is lost.** Slots and points are rounded outward, so that each gap in float32 is at most the exact
one, but for the rounding of the difference. The sum of squares has seven more roundings, of positive terms.
It is at most 1 + 2^-21 times the exact one, and is reduced by 2^-20. What underflows is less than the limit
is enlarged by (`square_above`).
"""

from typing import NamedTuple

import numpy as np

from raybox.bvh.node import CHILD, EMPTY, ROW, STACK, WIDTH, Tree, outward_up, to_tree
from raybox.compiler.decorators import device, inlined
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import int64, lowest_bit, vector_code
from raybox.compiler.simd import F32, I64, Builder, Scalar, constant, greater, splat
from raybox.compiler.simd_arrays import Memory
from raybox.primitives.ray import start_row
from raybox.spatial.gaps import gaps_between
from raybox.spatial.neighbor_heap import (
    NearestRows,
    NeighborHeap,
    gaps_at,
    is_full,
    load,
    record,
    square_above,
    store,
)
from raybox.spatial.query_boxes import QueryBoxes, corners_of, distance_of, next_query
from raybox.spatial.slot_boxes import BoxTree, push_starts, slot_box
from raybox.traversal.job import RaySpan
from raybox.traversal.tree import is_allowed, push
from raybox.validation import Floats32, Ints32

_LESS = 1.0 - 2.0**-20
_to_tree = inlined(to_tree)  # of the ends of a gap: its length there


class SearchStack(NamedTuple):
    """Nodes that are left to visit, and the squared distances of a node's slots."""

    node: Ints32
    time: Floats32
    """squared distances of the nodes in tree coordinates"""
    slots: Floats32


def make_search_stack() -> SearchStack:
    """Return the stack of a thread."""
    return SearchStack(np.empty(STACK, np.int32), np.empty(STACK, np.float32), np.empty(WIDTH, np.float32))


@vector_code(int64)
def _near_slots(
    b: Builder, nodes: Memory, row: Scalar, point: list[list[Scalar]], limit: Scalar, slots: Memory
) -> Scalar:
    """Return a bit for each slot that may be nearer than a limit, and store the squared distances."""
    planes, total = nodes.as_items(F32), constant(b, F32, WIDTH, 0.0)
    lower, upper = point
    for axis in range(3):
        low = planes.load(b.add(row, I64(axis * WIDTH)), WIDTH) - splat(b, upper[axis], WIDTH)
        up = splat(b, lower[axis], WIDTH) - planes.load(b.add(row, I64((axis + 3) * WIDTH)), WIDTH)
        gap = greater(greater(low, up), constant(b, F32, WIDTH, 0.0))
        total = total + gap * gap
    total = total * _LESS
    slots.store(total, 0)
    return (total <= splat(b, limit, WIDTH)).mask()


@device
def _limit(tree: Tree, heap: NeighborHeap, farthest: np.float32) -> np.float32:
    """Return the squared distance in tree coordinates beyond which no box matters."""
    if not is_full(heap):
        return farthest
    high, low = gaps_at(heap.gaps, 0)
    x, y = _to_tree(high[0], low[0], tree.scale), _to_tree(high[1], low[1], tree.scale)
    return min(farthest, outward_up(square_above(x, y, _to_tree(high[2], low[2], tree.scale))))


@inlined
def _search(
    boxes: BoxTree, queries: QueryBoxes, q: int, farthest: float, stack: SearchStack, heap: NeighborHeap
) -> None:
    """Record the boxes nearest to query q, a point."""
    tree, point = boxes.tree, corners_of(queries.lower, queries.upper, q)
    place = slot_box(boxes, point)
    end = outward_up(square_above(_to_tree(farthest, 0.0, tree.scale), 0.0, 0.0))
    limit = _limit(tree, heap, end)
    top = push_starts(tree, start_row(queries.starts, q), stack.node, 0)
    stack.time[:top] = 0.0
    while top > 0:
        top -= 1
        if stack.time[top] > limit:
            continue
        node, base = int(stack.node[top]), top
        mask = _near_slots(tree.nodes, node * ROW, place, limit, stack.slots)
        while mask != 0:
            slot = lowest_bit(mask)
            mask &= mask - 1
            child = tree.nodes[node, CHILD + slot]
            if child >= 0:
                top = push(stack, base, top, child, stack.slots[slot])
            elif child != EMPTY and stack.slots[slot] <= limit and is_allowed(boxes.allowed, child):
                i = int(~child)
                gaps = gaps_between(point, corners_of(boxes.rows.lower, boxes.rows.upper, i))
                if record(heap, boxes.first + i, gaps, farthest):
                    limit = _limit(tree, heap, end)


@entry
def find_closest_in_tree(
    boxes: BoxTree,
    queries: QueryBoxes,
    span: RaySpan,
    stack: SearchStack,
    heap: NeighborHeap,
    found: NearestRows,
) -> None:
    """Write the boxes nearest to the points of a span."""
    for k in range(span.begin, span.end):
        q = next_query(queries, k)
        load(heap, found, q)
        _search(boxes, queries, q, distance_of(queries, q), stack, heap)
        store(heap, found, q)
