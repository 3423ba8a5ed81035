"""Build a tree of boxes: to rows in tree coordinates, the top by all threads together, the rest apart.

Subtrees grow into arrays of their own and are put together in a fixed order: the tree is the same, bit for
bit, whatever the number of threads. Of the qualities "balanced" is `raybox.bvh.sah_build`, "best" goes on
with `raybox.bvh.reinsertion` in each subtree, and "fast" is another way altogether,
`raybox.bvh.hilbert_build`.
"""

from typing import Any, NamedTuple

import numpy as np

from raybox.bvh.build_threads import TaskRunner, build_pool, chunks
from raybox.bvh.frame import Boxes, aligned, choose_frame, frozen, root_of, to_rows
from raybox.bvh.hilbert_build import pack
from raybox.bvh.node import CHILD, ROW, WIDTH, Tree
from raybox.bvh.reinsertion import grow_best
from raybox.bvh.sah_build import grow, make_workspace
from raybox.bvh.sah_parallel import Part, Task, grow_top

QUALITIES = ("fast", "balanced", "best")
_CHUNK = 2**15
_TASK = 2**14  # boxes that are not worth a split by several threads
_TASKS = 16  # parts of equal size to share out: more of them, and the top takes too long


def build(lower: Any, upper: Any, *, quality: str = "balanced", threads: int = 1) -> Tree:
    """Build the tree of boxes given as float64 rows of three."""
    lower, upper = frozen(lower), frozen(upper)
    center, exponent, reach = choose_frame(lower, upper)
    boxes = Boxes(lower, upper, center, 2.0**exponent)
    with build_pool(threads) as run_each:
        fast = quality == "fast"
        words, parts = (pack(run_each, boxes, reach), ()) if fast else _grow_tree(run_each, boxes, quality)
    words.flags.writeable = False
    return Tree(words, center, root_of(words), 2.0**exponent, exponent, as_parts(parts))


def as_parts(begins: Any) -> Any:
    """Return the first nodes of parts as a tree has them: none where there is no top that they hang from."""
    parts = np.array(begins if len(begins) > 1 else (), np.int64)
    parts.flags.writeable = False
    return parts


def _grow_tree(run_each: TaskRunner, boxes: Boxes, quality: str) -> tuple[Any, Any]:
    """Return (the nodes of the tree of boxes, the first of each part)."""
    number = len(boxes.lower)
    rows = aligned(number, 8, np.float32)
    spans = chunks(0, number, _CHUNK)
    bounds = np.full((max(1, len(spans)), 2, 8), -np.inf, np.float32)
    run_each(to_rows, [(boxes, *span, rows, out) for span, out in zip(spans, bounds, strict=False)])
    whole = Part(0, 0, number, *bounds.max(axis=0))
    least = max(_TASK, number // (4 * _TASKS if quality == "best" else _TASKS))  # polishing takes memory
    top, tasks = np.empty((0, ROW), np.int32), [Task(whole, -1, -1, 1)]
    if number > least:
        other = aligned(number, 8, np.float32)
        top, tasks = grow_top(run_each, (rows, other), whole, least)
        moved = [slice(task.part.begin, task.part.end) for task in tasks if task.part.side == 1]
        run_each(np.copyto, [(rows[span], other[span]) for span in moved])  # then half of the memory is free
        del other
    sizes = [task.part.end - task.part.begin for task in tasks]
    grown = run_each.largest_first(grow_part, [(rows, task, quality) for task in tasks], sizes)
    pieces = [Piece(words, 0, task.node, task.slot) for words, task in zip(grown, tasks, strict=True)]
    del rows, grown
    return join(run_each, top, pieces)


def grow_part(rows: Any, task: Task, quality: str) -> Any:
    """Return the nodes of one part."""
    part = task.part
    if quality == "best":
        words = grow_best(rows, part.begin, part.end, task.depth, part.centers)
        if words is not None:
            return words
    workspace = make_workspace(part.begin, part.end, task.depth, part.centers)
    words = np.empty(((part.end - part.begin) // 5 + WIDTH + 1, ROW), np.int32)
    while not grow(rows, workspace, words):
        words = np.concatenate([words, np.empty_like(words)])
    return words[: workspace.state[1]]


class Piece(NamedTuple):
    """A part to be put into a tree: its nodes, what number they give its root, and the slot it hangs from."""

    words: Any
    base: int
    node: int
    slot: int


def join(run_each: TaskRunner, top: Any, pieces: list[Piece]) -> tuple[Any, Any]:
    """Put nodes together, the top's, then those of each part; return (all, the first of each part)."""
    begins = len(top) + np.cumsum([0, *(len(piece.words) for piece in pieces)])
    words = aligned(int(begins[-1]), ROW, np.int32)
    words[: len(top)] = top

    def put(k: int) -> None:
        piece, begin, end = pieces[k], begins[k], begins[k + 1]
        words[begin:end] = piece.words
        children = words[begin:end, CHILD:]
        np.add(children, begin - piece.base, out=children, where=children >= 0)
        if piece.node >= 0:
            words[piece.node, CHILD + piece.slot] = begin
        pieces[k] = piece._replace(words=None)  # its memory is free

    run_each(put, [(k,) for k in range(len(pieces))])
    return words, begins[:-1]
