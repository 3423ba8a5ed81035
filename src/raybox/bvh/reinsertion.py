"""Build the best tree: a binary tree, improved by reinsertion, then collapsed to eight slots a node.

Reinsertion removes a node with all below it and inserts it where the areas of all nodes grow least, found
by branch and bound (Bittner, Hapala and Havran 2013; Meister and Bittner 2018). The collapse chooses, of all
ways to make nodes of up to eight slots, one whose nodes' areas sum to the least, by dynamic programming
(Ylitie, Karras and Laine 2017, section 3).
"""

from typing import NamedTuple

import numpy as np

from raybox.bvh import sah_rows
from raybox.bvh.node import EMPTY, MAX_DEPTH, ROW, WIDTH
from raybox.bvh.sah_build import BEGIN, DEPTH, END, NODE, SahWorkspace, make_workspace, split
from raybox.compiler.decorators import device
from raybox.compiler.entry_points import entry
from raybox.validation import Floats32, Ints32

_ROUNDS = 2  # a third saves 0.2 %
_NODE_COST = 0.5  # of a node, beside its area, in mean areas of binary nodes: 15 % less memory
_COST_DEPTH = 200  # nodes deeper than this are halved by number of boxes alone
_SEARCH_STACK = 4096  # entries
LEFT, RIGHT, PARENT = 0, 1, 2  # columns of `kin`
_NODE, _ROW, _DEPTH, _SLOTS = (
    0,
    1,
    2,
    3,
)  # columns of the stack of `_gather`: row and depth of the node written


class Halves(NamedTuple):
    """A binary tree: bounds (of a leaf: its box's row), area, and kin (`LEFT`, `RIGHT`, `PARENT`; or -1)."""

    bounds: Floats32
    area: Floats32
    kin: Ints32


@entry
def _build_halves(rows: Floats32, workspace: SahWorkspace, tree: Halves) -> None:
    """Build a binary tree over a part, by splits of least cost down to single boxes."""
    whole = sah_rows.nothing()
    for i in range(workspace.task[0, BEGIN], workspace.task[0, END]):
        whole = sah_rows.union(whole, sah_rows.load(rows, i))
    sah_rows.store(tree.bounds, 0, whole)
    tree.area[0] = sah_rows.area(whole)
    tree.kin[0, PARENT] = -1
    waiting = 1
    node_count = 1
    while waiting > 0:
        waiting -= 1
        begin, end = workspace.task[waiting, BEGIN], workspace.task[waiting, END]
        node, depth = workspace.task[waiting, NODE], workspace.task[waiting, DEPTH]
        if end - begin == 1:
            sah_rows.store(tree.bounds, node, sah_rows.load(rows, begin))
            tree.kin[node, LEFT] = -1
            continue
        workspace.begin[0], workspace.end[0] = begin, end
        sah_rows.store(workspace.centers, 0, sah_rows.load(workspace.task_centers, waiting))
        split(rows, workspace, 0, 1, depth > _COST_DEPTH)
        for p in range(2):
            sah_rows.store(tree.bounds, node_count, sah_rows.load(workspace.bounds, p))
            tree.area[node_count] = workspace.area[p]
            tree.kin[node, p] = node_count
            tree.kin[node_count, PARENT] = node
            workspace.task[waiting, BEGIN], workspace.task[waiting, END] = (
                workspace.begin[p],
                workspace.end[p],
            )
            workspace.task[waiting, NODE], workspace.task[waiting, DEPTH] = node_count, depth + 1
            sah_rows.store(workspace.task_centers, waiting, sah_rows.load(workspace.centers, p))
            waiting += 1
            node_count += 1


@device
def _sibling(kin: Ints32, node: int) -> int:
    """Return the other child of a node's parent."""
    parent = kin[node, PARENT]
    return kin[parent, LEFT] + kin[parent, RIGHT] - node


@device
def _find_sibling(tree: Halves, node: int, stack: Ints32, gains: Floats32) -> int:
    """Return the node whose sibling a node should become to save the most area, or -1."""
    kin, area = tree.kin, tree.area
    row = sah_rows.load(tree.bounds, node)
    own = sah_rows.area(row)
    saved = area[kin[node, PARENT]]
    pivot = kin[node, PARENT]
    sibling = _sibling(kin, node)
    rest = sah_rows.load(tree.bounds, sibling)
    first = sibling
    best = saved * np.float32(1e-6)  # smaller savings are rounding errors
    found = -1
    while True:
        # Search the subtree of the sibling, skipping nodes that cannot save more.
        stack[0], gains[0] = sibling, saved
        top = 1
        while top > 0:
            top -= 1
            target, gain = stack[top], gains[top]
            if gain - own <= best:
                continue
            here = gain - sah_rows.area(sah_rows.union(sah_rows.load(tree.bounds, target), row))
            if here > best and target != first:
                best = here
                found = target
            if kin[target, LEFT] >= 0 and top + 2 <= _SEARCH_STACK:
                below = here + area[target]
                for side in range(2):
                    stack[top] = kin[target, side]
                    gains[top] = below
                    top += 1

        # Go up one level: without the node, its ancestors are smaller.
        if pivot != kin[node, PARENT]:
            rest = sah_rows.union(rest, sah_rows.load(tree.bounds, sibling))
            saved += area[pivot] - sah_rows.area(rest)
        if kin[pivot, PARENT] < 0:
            return found
        sibling = _sibling(kin, pivot)
        pivot = kin[pivot, PARENT]


@device
def _update_bounds(tree: Halves, node: int) -> None:
    """Recompute the bounds and areas of a node and its ancestors."""
    while node >= 0:
        left, right = tree.kin[node, LEFT], tree.kin[node, RIGHT]
        row = sah_rows.union(sah_rows.load(tree.bounds, left), sah_rows.load(tree.bounds, right))
        sah_rows.store(tree.bounds, node, row)
        tree.area[node] = sah_rows.area(row)
        node = tree.kin[node, PARENT]


@device
def _replace_child(kin: Ints32, parent: int, old: int, new: int) -> None:
    """Replace a child of a node."""
    side = 0 if kin[parent, LEFT] == old else 1
    kin[parent, side] = new
    kin[new, PARENT] = parent


@entry
def _move_nodes(tree: Halves, order: Ints32, stack: Ints32, gains: Floats32) -> None:
    """Reinsert nodes where they save area, in this order."""
    kin = tree.kin
    for k in range(order.size):
        node = order[k]
        parent = kin[node, PARENT]
        if parent < 0 or kin[parent, PARENT] < 0:
            continue
        to = _find_sibling(tree, node, stack, gains)
        if to < 0 or to == parent:
            continue
        above = kin[parent, PARENT]
        _replace_child(kin, above, parent, _sibling(kin, node))
        _replace_child(kin, kin[to, PARENT], to, parent)
        kin[parent, LEFT], kin[parent, RIGHT] = to, node
        kin[to, PARENT] = parent
        _update_bounds(tree, above)
        _update_bounds(tree, parent)


@device
def _best_left_slots(costs: Floats32, left: int, right: int, slots: int) -> int:
    """Return how many of `slots` slots cost least for the left child."""
    best = 1
    for k in range(2, slots):
        if costs[left, k] + costs[right, slots - k] < costs[left, best] + costs[right, slots - best]:
            best = k
    return best


@device
def _fill_costs(tree: Halves, costs: Floats32, order: Ints32) -> None:
    """Write costs[n, k]: the least sum of node areas for the boxes under n in up to k slots."""
    kin = tree.kin

    # List nodes with parents first, then compute the costs in the opposite order.
    order[0] = 0
    number = 1
    total = np.float32(0.0)
    for k in range(kin.shape[0]):
        node = order[k]
        total += tree.area[node]
        for side in range(2):
            if kin[node, LEFT] >= 0:
                order[number] = kin[node, side]
                number += 1
    node_cost = total * np.float32(_NODE_COST) / np.float32(number)
    for k in range(number - 1, -1, -1):
        node = order[k]
        left, right = kin[node, LEFT], kin[node, RIGHT]
        costs[node, :] = 0.0
        if left >= 0:
            for slots in range(2, WIDTH + 1):
                left_slots = _best_left_slots(costs, left, right, slots)
                costs[node, slots] = costs[left, left_slots] + costs[right, slots - left_slots]
            costs[node, 1] = tree.area[node] + costs[node, WIDTH] + node_cost
            for slots in range(2, WIDTH + 1):
                costs[node, slots] = min(costs[node, slots], costs[node, 1])


@entry
def _gather(tree: Halves, costs: Floats32, stack: Ints32, nodes: Ints32) -> tuple[int, int]:
    """Write nodes of eight slots; return (number of nodes, depth)."""
    kin = tree.kin
    _fill_costs(tree, costs, stack[:, _NODE])

    # A subtree that has one slot left, or is cheapest in one, becomes a node of its own.
    count = 1
    deepest = 1
    stack[0, _NODE], stack[0, _ROW], stack[0, _DEPTH] = 0, 0, 1
    waiting = 1
    while waiting > 0:
        waiting -= 1
        root, row, depth = stack[waiting, _NODE], stack[waiting, _ROW], stack[waiting, _DEPTH]
        deepest = max(deepest, depth)
        slot = 0
        base = waiting
        stack[waiting, _NODE], stack[waiting, _SLOTS] = root, WIDTH
        waiting += 1
        inner = 0
        while waiting > base + inner:
            waiting -= 1
            node, slots = stack[waiting, _NODE], stack[waiting, _SLOTS]
            left, right = kin[node, LEFT], kin[node, RIGHT]
            if left < 0:
                box = sah_rows.load(tree.bounds, node)
                sah_rows.write_slot(nodes, row, slot, box, ~sah_rows.number_of(box))
                slot += 1
            elif node != root and (slots == 1 or costs[node, 1] <= costs[node, slots]):
                sah_rows.write_slot(nodes, row, slot, sah_rows.load(tree.bounds, node), count)
                slot += 1
                # Keep it below those that are still to be opened.
                for k in range(waiting, base + inner, -1):
                    stack[k, _NODE], stack[k, _SLOTS] = stack[k - 1, _NODE], stack[k - 1, _SLOTS]
                at = base + inner
                stack[at, _NODE], stack[at, _ROW], stack[at, _DEPTH] = node, count, depth + 1
                inner += 1
                waiting += 1
                count += 1
            else:
                left_slots = _best_left_slots(costs, left, right, slots)
                stack[waiting, _NODE], stack[waiting, _SLOTS] = right, slots - left_slots
                stack[waiting + 1, _NODE], stack[waiting + 1, _SLOTS] = left, left_slots
                waiting += 2
        for k in range(slot, WIDTH):
            sah_rows.write_slot(nodes, row, k, sah_rows.nothing(), EMPTY)
    return count, deepest


def build_best(rows: Floats32, begin: int, end: int, depth: int, centers: Floats32) -> Ints32 | None:
    """Return the nodes of the best tree over rows begin:end; None if it is too deep."""
    box_count = end - begin
    if box_count < 2:
        return None
    size = 2 * box_count - 1
    tree = Halves(np.empty((size, 8), np.float32), np.zeros(size, np.float32), np.empty((size, 3), np.int32))
    _build_halves(rows, make_workspace(begin, end, 0, centers), tree)
    stack, gains = np.empty(_SEARCH_STACK, np.int32), np.empty(_SEARCH_STACK, np.float32)
    for _ in range(_ROUNDS):
        order = np.argsort(-tree.area, kind="stable").astype(np.int32)
        _move_nodes(tree, order, stack, gains)
    nodes = np.empty((box_count - 1, ROW), np.int32)
    gather_stack = np.empty((size, 4), np.int32)
    count, deepest = _gather(tree, np.empty((size, WIDTH + 1), np.float32), gather_stack, nodes)
    return nodes[:count].copy() if depth + deepest - 1 <= MAX_DEPTH else None
