"""Fields of hits whose times are beyond float64: finite wherever exact arithmetic is."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import raybox as rb
from exact import INF, rounded
from out_of_range import LARGEST, contacts, edges_of, exact_length, exact_point, rays_at
from path_truth import root
from raybox.primitives.exact_table import _triangle_normal
from raybox.primitives.pairs import normals_of

TINY = Fraction(1, 1 << 1000)
SMALLEST = 5e-324
SLOW = rb.Rays([0, 0.5], [1e-310, 0])  # reaches x = 2 at t = 2e310


def of_boxes():
    return rb.Boxes([2, 0], [3, 1])


def of_instances():
    return rb.Instances(rb.Boxes([0, 0], [1, 1]), [[[1, 0, 2], [0, 1, 0]]])


def of_grid():
    return rb.Grid([2, 3], [0, 1])


@pytest.mark.parametrize("make", [of_boxes, of_instances, of_grid])
@pytest.mark.parametrize("copies", [1, 40])
def test_a_ray_whose_times_overflow(make, copies):
    scene, rays = rb.Scene(make()), SLOW[None][np.zeros(copies, int)]
    hits, nearest = scene.all(rays), scene.nearest(rays)
    assert (hits.t == INF).all()
    assert hits.lengths.tolist() == [1.0] * copies
    assert hits[0].lengths.tolist() == [1.0]
    assert nearest.points.tolist() == [[2.0, 0.5]] * copies
    assert nearest.normals.tolist() == [[-1.0, 0.0]] * copies
    assert nearest.to_dict()["x"].tolist() == [2.0] * copies
    assert hits.to_dict()["length"].tolist() == [1.0] * copies
    assert scene.first(rays, 2).points[:, 0].tolist() == [[2.0, 0.5]] * copies


@pytest.mark.parametrize("copies", [1, 40])
def test_several_geometries(copies):
    rays = SLOW[None][np.zeros(copies, int)]
    scene = rb.Scene([of_boxes(), of_instances(), rb.Boxes([7, 7], [8, 8])])
    assert scene.all(rays).lengths.tolist() == [1.0, 1.0] * copies
    assert scene.nearest(rays).points.tolist() == [[2.0, 0.5]] * copies
    apart = rb.Scene(rb.Boxes([[2, 0], [20, 0], [-5, 0]], [[3, 1], [25, 1], [-4, 1]]))
    assert apart.all(rays).lengths.tolist() == [1.0, 5.0] * copies
    assert apart.nearest(rays)[::-1].points.tolist() == [[2.0, 0.5]] * copies


def test_surfaces_have_lengths_of_zero_and_points():
    mesh = rb.Mesh([[2, 0, 0], [2, 4, 0], [2, 0, 4]], [[0, 1, 2]])
    rays = rb.Rays([0, 1, 1], [1e-310, 0, 0])
    for surface in (mesh, rb.Instances(mesh, np.eye(4)), rb.Planes([1, 0, 0], 2.0)):
        scene = rb.Scene(surface)
        assert scene.all(rays).lengths.tolist() == [0.0]
        assert scene.nearest(rays).points.tolist() == [2.0, 1.0, 1.0]


def test_half_spaces_stay_endless():
    boxes = rb.Boxes([[2, 0], [-INF, 0]], [[INF, 1], [INF, 1]])
    assert rb.Scene(boxes).all(SLOW).lengths.tolist() == [INF, INF]
    backward = rb.Rays([0, 0.5], [1e-310, 0], t_min=-INF, t_max=0.0)
    assert rb.Scene(boxes).all(backward).lengths.tolist() == [INF]
    ended = rb.Rays([0, 0.5], [1e-310, 0], t_max=1e308)
    assert rb.Scene(boxes).all(ended).lengths == pytest.approx([0.01], rel=1e-9)


def test_points_of_given_times_overflow_only_as_a_whole():
    rays = rb.Rays([[-1.5e308, 0], [1.0, 2.0]], [[1e308, 1], [1e308, 1]])
    assert rays.at(2.0).tolist() == [[5e307, 2.0], [INF, 4.0]]
    assert np.isnan(rays.at(INF)).all()
    assert rays[0].at([2.0, -1.0]).tolist() == [[5e307, 2.0], [-INF, -1.0]]
    odd = rb.Rays([[INF, 0], [1, 0]], [[1, 0], [1, 0]], invalid="miss")
    assert odd.at(1.0)[1].tolist() == [2.0, 0.0]


def test_lengths_and_points_at_all_scales():
    counts = Counter()
    for seed in range(8):
        rng = np.random.default_rng(seed)
        grid = rb.Grid(*edges_of(rng, 2 + seed % 2, 4))
        boxes = grid.boxes()
        rays = rays_at(rng, (boxes.lower, boxes.upper), 25)
        truth = contacts(rays, boxes)
        for geometry in (boxes, grid):
            scene = rb.Scene(geometry)
            hits, points = scene.all(rays), scene.nearest(rays).points
            assert np.diff(hits.offsets).tolist() == [len(row) for _, row in truth]
            assert_lengths(hits.lengths, truth, counts)
            assert_points(points, truth, counts)
            assert_points(hits.points, [(part, [hit]) for part, row in truth for hit in row], counts)
    assert min(counts[name] for name in ("hit", "miss", "touch", "far", "point")) > 20, counts
    assert counts["near zero"] > 5, counts


def assert_lengths(lengths, truth, counts):
    """Assert lengths: finite where they are, and off by no more than rounded times make them."""
    found = iter(lengths.tolist())
    for (_, d, span), row in truth:
        counts["hit" if row else "miss"] += 1
        for hit in row:
            got, want = next(found), exact_length(hit, d, span)
            counts["touch"] += want == 0
            counts["far"] += rounded(hit.t_exit) == INF
            counts["near zero"] += hit.t_exit != 0 and abs(rounded(hit.t_exit)) < 2.0**-1022
            if want == INF or want > LARGEST:
                assert got >= float(LARGEST)
                continue
            ends = abs(Fraction(max(hit.t_enter, span[0]))) + abs(Fraction(min(hit.t_exit, span[1])))
            reach = ends * root(sum(Fraction(x) ** 2 for x in d)) if any(d) else Fraction(0)
            assert math.isfinite(got)
            assert abs(Fraction(got) - want) <= reach / 2**51 + TINY


def assert_points(points, truth, counts):
    """Assert points of first contact: finite where they are, within two roundings."""
    for got, ((o, d, _), row) in zip(points.tolist(), truth, strict=True):
        if not row or row[0].t == -INF:
            continue
        for x, want, p, q in zip(got, exact_point(row[0], o, d), o, d, strict=True):
            counts["point"] += 1
            if abs(want) <= LARGEST:
                moved = abs(row[0].t * Fraction(q)) if q else 0
                assert abs(Fraction(x) - want) <= (abs(Fraction(p)) + moved) / 2**51 + Fraction(1, 2**560)


@pytest.mark.parametrize("copies", [1, 30])
def test_normals_of_triangles_of_denormal_edges(copies):
    corners = np.array([[0, 0, 0], [3, 0, 0], [0, 3, 1]]) * SMALLEST
    scene = rb.Scene(rb.Mesh(corners, [[0, 1, 2]]))
    rays = rb.Rays(np.tile(np.array([1, 1, -1]) * SMALLEST, (copies, 1)), [0, 0, 1])
    normals = scene.nearest(rays).normals
    np.testing.assert_allclose(normals, np.tile([0, -1, 3], (copies, 1)) / math.sqrt(10), rtol=4e-16)


def normal_of(a, b, c):
    """Return the unit normal in Fractions."""
    p, q = ([Fraction(y) - Fraction(x) for x, y in zip(a, end, strict=True)] for end in (b, c))
    n = [p[k - 2] * q[k - 1] - p[k - 1] * q[k - 2] for k in range(3)]
    size = root(sum(x * x for x in n))
    return [x / size for x in n]


def test_normals_of_triangles_at_all_scales():
    """Corners of one size, of uneven ones, and far from each other, against Fractions."""
    rng, kinds = np.random.default_rng(5), Counter()
    corners = []
    while len(corners) < 60:
        one = np.clip(
            rng.integers(-4, 5, (3, 3)) * 2.0 ** rng.choice([-1074, -1040, -500, 0, 500, 1021], (3, 1)),
            -1e308,
            1e308,
        )
        if len(corners) % 2:
            one = one * np.where(rng.random((3, 3)) < 0.3, 2.0**-400, 1.0)
        (a, b, c) = one.tolist()
        try:
            normal_of(a, b, c)
        except ZeroDivisionError:
            kinds["flat"] += 1
            continue
        corners.append(one)
    corners = np.array(corners)
    mesh = rb.Mesh(corners.reshape(-1, 3), np.arange(180).reshape(-1, 3))
    rays, found = rb.Rays([0, 0, 0], [0, 0, 1])._rows(), np.empty((60, 3))
    normals_of(rays, mesh._rows(), np.zeros(60, np.int64), np.arange(60), found)
    for k, (a, b, c) in enumerate(corners.tolist()):
        want = normal_of(a, b, c)
        kinds["uneven" if min(abs(x) for x in want if x) < 1e-200 else "even"] += 1
        assert max(abs(Fraction(x) - y) for x, y in zip(found[k].tolist(), want, strict=True)) < Fraction(
            1, 10**9
        )
        np.testing.assert_array_equal(_triangle_normal(mesh._rows(), k), found[k])
    assert min(kinds["uneven"], kinds["even"]) > 3, kinds
