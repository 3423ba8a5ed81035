"""Choose tree coordinates for a scene, and convert its boxes to them."""

from math import frexp
from typing import NamedTuple, TypeVar

import numpy as np

from raybox.bvh import sah_bins, sah_rows
from raybox.bvh.node import WIDTH
from raybox.bvh.selection import smallest
from raybox.compiler import huge_pages
from raybox.compiler.entry_points import entry
from raybox.validation import Floats, Floats32, Ints32

N = TypeVar("N", np.float32, np.int32)

MAX_EXPONENT = 1022  # of a scale: all floats are below 4 in a tree of the largest boxes
SAMPLE = 1024  # boxes; with four times as many a build takes 5 % longer


class FramedBoxes(NamedTuple):
    """Boxes as given (float64, frozen), and the tree coordinates to convert them to."""

    lower: Floats
    upper: Floats
    center: Floats
    scale: float


def frozen(array: Floats) -> Floats:
    """Return an array as float64, C-ordered and read-only: the one type kernels are compiled for."""
    array = np.ascontiguousarray(array, np.float64)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


@entry
def find_bulk(lower: Floats, upper: Floats, sample: Floats, center: Floats) -> float:
    """Write the center of the bulk of the boxes, and return its reach; `sample` is scratch memory.

    The center is the median, so that one stray box far away (a survey's forgotten origin) does
    not cost the others their resolution; on each axis nine tenths of all bounds are within reach of
    it. Infinite bounds are ignored.
    """
    step = max(1, lower.shape[0] // SAMPLE)
    reach = 0.0
    for axis in range(3):
        count = 0
        for corners in (lower, upper):
            for i in range(0, lower.shape[0], step):
                if abs(corners[i, axis]) < np.inf:
                    sample[count] = corners[i, axis]
                    count += 1
        center[axis] = 0.0
        if count > 0:
            center[axis] = smallest(sample, count, count // 2)
            within = 0
            for i in range(count):
                sample[i] = abs(sample[i] - center[axis])
                within += int(sample[i] <= reach)
            if within <= count * 9 // 10:
                reach = smallest(sample, count, count * 9 // 10)
    if reach == 0.0:
        return max(abs(center[0]), abs(center[1]), abs(center[2]))
    return reach if reach < np.inf else 1e308


def make_sample(box_count: int) -> Floats:
    """Return memory for both bounds of a sample of so many boxes."""
    return np.empty(2 * min(box_count, 2 * SAMPLE))


class TreeFrame(NamedTuple):
    """Tree coordinates, whose scale is a power of two, and how far the bulk reaches from their center."""

    center: Floats
    exponent: int  # of the scale
    reach: float


def choose_frame(lower: Floats, upper: Floats) -> TreeFrame:
    """Return the tree coordinates that map the bulk near [-1, 1]."""
    center = np.empty(3)
    reach = find_bulk(lower, upper, make_sample(len(lower)), center)
    center.flags.writeable = False
    exponent = frexp(reach)[1] if reach > 0.0 else 0
    return TreeFrame(center, min(max(-exponent, -MAX_EXPONENT), MAX_EXPONENT), reach)


def root_of(nodes: Ints32) -> Floats:
    """Return the bounds of node 0's slots: float64, (lower, upper)."""
    root = np.empty((2, 3))
    _write_root(nodes.view(np.float32), root)
    root.flags.writeable = False
    return root


@entry
def _write_root(planes: Floats32, root: Floats) -> None:
    for axis in range(3):
        low, up = np.inf, -np.inf
        for slot in range(WIDTH):
            low = min(low, planes[0, WIDTH * axis + slot])
            up = max(up, planes[0, WIDTH * (3 + axis) + slot])
        root[0, axis], root[1, axis] = low, up


def aligned(rows: int, words: int, kind: type[N]) -> np.ndarray[tuple[int, int], np.dtype[N]]:
    """Return an empty array of 4-byte items on a cache line: no vector load crosses one."""
    return huge_pages.empty((rows, words), kind)


@entry
def to_rows(boxes: FramedBoxes, begin: int, end: int, rows: Floats32, bounds: Floats32) -> None:
    """Write boxes begin:end as rows, and to `bounds` those of the boxes and of their centres."""
    whole = sah_rows.nothing()
    centers = sah_rows.nothing()
    for i in range(begin, end):
        row = sah_rows.outward(boxes.lower, boxes.upper, i, boxes.center, boxes.scale)
        sah_rows.store(rows, i, row)
        whole = sah_rows.union(whole, row)
        centers = sah_rows.union(centers, sah_bins.center(row))
    sah_rows.store(bounds, 0, whole)
    sah_rows.store(bounds, 1, centers)
