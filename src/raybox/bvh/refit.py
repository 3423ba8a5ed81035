"""Refit a tree to boxes that have moved, bottom up, and measure its cost.

Each thread refits a chunk of nodes, as far as that needs nothing from other chunks: every slot that is a box,
which is most of the work, and inner slots whose nodes are done. One thread does the rest at the end. So nodes
may be in any order.
"""

import numpy as np

from raybox.bvh import sah_rows
from raybox.bvh.build_threads import TaskRunner, chunks
from raybox.bvh.frame import FramedBoxes, aligned, find_bulk, frozen, make_sample, root_of
from raybox.bvh.node import CHILD, EMPTY, ROW, WIDTH, Tree, to_tree
from raybox.compiler.decorators import device, inlined
from raybox.compiler.entry_points import entry
from raybox.validation import Bools, Floats, Floats32, Ints32

_CHUNK = 2**12  # nodes: 1 MB
_AHEAD = 8  # nodes whose boxes are prefetched: a third faster
_FAR_OFF = 2.0**16  # reaches
_LEAST = 1e-37  # the area of a root that has none
_LARGEST = 1e30  # limit: float32 holds it


@entry
def _fill(boxes: FramedBoxes, nodes: Ints32, span: tuple[int, int], done: Bools, limits: Floats32) -> float:
    """Fill the slots of nodes span[0]:span[1], last first; return the area of nodes below those now done."""
    bulk = sah_rows.load(limits, 0)
    cost = 0.0
    for node in range(span[1] - 1, span[0] - 1, -1):
        if done[node]:
            continue
        sah_rows.fetch_boxes(boxes.lower, boxes.upper, nodes, max(node - _AHEAD, 0))
        whole = True
        below = 0.0
        for slot in range(WIDTH):
            child = nodes[node, CHILD + slot]
            if child >= 0:
                if child < span[1] and done[child]:
                    row = sah_rows.node_bounds(nodes, child)
                    below += sah_rows.area_within(row, bulk)
                    sah_rows.write_slot(nodes, node, slot, row, child)
                else:
                    whole = False
            elif child != EMPTY:
                row = sah_rows.outward(boxes.lower, boxes.upper, ~child, boxes.center, boxes.scale)
                sah_rows.write_slot(nodes, node, slot, row, child)
        if whole:
            done[node] = True
            cost += below
    return cost


def refit(tree: Tree, lower: Floats, upper: Floats) -> Tree:
    """Return the tree refitted to moved boxes; the given tree is left as it is."""
    moved = refit_into(copy_nodes(tree.nodes), tree, lower, upper)[0]
    moved.nodes.flags.writeable = False
    return moved


def copy_nodes(nodes: Ints32) -> Ints32:
    """Return a writable copy of nodes."""
    copy = aligned(len(nodes), ROW, np.int32)
    copy[:] = nodes
    return copy


def refit_into(
    nodes: Ints32, tree: Tree, lower: Floats, upper: Floats, *, threads: int = 1
) -> tuple[Tree, float]:
    """Refit nodes, a copy of the tree's, to moved boxes; return (the tree with these nodes, its cost).

    The cost is the average number of nodes that a line through the bulk of the scene hits: the nodes' surface
    area over the root's, within the cube of twice the bulk's reach. So one box far away neither dominates the
    cost nor hides that of the others.
    """
    boxes = FramedBoxes(frozen(lower), frozen(upper), tree.center, tree.scale)
    limits = bulk_limits(tree, boxes.lower, boxes.upper)
    with TaskRunner(threads) as run_each:
        area = fill(run_each, boxes, nodes, limits)
    root = root_of(nodes)
    return tree._replace(nodes=nodes, root=root), cost_of(area, root, limits)


def fill(run_each: TaskRunner, boxes: FramedBoxes, nodes: Ints32, limits: Floats32) -> float:
    """Fill the slots of all nodes; return the area, within limits, of all nodes but the root."""
    done, area = np.zeros(len(nodes), np.bool_), 0.0
    if len(nodes) > _CHUNK:
        spans = chunks(0, len(nodes), _CHUNK)
        area = sum(run_each(_fill, [(boxes, nodes, span, done, limits) for span in spans]))
    return area + _fill(boxes, nodes, (0, len(nodes)), done, limits)


@entry
def area_of(nodes: Ints32, begin: int, end: int, limits: Floats32) -> float:
    """Return the area, within limits, of nodes begin:end."""
    bulk = sah_rows.load(limits, 0)
    area = 0.0
    for node in range(begin, end):
        area += sah_rows.area_within(sah_rows.node_bounds(nodes, node), bulk)
    return area


def bulk_limits(tree: Tree, lower: Floats, upper: Floats) -> Floats32:
    """Return the cube of twice the bulk's reach, in tree coordinates, as a row.

    It is NaN where the bulk is so far from the tree's centre that float32 hardly separates its boxes: these
    tree coordinates do not fit them, whatever the nodes' areas.
    """
    center, limits = np.empty(3), np.zeros((1, 8), np.float32)
    reach = find_bulk(lower, upper, make_sample(len(lower)), center)
    _write_limits(center, reach, tree.center, tree.scale, limits)
    return limits


@entry
def _write_limits(bulk: Floats, reach: float, center: Floats, scale: float, limits: Floats32) -> None:
    half = 2.0 * (reach * scale)
    fits = True
    for axis in range(3):
        middle = _to_tree(bulk[axis], center[axis], scale)
        fits &= abs(middle) <= _FAR_OFF * half and abs(middle) < np.inf
        limits[0, axis] = -_clipped(middle - half, _LARGEST)
        limits[0, 4 + axis] = _clipped(middle + half, _LARGEST)
    if not fits:
        for k in range(8):
            limits[0, k] = np.nan


@entry
def cost_of(below: float, root: Floats, limits: Floats32) -> float:
    """Return a tree's cost, from the area within limits of all nodes but the root, and the root's bounds."""
    if np.isnan(limits[0, 0]):
        return np.inf
    x, y, z = _size(root, limits, 0), _size(root, limits, 1), _size(root, limits, 2)
    return 1.0 + below / max(x * y + y * z + z * x, _LEAST)


@device
def _size(root: Floats, limits: Floats32, axis: int) -> float:
    """Return the length of a root's bounds within limits on one axis, clamped to a finite one."""
    low = _clipped(max(root[0, axis], -limits[0, axis]), sah_rows.CLAMP)
    up = _clipped(min(root[1, axis], limits[0, 4 + axis]), sah_rows.CLAMP)
    return max(up - low, 0.0)


@device
def _clipped(x: float, limit: float) -> float:
    return max(-limit, min(limit, x))


_to_tree = inlined(to_tree)
