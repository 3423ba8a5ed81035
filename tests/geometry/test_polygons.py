"""Triangles of polygons, against rational arithmetic from the definition."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polygon_truth
from raybox.errors import InvalidInput
from raybox.geometry import polygon_ears, polygon_planes, polygon_sweep
from raybox.geometry.polygon_ears import _near_pairs
from raybox.geometry.polygons import Polygons, triangulate, without_holes

L_SHAPE = [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]
BIG = [(0, 0), (9, 0), (9, 9), (0, 9)]


def cut(polygons):
    """Return the triangles of polygons (lists of rings) as positions of corners, and which are not flat."""
    rings = [np.asarray(ring, dtype=float) for polygon in polygons for ring in polygon]
    points = np.concatenate([ring for ring in rings if len(ring)])
    if points.shape[1] == 2:
        points = np.column_stack([points, np.zeros(len(points))])
    counts = [sum(map(len, polygon)) for polygon in polygons]
    numbers = np.random.default_rng(1).permutation(len(points))  # of vertices: not those of corners
    vertices = np.empty_like(points)
    vertices[numbers] = points
    for array in (vertices, numbers):
        array.setflags(write=False)
    found = triangulate(
        vertices,
        Polygons(numbers, np.array([len(ring) for ring in rings]), np.array([len(p) for p in polygons])),
    )
    positions = np.empty_like(numbers)
    positions[numbers] = np.arange(len(numbers))
    assert (np.diff(found.polygon) >= 0).all()
    starts = np.cumsum(counts) - counts
    of_each = [positions[found.faces[found.polygon == k]] - starts[k] for k in range(len(polygons))]
    short = [
        not polygon or len(polygon[0]) < 3 or any(0 < len(r) < 3 for r in polygon) for polygon in polygons
    ]
    assert found.failed.tolist() == short
    return of_each, found.not_flat.tolist()


def in_space(rings):
    return [np.column_stack([ring, np.zeros(len(ring))]) for ring in rings]


def fan(corners):
    return [[0, k, k + 1] for k in range(1, corners - 1)]


def test_convex_polygons_are_fans_of_the_first_corner():
    ring = [(math.cos(t), math.sin(t)) for t in range(6)]
    with_corners_on_edges = [(0, 0), (1, 0), (1, 0), (2, 0), (2, 1), (2, 2), (0, 2)]
    found, not_flat = cut([[ring], [ring[::-1]], [L_SHAPE], [with_corners_on_edges], [ring[:3]]])
    assert [found[k].tolist() for k in (0, 1, 3, 4)] == [fan(6), fan(6), fan(7), fan(3)]
    assert not any(not_flat)


def star_of(corners, step):
    turns = [2 * math.pi * k * step / corners for k in range(corners)]
    return [(math.cos(turn), math.sin(turn)) for turn in turns]


CROSSING = {
    "bow tie": [[(0, 0), (1, 1), (1, 0), (0, 1)]],
    "bow tie with an area": [[(0, 0), (4, 2), (4, 0), (0, 1)]],
    "star of five wound twice": [star_of(5, 2)],
    "star of ten wound three times": [star_of(10, 3)],
    "square wound twice": [BIG + BIG],
    "square in a square, wound twice": [[*BIG, (3, 3), (6, 3), (6, 6), (3, 6)]],
    "strip across itself": [
        [(0, 0), (10, 0), (10, 6), (4, 6), (4, -2), (6, -2), (6, 4), (8, 4), (8, 2), (0, 2)]
    ],
    "hole outside": [BIG, [(10, 1), (10, 2), (11, 2)]],
    "hole across the outline": [BIG, [(8, 1), (8, 2), (11, 2)]],
    "holes that cross": [BIG, [(1, 1), (1, 4), (4, 4), (4, 1)], [(2, 2), (2, 5), (5, 5), (5, 2)]],
    "hole in a hole": [BIG, [(1, 1), (1, 4), (4, 4), (4, 1)], [(2, 2), (2, 3), (3, 3), (3, 2)]],
    "closed by its first corner, twice round": [[*BIG, *BIG[:1], *BIG[1:], *BIG[:1]]],
    "hole like the outline": [BIG, BIG[::-1]],
    "two edges that cross at a corner": [
        [(-2, -2), (2, 2), (3, 5), (-3, 5), (-2, 2), (2, -2), (2, 0), (0, 0), (-2, 0)]
    ],
    "holes whose edges cross at a corner": [
        [(0, 0), (6, 0), (6, 6), (0, 6)],
        [(4, 2), (2, 0), (0, 0), (0, 2), (3, 5), (4, 1), (3, 1), (4, 0)],
        [(0, 5), (2, 4), (2, 2), (3, 5), (4, 3)],
    ],
    "two holes outside": [BIG, [(10, 1), (10, 2), (11, 2)], [(12, 1), (12, 2), (13, 2), (13, 1)]],
}


@pytest.mark.parametrize("name", CROSSING)
def test_polygons_whose_rings_cross_are_fans(name):
    found, not_flat = cut([[BIG], CROSSING[name], [L_SHAPE]])
    assert not_flat == [False, True, False]
    rings = CROSSING[name]
    assert [len(t) for t in found] == [2, sum(map(len, rings)) + 2 * len(rings) - 4, 4]
    assert polygon_truth.broken_edges(rings, found[1]) == ""
    if len(rings) == 1:
        assert found[1].tolist() == fan(len(rings[0]))


SHORT = {
    "two corners": [[(0, 0), (1, 1)]],
    "hole of two corners": [BIG, [(1, 1), (2, 2)]],
    "no outline": [[], BIG],
    "no ring": [],
}


@pytest.mark.parametrize("name", SHORT)
def test_polygons_with_rings_of_fewer_than_three_corners_are_left_out(name):
    found, not_flat = cut([[BIG], SHORT[name], [L_SHAPE]])
    assert not any(not_flat)
    assert [len(triangles) for triangles in found] == [2, 0, 4]


TOUCHING = {
    "nothing": [L_SHAPE],
    "hole at a corner": [BIG, [(0, 0), (3, 6), (6, 3)]],
    "hole at an edge": [BIG, [(0, 3), (3, 6), (6, 3)]],
    "holes at one another": [BIG, [(1, 1), (1, 4), (4, 4)], [(4, 4), (4, 6), (6, 6)]],
    "keyhole": [[*BIG, (0, 0), (3, 3), (3, 6), (6, 6), (6, 3), (3, 3)]],
    "closed by its first corner": [[*L_SHAPE, (0, 0)]],
    "spike outward": [[(0, 0), (4, 0), (4, 2), (6, 2), (4, 2), (4, 4), (0, 4)]],
    "hole that runs like the outline": [BIG, [(1, 1), (4, 1), (4, 4), (1, 4)]],
    "holes at one height": [
        [(30, 0), (0, 0), (0, 30), (30, 30)],
        [(5, 25), (5, 21), (1, 21), (1, 25)],
        [(11, 12), (11, 11.5), (11, 11), (12, 11), (12, 11.75), (12, 12), (11.25, 12)],
        [(28, 11), (21, 11), (21, 18), (28, 18)],
    ],
    "closed by its first corner, with a corner twice": [[*L_SHAPE, (0, 2), (0, 0)]],
    "spike inward": [[(0, 0), (4, 0), (4, 2), (2, 2), (4, 2), (4, 4), (0, 4)]],
    "spike inward, with its end twice": [[(0, 0), (4, 0), (4, 2), (2, 2), (2, 2), (4, 2), (4, 4), (0, 4)]],
    "hole along a spike of the outline": [
        [(0, 1), (1, 1), (2, 1), (0, 1), (2, 0), (2, 2)],
        [(0, 1), (1, 1), (1, 1), (2, 0), (2, 0)],
    ],
    "holes at all edges": [
        BIG,
        [(4, 0), (3, 2), (5, 2)],
        [(9, 4), (7, 3), (7, 5)],
        [(4, 9), (5, 7), (3, 7)],
        [(0, 4), (2, 5), (2, 3)],
    ],
    "spike with a corner on one side": [[(0, 0), (4, 0), (4, 2), (6, 2), (5, 2), (4, 2), (4, 4), (0, 4)]],
    "outline that touches its own edge": [[(0, 0), (8, 0), (8, 4), (4, 0), (2, 4), (0, 4)]],
    "petals at one corner": [[(0, 0), (4, -1), (4, 1), (0, 0), (1, 4), (-1, 4), (0, 0), (-4, 1), (-4, -1)]],
    "hole along an edge": [BIG, [(2, 0), (2, 4), (6, 4), (6, 0)]],
    "hole along an edge, and beyond it": [[*BIG[:1], (4, 0), *BIG[1:]], [(2, 0), (2, 4), (6, 4), (6, 0)]],
    "hole that cuts the inside in two": [BIG, [(0, 3), (9, 6), (3, 3)]],
    "holes at one point": [BIG, [(4, 4), (1, 3), (1, 5)], [(4, 4), (7, 5), (7, 3)], [(4, 4), (3, 7), (5, 7)]],
    "channel to a hole, twice as long": [[*BIG, (0, 0), (2, 2), (3, 3), (3, 6), (6, 6), (6, 3), (3, 3)]],
    "hole with corners on edges": [BIG, [(1, 1), (1, 2), (1, 4), (2, 4), (4, 4), (4, 1), (3, 1)]],
}


@pytest.mark.core
@pytest.mark.parametrize("name", TOUCHING)
@pytest.mark.parametrize("turn", range(3))
def test_rings_may_touch(name, turn):
    rings = [np.roll(ring, turn, axis=0)[:: 1 if turn else -1] for ring in TOUCHING[name]]
    ((triangles,), not_flat) = cut([rings])
    assert not_flat == [False]
    assert len(triangles) == sum(map(len, rings)) + 2 * len(rings) - 4
    assert polygon_truth.broken_rule(in_space(rings), triangles) == ""


def test_a_hole_without_area_is_joined_or_has_triangles_of_its_own():
    holes = [(3, 3), (1, 1), (4, 4)], [(3, 3), (1, 1), (4, 4), (1, 1)], [(2, 1), (0, 1), (1, 1), (0, 1)]
    for hole in holes:
        ((triangles,), not_flat) = cut([[BIG, hole]])
        assert not_flat == [False]
        assert len(triangles) in (len(hole) + 4, len(hole))
        assert polygon_truth.broken_rule(in_space([BIG, hole]), triangles) == ""


def test_a_corner_on_an_inner_edge_is_a_corner_of_both_sides(monkeypatch):
    """What mapbox_earcut might return: the edge from (0, 0) to (4, 0) is cut above, and whole below."""
    ring = [(0, 0), (2, -2), (4, 0), (4, 2), (2, 0), (0, 2)]
    wrong = np.array([[0, 1, 2], [2, 3, 4], [4, 5, 0]])
    monkeypatch.setattr(polygon_ears._Outlines, "earcut", lambda outlines, number: wrong)
    ((triangles,), not_flat) = cut([[ring]])
    assert not_flat == [False]
    assert len(triangles) == 4
    assert polygon_truth.broken_rule([np.column_stack([ring, np.zeros(6)])], triangles) == ""


def test_no_edge_is_in_two_triangles_on_one_side(monkeypatch):
    """Two triangles without area, one the other turned round, are as many edges in both directions."""
    original, more = polygon_ears._Outlines.earcut, [[0, 1, 2], [2, 1, 0]]
    monkeypatch.setattr(
        polygon_ears._Outlines, "earcut", lambda *arguments: np.concatenate([original(*arguments), more])
    )
    ((triangles,), not_flat) = cut([[[(0, 0), (1, 0), (2, 0), (1, 1), (2, 2), (0, 2)]]])
    assert not_flat == [False]
    assert len(triangles) == 4


def test_degenerate_polygons_keep_their_numbers_of_triangles():
    line = [(k, 2.0 * k, 1.0) for k in (0, 1, 2, 3, 5)]
    back = [(0, 0, 0), (2, 2, 2), (1, 1, 1), (3, 3, 3)]
    found, not_flat = cut([[line], [[(7, 7, 7)] * 4], [back]])
    assert not any(not_flat)
    assert [t.tolist() for t in found] == [fan(5), fan(4), fan(4)]


def test_holes_without_corners_are_ignored_and_empty_polygons_fail():
    found, not_flat = cut([[BIG, []], [], [BIG, [], [(1, 1), (1, 2), (2, 2)]]])
    assert not any(not_flat)
    assert found[0].tolist() == fan(4)
    assert len(found[2]) == 7
    nothing = triangulate(np.zeros((0, 3)), without_holes(np.zeros(0, np.int64), np.zeros(0, np.int64)))
    assert nothing.faces.shape == (0, 3)


def quads(rng):
    """Return quads (N, 4, 3) by kind, in any plane of the axes, with any corner first."""
    n = 60
    square = np.array([[0, 0, 0], [4, 0, 0], [4, 4, 0], [0, 4, 0.0]])
    dart = np.array([[0, 0, 0], [4, 1, 0], [0, 2, 0], [1, 1, 0.0]])
    kinds = {
        "planar convex": square + rng.uniform(-1, 1, (n, 4, 3)) * [1, 1, 0],
        "planar concave": dart + rng.uniform(-0.2, 0.2, (n, 4, 3)) * [1, 1, 0],
        "bow tie": (square + rng.uniform(-1, 1, (n, 4, 3)))[:, [0, 2, 1, 3]],
        "non-planar convex": square + rng.uniform(-1, 1, (n, 4, 3)),
        "non-planar concave": dart + rng.uniform(-0.2, 0.2, (n, 4, 3)),
        "anywhere": rng.normal(size=(n, 4, 3)),
        "on a grid": rng.integers(0, 3, (5 * n, 4, 3)).astype(float),
        "flat on a grid": rng.integers(0, 3, (5 * n, 4, 3)) * [1, 1, 0.0],
        "on a line": rng.integers(-3, 4, (n, 4, 1)) * np.array([1.0, 2, -1]),
        "repeated corners": rng.normal(size=(n, 4, 3))[:, [0, 1, 1, 2]],
        "far away": square / 1024
        + rng.integers(2**40, 2**41, (n, 1, 3))
        + rng.integers(0, 9, (n, 4, 3)) / 8192,
        "huge": rng.uniform(-1, 1, (n, 4, 3)) * 1.7e308,
        "tiny": rng.integers(-4, 5, (n, 4, 3)) * 5e-324,
    }
    for kind, corners in kinds.items():
        for quad in corners:
            yield kind, np.roll(np.roll(quad, rng.integers(4), axis=0), rng.integers(3), axis=1)


class ExpectedQuad(NamedTuple):
    """The triangles of a quad, and the plane in which it does not cross; -1 for none."""

    triangles: list[list[int]]
    view: int


def expected_quad(quad):
    """Return a fan of the first or the second corner, by the signs of its triangles in Fractions."""
    corners = polygon_truth.exact(quad)
    normal = polygon_truth.newell(corners)
    if not any(normal):
        has_area = any(any(polygon_truth.newell([corners[k] for k in t])) for t in fan(4))
        return ExpectedQuad(fan(4), -1 if has_area else 0)
    axes = [0, 0, 1, 2]
    for view, order in enumerate(axes):
        if not sorted(map(abs, normal))[::-1][order]:
            continue
        (flat,) = polygon_truth.flat_rings([quad], view)
        for triangles in (fan(4), [[1, 2, 3], [1, 3, 0]]):
            areas = [polygon_truth.cross(*(flat[k] for k in t)) for t in triangles]
            if min(areas) >= 0 or max(areas) <= 0:
                return ExpectedQuad(triangles, view)
    return ExpectedQuad(fan(4), -1)


@pytest.mark.core
@pytest.mark.parametrize("seed", range(3))
def test_quads_of_every_kind(seed):
    named = list(quads(np.random.default_rng([40, seed])))
    found, not_flat = cut([[quad] for _, quad in named])
    cases = Counter()
    for (kind, quad), triangles, wrong in zip(named, found, not_flat, strict=True):
        expected = expected_quad(quad)
        assert triangles.tolist() == expected.triangles, (kind, quad)
        assert wrong == (expected.view < 0)
        if wrong:
            cases[kind, "not flat"] += 1
        elif any(polygon_truth.newell(polygon_truth.exact(quad))):
            assert polygon_truth.broken_rule([quad], triangles, expected.view) == "", (kind, quad)
            cases[kind, "first" if triangles.tolist() == fan(4) else "second"] += 1
            cases[kind, "other plane"] += expected.view > 0
        else:
            cases[kind, "line"] += 1
    for answer in ("first", "second", "not flat", "line", "other plane"):
        assert sum(1 for kind, other in cases if other == answer and cases[kind, other] > 4) > 1, cases
    assert cases["planar convex", "first"] == cases["on a line", "line"] == 60
    assert cases["bow tie", "other plane"] + cases["bow tie", "not flat"] > 30
    for kind in ("planar concave", "non-planar concave", "anywhere", "on a grid", "huge", "tiny"):
        assert min(cases[kind, "first"], cases[kind, "second"]) > 2, cases


@pytest.mark.parametrize("holed", [False, True])
@pytest.mark.parametrize("turned", [1, -1])
def test_large_stars_are_cut_and_tangles_are_not_flat(holed, turned):
    """With corners on edges, repeated corners, and two rings that cross at one place."""
    rng = np.random.default_rng(41)
    star = polygon_truth.star(rng, 300, 0.5)
    more = polygon_truth.with_more_corners(rng, star)
    hole = [polygon_truth.star(rng, 250, 0.5, radius=0.3)] if holed else []
    crossed = star.copy()
    crossed[[100, 101]] = crossed[[101, 100]]
    twice = np.concatenate([star, star])
    tangle = rng.normal(size=(300, 2))
    rings = [one[::turned] for one in (star, more, crossed, twice, tangle)]
    found, not_flat = cut([[ring, *hole] for ring in rings])
    assert not_flat == [False, False, True, True, True]
    for ring, triangles in zip(rings[:2], found, strict=False):
        assert len(triangles) == len(ring) - 2 + 252 * holed
        areas = [polygon_truth.area(polygon_truth.exact(one)) for one in (ring, *hole)]
        corners = [tuple(map(Fraction, point)) for point in np.concatenate([ring, *hole]).tolist()]
        parts = [polygon_truth.cross(*(corners[k] for k in t)) for t in triangles.tolist()]
        sign = 1 if areas[0] > 0 else -1
        assert min(sign * part for part in parts) >= 0
        assert sum(parts) == sign * (abs(areas[0]) - sum(map(abs, areas[1:])))


def test_a_large_hole_that_crosses_itself_is_not_flat():
    """Its second loop runs the other way: there the outline and the hole are both to the left."""
    rng = np.random.default_rng(42)
    loops = [polygon_truth.star(rng, 150, 0.5, (x, 0.0), 0.3) for x in (-0.4, 0.4)]
    for one, other in ((loops[0], loops[1][::-1]), loops):
        _, not_flat = cut([[np.array(BIG) / 3 - 1.5, np.concatenate([one, other])]])
        assert not_flat == [True]


def test_corners_that_are_wrong_are_left_to_the_mesh():
    points = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0.1, 0.1, 0], [np.nan, 0, 0], [np.inf, 0, 0]])
    corners = np.array([0, 1, 2, 3, 0, 1, 2, 9, 0, 1, -1, 2, 0, 1, 2, 4, 0, 1, 5, 2])
    found = triangulate(points, without_holes(corners, np.full(5, 4)))
    assert not found.failed.any()
    assert found.faces[2:].tolist() == [
        [0, 1, 2], [0, 2, 9], [0, 1, -1], [0, -1, 2], [0, 1, 2], [0, 2, 4], [0, 1, 5], [0, 5, 2],
    ]  # fmt: skip


@pytest.mark.parametrize("scale", [2.0**-1060, 2.0**-500, 1.0, 2.0**500, 2.0**1020])
@pytest.mark.parametrize("axis", range(3))
def test_any_size_and_every_plane(scale, axis):
    flat = [*L_SHAPE[:3], (1.5, 1), *L_SHAPE[3:]], [(0.25, 0.5), (0.5, 0.25), (0.25, 0.25)]
    rings = [np.roll(np.column_stack([ring, np.zeros(len(ring))]), axis, axis=1) * scale for ring in flat]
    ((triangles,), not_flat) = cut([rings])
    assert not_flat == [False]
    assert len(triangles) == 10
    assert polygon_truth.broken_rule(rings, triangles) == ""
    spike = np.roll([(0, 0, 0), (8, 0, 0), (4, 0, 0), (4, 4, 0), (0, 4, 0)], axis, axis=1) * (scale / 16)
    ((triangles,), not_flat) = cut([[spike]])
    assert not_flat == [False]
    assert polygon_truth.broken_rule([spike], triangles) == ""


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("swept", [False, True])
def test_many_polygons_keep_the_rules(seed, swept, monkeypatch):
    """Polygons that are simple have triangles; triangles keep the rules; all branches are taken."""
    if swept:
        monkeypatch.setattr(polygon_ears, "_LARGE", 0)
    cases = Counter()
    rng = np.random.default_rng([39, seed])
    polygons = [polygon_truth.polygon(rng) for _ in range(160)]
    found, not_flat = cut(polygons)
    for rings, triangles, wrong in zip(polygons, found, not_flat, strict=True):
        simple = polygon_truth.is_simple(rings)
        cases["not flat"] += wrong
        assert not (simple and wrong), rings
        corners = sum(map(len, rings))
        assert len(triangles) == corners + 2 * len(rings) - 4
        assert polygon_truth.broken_edges(rings, triangles) == ""
        if wrong:
            continue
        rules = {polygon_truth.broken_rule(rings, triangles, view) for view in range(1 if simple else 4)}
        assert "" in rules, rings
        cases["fan" if len(rings) == 1 and triangles.tolist() == fan(corners) else "cut"] += 1
        cases["holes"] += len(rings) > 1
        cases["not simple"] += not simple
    assert min(cases[name] for name in ("not flat", "fan", "cut", "holes", "not simple")) > 1, cases


COORDINATES = st.integers(0, 5)
RINGS = st.lists(st.tuples(COORDINATES, COORDINATES, st.integers(0, 1)), min_size=3, max_size=8)


@settings(max_examples=300, deadline=None)
@given(st.lists(RINGS, min_size=1, max_size=3))
def test_any_polygon_is_cut_by_the_rules_or_is_not_flat(rings):
    ((triangles,), (not_flat,)) = cut([rings])
    normal = polygon_truth.newell(polygon_truth.exact(rings[0]))
    assert polygon_truth.broken_edges(rings, triangles) == ""
    if not any(normal):
        return
    if not_flat:
        assert not polygon_truth.is_simple(rings)
    else:
        views = [0, 1, *range(2, 1 + sum(map(bool, normal)))]
        assert "" in {polygon_truth.broken_rule(rings, triangles, view) for view in views}


def test_near_pairs_are_those_of_boxes_that_meet():
    rng = np.random.default_rng(9)
    count = 0
    for _ in range(50):
        owner = np.sort(rng.integers(0, 3, rng.integers(1, 20)))
        corners = rng.integers(0, 5, (len(owner), 2, 2)).astype(float)
        lower, upper = corners.min(axis=1), corners.max(axis=1)
        expected = [
            (i, j)
            for i, j in combinations(range(len(owner)), 2)
            if owner[i] == owner[j] and (lower[i] <= upper[j]).all() and (lower[j] <= upper[i]).all()
        ]
        blocks = _near_pairs(corners, owner, np.zeros(3, dtype=bool))
        found = [tuple(sorted(pair)) for one, other in blocks for pair in zip(one, other, strict=True)]
        assert sorted(found) == expected
        count += len(found)
    assert count > 500


def spiral(count):
    """Return a band that winds inward, of quarters of a turn."""
    k = np.arange(count // 2)
    steps = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
    walk = np.cumsum(steps[k % 4] * (2 * (k // 2) + 2)[:, None], axis=0).astype(float)
    inner = walk + 0.45 * (steps[(k + 1) % 4] - steps[k % 4])
    return np.concatenate([walk, inner[::-1]])


def zigzag(count):
    k = np.arange(count // 2)
    return np.concatenate([np.stack([k, k % 2 * 9.0], -1), np.stack([k, k % 2 * 9 + 0.4], -1)[::-1]])


def large(count):
    """Return rings by kind, of about so many corners, which cost quadratic time in other methods."""
    rng = np.random.default_rng(12)
    turn = np.arange(count) * (2 * np.pi / count)
    spikes = np.stack([np.cos(turn), np.sin(turn)], axis=-1) * np.where(np.arange(count) % 2, 1, 0.2)[:, None]
    comb, star = polygon_truth.comb(rng, count // 4), polygon_truth.star(rng, count // 2, 0.9)
    nearly = np.sort(rng.random((2, count // 2, 1)), axis=1)
    line = np.concatenate([nearly, rng.random((2, count // 2, 1)) * 1e-16 + [[[0]], [[1e-15]]]], axis=-1)
    return {
        "spikes": spikes,
        "comb": comb,
        "comb on its side": comb[:, ::-1],
        "spiral": spiral(count),
        "zigzag": zigzag(count),
        "zigzag upright": zigzag(count)[:, ::-1],
        "nearly a line": np.concatenate([line[0], line[1][::-1]]),
        "corners twice": np.repeat(comb[: len(comb) // 2 * 2], 2, axis=0),
        "channel to a hole": np.concatenate([star, star[:1], star[::-1] * 0.3, star[-1:] * 0.3]),
        "petals at one point": np.insert(star, np.arange(0, len(star) // 2 * 2, 2), 0, axis=0),
    }


TANGLED = {
    "tangle": lambda count: np.random.default_rng(13).random((count, 2)),
    "one edge over and over": lambda count: np.array([[0, 0], [1, 0], [0, 1.0]])[np.arange(count) % 3],
    "back and forth": lambda count: np.array([[0, 0], [3, 1], [1, 4.0], [3, 1]])[np.arange(count) % 4],
}


def swept(ring, monkeypatch):
    """Return the triangles of a ring, and how often the sweep compares three points."""
    calls = Counter()
    original = polygon_sweep.turn

    def counted(*points):
        calls["turn"] += 1
        return original(*points)

    with monkeypatch.context() as patch:
        patch.setattr(polygon_sweep, "turn", counted)
        ((triangles,), (not_flat,)) = cut([[ring]])
    return triangles, not_flat, calls["turn"]


@pytest.mark.long
@pytest.mark.parametrize("kind", large(300))
def test_the_work_is_linear_for_each_kind_of_large_ring(kind, monkeypatch):
    """Triangles are on one side, and their areas add up, exactly."""
    work = []
    for count in (600, 2400):
        ring = large(count)[kind]
        triangles, not_flat, turns = swept(ring, monkeypatch)
        assert not not_flat
        assert len(triangles) == len(ring) - 2
        corners = polygon_truth.exact(ring)
        areas = [polygon_truth.cross(*(corners[k] for k in t)) for t in triangles.tolist()]
        whole = polygon_truth.area(corners)
        assert min(area * whole for area in areas) >= 0
        assert sum(areas) == whole
        assert polygon_truth.broken_edges([ring], triangles) == ""
        work.append(turns)
    assert work[1] < 5 * work[0]


@pytest.mark.parametrize("kind", TANGLED)
def test_the_work_is_linear_for_rings_that_cross(kind, monkeypatch):
    work = []
    for count in (1200, 4800):
        triangles, not_flat, turns = swept(TANGLED[kind](count), monkeypatch)
        assert not_flat
        assert len(triangles) == count - 2
        work.append(turns)
    assert work[1] < 6 * work[0] + 100


def test_a_polygon_of_too_many_corners_is_refused_by_its_number(monkeypatch):
    monkeypatch.setattr(polygon_planes, "_MOST", 299)
    ring = polygon_truth.star(np.random.default_rng(1), 300, 0.5)
    circle = polygon_truth.star(np.random.default_rng(1), 300, 1.0)
    with pytest.raises(InvalidInput, match=r"polygon 2, counted from 0, has 300 corners; .* may have 299"):
        cut([[circle], [L_SHAPE], [ring]])
    assert cut([[circle], [ring[:299]]])[1] == [False, False]
