"""Triangles of polygons: convex, concave, with holes, bent.

Convex polygons are fans around their first corner, and others of four corners around the first or second.
mapbox_earcut cuts other small ones (``polygon_ears``), a sweep the rest (``polygon_sweep``). The triangles of
a polygon use its corners alone; each edge of its rings belongs to one triangle, and each inner edge to two,
of opposite direction. In the projection along the largest component of the polygon's normal (by Newell's
method), no triangle is turned over, so that their areas add up to that of the polygon. Where rings cross
there, this holds in another plane (``polygon_planes``). All of this is decided exactly.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from raybox.exact.plane_signs import following, largest_axes, project, turn_signs
from raybox.geometry.polygon_ears import OwnedTriangles, cut_ears
from raybox.geometry.polygon_planes import cut_in_a_plane, fan_of_rings
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

    def select(self, chosen: Bools) -> "Polygons":
        """Return the polygons for which a mask (P,) is True."""
        rings = np.repeat(chosen, self.rings)
        return Polygons(self.corners[np.repeat(rings, self.sizes)], self.sizes[rings], self.rings[chosen])

    def owners(self) -> Ints:
        """Return the polygon (N,) of each corner."""
        return np.repeat(np.repeat(np.arange(len(self.rings)), self.rings), self.sizes)


class Triangles(NamedTuple):
    """The triangles of polygons, in the order of the polygons.

    ``faces`` (F, 3) are numbers of vertices, ``polygon`` (F,) the polygon of each triangle. ``failed`` (P,)
    is True for polygons without triangles: a ring has fewer than 3 corners. ``not_flat`` (P,) is True for
    polygons whose rings cross in each plane that was tried: their triangles are a fan, which may overlap.
    """

    faces: Ints
    polygon: Ints
    failed: Bools
    not_flat: Bools


def without_holes(corners: Ints, sizes: Ints) -> Polygons:
    """Return polygons of one ring each."""
    return Polygons(corners, sizes, np.ones(len(sizes), dtype=np.int64))


def triangulate(vertices: Floats, polygons: Polygons) -> Triangles:
    """Return the triangles of polygons: k - 2 of k corners, and 2 more for each hole.

    A polygon with a corner that is not finite, or that does not exist, becomes a fan: the check of the mesh
    names that corner. Holes without corners are ignored. Raise `InvalidInput` for a polygon of more corners
    than are cut in some ten seconds.
    """
    if (polygons.rings == 1).all() and (polygons.sizes == 3).all():
        faces = polygons.corners.reshape(-1, 3)
        return Triangles(faces, np.arange(len(faces)), *np.zeros((2, len(faces)), dtype=bool))
    usable = np.append(np.isfinite(vertices).all(axis=1), False)
    parts = []
    for first, block in _blocks(polygons):
        part = _triangles(vertices, usable, block, first)
        parts.append(part._replace(polygon=part.polygon + first))
    return Triangles(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _blocks(polygons: Polygons) -> Iterator[tuple[int, Polygons]]:
    """Yield the polygons in blocks of some `_BLOCK` corners, with the number of the first."""
    corners, rings = (np.concatenate([[0], np.cumsum(counts)]) for counts in polygons[1:])
    ends = np.flatnonzero(np.diff(corners[rings[1:]] // _BLOCK)) + 1
    for start, stop in pairwise([0, *ends.tolist(), len(polygons.rings)]):
        some, these = slice(rings[start], rings[stop]), slice(start, stop)
        numbers = polygons.corners[corners[some.start] : corners[some.stop]]
        yield start, Polygons(numbers, polygons.sizes[some], polygons.rings[these])


def _triangles(vertices: Floats, usable: Bools, polygons: Polygons, first: int) -> Triangles:
    """Return the triangles of polygons, the first of which has a number, for errors.

    `usable` is True for finite vertices, with False after them.
    """
    polygons, complete = _without_empty_rings(polygons)
    corners, owner = polygons.corners, polygons.owners()
    exists = (corners >= 0) & (corners < len(vertices))
    trivial = (polygons.rings == 1) & (np.bincount(owner, minlength=len(complete)) == 3)
    trivial[owner[~usable[np.where(exists, corners, -1)]]] = True
    rest = complete & ~trivial
    part = polygons.select(rest)
    fans = _fans(polygons, np.where(complete & trivial, 0, -1))
    points, numbers = vertices[part.corners], np.flatnonzero(rest)
    cut = _cut_others(points, part, _cut(points, part), numbers + first)
    faces = np.concatenate([fans.triangles, cut.faces])
    polygon = np.concatenate([fans.polygon, numbers[cut.polygon]])
    order = np.argsort(polygon, kind="stable")
    not_flat = np.zeros_like(complete)
    not_flat[numbers] = cut.not_flat
    return Triangles(faces[order], polygon[order], ~complete, not_flat)


def _without_empty_rings(polygons: Polygons) -> tuple[Polygons, Bools]:
    """Return the polygons without empty holes, and which have rings of 3 corners or more alone."""
    corners, sizes, rings = polygons
    is_hole = np.ones(len(sizes), dtype=bool)
    is_hole[(np.cumsum(rings) - rings)[rings > 0]] = False
    empty = is_hole & (sizes == 0)
    polygon = np.repeat(np.arange(len(rings)), rings)
    complete = rings > 0
    complete[polygon[(sizes < 3) & ~empty]] = False
    return Polygons(corners, sizes[~empty], np.bincount(polygon[~empty], minlength=len(rings))), complete


def _fans(polygons: Polygons, apex: Ints) -> OwnedTriangles:
    """Return the triangles around one corner of each polygon, but of those whose `apex` is -1."""
    chosen = polygons.select(apex >= 0)
    sizes = np.bincount(chosen.owners(), minlength=len(chosen.rings))
    of_each = sizes - 2
    polygon, start, size = (
        np.repeat(x, of_each) for x in (np.flatnonzero(apex >= 0), np.cumsum(sizes) - sizes, sizes)
    )
    second = apex[polygon] + 1 + np.arange(len(polygon)) - np.repeat(np.cumsum(of_each) - of_each, of_each)
    at = np.stack([apex[polygon], second % size, (second + 1) % size], axis=-1)
    return OwnedTriangles(chosen.corners[start[:, None] + at], polygon)


def _cut(points: Floats, polygons: Polygons) -> OwnedTriangles:
    """Return the triangles of most polygons, given their corners (N, 3)."""
    owner = polygons.owners()
    is_outline = np.zeros(len(polygons.sizes), dtype=bool)
    is_outline[np.cumsum(polygons.rings) - polygons.rings] = True
    outlines = polygons.sizes[is_outline]
    axes = largest_axes(points[np.repeat(is_outline, polygons.sizes)], outlines)
    flat = project(points, np.maximum(axes, 0)[owner])
    single, lines = polygons.rings == 1, (polygons.rings == 1) & (axes < 0)
    quads, others = single & ~lines & (outlines == 4), single & ~lines & (outlines > 4)
    apex = np.full(len(axes), -1)
    apex[quads] = _apexes_of_quads(flat[quads[owner]].reshape(-1, 4, 2))
    apex[others] = np.where(_convex(flat[others[owner]], outlines[others]), 0, -1)
    apex[lines] = np.where(_without_area(points[lines[owner]], outlines[lines]), 0, -1)
    rest = (axes >= 0) & ~quads & (apex < 0)
    part = polygons.select(rest)
    fans, ears = _fans(polygons, apex), cut_ears(flat[rest[owner]], part.sizes, part.rings)
    return OwnedTriangles(
        np.concatenate([fans.triangles, part.corners[ears.triangles]]),
        np.concatenate([fans.polygon, np.flatnonzero(rest)[ears.polygon]]),
    )


def _cut_others(points: Floats, polygons: Polygons, done: OwnedTriangles, first: Ints) -> Triangles:
    """Return the triangles of all polygons, given those of most; `first` are their numbers, for errors."""
    corners, rings = (np.concatenate([[0], np.cumsum(counts)]) for counts in polygons[1:])
    not_flat = np.zeros(len(polygons.rings), dtype=bool)
    parts = [done]
    for k in np.flatnonzero(np.bincount(done.polygon, minlength=len(not_flat)) == 0).tolist():
        sizes = polygons.sizes[rings[k] : rings[k + 1]]
        own = slice(corners[rings[k]], corners[rings[k + 1]])
        triangles = cut_in_a_plane(points[own], sizes, first[k])
        not_flat[k] = triangles is None
        found = polygons.corners[own][fan_of_rings(sizes) if triangles is None else triangles]
        parts.append(OwnedTriangles(found, np.full(len(found), k)))
    faces, polygon = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Triangles(faces, polygon, np.zeros_like(not_flat), not_flat)


def _apexes_of_quads(corners: Floats) -> Ints:
    """Return the first corner around which two triangles are on one side, or -1; others do not exist."""
    a, b, c, d = corners.transpose(1, 0, 2)
    fans = (turn_signs(a, b, c), turn_signs(a, c, d)), (turn_signs(b, c, d), turn_signs(b, d, a))
    found = [one + other != 0 for one, other in fans]  # 0 if both have no area, or opposite signs
    return np.select(found, [0, 1], -1)


def _convex(points: Floats, sizes: Ints) -> Bools:
    """Return which outlines in the plane are convex.

    They turn to one side alone, and round once; then no edge goes back on the one before. Corners may lie on
    a straight edge, or repeat the one before.
    """
    polygon = np.repeat(np.arange(len(sizes)), sizes)
    after = following(sizes)
    moves = (points[after] != points).any(axis=1)
    if not moves.all():
        points, polygon = points[moves], polygon[moves]
        after = following(np.bincount(polygon, minlength=len(sizes)))
    then = points[after]
    with np.errstate(over="ignore"):
        x, y = (then - points).T
    turns = turn_signs(points, then, then[after])
    upward = (y > 0) | ((y == 0) & (x > 0))
    left, right, rounds = (
        np.bincount(polygon[which], minlength=len(sizes))
        for which in (turns > 0, turns < 0, ~upward & upward[after])
    )
    convex: Bools = ((left > 0) != (right > 0)) & (rounds == 1)
    return convex


def _without_area(points: Floats, sizes: Ints) -> Bools:
    """Return the outlines whose fans have no area: all corners on one line, for instance."""
    triangles, polygon = _fans(without_holes(np.arange(len(points)), sizes), np.zeros_like(sizes))
    has_area = largest_axes(points[triangles.ravel()], np.full(len(triangles), 3)) >= 0
    without: Bools = np.bincount(polygon[has_area], minlength=len(sizes)) == 0
    return without
