"""Keep a scene's tree while its boxes move: refitted, and built anew when refits have made it poor.

Built anew are those parts alone that are to blame, where they hold less than half of the boxes and the others
are good enough (`raybox.bvh.partial_rebuild`). With 1 % of the boxes straying out of one place (measured, one
thread): 7.5 ms instead of 42 for 10^5 boxes, 70 instead of 670 for 10^6. Rays then visit 0 to 14 % more nodes
than in a whole new tree; before, 1.6 to 2.2 times as many.

A refit writes into memory that no question looks at: while one tree answers, the nodes of the one
before lie spare, and take the next. They come back when the last question that walks them is over,
not before; a question so sees one tree from its start to its end, and waits for nobody. The price is
memory for a second tree, from the first update on.
"""

import weakref
from typing import Any

from raybox.bvh.build import build
from raybox.bvh.node import Tree
from raybox.bvh.partial_rebuild import Costs, measure, regrow
from raybox.bvh.refit import copy_nodes, refit_into

POOR = 1.4  # times what it cost when built: rays then visit half as many nodes again (measured, random walks)


class Keeper:
    """The tree of a scene, and how it is to be built."""

    def __init__(self, quality: str, threads: int) -> None:
        self.quality, self.threads = quality, threads
        self.spare: list[Any] = []  # nodes that nobody walks, of the tree's kind
        self.built: Costs | None = None  # of the tree as built, once known
        self.rebuilds = 0  # of the whole tree
        self.regrowths = 0  # of parts of it

    def build(self, lower: Any, upper: Any) -> Tree:
        """Build a tree."""
        self.spare, self.built = [], None
        return self._lend(build(lower, upper, quality=self.quality, threads=self.threads))

    def move(self, tree: Tree, old: tuple[Any, Any], new: tuple[Any, Any]) -> Tree:
        """Return a tree for boxes (lower, upper) moved from where the tree has them."""
        nodes = self.spare.pop() if self.spare else copy_nodes(tree.nodes)
        if self.built is None:
            self.built = measure(tree._replace(nodes=nodes), *old, threads=self.threads)
        moved, cost = refit_into(nodes, tree, *new, threads=self.threads)
        if cost <= POOR * self.built.whole:
            return self._lend(moved)
        anew = regrow(moved, new, self.built, quality=self.quality, threads=self.threads)
        if anew is None:
            self.rebuilds += 1
            del nodes, moved
            return self.build(*new)
        self.regrowths += 1
        better, self.built = anew
        self.spare = []
        return self._lend(better)

    def _lend(self, tree: Tree) -> Tree:
        """Return a tree whose nodes come back to be spare when nobody holds it any more."""
        nodes = tree.nodes
        view = nodes.view()
        view.flags.writeable = False
        nodes.flags.writeable = True
        spare = self.spare
        weakref.finalize(view, lambda: spare.__setitem__(slice(None), [nodes])).atexit = False
        return tree._replace(nodes=view)
