"""Spatial queries as raybox, rtree, shapely, geo-index and SciPy run them, and what each finds."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import raybox as rb
from raybox.hits import Rows
from raybox.validation import Floats, Ints

SOME = 2000  # queries of peers that take long
POINTS, BOXES, CLOSEST, CLOSEST_8, JOIN = "points", "boxes", "closest", "closest 8", "join"
ANY, SORTED, COUNTS = "raybox", "sorted", "counts"

BARS = {
    (POINTS, "rtree"): 50,
    (BOXES, "rtree"): 50,
    (POINTS, "STRtree"): 3,
    (BOXES, "STRtree"): 3,
    (CLOSEST, "rtree"): 20,
    (CLOSEST_8, "rtree"): 20,
    (CLOSEST, "STRtree"): 20,
    (JOIN, "STRtree"): 3,
    (JOIN, "geo-index"): 1.5,
}
"""How many times as fast raybox is to be, with queries in any order"""


class Bounds(NamedTuple):
    """Boxes, (N, D) each."""

    lower: Floats
    upper: Floats


class Case(NamedTuple):
    """A scene, and what it is searched with, in random order."""

    name: str
    boxes: Bounds
    points: Floats
    others: Bounds


class Call(NamedTuple):
    """A call, how many queries it takes, and what its result says."""

    run: Callable[[], Any]
    queries: int
    found: Callable[[Any], Ints] | None = None
    """Return pairs (n, 2) of query and box, or the nearest boxes (N, k) of points; None: not to be checked"""


Calls = dict[str, dict[str, Call]]
"""By question and contestant."""


def raybox_calls(case: Case) -> Calls:
    """Return the calls of raybox on one thread: in random order, sorted, and only counted."""
    boxes, points, count = rb.Boxes(*case.others), case.points, len(case.points)
    scene, other = rb.Scene(rb.Boxes(*case.boxes)), rb.Scene(boxes)
    near, order = points[z_order(points)], z_order(case.others.lower)
    near_boxes = rb.Boxes(*(x[order] for x in case.others))

    def call(run: Callable[[], Any], found: Callable[[Any], Ints] | None = None) -> Call:
        return Call(run, count, found)

    def rows(found: Rows) -> Ints:
        return np.stack([found.row, found.index], axis=1)

    return {
        POINTS: {
            ANY: call(lambda: scene.containing(points, workers=1), rows),
            SORTED: call(lambda: scene.containing(near, workers=1)),
            COUNTS: call(lambda: scene.containing(points, count=True, workers=1)),
        },
        BOXES: {
            ANY: call(lambda: scene.overlapping(boxes, workers=1), rows),
            SORTED: call(lambda: scene.overlapping(near_boxes, workers=1)),
            COUNTS: call(lambda: scene.overlapping(boxes, count=True, workers=1)),
        },
        CLOSEST: {
            ANY: call(lambda: scene.closest(points, workers=1), lambda x: x.index),
            SORTED: call(lambda: scene.closest(near, workers=1)),
        },
        CLOSEST_8: {
            ANY: call(lambda: scene.closest(points, 8, workers=1), lambda x: x.index),
            SORTED: call(lambda: scene.closest(near, 8, workers=1)),
        },
        JOIN: {ANY: Call(lambda: other.join(scene, workers=1), 1, lambda x: x)},
    }


def z_order(points: Floats) -> Ints:
    """Return the order of points along a Z-curve of 1024 cells an axis."""
    low, up, bits = points.min(axis=0), points.max(axis=0), np.arange(10)
    cells = ((points - low) / (up - low) * 1023).astype(np.int64)
    dimension = points.shape[1]
    place = np.zeros(len(points), np.int64)
    for axis in range(dimension):
        place |= ((cells[:, axis, None] >> bits & 1) << dimension * bits + axis).sum(axis=1)
    return np.argsort(place, kind="stable")


def rtree_calls(case: Case) -> Calls:
    """Return bulk calls of rtree, of some queries."""
    from rtree import index

    lower, upper = case.boxes
    items = ((i, (*low, *up), None) for i, (low, up) in enumerate(zip(lower, upper, strict=True)))
    tree = index.Index(items, properties=index.Property(dimension=lower.shape[1]))
    points, low, up = case.points[:SOME], case.others.lower[:SOME], case.others.upper[:SOME]
    count = len(points)

    def rows(found: tuple[Ints, Ints]) -> Ints:
        numbers, counts = (x.astype(np.int64) for x in found)
        return np.stack([np.repeat(np.arange(count), counts), numbers], axis=1)

    def nearest(k: int) -> Call:
        run = lambda: tree.nearest_v(points, points, num_results=k, strict=True)  # noqa: E731
        return Call(run, count, lambda x: x[0].reshape(count, k))

    return {
        POINTS: {"rtree": Call(lambda: tree.intersection_v(points, points), count, rows)},
        BOXES: {"rtree": Call(lambda: tree.intersection_v(low, up), count, rows)},
        CLOSEST: {"rtree": nearest(1)},
        CLOSEST_8: {"rtree": nearest(8)},
    }


def shapely_calls(case: Case) -> Calls:
    """Return bulk calls of shapely's STRtree in 2D, on geometries made before."""
    import shapely

    if case.points.shape[1] != 2:
        return {}
    boxes, others = (shapely.box(*x.lower.T, *x.upper.T) for x in (case.boxes, case.others))
    tree, points, count = shapely.STRtree(boxes), shapely.points(case.points), len(others)
    some = points[:SOME]
    return {
        POINTS: {"STRtree": Call(lambda: tree.query(points), count, np.transpose)},
        BOXES: {"STRtree": Call(lambda: tree.query(others), count, np.transpose)},
        CLOSEST: {"STRtree": Call(lambda: tree.nearest(some), len(some), lambda x: x[:, None])},
        JOIN: {"STRtree": Call(lambda: tree.query(others), 1, np.transpose)},
    }


def geoindex_calls(case: Case) -> Calls:
    """Return the calls of geo-index in 2D, a search for each of some queries."""
    import geoindex_rs.rtree as geoindex

    if case.points.shape[1] != 2:
        return {}

    def tree(boxes: Bounds) -> Any:
        builder = geoindex.RTreeBuilder(len(boxes.lower))
        builder.add(*(np.ascontiguousarray(x) for x in (*boxes.lower.T, *boxes.upper.T)))
        return builder.finish()

    def search(low: Floats, up: Floats) -> Call:
        rows = np.concatenate([low, up], axis=1)[:SOME].tolist()
        return Call(lambda: [geoindex.search(own, *row) for row in rows], len(rows), pairs)

    def pairs(found: list[Any]) -> Ints:
        rows = [np.asarray(x) for x in found]
        queries = np.repeat(np.arange(len(rows)), [len(x) for x in rows])
        return np.stack([queries, np.concatenate(rows)], axis=1).astype(np.int64)

    own, other = tree(case.boxes), tree(case.others)
    join = Call(
        lambda: geoindex.tree_join(other, own),
        1,
        lambda x: np.stack([np.asarray(x.column(k)) for k in range(2)], axis=1).astype(np.int64),
    )
    return {
        POINTS: {"geo-index": search(case.points, case.points)},
        BOXES: {"geo-index": search(*case.others)},
        JOIN: {"geo-index": join},
    }


def scipy_calls(case: Case) -> Calls:
    """Return the calls of SciPy's KD-tree of centres, which finds other neighbours than boxes are."""
    from scipy.spatial import cKDTree

    tree, points = cKDTree((case.boxes.lower + case.boxes.upper) / 2), case.points
    of_k = {CLOSEST: 1, CLOSEST_8: 8}
    return {
        what: {"KD-tree": Call(lambda k=k: tree.query(points, k), len(points))} for what, k in of_k.items()
    }


PEERS = rtree_calls, shapely_calls, geoindex_calls, scipy_calls
