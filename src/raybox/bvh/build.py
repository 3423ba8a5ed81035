"""Build a tree of boxes: to rows in tree coordinates, the top by all threads together, the rest apart.

Subtrees grow into arrays of their own and are put together in a fixed order: the tree is the same,
bit for bit, whatever the number of threads. Of the qualities "balanced" is `raybox.bvh.grow`, "best" goes
on with `raybox.bvh.polish` in each subtree, and "fast" is another way altogether, `raybox.bvh.pack`.
"""

from typing import Any

import numpy as np

from raybox.bvh.crew import Each, chunks, crew
from raybox.bvh.frame import Boxes, aligned, choose_frame, frozen, root_of, to_rows
from raybox.bvh.grow import grow, make_desk
from raybox.bvh.layout import CHILD, ROW, WIDTH, Tree
from raybox.bvh.pack import pack
from raybox.bvh.polish import grow_best
from raybox.bvh.top import Part, Task, grow_top

QUALITIES = ("fast", "balanced", "best")
_CHUNK = 2**15
_TASK = 2**14  # boxes that are not worth a split by several threads
_TASKS = 16  # parts of equal size to share out: more of them, and the top takes too long


def build(lower: Any, upper: Any, *, quality: str = "balanced", threads: int = 1) -> Tree:
    """Build the tree of boxes given as float64 rows of three."""
    lower, upper = frozen(lower), frozen(upper)
    center, exponent = choose_frame(lower, upper)
    center.flags.writeable = False
    boxes = Boxes(lower, upper, center, 2.0**exponent)
    with crew(threads) as each:
        words = pack(each, boxes) if quality == "fast" else _grow_tree(each, boxes, quality)
    words.flags.writeable = False
    return Tree(nodes=words, center=center, root=root_of(words), scale=2.0**exponent, exponent=exponent)


def _grow_tree(each: Each, boxes: Boxes, quality: str) -> Any:
    """Return the nodes of the tree of boxes."""
    number = len(boxes.lower)
    rows = aligned(number, 8, np.float32)
    spans = chunks(0, number, _CHUNK)
    bounds = np.full((max(1, len(spans)), 2, 8), -np.inf, np.float32)
    each(to_rows, [(boxes, *span, rows, out) for span, out in zip(spans, bounds, strict=False)])
    whole = Part(0, 0, number, *bounds.max(axis=0))
    least = max(_TASK, number // (4 * _TASKS if quality == "best" else _TASKS))  # polishing takes memory
    top, tasks = np.empty((0, ROW), np.int32), [Task(whole, -1, -1, 1)]
    if number > least:
        other = aligned(number, 8, np.float32)
        top, tasks = grow_top(each, (rows, other), whole, least)
        moved = [slice(task.part.begin, task.part.end) for task in tasks if task.part.side == 1]
        each(np.copyto, [(rows[span], other[span]) for span in moved])  # then half of the memory is free
        del other
    # the largest first: whoever is done early takes a small one
    order = sorted(range(len(tasks)), key=lambda k: tasks[k].part.begin - tasks[k].part.end)
    grown = dict(zip(order, each(_grow_part, [(rows, tasks[k], quality) for k in order]), strict=True))
    del rows
    return _join(each, top, tasks, [grown.pop(k) for k in range(len(tasks))])


def _grow_part(rows: Any, task: Task, quality: str) -> Any:
    """Return the nodes of one part."""
    part = task.part
    if quality == "best":
        words = grow_best(rows, part.begin, part.end, task.depth, part.centers)
        if words is not None:
            return words
    desk = make_desk(part.begin, part.end, task.depth, part.centers)
    words = np.empty(((part.end - part.begin) // 5 + WIDTH + 1, ROW), np.int32)
    while not grow(rows, desk, words):
        words = np.concatenate([words, np.empty_like(words)])
    return words[: desk.state[1]]


def _join(each: Each, top: Any, tasks: list[Task], grown: list[Any]) -> Any:
    """Put nodes together: the top's, then those of each part."""
    begins = len(top) + np.cumsum([0, *map(len, grown)])
    words = aligned(int(begins[-1]), ROW, np.int32)
    words[: len(top)] = top

    def put(k: int) -> None:
        task, begin, end = tasks[k], begins[k], begins[k + 1]
        words[begin:end] = grown[k]
        children = words[begin:end, CHILD:]
        np.add(children, begin, out=children, where=children >= 0)
        if task.node >= 0:
            words[task.node, CHILD + task.slot] = begin
        grown[k] = None

    each(put, [(k,) for k in range(len(tasks))])
    return words
