"""Find the boxes of a geometry that share a point with a convex region, by its tree.

Nodes that are certainly outside of a plane are dropped. Boxes below a node that is certainly inside of all
planes are found without tests, but for those that hold no point. The other boxes are tested one by one
(`raybox.spatial.region_boxes`).
"""

from typing import NamedTuple

import numpy as np

from raybox.bvh.node import CHILD, EMPTY, WIDTH, Tree, from_tree
from raybox.geometry import BoxRows, GridRows, Region
from raybox.spatial.region_boxes import (
    BoxColumns,
    RegionPlanes,
    columns_of,
    hold_points,
    region_planes,
    share_a_point,
    sides_of,
)
from raybox.spatial.region_cells import cells_in
from raybox.spatial.target import TargetPart
from raybox.validation import Bools, Ints

_NODES = 2**11  # nodes at a time


class SlotBoxes(NamedTuple):
    """Boxes of a tree, by row."""

    inside: Ints
    """in a slot that is certainly inside"""
    undecided: Ints


def rows_in(region: Region, part: TargetPart, starts: Ints) -> Ints:
    """Return the rows whose closed boxes share a point with a closed region, ascending: exactly.

    Parameters
    ----------
    region : Region
        Of the D of the part.
    part : TargetPart
        The boxes, or the cells of a grid; others than the allowed and the occupied ones are not found.
    starts : ndarray of int64
        The nodes of the tree at which the search begins, none below another; of a grid it begins at the root.
    """
    planes = region_planes(region)
    if planes.is_empty:
        return np.empty(0, np.int64)
    if isinstance(part.rows, GridRows):
        rows = cells_in(planes, part)
    else:
        rows = _boxes_in(planes, part.rows, part, starts)
    return np.sort(rows)


def _boxes_in(planes: RegionPlanes, boxes: BoxRows, part: TargetPart, starts: Ints) -> Ints:
    """Return the rows of boxes that share a point with a region, in any order."""
    assert isinstance(part.tree, Tree)
    inside, undecided = _candidates(planes, part.tree, starts)
    if part.allowed.size:
        inside, undecided = inside[part.allowed[inside]], undecided[part.allowed[undecided]]
    inside = inside[hold_points(columns_of(boxes, inside))]
    return np.concatenate([inside, undecided[share_a_point(planes, columns_of(boxes, undecided))]])


def _candidates(planes: RegionPlanes, tree: Tree, starts: Ints) -> SlotBoxes:
    """Return the boxes below some nodes, without those in slots that are certainly outside."""
    waiting = [(np.asarray(starts, np.int64), False)]
    inside, undecided = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    while waiting:
        nodes, is_inside = waiting.pop()
        if len(nodes) > _NODES:
            waiting.append((nodes[_NODES:], is_inside))
            nodes = nodes[:_NODES]
        children = tree.nodes[nodes, CHILD:].astype(np.int64).ravel()
        for chosen, below in _split(planes, tree, nodes, is_inside):
            some = children[chosen & (children != EMPTY)]
            (inside if below else undecided).append(~some[some < 0])
            if (some >= 0).any():
                waiting.append((some[some >= 0], below))
    return SlotBoxes(np.concatenate(inside), np.concatenate(undecided))


def _split(planes: RegionPlanes, tree: Tree, nodes: Ints, is_inside: bool) -> list[tuple[Bools, bool]]:
    """Return which slots of nodes are certainly inside, and which are undecided."""
    if is_inside:
        return [(np.ones(WIDTH * len(nodes), np.bool_), True)]
    sides = sides_of(planes, _slots(tree, nodes))
    return [(sides.inside, True), (~(sides.outside | sides.inside), False)]


def _slots(tree: Tree, nodes: Ints) -> BoxColumns:
    """Return the bounds of the slots of nodes.

    They enclose the boxes: those in tree coordinates do by more than underflow loses, and rounding once does
    not put a number beyond a bound of a box, which is a float64, too.
    """
    bounds = tree.nodes.view(np.float32)[nodes, :CHILD].reshape(-1, 6, WIDTH).swapaxes(0, 1)
    columns = bounds.reshape(6, -1).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        lower = [from_tree(columns[axis], tree.center[axis], tree.scale) for axis in range(3)]
        upper = [from_tree(columns[3 + axis], tree.center[axis], tree.scale) for axis in range(3)]
    return BoxColumns(lower, upper)
