"""Sums along rays whose numbers a power of two cannot scale, or whose times no float64 holds."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import exact_grid
import path_truth
import raybox as rb
from exact import INF, rounded
from out_of_range import edges_of, rays_at
from path_truth import assert_sums, deposits, integrals, paths
from raybox.exact import paths as exact_paths
from raybox.exact.definition import Ray1

GRID = rb.Grid([0, 1, 2], [0, 1, 2])


def test_a_range_that_scaling_would_lose():
    """It ends 1e-330 from the origin, in the middle of cell 0."""
    scene, rays = rb.Scene(GRID), rb.Rays([0.5, 0.5], [1e-200, 0], t_max=1e-130)
    assert scene.deposit(rays, per="hit").tolist() == [1.0, 0.0, 0.0, 0.0]
    segments = scene.segments(rays)
    assert segments.index.tolist() == [0]
    assert segments.lengths.tolist() == scene.deposit(rays).tolist()[:1] == [0.0]


def test_a_direction_whose_parts_have_no_common_scale():
    scene, rays = rb.Scene(GRID), rb.Rays([0.5, -1], [1e-20, 1e300])
    assert scene.integrate(rays) == 2.0
    assert scene.integrate(rays, [1.0, 10.0, 0.0, 0.0]) == 11.0
    assert scene.deposit(rays).tolist() == [1.0, 1.0, 0.0, 0.0]
    np.testing.assert_allclose(scene.segments(rays).lengths, 1.0, rtol=2.0**-51)  # of rounded times
    assert scene.integrate(rays, where=[[True, False], [True, True]]) == 1.0
    weights = np.array([1.0, 2.0, 4.0])
    three = rb.Rays([[0.5, -1], [1.5, -1], [1.5, 3]], [[1e-20, 1e300], [0, 1], [-1e-20, -1e300]], t_max=1e10)
    assert scene.deposit(three, weights).tolist() == [1.0, 1.0, 6.0, 6.0]
    assert scene.deposit(three, weights, reproducible=True).tolist() == [1.0, 1.0, 6.0, 6.0]
    assert scene.integrate(three, np.ones((4, 2))).tolist() == [[2.0, 2.0]] * 3


@pytest.mark.parametrize("copies", [1, 40])
def test_times_that_overflow(copies):
    rays = rb.Rays(np.tile([0, 0.5], (copies, 1)), [1e-310, 0])
    instances = rb.Scene(rb.Instances(rb.Boxes([0, 0], [1, 1]), [[[1, 0, 2], [0, 1, 0]]]))
    assert instances.integrate(rays).tolist() == [1.0] * copies
    assert instances.deposit(rays).tolist() == [copies]
    for geometry in (rb.Boxes([2, 0], [3, 1]), rb.Grid([2, 3], [0, 1])):
        scene = rb.Scene(geometry)
        np.testing.assert_allclose(scene.integrate(rays), 1.0, rtol=2.0**-50)
        np.testing.assert_allclose(scene.deposit(rays), copies, rtol=2.0**-50)


def test_a_cell_farther_than_the_largest_float():
    """Its distance overflows, and its length does not."""
    rays = rb.Rays([-1.7e308, 0.5], [1.0, 0.0])
    want = 1.75e308 - 1.6e308
    for geometry in (rb.Boxes([1.6e308, 0], [1.75e308, 1]), rb.Grid([-1.6e308, 1.6e308, 1.75e308], [0, 1])):
        scene = rb.Scene(geometry)
        values = np.arange(len(geometry)) + 1.0 - (len(geometry) > 1)
        assert scene.integrate(rays, values) == pytest.approx(want, rel=1e-14)
        assert scene.deposit(rays)[-1] == pytest.approx(want, rel=1e-14)
        assert scene.all(rays).lengths[-1] == pytest.approx(want, rel=1e-14)


def cell_paths(grid, rays):
    """Return the stretches of each ray as paths."""
    found = []
    for d, cut in zip(rays.directions.tolist(), exact_grid.cut_all(grid.edges, rays), strict=True):
        speed = path_truth.root(sum(Fraction(x) ** 2 for x in d)) if any(d) else Fraction(0)
        row = []
        for one in cut.stretches:
            cell = int(np.ravel_multi_index(one.cell, grid.shape))
            length, reach = (one.end - one.begin) * speed, (abs(one.begin) + abs(one.end)) * speed
            row.append(path_truth.Path(0, cell, length, reach, False, False, one.begin))
        found.append(row)
    return found


def test_boxes_and_grids_at_all_scales():
    counts = Counter()
    for seed in range(20, 28):
        rng = np.random.default_rng(seed)
        grid = rb.Grid(*edges_of(rng, 2 + seed % 2, 4))
        boxes = grid.boxes()
        rays, values = rays_at(rng, (boxes.lower, boxes.upper), 25), rng.choice([1.0, 0.5, 3.0], len(grid))
        for geometry, rows in ((boxes, paths(rays, boxes)), (grid, cell_paths(grid, rays))):
            scene = rb.Scene(geometry)
            counts["paths"] += sum(map(len, rows))
            counts["misses"] += sum(not row for row in rows)
            assert_sums(scene.integrate(rays), integrals(rows, [None]), counts)
            assert_sums(scene.integrate(rays, values), integrals(rows, [values]), counts)
            (want,) = deposits(rows, np.ones(25), [len(grid)])
            assert_sums(scene.deposit(rays), want, counts)
            (want,) = deposits(rows, np.ones(25), [len(grid)], per_hit=True)
            assert_sums(scene.deposit(rays, per="hit"), want, counts)
    assert min(counts[case] for case in ("paths", "misses", "near", "exact")) > 100, counts


def test_instances_at_all_scales():
    counts = Counter()
    boxes = rb.Boxes([[-1, -1, -1], [0, 0, 0]], [[0, 0, 0], [1, 1, 2]])
    for seed in range(6):
        rng = np.random.default_rng(seed)
        scale = 2.0 ** rng.choice([-1000, -180, 0, 50, 900])
        linear = rng.integers(-2, 3, (3, 3)) + 5 * np.eye(3)
        shift = rng.integers(-4, 5, (3, 1))
        copies = rb.Instances(boxes, np.concatenate([linear, shift], axis=1) * scale)
        goals = copies.transforms[0, :, 3] + rng.uniform(-2, 2, (12, 3)) * scale
        origins = copies.transforms[0, :, 3] + rng.integers(-20, 21, (12, 3)) * scale
        ways = (goals - origins) / scale * 2.0 ** rng.choice([-1040, -300, 0, 300, 1000], (12, 1))
        rays = rb.Rays(origins, np.where(rng.random((12, 3)) < 0.1, ways * 2.0**-40, ways))
        rows = paths(rays, copies)
        counts["paths"] += sum(map(len, rows))
        assert_sums(rb.Scene(copies).integrate(rays), integrals(rows, [None]), counts)
        assert_sums(rb.Scene(copies).deposit(rays), deposits(rows, np.ones(12), [1])[0], counts)
    assert min(counts[case] for case in ("paths", "near")) > 20, counts


def test_bounds_of_fixed_point_at_the_ends_of_float64():
    """Norms of denormal directions are rounded by a third; ranges and directions overflow alone."""
    tiny = 3 * 5e-324
    endless = rb.Scene(rb.Boxes([-INF, -INF], [INF, INF]))
    for ways, low, high in (
        ([tiny, tiny], 0.0, 2.0**1023),
        ([5e-324, 5e-324], 0.0, 1.7e308),
        ([2.0**-1000, 0], -1.7e308, 1.7e308),
        ([1.5e308, 1.5e308], 0.0, 2.0**-1000),
    ):
        rays = rb.Rays([0, 0], ways, t_min=low, t_max=high)
        length = exact_paths.length(Ray1((0.0, 0.0), tuple(map(float, ways)), low, high), (-1, 0), (1, 0))
        assert 0.0 < length < INF
        assert endless.deposit(rays, reproducible=True) == pytest.approx([length], rel=1e-12)


def test_exact_lengths_are_rounded_once():
    rng = np.random.default_rng(3)
    for _ in range(300):
        d = rng.normal(size=3) * 2.0 ** rng.integers(-1000, 1000, 3)
        enter, leave = sorted(
            Fraction(x) * Fraction(10) ** int(rng.integers(-400, 400)) for x in rng.normal(size=2)
        )
        want = (leave - enter) * path_truth.root(sum(Fraction(x) ** 2 for x in d))
        ray = Ray1((0.0, 0.0, 0.0), tuple(d.tolist()), -INF, INF)
        got = exact_paths.length(ray, enter.as_integer_ratio(), leave.as_integer_ratio())
        assert got == rounded(want)
