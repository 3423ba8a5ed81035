"""Query boxes in tree coordinates, in float32, and the boxes of a scene with their tree."""

from typing import NamedTuple

import numpy as np

from raybox.bvh.node import FAR, STACK, WIDTH, Tree, outward_down, outward_up, to_tree
from raybox.compiler.decorators import device, inlined
from raybox.compiler.struct_ref import struct
from raybox.geometry import BoxRows
from raybox.spatial.query_boxes import Corners
from raybox.spatial.target import ALL_GROUPS
from raybox.validation import Bools, Ints32

_SLACK, _TINY = np.float32(2.0**-20), np.float32(2.0**-97)
_NEAR = np.float32(0.5 * FAR)
_FAR = np.float32(FAR)
NO_MARGIN = np.float32(np.nan)
_to_tree = inlined(to_tree)
Singles = tuple[np.float32, np.float32, np.float32]


@struct
class BoxTree(NamedTuple):
    """Boxes with their tree, and which of them may be found."""

    tree: Tree
    rows: BoxRows
    allowed: Bools
    """(M,), or empty: all"""
    first: int
    """the number of row 0, among the rows of all geometries"""
    is_flat: bool
    """whether D is 2: all z are 0"""


class SlotBox(NamedTuple):
    """A box in tree coordinates, rounded."""

    lower: Singles
    upper: Singles


@inlined
def _down(x: float, tree: Tree, axis: int) -> np.float32:
    return outward_down(_to_tree(x, tree.center[axis], tree.scale))


@inlined
def _up(x: float, tree: Tree, axis: int) -> np.float32:
    return outward_up(_to_tree(x, tree.center[axis], tree.scale))


@device
def slot_box(boxes: BoxTree, box: Corners) -> SlotBox:
    """Return a box in tree coordinates, rounded outward; in 2D, where all z are 0, it has no bounds there."""
    tree, low, up = boxes.tree, box.lower, box.upper
    z, w = _down(low[2], tree, 2), _up(up[2], tree, 2)
    if boxes.is_flat:
        z, w = -_FAR, _FAR
    lower = _down(low[0], tree, 0), _down(low[1], tree, 1), z
    return SlotBox(lower, (_up(up[0], tree, 0), _up(up[1], tree, 1), w))


@device
def certain_margin(box: SlotBox, is_flat: bool) -> np.float32:
    """Return by how much slots overlap a query whose boxes overlap it for certain; NaN: it is too far away.

    Slot and query have each moved by 2^-22 of themselves and 2^-99, at most. Let a slot's lower plane s be at
    most u - margin, for the upper bound u of the query, and the margin at least 2^-20 abs(u) + 2^-97. Where
    abs(s) is below 2 abs(u), both have moved by less than that together. Else s is negative, and below u by
    more than both have moved.
    """
    (x, y, z), (u, v, w) = box
    largest = max(abs(x), abs(y), abs(u), abs(v))
    if not is_flat:
        largest = max(largest, abs(z), abs(w))
    return np.float32(largest * _SLACK + _TINY) if largest < _NEAR else NO_MARGIN


def make_stack() -> Ints32:
    """Return the stack of a search, with room for all slots of a node beyond those that are pushed."""
    return np.empty(STACK + WIDTH, np.int32)


@inlined
def push_starts(tree: Tree, row: int, stack: Ints32, top: int) -> int:
    """Push the nodes at which a query starts; return the new top of the stack."""
    if row == ALL_GROUPS:
        stack[top] = 0
        return top + 1
    top = _push_row(tree, 0, stack, top)
    return _push_row(tree, row, stack, top) if row > 0 else top


@inlined
def _push_row(tree: Tree, row: int, stack: Ints32, top: int) -> int:
    for node in range(tree.starts[row, 0], tree.starts[row, 0] + tree.starts[row, 1]):
        stack[top] = node
        top += 1
    return top
