"""Find the boxes of a tree that overlap query boxes, or are at most so far away: eight slots at a time.

A query box is rounded outward to float32 in tree coordinates, as slots are. Rounding is monotone, so that no
slot that the box overlaps is lost. float64 decides each box that is left, exactly.
"""

from typing import NamedTuple

import numpy as np

from raybox.bvh.node import CHILD, EMPTY, ROW, STACK, WIDTH, Tree, outward_down, outward_up, to_tree
from raybox.compiler.decorators import device, inlined
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import int64, lowest_bit, vector_code
from raybox.compiler.simd import F32, I64, Builder, Lanes, Scalar, splat
from raybox.compiler.simd_arrays import Memory
from raybox.compiler.struct_ref import struct
from raybox.geometry import BoxRows
from raybox.spatial.found_rows import FoundRoom, end_query, put_row
from raybox.spatial.gaps import gaps_between, grown, is_within, overlap
from raybox.spatial.query_boxes import (
    ALL_GROUPS,
    Corners,
    QueryBoxes,
    corners_of,
    distance_of,
    is_before,
    next_query,
    start_row,
)
from raybox.traversal.job import RaySpan
from raybox.traversal.tree import is_allowed
from raybox.validation import Bools, Ints32

_to_tree = inlined(to_tree)
Singles = tuple[np.float32, np.float32, np.float32]


@struct
class BoxTree(NamedTuple):
    """Boxes with their tree, and which of them may be found."""

    tree: Tree
    rows: BoxRows
    allowed: Bools
    """(M,), or empty: all"""
    first: int = 0
    """the number of row 0, among the rows of all geometries"""


class SlotBox(NamedTuple):
    """A box in tree coordinates, rounded outward."""

    lower: Singles
    upper: Singles


@inlined
def _down(x: float, tree: Tree, axis: int) -> np.float32:
    return outward_down(_to_tree(x, tree.center[axis], tree.scale))


@inlined
def _up(x: float, tree: Tree, axis: int) -> np.float32:
    return outward_up(_to_tree(x, tree.center[axis], tree.scale))


@device
def slot_box(tree: Tree, box: Corners) -> SlotBox:
    """Return a box in tree coordinates."""
    low, up = box
    lower = _down(low[0], tree, 0), _down(low[1], tree, 1), _down(low[2], tree, 2)
    return SlotBox(lower, (_up(up[0], tree, 0), _up(up[1], tree, 1), _up(up[2], tree, 2)))


@vector_code(int64)
def _overlapping_slots(
    b: Builder, nodes: Memory, row: Scalar, lower: list[Scalar], upper: list[Scalar]
) -> Scalar:
    """Return a bit for each slot of a node that overlaps a box in tree coordinates."""
    planes = nodes.as_items(F32)

    def meets(axis: int) -> Lanes:
        low = planes.load(b.add(row, I64(axis * WIDTH)), WIDTH)
        up = planes.load(b.add(row, I64((axis + 3) * WIDTH)), WIDTH)
        return (low <= splat(b, upper[axis], WIDTH)) & (up >= splat(b, lower[axis], WIDTH))

    return (meets(0) & meets(1) & meets(2)).mask()


@inlined
def push_starts(tree: Tree, row: int, stack: Ints32) -> int:
    """Put the nodes at which a query starts on the stack; return how many there are."""
    if row == ALL_GROUPS:
        stack[0] = 0
        return 1
    top = 0
    for node in range(tree.starts[0, 0], tree.starts[0, 0] + tree.starts[0, 1]):
        stack[top] = node
        top += 1
    if row > 0:
        for node in range(tree.starts[row, 0], tree.starts[row, 0] + tree.starts[row, 1]):
            stack[top] = node
            top += 1
    return top


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
def _find(boxes: BoxTree, queries: QueryBoxes, q: int, stack: Ints32, room: FoundRoom) -> int:
    """Write the rows that query q finds, in any order; return how many there are."""
    nodes, box = boxes.tree.nodes, corners_of(queries.lower, queries.upper, q)
    around = box if queries.distances.size == 0 else grown(box, distance_of(queries, q))
    lower, upper = slot_box(boxes.tree, around)
    count, top = 0, push_starts(boxes.tree, start_row(queries.starts, q), stack)
    while top > 0:
        top -= 1
        node = int(stack[top])
        mask = _overlapping_slots(nodes, node * ROW, lower, upper)
        while mask != 0:
            child = nodes[node, CHILD + lowest_bit(mask)]
            mask &= mask - 1
            if child >= 0:
                stack[top] = child
                top += 1
            elif child != EMPTY and _is_found(boxes, queries, q, box, int(~child)):
                count = put_row(room, count, int(~child))
    return count


def make_stack() -> Ints32:
    """Return the stack of a search."""
    return np.empty(STACK, np.int32)


@entry
def find_in_tree(boxes: BoxTree, queries: QueryBoxes, span: RaySpan, stack: Ints32, room: FoundRoom) -> int:
    """Write the rows of queries, a span of their order; return the first without room, or its end."""
    for k in range(span.begin, span.end):
        q = next_query(queries, k)
        if not end_query(room, q, _find(boxes, queries, q, stack, room)):
            return k
    return span.end
