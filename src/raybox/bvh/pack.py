"""A tree in no time: boxes in the order of a curve, packed level by level, eight to a node."""

from typing import Any

import numpy as np

from raybox.bvh.crew import Each, chunks
from raybox.bvh.curve import order_along
from raybox.bvh.frame import Boxes, aligned
from raybox.bvh.layout import CHILD, EMPTY, ROW, WIDTH
from raybox.bvh.refit import fill

_CHUNK = 2**13  # nodes that a thread takes at once
_NUMBER = 2**31 - 1


def pack(each: Each, boxes: Boxes) -> Any:
    """Return the nodes of a tree over boxes; every node but the last of a level is full."""
    sizes = [max(1, -(-len(boxes.lower) // WIDTH))]
    while sizes[0] > 1:
        sizes.insert(0, -(-sizes[0] // WIDTH))
    begins = np.cumsum([0, *sizes])
    nodes = aligned(int(begins[-1]), ROW, np.int32)
    for level, begin in enumerate(begins[1:]):
        _empty(nodes[begin - 1])
        if level + 1 < len(sizes):
            below = np.arange(begin, begin + sizes[level + 1], dtype=np.int32)
            _set_children(nodes[begins[level] : begin], below)
    keys = order_along(each, boxes)
    leaves = nodes[begins[-2] :]

    def put(begin: int, end: int) -> None:
        numbers = (keys[begin * WIDTH : end * WIDTH] & _NUMBER).astype(np.int32)
        _set_children(leaves[begin:end], ~numbers)

    each(put, chunks(0, len(leaves), _CHUNK))
    fill(each, boxes, nodes, np.full((1, 8), np.inf, np.float32))
    return nodes


def _empty(node: Any) -> None:
    """Empty every slot of a node."""
    node[: CHILD // 2].view(np.float32)[:] = np.inf
    node[CHILD // 2 : CHILD].view(np.float32)[:] = -np.inf
    node[CHILD:] = EMPTY


def _set_children(nodes: Any, children: Any) -> None:
    """Put children into the slots of nodes in order; slots that are left over stay as they are."""
    full = len(children) // WIDTH
    nodes[:full, CHILD:] = children[: full * WIDTH].reshape(-1, WIDTH)
    if rest := len(children) - full * WIDTH:
        nodes[full, CHILD : CHILD + rest] = children[-rest:]
