"""Find the occupied cells of a grid nearest to points: nodes nearest first, each with 4 x 4 x 4 children."""

from typing import NamedTuple

import numpy as np

from raybox.bvh.cell_tree import FIRST, MASK, MAX_LEVELS, SIDE
from raybox.compiler.decorators import device, inlined
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import lowest_bit, popcount
from raybox.geometry import GridRows
from raybox.spatial.cells import Cells, corners_of_cell
from raybox.spatial.gaps import gaps_between
from raybox.spatial.neighbor_heap import NearestRows, NeighborHeap, is_full, load, record, square_above, store
from raybox.spatial.query_boxes import Corners, QueryBoxes, corners_of, distance_of, next_query
from raybox.traversal.job import RaySpan
from raybox.traversal.tree import is_allowed
from raybox.validation import Floats, Ints

_ALL = -1  # the mask of a node whose children are all occupied
_LESS = 1.0 - 2.0**-40  # than a sum of squares with all of its roundings


class CellNode(NamedTuple):
    """A node of a tree of cells, with its place on each axis among the nodes of its level."""

    level: int
    number: int
    x: int
    y: int
    z: int


class CellStack(NamedTuple):
    """Nodes that are left to visit, and the gaps of a node's children."""

    nodes: Ints
    """(size, 5): `CellNode`"""
    squares: Floats
    """(size,): squared distances, at most"""
    gaps: Floats
    """(3, 4): squared gaps on each axis; NaN: there are no such cells"""


def make_cell_stack() -> CellStack:
    """Return the stack of a thread."""
    size = MAX_LEVELS * SIDE**3
    return CellStack(np.empty((size, 5), np.int64), np.empty(size), np.empty((3, SIDE)))


@inlined
def _node_at(stack: CellStack, at: int) -> CellNode:
    nodes = stack.nodes
    return CellNode(nodes[at, 0], nodes[at, 1], nodes[at, 2], nodes[at, 3], nodes[at, 4])


@inlined
def _put(stack: CellStack, at: int, node: CellNode, square: float) -> None:
    stack.squares[at] = square
    stack.nodes[at, 0], stack.nodes[at, 1] = node.level, node.number
    stack.nodes[at, 2], stack.nodes[at, 3], stack.nodes[at, 4] = node.x, node.y, node.z


@inlined
def _push(stack: CellStack, base: int, top: int, node: CellNode, square: float) -> int:
    """Push a node so that the nearest of those above `base` is on top; return the new top."""
    at = top
    while at > base and stack.squares[at - 1] < square:
        _put(stack, at, _node_at(stack, at - 1), stack.squares[at - 1])
        at -= 1
    _put(stack, at, node, square)
    return top + 1


@inlined
def _square(edges: Floats, first: int, size: int, x: float) -> float:
    """Return the squared gap between a coordinate and `size` cells; NaN if there are none."""
    last = edges.size - 1
    if first >= last:
        return np.nan
    gap = float(max(edges[first] - x, x - edges[min(first + size, last)], 0.0))
    return gap * gap


@device
def _write_gaps(grid: GridRows, gaps: Floats, node: CellNode, point: Corners) -> None:
    """Write the squared gaps between the children of a node and a point."""
    size = 1 << 2 * node.level
    for k in range(SIDE):
        gaps[0, k] = _square(grid.x_edges, (SIDE * node.x + k) * size, size, point.lower[0])
        gaps[1, k] = _square(grid.y_edges, (SIDE * node.y + k) * size, size, point.lower[1])
        gaps[2, k] = _square(grid.z_edges, (SIDE * node.z + k) * size, size, point.lower[2])


@inlined
def _limit(heap: NeighborHeap, end: float) -> float:
    """Return the squared distance beyond which no cell matters."""
    if not is_full(heap):
        return end
    gaps = heap.gaps[0]
    return min(end, square_above(gaps[0] - gaps[3], gaps[1] - gaps[4], gaps[2] - gaps[5]))


@device
def _record_cell(cells: Cells, point: Corners, i: int, farthest: float, heap: NeighborHeap) -> bool:
    """Record a cell if it may be found; return whether the heap has changed."""
    if not is_allowed(cells.allowed, ~i):
        return False
    gaps = gaps_between(point, corners_of_cell(cells.rows, i))
    return record(heap, cells.first + i, gaps, farthest)


@inlined
def _child(cells: Cells, node: CellNode, bit: int) -> CellNode:
    """Return the child of a node that has a bit of its mask."""
    x, y, z = SIDE * node.x + (bit >> 4), SIDE * node.y + (bit >> 2 & 3), SIDE * node.z + (bit & 3)
    nodes, number = cells.tree.nodes, 0
    if nodes.shape[0] > 0 and node.level > 0:
        before = nodes[node.number, MASK] & ((1 << bit) - 1)
        number = nodes[node.number, FIRST] + popcount(before)
    return CellNode(node.level - 1, number, x, y, z)


@device
def _search(cells: Cells, point: Corners, farthest: float, stack: CellStack, heap: NeighborHeap) -> None:
    """Record the cells nearest to a point."""
    nodes, shape, gaps = cells.tree.nodes, cells.rows.shape, stack.gaps
    end = square_above(farthest, 0.0, 0.0)
    limit = _limit(heap, end)
    top = _push(stack, 0, 0, CellNode(cells.tree.starts.shape[0] - 1, 0, 0, 0, 0), 0.0)
    while top > 0:
        top -= 1
        if stack.squares[top] > limit:
            continue
        node, base = _node_at(stack, top), top
        _write_gaps(cells.rows, gaps, node, point)
        mask = nodes[node.number, MASK] if nodes.shape[0] > 0 else _ALL
        while mask != 0:
            bit = lowest_bit(mask)
            mask &= mask - 1
            square = (gaps[0, bit >> 4] + gaps[1, bit >> 2 & 3] + gaps[2, bit & 3]) * _LESS
            if not square <= limit:
                continue
            child = _child(cells, node, bit)
            if node.level > 0:
                top = _push(stack, base, top, child, square)
            elif _record_cell(
                cells, point, (child.x * shape[1] + child.y) * shape[2] + child.z, farthest, heap
            ):
                limit = _limit(heap, end)


@entry
def find_closest_in_cells(
    cells: Cells,
    queries: QueryBoxes,
    span: RaySpan,
    stack: CellStack,
    heap: NeighborHeap,
    found: NearestRows,
) -> None:
    """Write the cells nearest to the points of a span; see `find_closest_in_tree`."""
    for k in range(span.begin, span.end):
        q = next_query(queries, k)
        load(heap, found, q)
        point = corners_of(queries.lower, queries.upper, q)
        _search(cells, point, distance_of(queries, q), stack, heap)
        store(heap, found, q)
