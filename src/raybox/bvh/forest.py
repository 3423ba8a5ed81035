"""A tree of groups: the boxes of each have nodes of their own, at which the rays of that group start.

The boxes of a small group are a span of nodes without inner slots, one after the other; those of a large one
are a tree. A *top* above all of them makes the whole a tree like any other, which is checked, refitted and
stored as such. No ray starts there: in worlds that overlap in space, it would visit nodes of all.

    nodes   | top ... | nodes of small groups ... | trees of large groups: the parts |

A group takes a row of `Tree.starts`, 8 bytes, and an eighth of a node in the top for each of its spans.
"""

from typing import NamedTuple

import numpy as np

from raybox.bvh.build import JoinedNodes, Subtree, build_some, join
from raybox.bvh.build_threads import TaskRunner
from raybox.bvh.frame import FramedBoxes, aligned, choose_frame, frozen, root_of
from raybox.bvh.node import CHILD, EMPTY, MAX_STARTS, ROW, WIDTH, Tree
from raybox.bvh.refit import bulk_limits, fill
from raybox.validation import Floats, Ints, Ints32

FLAT = MAX_STARTS * WIDTH
"""Boxes of a group without inner nodes, at most"""


class TreeGroups(NamedTuple):
    """The groups of a tree's boxes."""

    of_boxes: Ints
    """0: common to all; else from 1 to `count`"""
    count: int  # type: ignore[assignment]  # not the method of tuples


class _Layout(NamedTuple):
    """Where the nodes of groups are: below the top, spans of small groups, then trees of large ones."""

    order: Ints  # the boxes, group by group
    begins: Ints  # where those of each group begin in the order, and where the last ones end
    large: Ints  # the groups with trees
    first: Ints  # of each group without a tree, its first node, from the end of the top on
    lengths: Ints  # and how many nodes it has
    levels: list[int]  # nodes of each level of the top, the root's first

    @property
    def top(self) -> int:
        """How many nodes the top has."""
        return sum(self.levels)

    @property
    def flat(self) -> int:
        """How many nodes small groups have."""
        return int(self.lengths.sum())


def build_forest(
    lower: Floats, upper: Floats, groups: TreeGroups, *, quality: str = "balanced", threads: int = 1
) -> Tree:
    """Return the tree of boxes in groups, given as float64 arrays of shape (boxes, 3)."""
    lower, upper = frozen(lower), frozen(upper)
    frame = choose_frame(lower, upper)
    boxes = FramedBoxes(lower, upper, frame.center, 2.0**frame.exponent)
    layout = _layout(groups)
    nodes, subtrees = _flat_nodes(layout), list[Subtree]()
    with TaskRunner(threads) as run_each:
        numbers = [layout.order[layout.begins[g] : layout.begins[g + 1]] for g in layout.large]
        depth = len(layout.levels) + 1
        built = run_each.largest_first(
            build_some, [(boxes, some, depth, quality) for some in numbers], map(len, numbers)
        )
        for k, own in enumerate(built, start=layout.flat):
            parent, slot = divmod(k, WIDTH)
            subtrees.append(Subtree(own, 0, layout.top - layout.levels[-1] + parent, slot))
        joined = join(run_each, nodes, subtrees)
        tree = Tree(joined.nodes, frame.center, np.zeros((2, 3)), boxes.scale, frame.exponent, joined.parts)
        fill(run_each, boxes, joined.nodes, bulk_limits(tree, lower, upper))
    joined.nodes.flags.writeable = False
    return tree._replace(root=root_of(joined.nodes), starts=_starts(layout, joined))


def _layout(groups: TreeGroups) -> _Layout:
    sizes = np.bincount(groups.of_boxes, minlength=groups.count + 1)
    is_flat = sizes <= FLAT
    lengths = np.where(is_flat, -(-sizes // WIDTH), 0)
    large = np.flatnonzero(~is_flat)
    levels = [max(1, -(-(int(lengths.sum()) + large.size) // WIDTH))]
    while levels[0] > 1:
        levels.insert(0, -(-levels[0] // WIDTH))
    ends = np.cumsum(lengths)
    order = np.argsort(groups.of_boxes, kind="stable")
    return _Layout(order, np.append(0, np.cumsum(sizes)), large, ends - lengths, lengths, levels)


def _flat_nodes(layout: _Layout) -> Ints32:
    """Return the top and the nodes of small groups; planes are not filled, but those of free slots."""
    top, flat = layout.top, layout.flat
    nodes = aligned(top + flat, ROW, np.int32)
    planes = nodes.view(np.float32)
    planes[:, : CHILD // 2], planes[:, CHILD // 2 : CHILD] = np.inf, -np.inf
    children = nodes[:, CHILD:]
    children[...] = EMPTY
    begin = 0
    for k, length in enumerate(layout.levels):  # each node's children follow those of the one before
        below = layout.levels[k + 1] if k + 1 < len(layout.levels) else flat
        some = np.arange(below)
        children[begin + some // WIDTH, some % WIDTH] = begin + length + some
        begin += length
    sizes = np.diff(layout.begins)
    group = np.repeat(np.arange(sizes.size), sizes)
    place = np.arange(layout.order.size) - layout.begins[group]
    small = np.flatnonzero(layout.lengths[group] > 0)
    node = top + layout.first[group[small]] + place[small] // WIDTH
    children[node, place[small] % WIDTH] = ~layout.order[small]
    return nodes


def _starts(layout: _Layout, joined: JoinedNodes) -> Ints32:
    """Return the rows of `Tree.starts`."""
    starts = np.empty((layout.lengths.size, 2), np.int32)
    starts[:, 0], starts[:, 1] = layout.top + layout.first, layout.lengths
    starts[layout.large, 0], starts[layout.large, 1] = joined.parts, 1
    starts.flags.writeable = False
    return starts


def broken_starts(tree: Tree, groups: TreeGroups) -> str:
    """Return the first rule that the starts of a valid tree break, or an empty text."""
    first, count = tree.starts.T.astype(np.int64)
    if (
        (first < 0).any()
        or (count < 0).any()
        or (count > MAX_STARTS).any()
        or (first + count > len(tree.nodes)).any()
    ):
        return "a group starts outside of the tree"
    children = tree.nodes[:, CHILD:]
    row_of = np.full(len(tree.nodes), -1)
    row = np.repeat(np.arange(len(count)), count)
    nodes: Ints | Ints32 = np.repeat(first - np.cumsum(count) + count, count) + np.arange(row.size)
    if np.unique(nodes).size < nodes.size or ((count[row] > 1) & (children[nodes] >= 0).any(axis=1)).any():
        return "groups share a node, or several nodes of one are no flat span"
    row_of[nodes] = row
    while nodes.size:
        node, slot = np.nonzero(children[nodes] >= 0)
        below = children[nodes[node], slot]
        if (row_of[below] >= 0).any():
            return "a group is below another"
        row_of[below] = row_of[nodes[node]]
        nodes = below
    node, slot = np.nonzero((children < 0) & (children != EMPTY))
    if not np.array_equal(row_of[node], groups.of_boxes[~children[node, slot]]):
        return "a box is not in the nodes of its group"
    return ""
