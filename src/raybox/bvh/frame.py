"""Choose tree coordinates for a scene, and convert its boxes to them."""

from typing import NamedTuple, TypeVar

import numpy as np

from raybox.bvh import sah_bins, sah_rows
from raybox.bvh.node import CHILD, WIDTH
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


def find_bulk(lower: Floats, upper: Floats) -> tuple[Floats, float]:
    """Return the (center, reach) of the bulk of the boxes, from a sample.

    The center is the median, so that one stray box far away (a survey's forgotten origin) does
    not cost the others their resolution; on each axis nine tenths of all bounds are within reach of
    it. Infinite bounds are ignored.
    """
    step = max(1, len(lower) // SAMPLE)
    points = np.concatenate([lower[::step], upper[::step]])
    center = np.zeros(3)
    reach = 0.0
    for k in range(3):
        finite = points[np.isfinite(points[:, k]), k]
        if finite.size:
            center[k] = np.partition(finite, finite.size // 2)[finite.size // 2]
            with np.errstate(over="ignore"):
                spread = np.abs(finite - center[k])
            reach = max(reach, float(np.partition(spread, finite.size * 9 // 10)[finite.size * 9 // 10]))
    if not 0.0 < reach < np.inf:
        reach = float(np.abs(center).max()) if reach == 0.0 else 1e308
    return center, reach


class TreeFrame(NamedTuple):
    """Tree coordinates, whose scale is a power of two, and how far the bulk reaches from their center."""

    center: Floats
    exponent: int  # of the scale
    reach: float


def choose_frame(lower: Floats, upper: Floats) -> TreeFrame:
    """Return the tree coordinates that map the bulk near [-1, 1]."""
    center, reach = find_bulk(lower, upper)
    center.flags.writeable = False
    exponent = int(np.frexp(reach)[1]) if reach > 0.0 else 0
    return TreeFrame(center, int(np.clip(-exponent, -MAX_EXPONENT, MAX_EXPONENT)), reach)


def root_of(nodes: Ints32) -> Floats:
    """Return the bounds of node 0's slots: float64, (lower, upper)."""
    planes = nodes[0, :CHILD].view(np.float32).reshape(6, WIDTH)
    root = np.array([planes[:3].min(axis=1), planes[3:].max(axis=1)], np.float64)
    root.flags.writeable = False
    return root


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
