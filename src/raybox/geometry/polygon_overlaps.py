"""Polygons in the plane whose edges meet, apart from those that follow one another."""

from collections.abc import Iterator

import numpy as np

from raybox.exact.plane_signs import turn_signs
from raybox.validation import Bools, Floats, Ints


def meeting_edges(points: Floats, edges: Ints, owner: Ints) -> Bools:
    """Return which polygons (P,) have edges that cross or touch.

    Corners are `points` (N, 2), `owner` (N,) the polygon of each, in order; `edges` (E, 2) those of rings. An
    edge that goes back on the one before is not reported: its end touches a third one.
    """
    meeting = np.zeros(owner[-1] + 1, dtype=bool)
    for first, second in _near_pairs(points[edges], owner[edges[:, 0]], meeting):
        rest = (edges[first] != edges[second, ::-1]).all(axis=1)  # they do not follow one another
        one, other = edges[first[rest]], edges[second[rest]]
        apart = _one_side(points, one, other) | _one_side(points, other, one)
        meeting[owner[one[~apart, 0]]] = True
    return meeting


def _one_side(points: Floats, one: Ints, other: Ints) -> Bools:
    """Return whether both ends of the other edges are on one side of the line of the first."""
    start, end = points[one.T]
    there, then = (turn_signs(start, end, points[corner]) for corner in other.T)
    return there * then > 0


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
