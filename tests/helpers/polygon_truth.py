"""What the triangles of a polygon have to be, in rational arithmetic; and families of polygons.

A polygon is a list of rings, an outline and its holes, each a list of points (x, y, z). Nothing here shares
code with the library.
"""

from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np

Point = tuple[Fraction, ...]
Ring = list[Point]


def exact(ring) -> Ring:
    return [tuple(Fraction(float(x)) for x in point) for point in ring]


def newell(ring: Ring) -> list[Fraction]:
    """Return twice the area of the projections of a ring along each axis."""
    pairs = list(zip(ring, ring[1:] + ring[:1], strict=True))
    return [
        sum(p[(k + 1) % 3] * q[(k + 2) % 3] - p[(k + 2) % 3] * q[(k + 1) % 3] for p, q in pairs)
        for k in range(3)
    ]


def flat_rings(rings, view=0) -> list[Ring]:
    """Return a polygon in a plane.

    view: 0 for the plane along the largest axis of its outline's normal, 1 for its own, 2 and 3 for the other
    axes.
    """
    rings = [exact(ring) for ring in rings if len(ring)]
    normal = newell(rings[0])
    axes = sorted(range(3), key=lambda k: -abs(normal[k]))
    axis = axes[max(view - 1, 0)]
    i, j = (axis + 1) % 3, (axis + 2) % 3
    x, y = (normal[i] / normal[axis], normal[j] / normal[axis]) if view == 1 else (0, 0)
    return [[(p[i] - x * p[axis], p[j] - y * p[axis]) for p in ring] for ring in rings]


def cross(a: Point, b: Point, c: Point) -> Fraction:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def area(ring: Ring) -> Fraction:
    """Return twice the signed area of a ring in the plane."""
    return sum(p[0] * q[1] - p[1] * q[0] for p, q in zip(ring, ring[1:] + ring[:1], strict=True))


def broken_rule(rings, triangles, view=0) -> str:
    """Return the rule that triangles break, given as positions among the corners; "" for none."""
    flat = flat_rings(rings, view)
    corners = [p for ring in flat for p in ring]
    if broken := broken_edges(flat, triangles):
        return broken
    areas = [cross(*(corners[int(c)] for c in t)) for t in triangles]
    sign = 1 if area(flat[0]) > 0 else -1
    if any(sign * one < 0 for one in areas):
        return "a triangle is turned over"
    if sum(areas) != sign * (abs(area(flat[0])) - sum(abs(area(ring)) for ring in flat[1:])):
        return "areas"
    if any(overlap(s, t, corners) for s, t in combinations(triangles, 2)):
        return "triangles overlap"
    return ""


def broken_edges(rings, triangles) -> str:
    """Return the rule that the edges of triangles break, or ""."""
    if {int(c) for t in triangles for c in t} != set(range(sum(map(len, rings)))):
        return "corners"
    boundary, start = [], 0
    for ring in rings:
        at = range(start, start + len(ring))
        boundary += [(at, i, at[(k + 1) % len(ring)]) for k, i in enumerate(at)]
        start += len(ring)
    directed = Counter((int(t[k]), int(t[(k + 1) % 3])) for t in triangles for k in range(3))
    if max(directed.values()) > 1:
        return "an edge is in two triangles with one direction"
    for _, u, v in boundary:
        if ((u, v) in directed) == ((v, u) in directed):
            return "an edge of a ring is not in one triangle"
        directed.pop((u, v), None), directed.pop((v, u), None)
    if any((v, u) not in directed for u, v in directed):
        return "an inner edge is in one triangle"
    return ""


def overlap(one, other, corners) -> bool:
    """Return whether the interiors of two triangles meet: clip one by the edges of the other."""
    first, second = ([corners[int(c)] for c in t] for t in (one, other))
    if not cross(*first) or not cross(*second):
        return False
    if cross(*second) < 0:
        second = second[::-1]
    for k in range(3):
        a, b = second[k], second[(k + 1) % 3]
        sides = [cross(a, b, p) for p in first]
        clipped = []
        for j, p in enumerate(first):
            q, s, t = first[j - 1], sides[j], sides[j - 1]
            if s * t < 0:
                clipped.append(tuple(x + (y - x) * s / (s - t) for x, y in zip(p, q, strict=True)))
            if s >= 0:
                clipped.append(p)
        first = clipped
    return len(first) > 2 and area(first) != 0


def is_simple(rings) -> bool:
    """Return whether edges meet at common corners alone, and holes are inside, beside one another."""
    flat = flat_rings(rings)
    if any(len(ring) < 3 for ring in flat):
        return False
    edges = [(r, k, ring[k - 1], ring[k]) for r, ring in enumerate(flat) for k in range(len(ring))]
    for (r, k, a, b), (s, j, c, d) in combinations(edges, 2):
        next_to = r == s and (k + 1 - j) % len(flat[r]) == 0, r == s and (j + 1 - k) % len(flat[r]) == 0
        if any(next_to):
            if b == c and d == a:
                return False
            first, middle, last = (a, b, d) if next_to[0] else (c, d, b)
            back = sum((x - y) * (z - y) for x, y, z in zip(first, middle, last, strict=True)) >= 0
            if first == middle or middle == last or (cross(first, middle, last) == 0 and back):
                return False
        elif segments_meet(a, b, c, d):
            return False
    outside = [not inside(hole[0], flat[0]) for hole in flat[1:]]
    nested = [inside(one[0], other) for one in flat[1:] for other in flat[1:] if one is not other]
    return not any(outside) and not any(nested)


def segments_meet(a, b, c, d) -> bool:
    if any(
        max(p[k], q[k]) < min(r[k], s[k]) for k in range(2) for p, q, r, s in ((a, b, c, d), (c, d, a, b))
    ):
        return False
    return cross(a, b, c) * cross(a, b, d) <= 0 and cross(c, d, a) * cross(c, d, b) <= 0


def inside(point, ring) -> bool:
    """Return whether a point is inside a ring, by the number of edges to its right."""
    x, y = point
    found = False
    for (ax, ay), (bx, by) in zip(ring, ring[1:] + ring[:1], strict=True):
        if (ay > y) != (by > y) and x < ax + (bx - ax) * (y - ay) / (by - ay):
            found = not found
    return found


def star(rng, corners, smallest=0.3, centre=(0.0, 0.0), radius=1.0):
    angles = np.sort(rng.uniform(0, 2 * np.pi, corners))
    radii = radius * rng.uniform(smallest, 1, corners)
    return np.stack([centre[0] + radii * np.cos(angles), centre[1] + radii * np.sin(angles)], axis=-1)


def comb(rng, teeth):
    points = [(0, 0), (2 * teeth, 0)]
    for k in range(teeth, 0, -1):
        points += [
            (2 * k, rng.integers(2, 9)),
            (2 * k - 1, rng.integers(2, 9)),
            (2 * k - 1, 1),
            (2 * k - 2, 1),
        ]
    return np.array(points, float)


def holed_square(rng):
    """Return a square with rectangles of whole numbers, many of them at the same heights."""
    rings = [np.array([[0, 0], [30, 0], [30, 30], [0, 30]], float)]
    for x in (1, 11, 21):
        for y in (1, 11, 21):
            if rng.random() < 0.4:
                rings.append(np.array([[0, 0], [0, 1], [1, 1], [1, 0.0]]) * rng.integers(1, 8) + [x, y])
    return rings


def holed_star(rng):
    rings = [star(rng, 30, 0.8)]
    for centre in ((0.3, 0.3), (-0.3, 0.3), (0.3, -0.3)):
        if rng.random() < 0.6:
            rings.append(star(rng, rng.integers(3, 8), 0.3, centre, 0.25))
    return rings


def polygon(rng) -> list[np.ndarray]:
    """Return the rings (k, 3) of a polygon: one of several families, with more corners, in space."""
    kind = rng.integers(6)
    if kind == 0:
        flat = [star(rng, rng.integers(4, 16))]
    elif kind == 1:
        flat = [comb(rng, rng.integers(1, 4))]
    elif kind == 2:
        flat = holed_square(rng)
    elif kind == 3:
        flat = holed_star(rng)
    elif kind == 4:  # corners on a coarse grid: on lines, one on another, often crossing
        flat = [np.round(star(rng, rng.integers(4, 14), 0.2) * rng.integers(3, 9))]
    else:
        flat = [star(rng, rng.integers(4, 12), 1.0)]
    rings = [with_more_corners(rng, ring) for ring in flat]
    placed = place(rng, np.concatenate(rings))
    return np.split(placed, np.cumsum([len(ring) for ring in rings])[:-1])


def with_more_corners(rng, ring):
    """Return a ring with corners on its edges, and some twice, from any corner on, in any direction."""
    found = []
    for one, other in zip(ring, np.roll(ring, -1, axis=0), strict=True):
        found.append(one)
        chance = rng.random()
        if chance < 0.06:
            found.append((one + other) / 2)
        elif chance < 0.09:
            found.append(one)
        elif chance < 0.13:
            found.append(one + (other - one) * rng.random())
    turned = np.array(found)[:: rng.choice([1, -1])]
    return np.roll(turned, rng.integers(len(turned)), axis=0)


def place(rng, points):
    """Return points of the plane in space: on a plane of the axes, off it by a little, or anywhere."""
    chance = rng.random()
    height = rng.uniform(-0.02, 0.02, len(points)) if chance < 0.3 else np.zeros(len(points))
    space = np.column_stack([points, height])
    if chance > 0.6:
        matrix, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        space = space @ matrix + rng.choice([0, 1, 85_000.3]) * rng.normal(size=3)
    return np.roll(space, rng.integers(3), axis=1)
