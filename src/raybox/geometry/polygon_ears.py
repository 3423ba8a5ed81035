"""Triangles of polygons in the plane that are not convex, by mapbox_earcut, mended and checked exactly."""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from mapbox_earcut import triangulate_float64

from raybox.exact.plane_signs import Signs, area_signs, following, integers, turn_signs
from raybox.geometry.polygon_overlaps import meeting_edges, overlapping
from raybox.validation import Bools, Floats, Ints

# Corners of holes at one height are what mapbox_earcut is wrong about; a shear moves them apart.
_SHEARS = [np.array([[1, slope], [0, 1]]) for slope in (0, 0.618, -0.414, 1.732, -2.236, 0)]
_LARGE = 200  # corners of a ring from which on triangles around it cost less than pairs of its edges

Opposite: TypeAlias = dict[tuple[int, int], int]
"""The third corner of the triangle to the left of each edge."""


class OwnedTriangles(NamedTuple):
    """Triangles (F, 3), numbers of corners, and the polygon of each (F,)."""

    triangles: Ints
    polygon: Ints


class _Outline(NamedTuple):
    """Corners (N, 2) of a polygon, the same as in `_Outlines.local`, and where its rings begin and end."""

    points: Floats
    local: Floats
    bounds: Ints


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

    def polygon(self, number: int) -> _Outline:
        """Return one polygon, its corners from 0 on."""
        bounds = self.ring_bounds[self.rings[number] : self.rings[number + 1] + 1]
        part = slice(bounds[0], bounds[-1])
        return _Outline(self.points[part], self.local[part], bounds - bounds[0])


def cut_ears(points: Floats, sizes: Ints, rings: Ints) -> OwnedTriangles:
    """Return the triangles of polygons in the plane; those whose rings cross have none."""
    found = [OwnedTriangles(np.zeros((0, 3), dtype=np.int64), np.zeros(0, dtype=np.int64))]
    if not len(rings):
        return found[0]
    outlines = _outlines(points, sizes, rings)
    simple = (outlines.signs != 0) & (np.bincount(outlines.owner) >= _LARGE)
    simple[simple] = [_rings_are_simple(outlines.polygon(k)) for k in np.flatnonzero(simple).tolist()]
    edges = outlines.edges[~simple[outlines.owner]]
    crossing, touching = meeting_edges(outlines.points, edges, outlines.owner)
    left = np.flatnonzero((outlines.signs != 0) & ~crossing)
    cutters: list[Callable[[_Outline], Ints]] = [_earcut, _manifold]
    cutters[1:1] = [partial(_mended, attempt=k) for k in range(len(_SHEARS))]
    for cutter in cutters:
        ears = _cut(cutter, outlines, left)
        wrong = _unsound(ears, outlines)
        doubtful = (touching & ~wrong)[ears.polygon]
        wrong |= overlapping(outlines.points[ears.triangles[doubtful]], ears.polygon[doubtful], len(rings))
        sound = ~wrong[ears.polygon]
        found.append(OwnedTriangles(outlines.order[ears.triangles[sound]], ears.polygon[sound]))
        left = left[wrong[left]]
        if not left.size:
            break
    triangles, polygon = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    clockwise = outlines.signs[polygon] < 0
    triangles[clockwise] = triangles[clockwise, ::-1]
    return OwnedTriangles(triangles, polygon)


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


def _rings_are_simple(outline: _Outline) -> bool:
    """Return whether what is between a polygon and a frame, and each hole, has triangles that keep the rules.

    With those of the polygon they cover the frame once, so that none overlap. False proves nothing.
    """
    rings = [ring[_bends(ring)] for ring in np.split(outline.points, outline.bounds[1:-1])]
    low, high = rings[0].min(axis=0), rings[0].max(axis=0)
    with np.errstate(over="ignore"):
        (left, right), (bottom, top) = np.stack([2 * low - high, 2 * high - low], axis=-1)
    frame = np.array([[left, bottom], [right, bottom], [right, top], [left, top]])
    if not np.isfinite(frame).all() or min(map(len, rings)) < 3:
        return False
    sizes = np.array([4, *map(len, rings)])
    around = _outlines(np.concatenate([frame, *rings]), sizes, np.array([2, *[1] * (len(rings) - 1)]))
    return not _unsound(_cut(_earcut, around, np.arange(len(rings))), around).any()


def _bends(ring: Floats) -> Ints:
    """Return the positions of corners that neither repeat one nor lie on the line of their neighbours."""
    at, size = np.roll(np.arange(len(ring)), -np.lexsort(ring.T[::-1])[0]), 0
    while len(at) != size:
        size = len(at)
        at = at[(ring[at] != ring[np.roll(at, 1)]).any(axis=1)]
        at = at[turn_signs(ring[np.roll(at, 1)], ring[at], ring[np.roll(at, -1)]) != 0]
    return at


def _cut(cutter: Callable[[_Outline], Ints], outlines: _Outlines, polygons: Ints) -> OwnedTriangles:
    """Return what a cutter makes of some polygons."""
    parts = [cutter(outlines.polygon(k)) for k in polygons.tolist()]
    polygon = np.repeat(polygons, [len(part) for part in parts])
    starts = np.searchsorted(outlines.owner, polygon)
    triangles = np.concatenate([np.zeros((0, 3), dtype=np.int64), *parts])
    return OwnedTriangles(triangles + starts[:, None], polygon)


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


def _earcut(outline: _Outline) -> Ints:
    """Return what mapbox_earcut makes of a polygon: counter-clockwise triangles, as positions of corners."""
    cut: Ints = triangulate_float64(outline.local, outline.bounds[1:].astype(np.uint32)).astype(np.int64)
    return cut.reshape(-1, 3)


def _manifold(outline: _Outline) -> Ints:
    """Return counter-clockwise triangles by manifold3d, none if it is not installed."""
    if find_spec("manifold3d") is None:
        return np.zeros((0, 3), dtype=np.int64)
    from manifold3d import triangulate

    rings = np.split(outline.local, outline.bounds[1:-1])
    return np.asarray(triangulate(rings, 0.0), dtype=np.int64).reshape(-1, 3)


def _mended(outline: _Outline, attempt: int) -> Ints:
    """Return counter-clockwise triangles of a polygon for which mapbox_earcut breaks a rule.

    It cuts the polygon without corners on straight edges. What is left out becomes triangles without area,
    and triangles that rounding turned over are flipped with a neighbour, as far as that goes.
    """
    points = integers(outline.points.reshape(1, -1)).reshape(-1, 2).tolist()
    rings = [np.arange(*ends) for ends in pairwise(outline.bounds.tolist())]
    bends = [ring[_bends(outline.points[ring])] for ring in rings]
    reduced = [some if len(some) > 2 else ring for some, ring in zip(bends, rings, strict=True)]
    at = np.concatenate(reduced)
    ends = np.cumsum([len(ring) for ring in reduced], dtype=np.uint32)
    opposite: Opposite = {}
    cut = triangulate_float64(outline.local[at] @ _SHEARS[attempt], ends)
    for triangle in at[cut].reshape(-1, 3).tolist():
        _add(opposite, *triangle)
    for cycle in _gaps(opposite, rings):
        first, *rest = cycle[attempt:] + cycle[:attempt]
        for b, c in pairwise(rest):
            _add(opposite, first, b, c)
    _flip(opposite, points)
    triangles = [(a, b, c) for (a, b), c in opposite.items() if a < min(b, c)]
    return np.array(triangles, dtype=np.int64).reshape(-1, 3)


def _gaps(opposite: Opposite, rings: list[Ints]) -> list[list[int]]:
    """Return the cycles of edges that triangles lack: they run around what earcut leaves out."""
    boundary = {(ring[k - 1], ring[k]) for ring in map(np.ndarray.tolist, rings) for k in range(len(ring))}
    edges = [edge for edge in boundary if edge not in opposite]
    edges += [(v, u) for u, v in opposite if (v, u) not in opposite and (u, v) not in boundary]
    missing: dict[int, list[int]] = {}
    for u, v in edges:
        missing.setdefault(u, []).append(v)
    cycles = []
    for start in sorted(missing):
        path, corner = {start: None}, start
        while missing.get(corner):
            corner = missing[corner].pop()
            if corner in path:
                cycle = []
                while (last := path.popitem()[0]) != corner:
                    cycle.append(last)
                cycles.append([corner, *reversed(cycle)])
            path[corner] = None
    return cycles


def _flip(opposite: Opposite, points: list[list[int]]) -> None:
    """Exchange diagonals as long as that turns triangles back, or gives them an area."""

    def faults(*triangles: tuple[int, int, int]) -> tuple[int, int]:
        """Return how much area is turned over, and how many triangles have none."""
        corners = ([points[k] for k in triangle] for triangle in triangles)
        areas = [(q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]) for p, q, r in corners]
        return -sum(min(area, 0) for area in areas), areas.count(0)

    waiting = list(opposite)
    while waiting:
        u, v = waiting.pop()
        w, x = opposite.get((u, v)), opposite.get((v, u))
        if w is None or x is None or (w, x) in opposite or (x, w) in opposite or w == x:
            continue
        if faults((u, x, w), (x, v, w)) < faults((u, v, w), (v, u, x)):
            del opposite[u, v], opposite[v, u]
            for a, b, c in ((u, x, w), (x, v, w)):
                _add(opposite, a, b, c)
                waiting += [(a, b), (b, c), (c, a)]


def _add(opposite: Opposite, a: int, b: int, c: int) -> None:
    opposite.update({(a, b): c, (b, c): a, (c, a): b})
