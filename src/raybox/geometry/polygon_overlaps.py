"""Edges of polygons in the plane that cross or touch, and triangles that overlap."""

from collections.abc import Iterator

import numpy as np

from raybox.exact.plane_signs import turn_signs
from raybox.validation import Bools, Floats, Ints


def meeting_edges(points: Floats, edges: Ints, owner: Ints) -> tuple[Bools, Bools]:
    """Return which polygons (P,) have edges that cross, and which have edges that touch.

    Corners are `points` (N, 2), `owner` (N,) the polygon of each, in order; `edges` (E, 2) those of rings. An
    edge that goes back on the one before is not reported: its end touches a third one.
    """
    crossing, touching = np.zeros((2, owner[-1] + 1), dtype=bool)
    for first, second in _near_pairs(points[edges], owner[edges[:, 0]], crossing):
        rest = (edges[first] != edges[second, ::-1]).all(axis=1)  # they do not follow one another
        one, other = edges[first[rest]], edges[second[rest]]
        apart, cross = _sides(points, one, other)
        one, other, cross = one[~apart], other[~apart], cross[~apart]
        apart, back = _sides(points, other, one)
        crossing[owner[one[cross & back, 0]]] = True
        touching[owner[one[~apart, 0]]] = True
    return crossing, touching


def overlapping(corners: Floats, owner: Ints, polygons: int) -> Bools:
    """Return which polygons have triangles (F, 3, 2) whose interiors meet."""
    found = np.zeros(polygons, dtype=bool)
    solid = turn_signs(*corners.transpose(1, 0, 2)) != 0
    corners, owner = corners[solid], owner[solid]
    for first, second in _near_pairs(corners, owner, found):
        apart = _separated(corners[first], corners[second]) | _separated(corners[second], corners[first])
        found[owner[first[~apart]]] = True
    return found


def _sides(points: Floats, one: Ints, other: Ints) -> tuple[Bools, Bools]:
    """Return whether both ends of the other edges are on one side of the line of the first, or on both."""
    start, end = points[one.T]
    there, then = (turn_signs(start, end, points[corner]) for corner in other.T)
    return there * then > 0, there * then < 0


def _near_pairs(corners: Floats, owner: Ints, done: Bools) -> Iterator[tuple[Ints, Ints]]:
    """Yield the pairs of shapes (S, K, 2) of one polygon whose bounding boxes meet.

    Polygons that are `done` are left out, also those that become so between two yields.
    """
    (left, low), (right, high) = corners.min(axis=1).T, corners.max(axis=1).T
    order = np.lexsort((left, owner))
    owner, left, right, low, high = owner[order], left[order], right[order], low[order], high[order]
    first = np.arange(len(order))
    for step in range(1, len(order)):  # from each to the next by their left ends, as long as those meet it
        first = first[: np.searchsorted(first, len(order) - step)]
        first = first[~done[owner[first]]]
        first = first[(owner[first] == owner[first + step]) & (left[first + step] <= right[first])]
        if not first.size:
            break
        second = first + step
        near = (low[first] <= high[second]) & (low[second] <= high[first])
        yield order[first[near]], order[second[near]]


def _separated(ones: Floats, others: Floats) -> Bools:
    """Return the pairs for which an edge of the first triangle has the second beyond it, or on it."""
    separated = np.zeros(len(ones), dtype=bool)
    inside = turn_signs(*ones.transpose(1, 0, 2))
    for k in range(3):
        sides = [turn_signs(ones[:, k - 1], ones[:, k], others[:, j]) for j in range(3)]
        separated |= (np.stack(sides) * inside <= 0).all(axis=0)
    return separated
