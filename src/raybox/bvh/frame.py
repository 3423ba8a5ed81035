"""Choose tree coordinates for a scene and take its boxes there."""

from typing import Any, NamedTuple

import numpy as np

from raybox.bvh import sah_bins, sah_rows
from raybox.bvh.node import CHILD, WIDTH
from raybox.compiler import huge_pages
from raybox.compiler.decorators import entry

SAMPLE = 1024  # boxes: of four times as many, a tree of 10^5 boxes took a twentieth longer (measured)


class Boxes(NamedTuple):
    """Boxes as they came (float64, frozen), and the tree coordinates to take them to."""

    lower: Any
    upper: Any
    center: Any
    scale: float


def frozen(array: Any) -> Any:
    """Return an array as kernels take it: float64, C-ordered, read-only, so that they compile but once."""
    array = np.ascontiguousarray(array, np.float64)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def find_bulk(lower: Any, upper: Any) -> tuple[Any, float]:
    """Return where the bulk of the boxes is, from a sample of them: (center, reach).

    The center is the median, so that one stray box far away (a survey's forgotten origin) does
    not cost the others their resolution; nine tenths of all bounds are within reach of it, on each
    axis. Infinite bounds do not count.
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


def choose_frame(lower: Any, upper: Any) -> tuple[Any, int, float]:
    """Return (center, exponent of the scale, reach of the bulk): the bulk comes near [-1, 1]."""
    center, reach = find_bulk(lower, upper)
    center.flags.writeable = False
    exponent = int(np.frexp(reach)[1]) if reach > 0.0 else 0
    return center, int(np.clip(-exponent, -1000, 1000)), reach


def root_of(nodes: Any) -> Any:
    """Return the bounds of everything: of node 0's slots."""
    planes = nodes[0, :CHILD].view(np.float32).reshape(6, WIDTH)
    root = np.array([planes[:3].min(axis=1), planes[3:].max(axis=1)], np.float64)
    root.flags.writeable = False
    return root


def aligned(rows: int, words: int, kind: Any) -> Any:
    """Return an empty array of 4-byte items that starts on a cache line: no vector load crosses one."""
    return huge_pages.empty((rows, words), kind)


@entry
def to_rows(boxes: Boxes, begin: int, end: int, rows: Any, bounds: Any) -> None:
    """Write boxes begin:end as rows; bounds takes those of the boxes, and those of their centres."""
    whole = sah_rows.nothing()
    centers = sah_rows.nothing()
    for i in range(begin, end):
        row = sah_rows.outward(boxes.lower, boxes.upper, i, boxes.center, boxes.scale)
        sah_rows.store(rows, i, row)
        whole = sah_rows.union(whole, row)
        centers = sah_rows.union(centers, sah_bins.center(row))
    sah_rows.store(bounds, 0, whole)
    sah_rows.store(bounds, 1, centers)
