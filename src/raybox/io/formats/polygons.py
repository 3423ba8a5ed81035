"""Triangles of the polygons of a file: convex, concave, with holes.

Convex polygons are fans around their first corner. mapbox_earcut cuts the others (``polygon_ears``). The
triangles of a polygon use its corners alone; each edge of its rings belongs to one triangle, and each inner
edge to two, of opposite direction. In the projection along the largest component of the polygon's normal (by
Newell's method), no triangle is turned over, so that their areas add up to that of the polygon. All of this
is decided exactly.
"""

from typing import NamedTuple

import numpy as np

from raybox.io.formats.plane_signs import following, largest_axes, project, turn_signs
from raybox.io.formats.polygon_ears import cut_ears
from raybox.validation import Bools, Floats, Ints

_BLOCK = 1 << 17  # corners that are tested together: their arrays fit into the cache


class Polygons(NamedTuple):
    """Polygons in flat arrays.

    ``corners`` (N,) are numbers of vertices, ring by ring; ``sizes`` (R,) the number of corners of each
    ring; ``rings`` (P,) the number of rings of each polygon: its outline, then its holes. The last corner of
    a ring is joined to its first.
    """

    corners: Ints
    sizes: Ints
    rings: Ints


class Triangles(NamedTuple):
    """The triangles of polygons, in the order of the polygons.

    ``faces`` (F, 3) are numbers of vertices, ``polygon`` (F,) the polygon of each triangle. ``failed`` (P,)
    is True for polygons without triangles: a ring has fewer than 3 corners, or rings cross.
    """

    faces: Ints
    polygon: Ints
    failed: Bools


def without_holes(corners: Ints, sizes: Ints) -> Polygons:
    """Return polygons of one ring each."""
    return Polygons(corners, sizes, np.ones(len(sizes), dtype=np.int64))


def triangulate(vertices: Floats, polygons: Polygons) -> Triangles:
    """Return the triangles of polygons: k - 2 of k corners, and 2 more for each hole.

    A polygon with a corner that is not finite, or that does not exist, becomes a fan: the check of the mesh
    names that corner. Holes without corners are ignored.
    """
    if (polygons.rings == 1).all() and (polygons.sizes == 3).all():
        faces = polygons.corners.reshape(-1, 3)
        return Triangles(faces, np.arange(len(faces)), np.zeros(len(faces), dtype=bool))
    polygons, failed = _without_empty_rings(polygons)
    counts = _counts(polygons)
    fans = ~failed & _trivial(vertices, polygons, counts)
    pieces: list[tuple[Ints, Ints]] = []
    starts = np.cumsum(counts) - counts
    for block in _blocks(np.flatnonzero(~failed & ~fans), counts):
        at = _ranges(starts[block], counts[block])
        part = _select(polygons, block)._replace(corners=at)
        convex, cut = _cut(vertices[polygons.corners[at]], part)
        fans[block] = convex
        failed[block] = cut.failed
        pieces.append((at[cut.faces], block[cut.polygon]))
    of_fans = np.flatnonzero(fans)
    pieces.append(_fans(starts[of_fans], counts[of_fans], of_fans))
    faces, polygon = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
    order = np.argsort(polygon, kind="stable")
    return Triangles(polygons.corners[faces[order]], polygon[order], failed)


def _without_empty_rings(polygons: Polygons) -> tuple[Polygons, Bools]:
    """Return the polygons without empty holes, and which have a ring of fewer than 3 corners."""
    corners, sizes, rings = polygons
    polygon = np.repeat(np.arange(len(rings)), rings)
    is_hole = np.ones(len(sizes), dtype=bool)
    is_hole[(np.cumsum(rings) - rings)[rings > 0]] = False
    empty = is_hole & (sizes == 0)
    failed = rings == 0
    failed[polygon[(sizes < 3) & ~empty]] = True
    rings = np.bincount(polygon[~empty], minlength=len(rings))
    return Polygons(corners, sizes[~empty], rings), failed


def _counts(polygons: Polygons) -> Ints:
    """Return the number of corners of each polygon, holes included."""
    ends = np.concatenate([[0], np.cumsum(polygons.sizes)])
    last = np.cumsum(polygons.rings)
    counts: Ints = ends[last] - ends[last - polygons.rings]
    return counts


def _trivial(vertices: Floats, polygons: Polygons, counts: Ints) -> Bools:
    """Return which polygons are fans without a test: triangles, and those that the mesh will refuse."""
    usable = np.append(np.isfinite(vertices).all(axis=1), False)
    exists = (polygons.corners >= 0) & (polygons.corners < len(vertices))
    wrong = ~usable[np.where(exists, polygons.corners, -1)]
    trivial: Bools = (polygons.rings == 1) & (counts == 3)
    trivial[np.repeat(np.arange(len(counts)), counts)[wrong]] = True
    return trivial


def _blocks(chosen: Ints, counts: Ints) -> list[Ints]:
    """Return the chosen polygons in blocks of some `_BLOCK` corners."""
    block = np.cumsum(counts[chosen]) // _BLOCK
    return [part for part in np.split(chosen, np.flatnonzero(np.diff(block)) + 1) if part.size]


def _ranges(starts: Ints, counts: Ints) -> Ints:
    """Return the numbers from each start on, as many as its count."""
    before = np.cumsum(counts) - counts
    positions: Ints = np.arange(counts.sum()) + np.repeat(starts - before, counts)
    return positions


def _select(polygons: Polygons, chosen: Ints) -> Polygons:
    """Return some polygons, without their corners."""
    first = np.cumsum(polygons.rings) - polygons.rings
    rings = polygons.rings[chosen]
    return Polygons(polygons.corners[:0], polygons.sizes[_ranges(first[chosen], rings)], rings)


def _fans(starts: Ints, counts: Ints, polygon: Ints) -> tuple[Ints, Ints]:
    """Return the triangles of fans around first corners, as positions of corners, and their polygons."""
    triangles = counts - 2
    first = np.repeat(starts, triangles)
    step = _ranges(np.ones_like(starts), triangles)
    return np.stack([first, first + step, first + step + 1], axis=-1), np.repeat(polygon, triangles)


def _cut(points: Floats, part: Polygons) -> tuple[Bools, Triangles]:
    """Return which polygons are convex, and the triangles of the others as positions in `points`."""
    counts = _counts(part)
    starts = np.cumsum(counts) - counts
    outlines = part.sizes[np.cumsum(part.rings) - part.rings]
    outer = _ranges(starts, outlines)
    axes = largest_axes(points[outer], outlines)
    flat = project(points, np.repeat(np.maximum(axes, 0), counts))
    convex = (part.rings == 1) & (axes >= 0) & _convex(flat[outer], outlines)
    for k in np.flatnonzero((part.rings == 1) & (axes < 0)):
        convex[k] = _on_a_line(points[starts[k] :][: counts[k]])
    failed = ~convex & (axes < 0)
    rest = np.flatnonzero(~convex & ~failed)
    at = _ranges(starts[rest], counts[rest])
    ears = cut_ears(flat[at], *_select(part, rest)[1:])
    failed[rest] = ears.failed
    return convex, Triangles(at[ears.triangles], rest[ears.polygon], failed)


def _convex(points: Floats, sizes: Ints) -> Bools:
    """Return which outlines in the plane are convex.

    They turn to one side alone, and round once; then no edge goes back on the one before. Corners may lie on
    a straight edge, or repeat the one before.
    """
    number = len(sizes)
    polygon = np.repeat(np.arange(number), sizes)
    after = following(sizes)
    moves = (points[after] != points).any(axis=1)
    if not moves.all():
        points, polygon = points[moves], polygon[moves]
        after = following(np.bincount(polygon, minlength=number))
    then = points[after]
    with np.errstate(over="ignore"):
        x, y = (then - points).T
    turns = turn_signs(points, then, then[after])
    upward = (y > 0) | ((y == 0) & (x > 0))
    rounds = np.bincount(polygon[~upward & upward[after]], minlength=number)
    left, right = (np.bincount(polygon[which], minlength=number) > 0 for which in (turns > 0, turns < 0))
    convex: Bools = (left != right) & (rounds == 1)
    return convex


def _on_a_line(points: Floats) -> bool:
    """Return whether all corners lie on one line, so that triangles have no area."""
    inner = np.arange(1, len(points) - 1)
    for axis in range(3):
        flat = project(points, np.full(len(points), axis))
        if turn_signs(flat[np.zeros_like(inner)], flat[inner], flat[inner + 1]).any():
            return False
    return True
