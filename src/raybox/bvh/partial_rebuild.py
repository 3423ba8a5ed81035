"""Update a tree when its boxes move: a refit, and a rebuild of what refits have made poor.

Only the poor parts are rebuilt, where they have less than half of the boxes and the others are good enough.
The *excess* of a part is what its nodes add to the tree's cost, less what they added when the part was
built. Its root is not counted: its bounds follow from the boxes, however the part is built.

The boxes of a part stay together wherever they move, so that straying boxes spoil few parts. A rebuild of the
whole tree would mix them with all others, and the next moves would spoil every part.
"""

import weakref
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import numpy as np

from raybox.bvh.build import Subtree, build, build_some, join
from raybox.bvh.build_threads import TaskRunner
from raybox.bvh.forest import TreeGroups, build_forest
from raybox.bvh.frame import FramedBoxes, frozen
from raybox.bvh.node import CHILD, EMPTY, Tree
from raybox.bvh.refit import area_of, bulk_limits, copy_nodes, cost_of, refit_into
from raybox.validation import Floats, Floats32, Ints32

# Both are multiples of the cost as built. Parts are rebuilt until the cost should be _TARGET: with 1.2 rays
# visit 10 % more nodes, and updates are no faster. Beyond _LIMIT the whole tree is rebuilt: with 1.3 rays
# visit up to twice as many nodes as in a new tree.
_TARGET = 1.02
_LIMIT = 1.2

POOR = 1.4  # times the cost as built: rays then visit half again as many nodes


class Costs(NamedTuple):
    """The cost of a tree (see `raybox.bvh.refit`), and what the nodes below each part's root add to it."""

    whole: float
    parts: Floats


class _PartLocation(NamedTuple):
    """The rows of a part, the slot of the top that refers to its root, and the root's depth."""

    begin: int
    end: int
    node: int
    slot: int
    depth: int


def measure(tree: Tree, lower: Floats, upper: Floats, *, threads: int = 1) -> Costs:
    """Return the costs of a tree whose nodes bound these boxes; its nodes are writable."""
    with TaskRunner(threads) as run_each:
        return _measure(run_each, tree, bulk_limits(tree, lower, upper))


def rebuild_parts(
    tree: Tree, boxes: tuple[Floats, Floats], built: Costs, *, quality: str, threads: int = 1
) -> tuple[Tree, Costs] | None:
    """Return a refitted tree with its poorest parts rebuilt, and its costs as built.

    None: the whole tree should be rebuilt, as too much cost would be left, or half of the boxes are affected.
    """
    lower, upper = map(frozen, boxes)
    framed, limits = FramedBoxes(lower, upper, tree.center, tree.scale), bulk_limits(tree, lower, upper)
    if not tree.parts.size or np.isnan(limits).any():  # a single part; or the tree coordinates no longer fit
        return None
    with TaskRunner(threads) as run_each:
        now = _measure(run_each, tree, limits)
        locations = _locate_parts(tree)
        chosen = _choose(tree.nodes, locations, now, built, len(lower))
        poor = list(chosen)
        tasks = [(framed, chosen[k], locations[k].depth, quality) for k in poor]
        rebuilt = run_each.largest_first(build_some, tasks, map(len, chosen.values()))

        # Check the cost before the parts are joined.
        areas = run_each(area_of, [(nodes, 1, len(nodes), limits) for nodes in rebuilt])
        parts = built.parts.copy()
        parts[poor] = _shares(areas, tree, limits)
        if now.whole + (parts - now.parts)[poor].sum() > _LIMIT * built.whole:
            return None
        return _replace(run_each, tree, locations, dict(zip(poor, rebuilt, strict=True))), built._replace(
            parts=parts
        )


def _measure(run_each: TaskRunner, tree: Tree, limits: Floats32) -> Costs:
    """Return the costs of a tree."""
    begins = tree.parts.tolist()
    ends = [*begins, len(tree.nodes)]
    spans = [(1, ends[0]), *((begin, begin + 1) for begin in begins)]
    spans += [(begin + 1, end) for begin, end in zip(begins, ends[1:], strict=True)]
    areas = run_each(area_of, [(tree.nodes, *span, limits) for span in spans])
    whole = float(cost_of(sum(areas), tree.root, limits))
    return Costs(whole, _shares(areas[1 + len(begins) :], tree, limits))


def _shares(areas: Iterable[float], tree: Tree, limits: Floats32) -> Floats:
    """Return what nodes of these areas add to a tree's cost."""
    return np.array([cost_of(area, tree.root, limits) - 1.0 for area in areas])


def _choose(
    nodes: Ints32, locations: list[_PartLocation], now: Costs, built: Costs, number: int
) -> dict[int, Ints32]:
    """Return the boxes of each part to rebuild, by part, those with the most excess first.

    Empty: too much cost would be left, or half of all boxes would be rebuilt.
    """
    excess = now.parts - built.parts
    cost_left, boxes_left = now.whole, (number - 1) // 2
    chosen = {}
    for k in np.argsort(-excess, kind="stable").tolist():
        boxes = _boxes_in(nodes, locations[k])
        if cost_left <= _TARGET * built.whole or excess[k] <= 0.0 or len(boxes) > boxes_left:
            break
        chosen[k] = boxes
        cost_left -= excess[k]
        boxes_left -= len(boxes)
    return chosen if cost_left <= _LIMIT * built.whole else {}


def _locate_parts(tree: Tree) -> list[_PartLocation]:
    """Return the location of each part."""
    begins = tree.parts.tolist()
    top = tree.nodes[: begins[0] if begins else 0, CHILD:]
    depths = [1] * len(top)
    slots = {}
    for node, slot in np.argwhere(top >= 0).tolist():  # parents before their children
        child = int(top[node, slot])
        if child < len(top):
            depths[child] = depths[node] + 1
        else:
            slots[child] = node, slot, depths[node] + 1
    ends = [*begins[1:], len(tree.nodes)]
    return [_PartLocation(begin, end, *slots[begin]) for begin, end in zip(begins, ends, strict=False)]


def _boxes_in(nodes: Ints32, location: _PartLocation) -> Ints32:
    """Return the numbers of a part's boxes, in the order of its slots."""
    children = nodes[location.begin : location.end, CHILD:]
    return ~children[(children < 0) & (children != EMPTY)]


def _replace(
    run_each: TaskRunner, tree: Tree, locations: list[_PartLocation], rebuilt: dict[int, Ints32]
) -> Tree:
    """Return the tree with new nodes for some parts, of the same boxes: no bounds above change."""
    subtrees = [
        Subtree(rebuilt[k], 0, at.node, at.slot)
        if k in rebuilt
        else Subtree(tree.nodes[at.begin : at.end], at.begin, at.node, at.slot)
        for k, at in enumerate(locations)
    ]
    joined = join(run_each, tree.nodes[: locations[0].begin], subtrees)
    return tree._replace(**joined._asdict())


class RefitPolicy:
    """How the tree of a scene is built and updated.

    A refit writes into memory that no query reads: the nodes of the tree before the current one. They become
    spare when the last query that traverses them has ended, not before; so a query reads one tree from its
    start to its end, and waits for no update. The price is memory for a second tree, from the first update.
    """

    def __init__(self, quality: str, threads: int, groups: TreeGroups | None = None) -> None:
        self.quality, self.threads, self.groups = quality, threads, groups
        self.spare: list[Ints32] = []  # nodes that no query traverses, of the tree's size
        self.built: Costs | None = None  # of the tree as built, once known
        self.rebuilds = 0  # of the whole tree
        self.partial_rebuilds = 0  # of parts of it

    def build(self, lower: Floats, upper: Floats) -> Tree:
        """Return a new tree."""
        self.spare, self.built = [], None
        how = partial(build, lower, upper)
        if self.groups is not None:
            how = partial(build_forest, lower, upper, self.groups)
        return self._shared(how(quality=self.quality, threads=self.threads))

    def move(self, tree: Tree, old: tuple[Floats, Floats], new: tuple[Floats, Floats]) -> Tree:
        """Return a tree for boxes (lower, upper) that have moved."""
        nodes = self.spare.pop() if self.spare else copy_nodes(tree.nodes)
        if self.groups and not tree.parts.size:  # spans have no inner nodes that could become poor
            return self._shared(refit_into(nodes, tree, *new, threads=self.threads)[0])
        if self.built is None:
            self.built = measure(tree._replace(nodes=nodes), *old, threads=self.threads)
        moved, cost = refit_into(nodes, tree, *new, threads=self.threads)
        if cost <= POOR * self.built.whole:
            return self._shared(moved)
        better = None
        if self.groups is None:
            better = rebuild_parts(moved, new, self.built, quality=self.quality, threads=self.threads)
        if better is None:
            self.rebuilds += 1
            del nodes, moved
            return self.build(*new)
        self.partial_rebuilds += 1
        tree, self.built = better
        self.spare = []
        return self._shared(tree)

    def _shared(self, tree: Tree) -> Tree:
        """Return a tree whose nodes become spare when its last user is gone."""
        nodes = tree.nodes
        view = nodes.view()
        view.flags.writeable = False
        nodes.flags.writeable = True
        spare = self.spare
        weakref.finalize(view, lambda: spare.__setitem__(slice(None), [nodes])).atexit = False
        return tree._replace(nodes=view)
