"""Build a tree: binned surface-area splits, straight to eight slots a node.

A node's boxes are split in two at the least cost (sum over both halves of surface area times
number of boxes, Goldsmith and Salmon 1987; 16 bins, Wald 2007), then the half with the largest
area again, until the slots are full or no part has more boxes than a node has slots. Slots that
are left open up small parts into single boxes.

Depth is bounded: below level 48, or where centres coincide, parts are halved by number alone.
"""

from typing import Any, NamedTuple

import numpy as np

from raybox.bvh.frame import choose_frame, to_tree
from raybox.bvh.layout import CHILD, EMPTY, MAX_DEPTH, ROW, WIDTH, Tree
from raybox.bvh.refit import refit
from raybox.kernels.jit import device, entry

_BINS = 16
_SAH_DEPTH = 48
_CLAMP = np.float32(2.0**20)  # bounds in cost sums: an infinite box must not make costs infinite
_INF = np.float32(np.inf)


class _Work(NamedTuple):
    """Boxes being sorted into nodes: rows of six float32, and the number that each had."""

    boxes: Any
    numbers: Any


class _Parts(NamedTuple):
    """The parts of a node in the making: begin, end, and surface area of each."""

    begin: Any
    end: Any
    area: Any


class _Bins(NamedTuple):
    """Counts and bounds by bin of one axis, and the costs of the suffixes."""

    count: Any
    bounds: Any
    suffix: Any


@device
def _center(boxes: Any, i: int, axis: int) -> Any:
    """Return what stands for a box's place on an axis: its centre, or its only finite face."""
    low = boxes[i, axis]
    up = boxes[i, 3 + axis]
    if low == -_INF:
        return up if up != _INF else np.float32(0.0)
    return low if up == _INF else np.float32(0.5) * low + np.float32(0.5) * up


@device
def _area(bounds: Any) -> Any:
    """Return half the surface area of bounds, clamped to finite sizes."""
    x = max(min(bounds[3], _CLAMP) - max(bounds[0], -_CLAMP), np.float32(0.0))
    y = max(min(bounds[4], _CLAMP) - max(bounds[1], -_CLAMP), np.float32(0.0))
    z = max(min(bounds[5], _CLAMP) - max(bounds[2], -_CLAMP), np.float32(0.0))
    return x * y + y * z + z * x


@device
def _grow(bounds: Any, other: Any) -> None:
    """Grow bounds to hold others."""
    for k in range(3):
        bounds[k] = min(bounds[k], other[k])
        bounds[3 + k] = max(bounds[3 + k], other[3 + k])


@device
def _reset(bounds: Any) -> None:
    """Make bounds hold nothing."""
    for k in range(3):
        bounds[k] = _INF
        bounds[3 + k] = -_INF


@device
def _part_area(work: _Work, begin: int, end: int, bounds: Any) -> Any:
    """Return the area of a part's bounds; `bounds` is scratch."""
    _reset(bounds)
    for i in range(begin, end):
        _grow(bounds, work.boxes[i])
    return _area(bounds)


@device
def _bin_of(center: Any, low: Any, ratio: Any) -> int:
    return min(_BINS - 1, max(0, int((center - low) * ratio)))


@device
def _axis_range(work: _Work, begin: int, end: int, axis: int) -> tuple[Any, Any]:
    """Return the range of the centres of a part on an axis."""
    low = _INF
    up = -_INF
    for i in range(begin, end):
        c = _center(work.boxes, i, axis)
        low = min(low, c)
        up = max(up, c)
    return low, up


@device
def _fill_bins(work: _Work, begin: int, end: int, place: tuple[int, Any, Any], bins: _Bins) -> None:
    """Count boxes and gather bounds by bin."""
    axis, low, ratio = place
    for b in range(_BINS):
        bins.count[b] = 0
        _reset(bins.bounds[b])
    for i in range(begin, end):
        b = _bin_of(_center(work.boxes, i, axis), low, ratio)
        bins.count[b] += 1
        _grow(bins.bounds[b], work.boxes[i])


@device
def _cheapest(bins: _Bins, scratch: Any) -> tuple[Any, int]:
    """Return (cost, last bin of the left side) of the cheapest cut between two bins."""
    _reset(scratch)
    number = 0
    for b in range(_BINS - 1, 0, -1):
        number += bins.count[b]
        _grow(scratch, bins.bounds[b])
        bins.suffix[b] = np.inf if number == 0 else np.float64(_area(scratch)) * number
    _reset(scratch)
    number = 0
    best = np.inf
    cut = -1
    for b in range(_BINS - 1):
        number += bins.count[b]
        _grow(scratch, bins.bounds[b])
        if number > 0:
            cost = np.float64(_area(scratch)) * number + bins.suffix[b + 1]
            if cost < best:
                best = cost
                cut = b
    return best, cut


@device
def _partition(work: _Work, begin: int, end: int, place: tuple[int, Any, Any], cut: int) -> int:
    """Move boxes of the bins up to `cut` to the front; return where the others begin."""
    axis, low, ratio = place
    i = begin
    j = end - 1
    while i <= j:
        if _bin_of(_center(work.boxes, i, axis), low, ratio) <= cut:
            i += 1
        else:
            for k in range(6):
                work.boxes[i, k], work.boxes[j, k] = work.boxes[j, k], work.boxes[i, k]
            work.numbers[i], work.numbers[j] = work.numbers[j], work.numbers[i]
            j -= 1
    return i


@device
def _split(work: _Work, begin: int, end: int, bins: _Bins, scratch: Any) -> int:
    """Reorder a part and return where its second half begins, at the least cost over the axes."""
    best = np.inf
    best_cut = -1
    best_place = (0, np.float32(0.0), np.float32(0.0))
    for axis in range(3):
        low, up = _axis_range(work, begin, end, axis)
        ratio = np.float32(_BINS) / (up - low)
        if not (ratio > 0.0 and ratio < _INF):
            continue
        _fill_bins(work, begin, end, (axis, low, ratio), bins)
        cost, cut = _cheapest(bins, scratch)
        if cost < best:
            best = cost
            best_cut = cut
            best_place = (axis, low, ratio)
    if best_cut < 0:
        return (begin + end) // 2
    return _partition(work, begin, end, best_place, best_cut)


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
def _divide(work: _Work, parts: _Parts, depth: int, bins: _Bins, scratch: Any) -> int:
    """Split parts[0] into the parts of one node; return their number."""
    count = 1
    deep = depth > _SAH_DEPTH
    while count < WIDTH:
        p = _choose(parts, count, deep)
        if p < 0:
            break
        begin, end = parts.begin[p], parts.end[p]
        middle = (begin + end) // 2 if deep else _split(work, begin, end, bins, scratch)
        parts.end[p] = middle
        parts.begin[count] = middle
        parts.end[count] = end
        parts.area[p] = _part_area(work, begin, middle, scratch)
        parts.area[count] = _part_area(work, middle, end, scratch)
        count += 1
    return _open_small(parts, count)


class _Desk(NamedTuple):
    """Scratch memory of a build, made outside of compiled code (which then compiles in half the time)."""

    bins: _Bins
    parts: _Parts
    bounds: Any
    tasks: Any


def _make_desk() -> _Desk:
    return _Desk(
        _Bins(np.zeros(_BINS, np.int64), np.empty((_BINS, 6), np.float32), np.empty(_BINS)),
        _Parts(np.zeros(WIDTH, np.int64), np.zeros(WIDTH, np.int64), np.zeros(WIDTH, np.float32)),
        np.empty(6, np.float32),
        np.empty((MAX_DEPTH * WIDTH, 4), np.int64),
    )


@entry
def _grow_tree(work: _Work, desk: _Desk, children: Any) -> int:
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
    boxes = np.empty((len(lower), 6), np.float32)
    to_tree(lower, upper, center, 2.0**exponent, boxes)
    # a node holds 8 boxes, or has two children at least: never more nodes than boxes
    children = np.empty((max(1, len(lower)), WIDTH), np.int32)
    numbers = np.arange(len(lower), dtype=np.int32)
    nodes = _grow_tree(_Work(boxes, numbers), _make_desk(), children)
    words = _aligned(nodes)
    words[:, CHILD:] = children[:nodes]
    tree = Tree(words, center, np.zeros((2, 3)), 2.0**exponent, exponent)
    return refit(tree, lower, upper)


def _aligned(nodes: int) -> Any:
    """Return an empty node array that starts on a cache line (vector loads then never cross one)."""
    memory = np.empty(nodes * ROW + 16, np.int32)
    skip = (-memory.ctypes.data // 4) % 16
    return memory[skip : skip + nodes * ROW].reshape(nodes, ROW)
