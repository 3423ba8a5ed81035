"""Check a tree, and measure it, level by level in plain NumPy."""

from typing import Any

import numpy as np

from raybox.bvh.node import CHILD, EMPTY, MAX_DEPTH, WIDTH, Tree
from raybox.bvh.refit import bulk_limits, cost_of
from raybox.bvh.sah_rows import CLAMP
from raybox.errors import RayboxError


def _planes(tree: Tree) -> Any:
    """Return the bounds of every slot as float64 (nodes, 6, 8)."""
    return tree.nodes.view(np.float32)[:, :CHILD].reshape(-1, 6, WIDTH).astype(np.float64)


def _require(condition: Any, rule: str) -> None:
    if not np.all(condition):
        raise RayboxError(f"the tree is not sound: {rule}. Please report this; a fresh Scene repairs it.")


def depth_of(tree: Tree) -> int:
    """Return the number of levels of nodes; raise `RayboxError` above MAX_DEPTH."""
    children = tree.nodes[:, CHILD:]
    level, depth = np.zeros(1, np.int64), 0
    while level.size:
        depth += 1
        _require(depth <= MAX_DEPTH, f"more than {MAX_DEPTH} levels")
        below = children[level]
        level = below[below >= 0]
    return depth


def _check_parts(tree: Tree, node: Any, slot: Any) -> None:
    """Require children of a part's nodes in the part, those of the top in the top or roots of parts."""
    child = tree.nodes[node, CHILD + slot]
    own, below = (np.searchsorted(tree.parts, rows, side="right") for rows in (node, child))
    is_part_root = np.isin(child, tree.parts)
    _require(
        (own == below) | ((own == 0) & is_part_root),
        "a child is neither in its node's part nor the root of one",
    )
    _require(np.count_nonzero(is_part_root & (own == 0)) == tree.parts.size, "a part is not below the top")


def slots_below(tree: Tree, levels: int) -> tuple[Any, Any]:
    """Return the bounds (lower, upper) of the slots at a level, as float64 rounded outward.

    Boxes in slots of higher levels are included.
    """
    nodes, planes_by_level = np.zeros(1, np.int64), []
    for level in range(1, levels + 1):
        child = tree.nodes[nodes, CHILD:]
        chosen = (child != EMPTY) & ((child < 0) | (level == levels))
        planes_by_level.append(
            tree.nodes.view(np.float32)[nodes, :CHILD].reshape(-1, 6, WIDTH).swapaxes(1, 2)[chosen]
        )
        nodes = child[child >= 0].astype(np.int64)
    planes = np.concatenate(planes_by_level).astype(np.float64)
    with np.errstate(over="ignore"):
        low, up = (planes[:, side] / tree.scale + tree.center for side in (slice(3), slice(3, 6)))
    return np.nextafter(low, -np.inf), np.nextafter(up, np.inf)


def check(tree: Tree, lower: Any, upper: Any) -> None:
    """Raise `RayboxError` unless the tree has each box once, inside of all slots above it."""
    children = tree.nodes[:, CHILD:]
    depth_of(tree)
    inner, leaf = children >= 0, (children < 0) & (children != EMPTY)
    below = np.sort(children[inner])
    _require(np.array_equal(below, np.arange(1, len(tree.nodes))), "a node has not exactly one parent")
    _check_parts(tree, *np.nonzero(inner))
    boxes = ~children[leaf].astype(np.int64)
    _require(np.array_equal(np.sort(boxes), np.arange(len(lower))), "a box is not in exactly one slot")

    planes = _planes(tree)
    node, slot = np.nonzero(inner)
    own, kin = planes[node, :, slot], planes[children[node, slot]]
    _require(own[:, :3] == kin[:, :3].min(axis=2), "a node's lower bounds are not its children's union")
    _require(own[:, 3:] == kin[:, 3:].max(axis=2), "a node's upper bounds are not its children's union")
    node, slot = np.nonzero(leaf)
    own = planes[node, :, slot]
    with np.errstate(over="ignore"):
        low = (lower[boxes] - tree.center) * tree.scale
        up = (upper[boxes] - tree.center) * tree.scale
    _require(own[:, :3] <= low, "a slot begins inside of its box")
    _require(own[:, 3:] >= up, "a slot ends inside of its box")
    if len(lower):
        _require(tree.root[0] == planes[0, :3].min(axis=1), "the root's lower bounds are wrong")
        _require(tree.root[1] == planes[0, 3:].max(axis=1), "the root's upper bounds are wrong")


def cost(tree: Tree, lower: Any, upper: Any) -> float:
    """Return the average number of nodes that a line through the bulk of the scene hits.

    That is the surface area of all nodes over the root's, within the cube of twice the bulk's reach (see
    `raybox.bvh.refit`, which computes the same during a refit).
    """
    limits = bulk_limits(tree, lower, upper).astype(np.float64)
    children = tree.nodes[:, CHILD:]
    node, slot = np.nonzero(children >= 0)
    floats = tree.nodes.view(np.float32)[:, :CHILD].reshape(-1, 6, WIDTH)
    planes = floats[node, :, slot].astype(np.float64)
    low = np.clip(np.maximum(planes[:, :3], -limits[0, :3]), -CLAMP, CLAMP)
    up = np.clip(np.minimum(planes[:, 3:], limits[0, 4:7]), -CLAMP, CLAMP)
    x, y, z = np.maximum(up - low, 0.0).T
    return cost_of(float((x * y + y * z + z * x).sum()), tree.root, limits)


def stats(tree: Tree, lower: Any, upper: Any) -> dict[str, float]:
    """Return counts, depth, memory, the share of slots in use, and cost of a tree."""
    boxes = len(lower)
    used = int((tree.nodes[:, CHILD:] != EMPTY).sum())
    return {
        "boxes": boxes,
        "nodes": len(tree.nodes),
        "depth": depth_of(tree),
        "bytes": tree.nodes.nbytes,
        "bytes_per_box": tree.nodes.nbytes / max(1, boxes),
        "fill": used / (len(tree.nodes) * WIDTH),
        "cost": cost(tree, lower, upper),
    }
