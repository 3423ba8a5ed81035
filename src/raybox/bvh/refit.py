"""Give a tree the bounds of its boxes, bottom up: the last step of a build, and all of a refit."""

from typing import Any

import numpy as np

from raybox.bvh.frame import to_tree_down, to_tree_up
from raybox.bvh.layout import CHILD, EMPTY, WIDTH, Tree
from raybox.kernels.jit import entry


@entry
def _fill(children: Any, bounds: Any, lower: Any, upper: Any, center: Any, scale: float) -> None:
    """Write the bounds of every slot; children come after their parents, so the last node goes first."""
    for node in range(children.shape[0] - 1, -1, -1):
        for slot in range(WIDTH):
            child = children[node, slot]
            for k in range(3):
                low = np.float32(np.inf)
                up = np.float32(-np.inf)
                if child >= 0:
                    for s in range(WIDTH):
                        low = min(low, bounds[child, k * WIDTH + s])
                        up = max(up, bounds[child, (3 + k) * WIDTH + s])
                elif child != EMPTY:
                    low = to_tree_down(lower[~child, k], center[k], scale)
                    up = to_tree_up(upper[~child, k], center[k], scale)
                bounds[node, k * WIDTH + slot] = low
                bounds[node, (3 + k) * WIDTH + slot] = up


def refit(tree: Tree, lower: Any, upper: Any) -> Tree:
    """Return the same tree round moved boxes; the tree given is not written to."""
    words = tree.nodes if tree.nodes.flags.writeable else tree.nodes.copy()
    floats = words.view(np.float32)
    _fill(words[:, CHILD:], floats, lower, upper, tree.center, tree.scale)
    planes = floats[0, :CHILD].reshape(6, WIDTH)
    root = np.array([planes[:3].min(axis=1), planes[3:].max(axis=1)], np.float64)
    words.flags.writeable = False
    root.flags.writeable = False
    return tree._replace(nodes=words, root=root)
