"""Build a tree: binned surface-area splits, straight to eight slots a node.

A node's boxes are split in two at the least cost (`raybox.bvh.split`), then the half with the
largest area again, until the slots are full or no part has more boxes than a node has slots. Slots
that are left open up small parts into single boxes.

Depth is bounded: below level 48, or where centres coincide, parts are halved by number alone.
"""

from typing import Any, NamedTuple

import numpy as np

from raybox.bvh.frame import choose_frame, to_tree
from raybox.bvh.layout import CHILD, EMPTY, MAX_DEPTH, ROW, WIDTH, Tree
from raybox.bvh.refit import refit
from raybox.bvh.split import Bins, Work, make_bins, part_area, split
from raybox.kernels.jit import device, entry

_SAH_DEPTH = 48


class _Parts(NamedTuple):
    """The parts of a node in the making: begin, end, and surface area of each."""

    begin: Any
    end: Any
    area: Any


@device
def _choose(parts: _Parts, count: int, deep: bool) -> int:
    """Return the part to split next: the largest area (when deep: number) with more than a node's boxes."""
    best = -1
    most = -1.0
    for p in range(count):
        number = parts.end[p] - parts.begin[p]
        weight = np.float64(number) if deep else np.float64(parts.area[p])
        if number > WIDTH and weight > most:
            most = weight
            best = p
    return best


@device
def _open_small(parts: _Parts, count: int) -> int:
    """Spend free slots on opening the smallest parts into single boxes; return the number of parts."""
    while True:
        best = -1
        for p in range(count):
            number = parts.end[p] - parts.begin[p]
            fits = number > 1 and count + number - 1 <= WIDTH
            if fits and (best < 0 or number < parts.end[best] - parts.begin[best]):
                best = p
        if best < 0:
            return count
        begin, end = parts.begin[best], parts.end[best]
        parts.end[best] = begin + 1
        for i in range(begin + 1, end):
            parts.begin[count] = i
            parts.end[count] = i + 1
            count += 1


@device
def _divide(work: Work, parts: _Parts, depth: int, bins: Bins, scratch: Any) -> int:
    """Split parts[0] into the parts of one node; return their number."""
    count = 1
    deep = depth > _SAH_DEPTH
    while count < WIDTH:
        p = _choose(parts, count, deep)
        if p < 0:
            break
        begin, end = parts.begin[p], parts.end[p]
        middle = (begin + end) // 2 if deep else split(work, begin, end, bins, scratch)
        parts.end[p] = middle
        parts.begin[count] = middle
        parts.end[count] = end
        parts.area[p] = part_area(work, begin, middle, scratch)
        parts.area[count] = part_area(work, middle, end, scratch)
        count += 1
    return _open_small(parts, count)


class _Desk(NamedTuple):
    """Scratch memory of a build, made outside of compiled code (which then compiles in half the time)."""

    bins: Bins
    parts: _Parts
    bounds: Any
    tasks: Any


def _make_desk() -> _Desk:
    return _Desk(
        make_bins(),
        _Parts(np.zeros(WIDTH, np.int64), np.zeros(WIDTH, np.int64), np.zeros(WIDTH, np.float32)),
        np.empty(6, np.float32),
        np.empty((MAX_DEPTH * WIDTH, 4), np.int64),
    )


@entry
def _grow_tree(work: Work, desk: _Desk, children: Any) -> int:
    """Fill children (n, 8) top down; return the number of nodes."""
    parts, tasks = desk.parts, desk.tasks
    tasks[0, 0], tasks[0, 1], tasks[0, 2], tasks[0, 3] = 0, work.numbers.size, 0, 1
    waiting = 1
    nodes = 1
    while waiting > 0:
        waiting -= 1
        parts.begin[0], parts.end[0] = tasks[waiting, 0], tasks[waiting, 1]
        node, depth = tasks[waiting, 2], tasks[waiting, 3]
        count = _divide(work, parts, depth, desk.bins, desk.bounds)
        for p in range(WIDTH):
            if p >= count or parts.begin[p] == parts.end[p]:
                children[node, p] = EMPTY
            elif parts.end[p] - parts.begin[p] == 1:
                children[node, p] = ~work.numbers[parts.begin[p]]
            else:
                children[node, p] = nodes
                tasks[waiting, 0], tasks[waiting, 1] = parts.begin[p], parts.end[p]
                tasks[waiting, 2], tasks[waiting, 3] = nodes, depth + 1
                waiting += 1
                nodes += 1
    return nodes


def build(lower: Any, upper: Any) -> Tree:
    """Build the tree of boxes given as float64 rows of three."""
    center, exponent = choose_frame(lower, upper)
    center.flags.writeable = False
    boxes = np.empty((len(lower), 6), np.float32)
    to_tree(lower, upper, center, 2.0**exponent, boxes)
    # a node holds 8 boxes, or has two children at least: never more nodes than boxes
    children = np.empty((max(1, len(lower)), WIDTH), np.int32)
    numbers = np.arange(len(lower), dtype=np.int32)
    nodes = _grow_tree(Work(boxes, numbers), _make_desk(), children)
    words = _aligned(nodes)
    words[:, CHILD:] = children[:nodes]
    tree = Tree(words, center, np.zeros((2, 3)), 2.0**exponent, exponent)
    return refit(tree, lower, upper)


def _aligned(nodes: int) -> Any:
    """Return an empty node array that starts on a cache line (vector loads then never cross one)."""
    memory = np.empty(nodes * ROW + 16, np.int32)
    skip = (-memory.ctypes.data // 4) % 16
    return memory[skip : skip + nodes * ROW].reshape(nodes, ROW)
