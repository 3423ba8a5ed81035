"""Triangles of polygons in the plane that are not convex, by mapbox_earcut, mended and checked exactly."""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from mapbox_earcut import triangulate_float64

from raybox.io.formats.plane_signs import area_signs, following, integers, turn_signs
from raybox.io.formats.polygon_overlaps import overlaps
from raybox.validation import Bools, Floats, Ints

# Corners of holes at one height are what mapbox_earcut is wrong about; a shear moves them apart.
_SHEARS = [np.array([[1, slope], [0, 1]]) for slope in (0, 0.6180339887, -0.4142135624)]


class Ears(NamedTuple):
    """Triangles (F, 3) as positions of corners, the polygon of each, and the polygons without (P,)."""

    triangles: Ints
    polygon: Ints
    failed: Bools


class _Outlines(NamedTuple):
    """Corners in the plane, where the corners of each ring begin and end, and the rings of each polygon.

    ``local`` (N, 2) are the corners of each polygon near the origin, rounded.
    ``edges`` (N, 2) are the edges of the rings in the direction of the triangles, with the polygon on one
    side; ``signs`` (P,) is 1 where that is the left side, -1 for the right one.
    """

    points: Floats
    local: Floats
    ring_bounds: Ints
    bounds: Ints
    edges: Ints
    signs: Ints

    def rings_of(self, polygon: int) -> list[Ints]:
        """Return the positions of the corners of each ring of a polygon."""
        bounds = self.ring_bounds[self.bounds[polygon] : self.bounds[polygon + 1] + 1]
        return [np.arange(start, stop) for start, stop in pairwise(bounds.tolist())]

    def polygon_of_corners(self) -> Ints:
        """Return the polygon of each corner."""
        return np.repeat(np.arange(len(self.signs)), np.diff(self.ring_bounds[self.bounds]))


def cut_ears(points: Floats, sizes: Ints, rings: Ints) -> Ears:
    """Return the triangles of polygons in the plane."""
    if not len(rings):
        return Ears(np.zeros((0, 3), dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool))
    outlines = _outlines(points, sizes, rings)
    left = np.arange(len(rings))
    cutters: list[Callable[[_Outlines, int], Ints]] = [_earcut, _manifold]
    cutters[1:1] = [partial(_mended, shear=shear) for shear in _SHEARS]
    found = []
    for cutter in cutters:
        cut = _joined([cutter(outlines, k) for k in left.tolist()], left, outlines)
        wrong = _unsound(cut, outlines)
        wrong |= _overlapping(cut, outlines, wrong)
        whole = ~wrong[cut.polygon]
        found.append((cut.triangles[whole], cut.polygon[whole]))
        left = left[wrong[left]]
        if not left.size:
            break
    triangles, polygon = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    return Ears(triangles, polygon, np.isin(np.arange(len(rings)), left))


def _outlines(points: Floats, sizes: Ints, rings: Ints) -> _Outlines:
    ring_signs = area_signs(points, sizes).astype(np.int64)
    last = np.cumsum(rings)
    signs = ring_signs[last - rings]
    is_outer = np.zeros(len(sizes), dtype=bool)
    is_outer[last - rings] = True
    turned = ~is_outer & (ring_signs == np.repeat(signs, rings))
    edges = np.stack([np.arange(len(points)), following(sizes)], axis=-1)
    back = np.repeat(turned, sizes)
    edges[back] = edges[back, ::-1]
    ring_bounds, bounds = (np.concatenate([[0], np.cumsum(counts)]) for counts in (sizes, rings))
    local = _near_origin(points, np.diff(ring_bounds[bounds]))
    return _Outlines(points, local, ring_bounds, bounds, edges, signs)


def _near_origin(points: Floats, counts: Ints) -> Floats:
    """Return corners moved and scaled, so that float64 loses less: polygon by polygon, by powers of two."""
    starts = np.cumsum(counts) - counts
    largest = np.maximum.reduceat(np.abs(points).max(axis=1), starts)
    scaled = np.ldexp(points, -np.repeat(np.frexp(largest)[1], counts)[:, None])
    local: Floats = scaled - np.repeat(scaled[starts], counts, axis=0)
    return local


def _earcut(outlines: _Outlines, polygon: int) -> Ints:
    """Return what mapbox_earcut makes of a polygon: counter-clockwise triangles, as positions of corners."""
    rings = outlines.ring_bounds[outlines.bounds[polygon] : outlines.bounds[polygon + 1] + 1]
    local = outlines.local[rings[0] : rings[-1]]
    cut = triangulate_float64(local, (rings[1:] - rings[0]).astype(np.uint32))
    corners: Ints = cut.astype(np.int64).reshape(-1, 3) + rings[0]
    return corners


def _joined(parts: list[Ints], polygons: Ints, outlines: _Outlines) -> Ears:
    """Return the triangles of several polygons, turned to the side of their outlines."""
    triangles = np.concatenate([np.zeros((0, 3), dtype=np.int64), *parts])
    polygon = np.repeat(polygons, [len(part) for part in parts])
    clockwise = outlines.signs[polygon] < 0
    triangles[clockwise] = triangles[clockwise, ::-1]
    return Ears(triangles, polygon, np.zeros(0, dtype=bool))


def _unsound(cut: Ears, outlines: _Outlines) -> Bools:
    """Return the polygons whose triangles break a rule.

    No triangle is turned over. An edge of a ring is in one triangle, any other in two, of opposite direction.
    Then the areas add up to that of the polygon, since those of inner edges cancel.
    """
    corners = outlines.points[cut.triangles]
    turns = turn_signs(corners[:, 0], corners[:, 1], corners[:, 2])
    wrong: Bools = outlines.signs == 0
    wrong[cut.polygon[turns * outlines.signs[cut.polygon] < 0]] = True
    size = len(outlines.points)
    there = cut.triangles.ravel()
    then = np.roll(cut.triangles, -1, axis=1).ravel()
    edges = np.sort(there * size + then)
    expected = outlines.edges[:, 0] * size + outlines.edges[:, 1]
    paired = _contains(edges, then * size + there)
    outer = _contains(np.sort(expected), there * size + then)
    wrong[np.repeat(cut.polygon, 3)[paired == outer]] = True
    polygon_of = outlines.polygon_of_corners()
    wrong[polygon_of[edges[1:][edges[1:] == edges[:-1]] // size]] = True
    wrong[polygon_of[~_contains(edges, expected)]] = True
    return wrong


def _overlapping(cut: Ears, outlines: _Outlines, wrong: Bools) -> Bools:
    """Return which of the polygons that are not wrong have triangles that overlap."""
    bounds = outlines.ring_bounds[outlines.bounds]
    right = np.flatnonzero(~wrong)
    if not right.size:
        return wrong
    whole = ~wrong[cut.polygon]
    corners = ~wrong[outlines.polygon_of_corners()]
    renumbered = np.cumsum(corners) - 1
    found = np.zeros_like(wrong)
    found[right] = overlaps(
        outlines.points[corners],
        renumbered[outlines.edges[corners]],
        np.concatenate([[0], np.cumsum(np.diff(bounds)[right])]),
        renumbered[cut.triangles[whole]],
        (np.cumsum(~wrong) - 1)[cut.polygon[whole]],
    )
    return found


def _contains(ordered: Ints, values: Ints) -> Bools:
    """Return which values are in an ordered array."""
    if not ordered.size:
        return np.zeros(len(values), dtype=bool)
    at = np.searchsorted(ordered, values)
    found: Bools = ordered[np.minimum(at, len(ordered) - 1)] == values
    return found


def _mended(outlines: _Outlines, polygon: int, shear: Floats) -> Ints:
    """Return counter-clockwise triangles of a polygon for which mapbox_earcut breaks a rule.

    It cuts the polygon without corners on straight edges. What is left out becomes triangles without area,
    and triangles that rounding turned over are flipped with a neighbour, as far as that goes.
    """
    rings = outlines.rings_of(polygon)
    start, stop = rings[0][0], rings[-1][-1] + 1
    rows = integers(outlines.points[start:stop].reshape(1, -1)).reshape(-1, 2)
    points = dict(zip(range(start, stop), rows.tolist(), strict=True))
    turned = slice(None, None, int(outlines.signs[polygon]) or 1)
    boundary = {(u, v) for u, v in outlines.edges[start:stop, turned].tolist()}
    opposite: dict[tuple[int, int], int] = {}
    reduced = [_without_straight(ring, points) for ring in rings]
    at = np.concatenate(reduced)
    ends = np.cumsum([len(ring) for ring in reduced], dtype=np.uint32)
    for a, b, c in at[triangulate_float64(outlines.local[at] @ shear, ends)].reshape(-1, 3).tolist():
        opposite.update({(a, b): c, (b, c): a, (c, a): b})
    for cycle in _gaps(opposite, boundary):
        for b, c in pairwise(cycle[1:]):
            opposite.update({(cycle[0], b): c, (b, c): cycle[0], (c, cycle[0]): b})
    _flip(opposite, points)
    whole = {min((a, b, c), (b, c, a), (c, a, b)) for (a, b), c in opposite.items()}
    return np.array(sorted(whole), dtype=np.int64).reshape(-1, 3)


def _manifold(outlines: _Outlines, polygon: int) -> Ints:
    """Return counter-clockwise triangles by manifold3d, none if it is not installed."""
    if find_spec("manifold3d") is None:
        return np.zeros((0, 3), dtype=np.int64)
    from manifold3d import triangulate

    rings = outlines.rings_of(polygon)
    turned = slice(None, None, int(outlines.signs[polygon]) or 1)
    in_order = [ring[:: 1 if (outlines.edges[ring[0], turned] == ring[:2]).all() else -1] for ring in rings]
    at = np.concatenate(in_order)
    cut = np.asarray(triangulate([outlines.local[ring] for ring in in_order], 0.0), dtype=np.int64)
    return at[cut].reshape(-1, 3)


def _without_straight(ring: Ints, points: dict[int, list[int]]) -> Ints:
    """Return a ring without corners that lie on the line of their neighbours, or repeat one."""
    corners: list[int] = ring.tolist()
    first = corners.index(min(corners, key=points.__getitem__))  # it is on no line of others
    found: list[int] = []
    for corner in corners[first:] + corners[: first + 1]:
        while len(found) > 1 and _area(points[found[-2]], points[found[-1]], points[corner]) == 0:
            found.pop()
        found.append(corner)
    return np.array(found[:-1]) if len(found) > 3 else ring


def _gaps(opposite: dict[tuple[int, int], int], boundary: set[tuple[int, int]]) -> list[list[int]]:
    """Return the cycles of edges that triangles lack: they run around what earcut leaves out."""
    missing: dict[int, list[int]] = {}
    for u, v in [e for e in boundary if e not in opposite] + [
        (v, u) for u, v in opposite if (v, u) not in opposite and (u, v) not in boundary
    ]:
        missing.setdefault(u, []).append(v)
    cycles: list[list[int]] = []
    path: dict[int, None] = {}
    while missing or path:
        corner = next(reversed(path)) if path else min(missing)
        path[corner] = None
        if corner not in missing:
            del path[corner]
            continue
        target = missing[corner].pop()
        if not missing[corner]:
            del missing[corner]
        if target in path:
            cycle = [target]
            while corner != target:
                cycle.append(corner)
                del path[corner]
                corner = next(reversed(path))
            cycles.append([target, *cycle[:0:-1]])
        else:
            path[target] = None
    return cycles


def _flip(opposite: dict[tuple[int, int], int], points: dict[int, list[int]]) -> None:
    """Exchange diagonals as long as that turns triangles back, or gives them an area."""

    def area(a: int, b: int, c: int) -> int:
        return _area(points[a], points[b], points[c])

    waiting = list(opposite)
    while waiting:
        u, v = waiting.pop()
        w, x = opposite.get((u, v)), opposite.get((v, u))
        if w is None or x is None or (w, x) in opposite or (x, w) in opposite or w == x:
            continue
        if _faults(area(u, x, w), area(x, v, w)) >= _faults(area(u, v, w), area(v, u, x)):
            continue
        del opposite[u, v], opposite[v, u]
        for a, b, c in ((u, x, w), (x, v, w)):
            edges = ((a, b), (b, c), (c, a))
            opposite.update(dict(zip(edges, (c, a, b), strict=True)))
            waiting += edges


def _faults(*areas: int) -> tuple[int, int]:
    """Return how much area is turned over, and how many triangles have none."""
    return -sum(min(area, 0) for area in areas), areas.count(0)


def _area(a: list[int], b: list[int], c: list[int]) -> int:
    """Return twice the area of a triangle of integers."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
