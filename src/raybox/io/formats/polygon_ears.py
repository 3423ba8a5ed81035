"""Triangles of polygons in the plane that are not convex, by mapbox_earcut, mended and checked exactly."""

from itertools import pairwise
from typing import NamedTuple

import mapbox_earcut
import numpy as np

from raybox.io.formats.plane_signs import area_signs, following, integers, turn_signs
from raybox.validation import Bools, Floats, Ints

Triangle = tuple[int, int, int]


class Ears(NamedTuple):
    """Triangles (F, 3) as positions of corners, the polygon of each, and the polygons without (P,)."""

    triangles: Ints
    polygon: Ints
    failed: Bools


class _Outlines(NamedTuple):
    """Corners in the plane, and where the corners of each polygon begin and end.

    ``edges`` (N, 2) are the edges of the rings in the direction of the triangles, with the polygon on one
    side; ``signs`` (P,) is 1 where that is the left side, -1 for the right one.
    """

    points: Floats
    bounds: Ints
    edges: Ints
    signs: Ints


def cut_ears(points: Floats, sizes: Ints, rings: Ints) -> Ears:
    """Return the triangles of polygons in the plane."""
    outlines = _outlines(points, sizes, rings)
    cut = _earcut(outlines, sizes, rings)
    wrong = _unsound(cut, outlines)
    mended = [_mended(cut.triangles[cut.polygon == k], outlines, k) for k in np.flatnonzero(wrong).tolist()]
    if not mended:
        return cut
    again = Ears(
        np.concatenate(mended), np.repeat(np.flatnonzero(wrong), [len(part) for part in mended]), wrong
    )
    failed = wrong & _unsound(again, outlines)
    whole, fixed = ~wrong[cut.polygon], ~failed[again.polygon]
    return Ears(
        np.concatenate([cut.triangles[whole], again.triangles[fixed]]),
        np.concatenate([cut.polygon[whole], again.polygon[fixed]]),
        failed,
    )


def _outlines(points: Floats, sizes: Ints, rings: Ints) -> _Outlines:
    ring_signs = area_signs(points, sizes).astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    last = np.cumsum(rings)
    signs = ring_signs[last - rings]
    is_outer = np.zeros(len(sizes), dtype=bool)
    is_outer[last - rings] = True
    turned = ~is_outer & (ring_signs == np.repeat(signs, rings))
    edges = np.stack([np.arange(len(points)), following(sizes)], axis=-1)
    back = np.repeat(turned, sizes)
    edges[back] = edges[back, ::-1]
    return _Outlines(points, ends[np.concatenate([[0], last])], edges, signs)


def _earcut(outlines: _Outlines, sizes: Ints, rings: Ints) -> Ears:
    """Return what mapbox_earcut makes of each polygon; it turns all triangles counter-clockwise."""
    counts = np.diff(outlines.bounds)
    local = outlines.points - np.repeat(outlines.points[outlines.bounds[:-1]], counts, axis=0)
    ring_ends = np.cumsum(sizes)
    last = np.cumsum(rings)
    found = []
    for k, (start, stop) in enumerate(zip(outlines.bounds[:-1], outlines.bounds[1:], strict=True)):
        ends = (ring_ends[last[k] - rings[k] : last[k]] - start).astype(np.uint32)
        one = mapbox_earcut.triangulate_float64(local[start:stop], ends)
        found.append(one.reshape(-1, 3).astype(np.int64) + start)
    triangles = np.concatenate([np.zeros((0, 3), dtype=np.int64), *found])
    polygon = np.repeat(np.arange(len(counts)), [len(one) for one in found])
    clockwise = outlines.signs[polygon] < 0
    triangles[clockwise] = triangles[clockwise, ::-1]
    return Ears(triangles, polygon, np.zeros(len(counts), dtype=bool))


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
    polygon_of = np.repeat(np.arange(len(wrong)), np.diff(outlines.bounds))
    wrong[polygon_of[edges[1:][edges[1:] == edges[:-1]] // size]] = True
    wrong[polygon_of[~_contains(edges, expected)]] = True
    return wrong


def _contains(ordered: Ints, values: Ints) -> Bools:
    """Return which values are in an ordered array."""
    if not ordered.size:
        return np.zeros(len(values), dtype=bool)
    at = np.searchsorted(ordered, values)
    found: Bools = ordered[np.minimum(at, len(ordered) - 1)] == values
    return found


def _mended(triangles: Ints, outlines: _Outlines, polygon: int) -> Ints:
    """Return the triangles with gaps without area filled, and turned ones flipped, as far as that goes."""
    start, stop = outlines.bounds[polygon : polygon + 2]
    boundary = {(int(u), int(v)) for u, v in outlines.edges[start:stop]}
    opposite: dict[tuple[int, int], int] = {}
    for a, b, c in triangles.tolist():
        opposite.update({(a, b): c, (b, c): a, (c, a): b})
    for cycle in _gaps(opposite, boundary):
        for b, c in pairwise(cycle[1:]):
            opposite.update({(cycle[0], b): c, (b, c): cycle[0], (c, cycle[0]): b})
    rows = integers(outlines.points[start:stop].reshape(1, -1)).reshape(-1, 2) * int(outlines.signs[polygon])
    _flip(opposite, dict(zip(range(start, stop), rows.tolist(), strict=True)))
    whole = {min((a, b, c), (b, c, a), (c, a, b)) for (a, b), c in opposite.items()}
    return np.array(sorted(whole), dtype=np.int64).reshape(-1, 3)


def _gaps(opposite: dict[tuple[int, int], int], boundary: set[tuple[int, int]]) -> list[list[int]]:
    """Return the cycles of edges that triangles lack: they run around what earcut leaves out."""
    missing: dict[int, list[int]] = {}
    for u, v in [e for e in boundary if e not in opposite] + [
        (v, u) for u, v in opposite if (v, u) not in opposite and (u, v) not in boundary
    ]:
        missing.setdefault(u, []).append(v)
    cycles: list[list[int]] = []
    path: list[int] = []
    while missing or path:
        path = path or [min(missing)]
        target = missing[path[-1]].pop()
        if not missing[path[-1]]:
            del missing[path[-1]]
        if target in path:
            at = path.index(target)
            cycles.append(path[at:])
            del path[at + 1 :]
            path = path if target in missing else path[:-1]
        else:
            path.append(target)
    return cycles


def _flip(opposite: dict[tuple[int, int], int], points: dict[int, list[int]]) -> None:
    """Exchange diagonals as long as fewer triangles are turned over."""

    def area(a: int, b: int, c: int) -> int:
        (ax, ay), (bx, by), (cx, cy) = points[a], points[b], points[c]
        return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)

    waiting = list(opposite)
    while waiting:
        u, v = waiting.pop()
        w, x = opposite.get((u, v)), opposite.get((v, u))
        if w is None or x is None or min(area(u, v, w), area(v, u, x)) >= 0:
            continue
        before, after = (area(u, v, w), area(v, u, x)), (area(u, x, w), area(x, v, w))
        if sum(min(a, 0) for a in after) <= sum(min(a, 0) for a in before):
            continue
        del opposite[u, v], opposite[v, u]
        for a, b, c in ((u, x, w), (x, v, w)):
            edges = ((a, b), (b, c), (c, a))
            opposite.update(dict(zip(edges, (c, a, b), strict=True)))
            waiting += edges
