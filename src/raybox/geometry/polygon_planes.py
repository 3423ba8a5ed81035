"""Triangles of a polygon in the first plane in which its rings do not cross, exactly."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from raybox.errors import InvalidInput
from raybox.exact.plane_signs import integers
from raybox.geometry.polygon_sweep import Point, Triangle, triangulate_exactly, turn
from raybox.validation import Floats, Ints

_MOST = 250_000  # corners of a polygon: some 10 s in each plane
_BITS = 30  # of the components of a direction, which need not be exact


def cut_in_a_plane(corners: Floats, sizes: Ints, number: int) -> Ints | None:
    """Return the triangles of one polygon as positions of corners (N, 3); None if its rings cross.

    The planes are the one along the largest axis of its normal, its own, and those along the other axes.
    number: that of the polygon, for errors.
    """
    if len(corners) > _MOST:
        raise InvalidInput(
            f"polygon {number}, counted from 0, has {len(corners):,} corners; polygons that are not convex "
            f"may have {_MOST:,}. Split it."
        )
    whole = integers(corners.reshape(1, -1)).reshape(-1, 3).tolist()
    ends = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    rings = [range(*some) for some in pairwise(ends)]
    for points in _views(whole, len(rings[0])):
        if (found := _triangles(points, rings)) is not None:
            return np.array(found, dtype=np.int64).reshape(-1, 3)
    return None


def fan_of_rings(sizes: Ints) -> Ints:
    """Return a fan around the first corner of an outline, in whose last triangles holes are put.

    Each hole puts a strip of triangles, from those three corners to its own, in the place of a triangle.
    """
    outline, *holes = (range(*some) for some in pairwise([0, *np.cumsum(sizes).tolist()]))
    triangles = [(0, k, k + 1) for k in outline[1:-1]]
    for hole in holes:
        outer, inner = triangles.pop(), hole[::-1]
        i, j = 0, 0
        while i < 3 or j < len(inner):
            corner, other = outer[i % 3], inner[j % len(inner)]
            if i <= j and i < 3:
                i += 1
                triangles.append((corner, outer[i % 3], other))
            else:
                j += 1
                triangles.append((corner, inner[j % len(inner)], other))
    return np.array(triangles, dtype=np.int64).reshape(-1, 3)


def _views(corners: list[list[int]], outline: int) -> Iterator[list[Point]]:
    """Yield a polygon in planes in which its outline, the first corners, has an area."""
    ring = corners[:outline]
    pairs = list(zip(ring, ring[1:] + ring[:1], strict=True))
    normal = [sum(p[k - 2] * q[k - 1] - p[k - 1] * q[k - 2] for p, q in pairs) for k in range(3)]
    main, *others = sorted(range(3), key=lambda k: -abs(normal[k]))
    shift = max(abs(normal[main]).bit_length() - _BITS, 0)
    own = [(component + (1 << shift >> 1)) >> shift for component in normal]
    for axis, direction in ((main, None), (main, own), *((axis, None) for axis in others)):
        i, j = (axis + 1) % 3, (axis + 2) % 3
        if not normal[axis] or (direction and not direction[i] and not direction[j]):
            continue
        if direction:
            x, y, z = direction[i], direction[j], direction[axis]
            yield [(p[i] * z - p[axis] * x, p[j] * z - p[axis] * y) for p in corners]
        else:
            yield [(p[i], p[j]) for p in corners]


def _triangles(points: list[Point], rings: list[range]) -> list[Triangle] | None:
    """Return the triangles of a polygon in the plane, or None if its rings cross."""
    if len(rings) == 1 and len(points) == 4:
        return _quad(*points)
    areas = [_area([points[k] for k in ring]) for ring in rings]
    wrong = [(area < 0) if ring.start == 0 else (area > 0) for ring, area in zip(rings, areas, strict=True)]
    rings = [ring[::-1] if clockwise else ring for ring, clockwise in zip(rings, wrong, strict=True)]
    found = triangulate_exactly(points, rings)
    return [triangle[::-1] for triangle in found] if found and wrong[0] else found


def _area(ring: list[Point]) -> int:
    """Return twice the area of a ring, negative if it is clockwise."""
    return sum(p[0] * q[1] - p[1] * q[0] for p, q in zip(ring, ring[1:] + ring[:1], strict=True))


def _quad(a: Point, b: Point, c: Point, d: Point) -> list[Triangle] | None:
    """Return the two triangles on one side around the first corner of a quad, or the second."""
    if turn(a, b, c) * turn(a, c, d) >= 0:
        return [(0, 1, 2), (0, 2, 3)]
    return [(1, 2, 3), (1, 3, 0)] if turn(b, c, d) * turn(b, d, a) >= 0 else None
