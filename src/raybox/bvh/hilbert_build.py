"""Build a tree fast: boxes in their order along a Hilbert curve, packed level by level, eight to a node."""

from typing import Any

import numpy as np

from raybox.bvh import sah_rows
from raybox.bvh.build_threads import TaskRunner, chunks
from raybox.bvh.frame import FramedBoxes, aligned
from raybox.bvh.hilbert_sort import sort_along_curve
from raybox.bvh.node import EMPTY, ROW, WIDTH
from raybox.bvh.sah_rows import ROW_OF
from raybox.compiler.decorators import entry

_CHUNK = 2**13  # nodes


@entry
def _fill_leaves(nodes: Any, span: Any, first: int, above: int, rows: Any, keys: Any) -> None:
    """Write boxes to nodes span[0]:span[1] counted from `first`, and these to parents from `above` on."""
    for node in range(span[0], span[1]):
        at = node * WIDTH
        if at + WIDTH <= len(keys):
            bounds = sah_rows.write_leaf(nodes, first + node, rows, keys, at)
        else:
            bounds = sah_rows.nothing()
            for k in range(WIDTH):
                if at + k < len(keys):
                    row = sah_rows.load(rows, keys[at + k] & (1 << ROW_OF) - 1)
                    sah_rows.write_slot(nodes, first + node, k, row, ~sah_rows.number_of(row))
                    bounds = sah_rows.union(bounds, row)
                else:
                    sah_rows.write_slot(nodes, first + node, k, sah_rows.nothing(), EMPTY)
        if above < first:
            sah_rows.write_slot(nodes, above + node // WIDTH, node % WIDTH, bounds, first + node)


@entry
def _fill_level(nodes: Any, first: int, stop: int, above: int) -> None:
    """Write nodes first:stop, in order, to the slots of their parents from `above` on."""
    for node in range(first, stop):
        parent = above + (node - first) // WIDTH
        sah_rows.write_slot(nodes, parent, (node - first) % WIDTH, sah_rows.node_bounds(nodes, node), node)


@entry
def _empty(nodes: Any, node: int) -> None:
    """Empty every slot of a node."""
    for slot in range(WIDTH):
        sah_rows.write_slot(nodes, node, slot, sah_rows.nothing(), EMPTY)


def pack(run_each: TaskRunner, boxes: FramedBoxes, reach: float) -> Any:
    """Return the nodes of a tree; every node but the last of a level is full."""
    sizes = [max(1, -(-len(boxes.lower) // WIDTH))]
    while sizes[0] > 1:
        sizes.insert(0, -(-sizes[0] // WIDTH))
    begins = np.cumsum([0, *sizes], dtype=np.int64).tolist()
    rows, keys = sort_along_curve(run_each, boxes, reach)
    nodes = aligned(begins[-1], ROW, np.int32)
    for begin in begins[1:-1]:
        _empty(nodes, begin - 1)
    first, above = begins[-2], begins[max(len(begins) - 3, 0)]
    run_each(_fill_leaves, [(nodes, span, first, above, rows, keys) for span in chunks(0, sizes[-1], _CHUNK)])
    for level in range(len(sizes) - 2, 0, -1):
        _fill_level(nodes, begins[level], begins[level + 1], begins[level - 1])
    return nodes
