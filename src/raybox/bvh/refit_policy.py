"""Update a scene's tree when its boxes move: a refit, and a rebuild when refits have made the tree poor.

Only the poor parts are rebuilt, where they have less than half of the boxes and the others are good enough
(`raybox.bvh.partial_rebuild`).

A refit writes into memory that no query reads: the nodes of the tree before the current one. They become
spare when the last query that traverses them has ended, not before; so a query reads one tree from its start
to its end, and waits for no update. The price is memory for a second tree, from the first update on.
"""

import weakref
from typing import Any

from raybox.bvh.build import build
from raybox.bvh.node import Tree
from raybox.bvh.partial_rebuild import Costs, measure, rebuild_parts
from raybox.bvh.refit import copy_nodes, refit_into

POOR = 1.4  # times the cost as built: rays then visit half again as many nodes


class RefitPolicy:
    """How the tree of a scene is built and updated."""

    def __init__(self, quality: str, threads: int) -> None:
        self.quality, self.threads = quality, threads
        self.spare: list[Any] = []  # nodes that no query traverses, of the tree's size
        self.built: Costs | None = None  # of the tree as built, once known
        self.rebuilds = 0  # of the whole tree
        self.partial_rebuilds = 0  # of parts of it

    def build(self, lower: Any, upper: Any) -> Tree:
        """Return a new tree."""
        self.spare, self.built = [], None
        return self._shared(build(lower, upper, quality=self.quality, threads=self.threads))

    def move(self, tree: Tree, old: tuple[Any, Any], new: tuple[Any, Any]) -> Tree:
        """Return a tree for boxes (lower, upper) that have moved."""
        nodes = self.spare.pop() if self.spare else copy_nodes(tree.nodes)
        if self.built is None:
            self.built = measure(tree._replace(nodes=nodes), *old, threads=self.threads)
        moved, cost = refit_into(nodes, tree, *new, threads=self.threads)
        if cost <= POOR * self.built.whole:
            return self._shared(moved)
        partial = rebuild_parts(moved, new, self.built, quality=self.quality, threads=self.threads)
        if partial is None:
            self.rebuilds += 1
            del nodes, moved
            return self.build(*new)
        self.partial_rebuilds += 1
        better, self.built = partial
        self.spare = []
        return self._shared(better)

    def _shared(self, tree: Tree) -> Tree:
        """Return a tree whose nodes become spare when its last user is gone."""
        nodes = tree.nodes
        view = nodes.view()
        view.flags.writeable = False
        nodes.flags.writeable = True
        spare = self.spare
        weakref.finalize(view, lambda: spare.__setitem__(slice(None), [nodes])).atexit = False
        return tree._replace(nodes=view)
