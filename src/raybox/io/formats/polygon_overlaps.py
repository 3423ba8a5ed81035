"""Polygons in the plane whose rings cross, so that triangles of theirs overlap."""

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from raybox.io.formats.plane_signs import Signs, turn_signs
from raybox.validation import Bools, Floats, Ints

_SMALL = 200  # corners of a polygon of which all pairs of edges are tested
_PAIRS = 1 << 20  # of edges or triangles that are tested together


def overlaps(points: Floats, edges: Ints, bounds: Ints, triangles: Ints, polygon: Ints) -> Bools:
    """Return which polygons have triangles whose interiors meet.

    Corners are `points` (N, 2), of polygon k from `bounds[k]` on; `edges` (N, 2) those of its rings.
    Triangles (F, 3) are not turned over, and those with a common edge are on both sides of it. Then they
    overlap only if edges of rings cross, or touch: triangles at edges that touch are tested.
    """
    edges, bounds = _without_repeated(points, edges, bounds)
    first, second = _near_pairs(points[edges], bounds)
    apart, cross = _sides(points, edges[first], edges[second])
    meet = np.flatnonzero(~apart)
    first, second = first[meet], second[meet]
    apart, back = _sides(points, edges[second], edges[first])
    cross = cross[meet] & back
    owner = np.searchsorted(bounds, first, side="right") - 1
    wrong = np.zeros(len(bounds) - 1, dtype=bool)
    wrong[owner[cross]] = True
    touch = np.flatnonzero(~apart & ~cross)
    touch = touch[~_neighbours(points, edges[first[touch]], edges[second[touch]])]
    at_contact = np.zeros(len(points), dtype=bool)
    at_contact[edges[first[touch]]] = at_contact[edges[second[touch]]] = True
    for k in np.unique(owner[touch]):
        if not wrong[k]:
            own = triangles[polygon == k]
            wrong[k] = _any_overlap(own[at_contact[own].any(axis=1)], own, points)
    return wrong


def _without_repeated(points: Floats, edges: Ints, bounds: Ints) -> tuple[Ints, Ints]:
    """Return the edges that have a length, from corner to corner, and where those of each polygon begin."""
    none = (points[edges[:, 0]] == points[edges[:, 1]]).all(axis=1)
    if not none.any():
        return edges, bounds
    last = np.arange(len(points))  # of corners that repeat one another
    last[edges[none, 0]] = edges[none, 1]
    for _ in range(len(points).bit_length()):
        last = last[last]
    return last[edges[~none]], np.concatenate([[0], np.cumsum(~none)])[bounds]


def _sides(points: Floats, one: Ints, other: Ints) -> tuple[Bools, Bools]:
    """Return whether both ends of the other edges are on one side of the line of the first, or on both."""
    start, end = points[one.T]
    there, then = (turn_signs(start, end, points[corner]) for corner in other.T)
    return there * then > 0, there * then < 0


def _neighbours(points: Floats, one: Ints, other: Ints) -> Bools:
    """Return the pairs of edges that have a corner in common, and no other point: the second goes on."""
    following, before = one[:, 1] == other[:, 0], one[:, 0] == other[:, 1]
    middle = np.where(following, one[:, 1], one[:, 0])
    start = np.where(following, one[:, 0], other[:, 0])
    end = np.where(following, other[:, 1], one[:, 1])
    with np.errstate(over="ignore"):
        come, go = np.sign(points[middle] - points[start]), np.sign(points[end] - points[middle])
    bends = turn_signs(points[start], points[middle], points[end]) != 0
    straight = (come * go >= 0).all(axis=1) & come.any(axis=1) & go.any(axis=1)
    apart: Bools = (following ^ before) & (bends | straight)
    return apart


def _near_pairs(segments: Floats, bounds: Ints) -> tuple[Ints, Ints]:
    """Return the pairs of edges of one polygon whose bounding boxes meet."""
    lower, upper = segments.min(axis=1), segments.max(axis=1)
    counts = np.diff(bounds)
    found = [(bounds[:0], bounds[:0])]
    for count in np.unique(counts):
        starts = bounds[:-1][counts == count]
        pairs: Iterable[tuple[Ints, Ints]]
        if count <= _SMALL:
            one, other = np.triu_indices(count, 1)
            pairs = [((starts[:, None] + one).ravel(), (starts[:, None] + other).ravel())]
        else:
            pairs = chain.from_iterable(_swept(lower, upper, np.arange(k, k + count)) for k in starts)
        for first, second in pairs:
            near = (lower[first] <= upper[second]) & (lower[second] <= upper[first])
            found.append((first[near.all(axis=1)], second[near.all(axis=1)]))
    first, second = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    return first, second


def _swept(lower: Floats, upper: Floats, edges: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield the pairs of edges that meet on the axis on which fewer do, in blocks."""
    sweeps = []
    for axis in range(2):
        order = edges[np.argsort(lower[edges, axis], kind="stable")]
        ends = np.searchsorted(lower[order, axis], upper[order, axis], side="right")
        sweeps.append((order, ends - np.arange(1, len(order) + 1)))
    order, counts = min(sweeps, key=lambda sweep: int(sweep[1].sum()))
    blocks = np.flatnonzero(np.diff(np.cumsum(counts) // _PAIRS)) + 1
    for rows in np.split(np.arange(len(order)), blocks):
        one, before = np.repeat(rows, counts[rows]), np.cumsum(counts[rows]) - counts[rows]
        other = one + 1 + np.arange(len(one)) - np.repeat(before, counts[rows])
        yield order[one], order[other]


def _any_overlap(some: Ints, every: Ints, points: Floats) -> bool:
    """Return whether the interior of one of some triangles (F, 3) meets that of another of all."""
    every, some = (turned[turn_signs(*points[turned.T]) != 0] for turned in (every, some))
    corners = points[every]
    lower, upper = corners.min(axis=1), corners.max(axis=1)
    for block in np.array_split(some, 1 + len(some) * len(every) // _PAIRS):
        at = points[block]
        near = (lower < at.max(axis=1)[:, None]) & (upper > at.min(axis=1)[:, None])
        distinct = (block[:, None] != every).any(axis=2)
        one, other = np.nonzero(near.all(axis=2) & distinct)
        apart = _separated(at[one], corners[other])
        apart[~apart] = _separated(corners[other[~apart]], at[one[~apart]])
        if not apart.all():
            return True
    return False


def _separated(ones: Floats, others: Floats) -> Bools:
    """Return the pairs for which an edge of the first triangle has the second beyond it, or on it."""
    separated = np.zeros(len(ones), dtype=bool)
    inside = turn_signs(*ones.transpose(1, 0, 2))
    for k in range(3):
        sides: list[Signs] = [turn_signs(ones[:, k - 1], ones[:, k], others[:, j]) for j in range(3)]
        separated |= (np.stack(sides) * inside <= 0).all(axis=0)
    return separated
