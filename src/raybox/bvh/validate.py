"""Check a tree, and measure it, level by level in plain NumPy."""

from fractions import Fraction

import numpy as np

from raybox.bvh.frame import MAX_EXPONENT
from raybox.bvh.node import CHILD, EMPTY, MAX_DEPTH, WIDTH, Tree, from_tree, to_tree
from raybox.bvh.refit import bulk_limits, cost_of
from raybox.bvh.sah_rows import CLAMP
from raybox.errors import RayboxError
from raybox.validation import Bools, Floats, Ints, Ints32

_ROWS = 1 << 13  # nodes whose bounds are checked at a time: they fit in the cache
_LOST = 2.0**-50  # of a plane in tree coordinates: more than float64 rounds off
_UNDERFLOW = 2.0**-1000


def _planes(tree: Tree) -> Floats:
    """Return the bounds of every slot as float64 (nodes, 6, 8)."""
    return tree.nodes.view(np.float32)[:, :CHILD].reshape(-1, 6, WIDTH).astype(np.float64)


def require(condition: bool | Bools, rule: str) -> None:
    """Raise `RayboxError` unless a condition holds."""
    if not np.all(condition):
        raise RayboxError(f"the tree is not sound: {rule}. Please report this; a fresh Scene repairs it.")


def _level_sizes(children: Ints32) -> list[int]:
    """Return the number of nodes on each level, at most one level more than MAX_DEPTH."""
    level, sizes = np.zeros(1, np.int32), list[int]()
    while level.size and len(sizes) <= MAX_DEPTH:
        sizes.append(level.size)
        below = children[level]
        level = below[below >= 0]
    return sizes


def depth_of(tree: Tree) -> int:
    """Return the number of levels of nodes; raise `RayboxError` above MAX_DEPTH."""
    depth = len(_level_sizes(tree.nodes[:, CHILD:]))
    require(depth <= MAX_DEPTH, f"more than {MAX_DEPTH} levels")
    return depth


def broken_rule(tree: Tree, boxes: int) -> str:
    """Return the first rule that a tree of so many boxes breaks, or an empty text.

    Compiled code may traverse a tree that breaks none, whatever its bounds enclose.
    """
    nodes = len(tree.nodes)
    children = np.ascontiguousarray(tree.nodes[:, CHILD:])
    if not _has_each_once(children[children >= 0], 1, nodes):
        return "a node has not exactly one parent"
    if not _has_each_once(~children[(children < 0) & (children != EMPTY)], 0, boxes):
        return "a box is not in exactly one slot"
    sizes = _level_sizes(children)
    if len(sizes) > MAX_DEPTH or sum(sizes) != nodes:
        return f"nodes form a cycle, or more than {MAX_DEPTH} levels"
    if not _has_ordered_bounds(tree.nodes, children):
        return "a slot ends before it begins"
    return _broken_frame(tree)


def _has_each_once(numbers: Ints | Ints32, begin: int, end: int) -> bool:
    """Return whether numbers are those of begin:end, each once."""
    if numbers.size != max(0, end - begin):
        return False
    if not numbers.size:
        return True
    if numbers.min() < begin or numbers.max() >= end:
        return False
    found = np.zeros(end - begin, np.bool_)
    found[numbers - begin] = True
    return bool(found.all())


def _has_ordered_bounds(nodes: Ints32, children: Ints32) -> bool:
    """Return whether no bound is NaN or beyond the opposite one; free slots are (+inf, -inf)."""
    for begin in range(0, len(nodes), _ROWS):
        planes = nodes[begin : begin + _ROWS, :CHILD].view(np.float32).reshape(-1, 2, 3, WIDTH)
        low, up = planes[:, 0], planes[:, 1]
        free = children[begin : begin + _ROWS, None] == EMPTY
        if not np.where(free, (low == np.inf) & (up == -np.inf), low <= up).all():
            return False
    return True


def _broken_frame(tree: Tree) -> str:
    """Return the first rule that what surrounds the nodes breaks, or an empty text."""
    planes = _planes(tree._replace(nodes=tree.nodes[:1]))[0]
    if not np.array_equal(tree.root, [planes[:3].min(axis=1), planes[3:].max(axis=1)]):
        return "the root's bounds are wrong"
    exponent = tree.exponent
    valid = isinstance(exponent, int) and abs(exponent) <= MAX_EXPONENT and tree.scale == 2.0**exponent
    if not valid or not np.isfinite(tree.center).all():
        return "tree coordinates are wrong"
    parts = tree.parts
    if parts.size and (parts[0] < 1 or parts[-1] >= len(tree.nodes) or (np.diff(parts) <= 0).any()):
        return "the roots of parts are wrong"
    return ""


def _check_parts(tree: Tree, node: Ints, slot: Ints) -> None:
    """Require children of a part's nodes in the part, those of the top in the top or roots of parts."""
    child = tree.nodes[node, CHILD + slot]
    own, below = (np.searchsorted(tree.parts, rows, side="right") for rows in (node, child))
    is_part_root = np.isin(child, tree.parts)
    require(
        (own == below) | ((own == 0) & is_part_root),
        "a child is neither in its node's part nor the root of one",
    )
    require(np.count_nonzero(is_part_root & (own == 0)) == tree.parts.size, "a part is not below the top")


def slots_below(tree: Tree, levels: int) -> tuple[Floats, Floats]:
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
        low, up = (from_tree(planes[:, side], tree.center, tree.scale) for side in (slice(3), slice(3, 6)))
        return np.nextafter(low, -np.inf), np.nextafter(up, np.inf)


def _are_beyond(bounds: Floats, planes: Floats, center: Floats, scale: float) -> Bools:
    """Return which upper bounds, in tree coordinates, are no less than planes: exactly."""
    with np.errstate(over="ignore", invalid="ignore"):
        moved = to_tree(planes, center, scale)
        beyond = (bounds > moved + (np.abs(moved) * _LOST + _UNDERFLOW)) | (bounds == np.inf)
    beyond |= (planes == -np.inf) & ~np.isnan(bounds)
    for place in zip(*np.nonzero(~beyond & np.isfinite(bounds) & np.isfinite(planes)), strict=True):
        exact = (Fraction(planes[place]) - Fraction(center[place[-1]])) * Fraction(scale)
        beyond[place] = Fraction(bounds[place]) >= exact
    return beyond


def check(tree: Tree, lower: Floats, upper: Floats) -> None:
    """Raise `RayboxError` unless the tree has each box once, inside of all slots above it."""
    children = tree.nodes[:, CHILD:]
    depth_of(tree)
    inner, leaf = children >= 0, (children < 0) & (children != EMPTY)
    below = np.sort(children[inner])
    require(np.array_equal(below, np.arange(1, len(tree.nodes))), "a node has not exactly one parent")
    _check_parts(tree, *np.nonzero(inner))
    boxes = ~children[leaf].astype(np.int64)
    require(np.array_equal(np.sort(boxes), np.arange(len(lower))), "a box is not in exactly one slot")

    planes = _planes(tree)
    node, slot = np.nonzero(inner)
    own, kin = planes[node, :, slot], planes[children[node, slot]]
    require(own[:, :3] == kin[:, :3].min(axis=2), "a node's lower bounds are not its children's union")
    require(own[:, 3:] == kin[:, 3:].max(axis=2), "a node's upper bounds are not its children's union")
    node, slot = np.nonzero(leaf)
    own = planes[node, :, slot]
    low, up = -own[:, :3], own[:, 3:]
    require(_are_beyond(low, -lower[boxes], -tree.center, tree.scale), "a slot begins inside of its box")
    require(_are_beyond(up, upper[boxes], tree.center, tree.scale), "a slot ends inside of its box")
    if len(lower):
        require(tree.root[0] == planes[0, :3].min(axis=1), "the root's lower bounds are wrong")
        require(tree.root[1] == planes[0, 3:].max(axis=1), "the root's upper bounds are wrong")


def cost(tree: Tree, lower: Floats, upper: Floats) -> float:
    """Return the average number of nodes that a line through the bulk of the scene hits.

    That is the surface area of all nodes over the root's, within the cube of twice the bulk's reach (see
    `raybox.bvh.refit`, which computes the same during a refit).
    """
    limits = bulk_limits(tree, lower, upper)
    children = tree.nodes[:, CHILD:]
    node, slot = np.nonzero(children >= 0)
    floats = tree.nodes.view(np.float32)[:, :CHILD].reshape(-1, 6, WIDTH)
    planes = floats[node, :, slot].astype(np.float64)
    low = np.clip(np.maximum(planes[:, :3], -limits[0, :3]), -CLAMP, CLAMP)
    up = np.clip(np.minimum(planes[:, 3:], limits[0, 4:7]), -CLAMP, CLAMP)
    x, y, z = np.maximum(up - low, 0.0).T
    return cost_of(float((x * y + y * z + z * x).sum()), tree.root, limits)


def stats(tree: Tree, lower: Floats, upper: Floats) -> dict[str, float]:
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
