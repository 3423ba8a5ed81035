"""Triangles of small polygons in the plane whose rings do not touch: by mapbox_earcut, checked exactly."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from mapbox_earcut import triangulate_float64

from raybox.exact.plane_signs import Signs, area_signs, following, turn_signs
from raybox.validation import Bools, Floats, Ints

_LARGE = 200  # corners of a polygon from which on earcut, and pairs of edges, may cost more than a sweep


class OwnedTriangles(NamedTuple):
    """Triangles (F, 3), numbers of corners, and the polygon of each (F,)."""

    triangles: Ints
    polygon: Ints


class _Outlines(NamedTuple):
    """Polygons in the plane, with rings turned round so that each polygon is to the left of its edges.

    ``local`` (N, 2) are the corners near the origin, scaled by a power of two and rounded; ``order`` (N,) are
    the positions of the corners before, ``owner`` (N,) is the polygon of each; ``edges`` (N, 2) are those of
    all rings; ``signs`` (P,) is -1 for outlines that were clockwise, and 0 for those without an area.
    """

    points: Floats
    local: Floats
    order: Ints
    owner: Ints
    edges: Ints
    ring_bounds: Ints
    rings: Ints
    signs: Signs

    def earcut(self, number: int) -> Ints:
        """Return what mapbox_earcut makes of a polygon: counter-clockwise triangles."""
        bounds = self.ring_bounds[self.rings[number] : self.rings[number + 1] + 1]
        ends = (bounds[1:] - bounds[0]).astype(np.uint32)
        cut: Ints = triangulate_float64(self.local[bounds[0] : bounds[-1]], ends).astype(np.int64)
        return np.asarray(cut.reshape(-1, 3) + bounds[0])


def cut_ears(points: Floats, sizes: Ints, rings: Ints) -> OwnedTriangles:
    """Return the triangles of polygons in the plane, but of large ones and of those whose rings touch."""
    if not len(rings):
        return OwnedTriangles(np.zeros((0, 3), dtype=np.int64), np.zeros(0, dtype=np.int64))
    outlines = _outlines(points, sizes, rings)
    chosen = (outlines.signs != 0) & (np.bincount(outlines.owner) < _LARGE)
    chosen &= ~_meeting_edges(outlines.points, outlines.edges[chosen[outlines.owner]], outlines.owner)
    numbers = np.flatnonzero(chosen)
    parts = [outlines.earcut(number) for number in numbers.tolist()]
    polygon = np.repeat(numbers, [len(part) for part in parts])
    triangles = np.concatenate([np.zeros((0, 3), dtype=np.int64), *parts])
    sound = ~_unsound(OwnedTriangles(triangles, polygon), outlines)[polygon]
    triangles, polygon = triangles[sound], polygon[sound]
    clockwise = outlines.signs[polygon] < 0
    triangles[clockwise] = triangles[clockwise, ::-1]
    return OwnedTriangles(outlines.order[triangles], polygon)


def _outlines(points: Floats, sizes: Ints, rings: Ints) -> _Outlines:
    signs = area_signs(points, sizes)
    bounds, ring_bounds = (np.concatenate([[0], np.cumsum(counts)]) for counts in (rings, sizes))
    expected = np.full(len(sizes), -1)
    expected[bounds[:-1]] = 1
    at = np.arange(len(points))
    opposite = np.repeat(ring_bounds[:-1] + ring_bounds[1:] - 1, sizes) - at
    order = np.where(np.repeat(signs == -expected, sizes), opposite, at)
    owner = np.repeat(np.repeat(np.arange(len(rings)), rings), sizes)
    edges = np.stack([at, following(sizes)], axis=-1)
    points, starts = points[order], ring_bounds[bounds[:-1]]
    powers = -np.frexp(np.maximum.reduceat(np.abs(points).max(axis=1), starts))[1]
    scaled = np.ldexp(points, powers[owner, None])
    local = scaled - scaled[starts[owner]]
    return _Outlines(points, local, order, owner, edges, ring_bounds, bounds, signs[bounds[:-1]])


def _unsound(ears: OwnedTriangles, outlines: _Outlines) -> Bools:
    """Return the polygons whose triangles break a rule.

    No triangle is turned over. An edge of a ring is in one triangle, any other in two, of opposite direction.
    Then the areas add up to that of the polygon, since those of inner edges cancel.
    """
    wrong = np.zeros(len(outlines.signs), dtype=bool)
    turns = turn_signs(*outlines.points[ears.triangles].transpose(1, 0, 2))
    wrong[ears.polygon[turns < 0]] = True
    # Edges of triangles, and those of rings from the other side: each is there once in both directions.
    start = np.concatenate([ears.triangles.ravel(), outlines.edges[:, 1]])
    end = np.concatenate([np.roll(ears.triangles, -1, axis=1).ravel(), outlines.edges[:, 0]])
    size = len(outlines.points)
    edges, opposite = np.sort(start * size + end), np.sort(end * size + start)
    alone = edges != opposite
    alone[1:] |= edges[1:] == edges[:-1]
    wrong[outlines.owner[edges[alone] // size]] = True
    return wrong


def _meeting_edges(points: Floats, edges: Ints, owner: Ints) -> Bools:
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
