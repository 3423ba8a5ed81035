"""Build a tree of boxes: all threads build the top together, then one thread each subtree.

Boxes become rows in tree coordinates first. Each subtree is built into its own array, and the arrays are
joined in a fixed order, so that the tree is the same, bit for bit, for any number of threads. The quality
"balanced" uses `raybox.bvh.sah_build`, "best" uses `raybox.bvh.reinsertion` for each subtree, and "fast" uses
`raybox.bvh.hilbert_build` for the whole tree.
"""

from typing import Literal, NamedTuple, get_args

import numpy as np

from raybox.bvh.build_threads import TaskRunner, chunks
from raybox.bvh.frame import FramedBoxes, aligned, choose_frame, frozen, root_of, to_rows
from raybox.bvh.node import CHILD, ROW, WIDTH, Tree
from raybox.bvh.refit import copy_nodes
from raybox.bvh.sah_build import build_nodes, make_workspace
from raybox.bvh.sah_parallel import BuildTask, PartRows, build_top
from raybox.validation import Floats, Floats32, Ints, Ints32

Quality = Literal["fast", "balanced", "best"]
QUALITIES: tuple[Quality, ...] = get_args(Quality)
_CHUNK = 2**15
_NO_PARTS = np.empty(0, np.int64)
_NO_PARTS.flags.writeable = False
_TASK = 2**14  # a part of at most so many boxes is not split by several threads
_TASKS = 16  # a part has at most one in so many of all boxes; smaller parts make the top slow


def build(lower: Floats, upper: Floats, *, quality: str = "balanced", threads: int = 1) -> Tree:
    """Return the tree of boxes, given as float64 arrays of shape (boxes, 3)."""
    lower, upper = frozen(lower), frozen(upper)
    frame = choose_frame(lower, upper)
    boxes = FramedBoxes(lower, upper, frame.center, 2.0**frame.exponent)
    with TaskRunner(threads) as run_each:
        if quality == "fast":
            from raybox.bvh.hilbert_build import pack

            built = JoinedNodes(pack(run_each, boxes, frame.reach), _NO_PARTS)
        else:
            built = _build_tree(run_each, boxes, quality)
    nodes = built.nodes
    nodes.flags.writeable = False
    return Tree(nodes, frame.center, root_of(nodes), boxes.scale, frame.exponent, built.parts)


class JoinedNodes(NamedTuple):
    """The nodes of a tree, and the first row of each part, frozen; none for a tree of a single part."""

    nodes: Ints32
    parts: Ints


def _build_tree(run_each: TaskRunner, boxes: FramedBoxes, quality: str) -> JoinedNodes:
    """Return the nodes of the tree, and its parts."""
    box_count = len(boxes.lower)
    rows = aligned(box_count, 8, np.float32)
    spans = chunks(0, box_count, _CHUNK) or [(0, 0)]
    bounds = np.empty((len(spans), 2, 8), np.float32)
    run_each(to_rows, [(boxes, *span, rows, out) for span, out in zip(spans, bounds, strict=True)])
    whole = PartRows(0, 0, box_count, *bounds.max(axis=0))
    least = max(_TASK, box_count // (4 * _TASKS if quality == "best" else _TASKS))  # reinsertion needs memory
    if box_count <= least:
        return JoinedNodes(copy_nodes(build_part(rows, BuildTask(whole, -1, -1, 1), quality)), _NO_PARTS)
    other = aligned(box_count, 8, np.float32)
    top, tasks = build_top(run_each, (rows, other), whole, least)
    moved = [slice(task.part.begin, task.part.end) for task in tasks if task.part.side == 1]
    run_each(np.copyto, [(rows[span], other[span]) for span in moved])
    del other  # half of the memory
    sizes = [task.part.end - task.part.begin for task in tasks]
    built = run_each.largest_first(build_part, [(rows, task, quality) for task in tasks], sizes)
    subtrees = [Subtree(nodes, 0, task.node, task.slot) for nodes, task in zip(built, tasks, strict=True)]
    del rows, built
    return join(run_each, top, subtrees)


def build_part(rows: Floats32, task: BuildTask, quality: str) -> Ints32:
    """Return the nodes of one part, its root first."""
    part = task.part
    if quality == "best":
        from raybox.bvh.reinsertion import build_best

        nodes = build_best(rows, part.begin, part.end, task.depth, part.centers)
        if nodes is not None:
            return nodes
    workspace = make_workspace(part.begin, part.end, task.depth, part.centers)
    nodes = np.empty(((part.end - part.begin) // 5 + WIDTH + 1, ROW), np.int32)
    while not build_nodes(rows, workspace, nodes):
        nodes = np.concatenate([nodes, np.empty_like(nodes)])
    return nodes[: workspace.node_count[0]]


def build_some(boxes: FramedBoxes, numbers: Ints | Ints32, depth: int, quality: str) -> Ints32:
    """Return the nodes of a tree of some boxes, with its root at this depth."""
    some = boxes._replace(lower=frozen(boxes.lower[numbers]), upper=frozen(boxes.upper[numbers]))
    rows, bounds = aligned(len(numbers), WIDTH, np.float32), np.empty((2, WIDTH), np.float32)
    to_rows(some, 0, len(numbers), rows, bounds)
    rows.view(np.int32)[:, 3] = numbers
    return build_part(rows, BuildTask(PartRows(0, 0, len(numbers), *bounds), -1, -1, depth), quality)


class Subtree(NamedTuple):
    """The nodes of a part that is joined to a tree.

    Children count from `base` at its root; the root belongs in a slot of a node of the top.
    """

    nodes: Ints32
    base: int
    node: int
    slot: int


def join(run_each: TaskRunner, top: Ints32, subtrees: list[Subtree]) -> JoinedNodes:
    """Return the nodes of the top and of all subtrees, which are the parts."""
    begins = len(top) + np.cumsum([0, *(len(subtree.nodes) for subtree in subtrees)], dtype=np.int64)
    nodes = aligned(int(begins[-1]), ROW, np.int32)
    nodes[: len(top)] = top

    def copy(k: int) -> None:
        subtree, begin, end = subtrees[k], begins[k], begins[k + 1]
        nodes[begin:end] = subtree.nodes
        children = nodes[begin:end, CHILD:]
        np.add(children, begin - subtree.base, out=children, where=children >= 0)
        nodes[subtree.node, CHILD + subtree.slot] = begin
        subtrees[k] = subtree._replace(nodes=top[:0])  # frees its memory

    run_each(copy, [(k,) for k in range(len(subtrees))])
    parts = begins[:-1]
    parts.flags.writeable = False
    return JoinedNodes(nodes, parts)
