"""Every query on a grid: that on the boxes of its cells, and partitions of large grids, in integers."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import exact_grid
import integer_grid
import raybox as rb
from grid_hits import check
from grids import KINDS, random_grid, random_rays

SHAPES = [(5, 6, 7), (1, 1, 1), (9, 1, 30), (17, 16, 3), (70, 2, 2), (6, 5), (1, 40)]


@pytest.mark.parametrize("share", [None, 0.3])
@pytest.mark.parametrize("kind", KINDS)
def test_every_query_returns_what_it_does_for_the_boxes_of_the_cells(kind, share):
    rng, counts = np.random.default_rng([270, KINDS.index(kind), share is None]), Counter()
    for shape in SHAPES:
        grid = random_grid(kind, rng, shape, share)
        counts += check(grid, random_rays(rng, grid, 600))
    assert min(counts[what] for what in ("hits", "misses", "touches", "ties")) > 300, counts
    assert counts["corners"] > (20 if share is None else 0), counts


@pytest.mark.parametrize("flat", [True, False])
def test_a_mask_says_which_cells_may_be_hit(flat):
    rng = np.random.default_rng(271)
    for shape in ((6, 18, 5), (8, 9)):
        grid = random_grid("integers", rng, shape, 0.6)
        where = rng.random(shape) < 0.4
        counts = check(grid, random_rays(rng, grid, 500), where.ravel() if flat else where)
        assert min(counts["hits"], counts["misses"], counts["ties"]) > 30, counts


@pytest.mark.parametrize("share", [0.0, 0.002, 1.0])
def test_nearly_empty_and_full_grids(share):
    rng = np.random.default_rng(272)
    grid = random_grid("integers", rng, (33, 20, 18), share)
    counts = check(grid, random_rays(rng, grid, 500))
    assert (counts["hits"] > 20) == (share > 0), counts


@pytest.mark.long
@pytest.mark.parametrize("places", [-1060, -700, 0, 700, 1010])
@pytest.mark.parametrize("ways", [-1060, -600, 0, 600, 1010])
def test_very_small_and_very_large_numbers(places, ways):
    rng = np.random.default_rng(273)
    grid = random_grid("integers", rng, (6, 5, 4))
    rays = random_rays(rng, grid, 300)
    grid = rb.Grid(*(one * 2.0**places for one in grid.edges))
    origins, directions = rays.origins * 2.0**places, rays.directions * 2.0**ways
    counts = check(grid, rb.Rays(origins, directions, t_min=rays.t_min, t_max=rays.t_max))
    assert counts["hits"] > 100, counts


def test_a_ray_from_far_away_and_differences_that_overflow():
    big = 1.7976931348623157e308
    grid = rb.Grid([-big, -1.0, 1.0, big], [-1.0, 0.0, big], [-big, big])
    rng = np.random.default_rng(274)
    origins = rng.choice([-big, -1e300, -1.0, 0.0, 0.5, big], (600, 3))
    directions = rng.choice([-big, -1.0, -1e-300, 0.0, 5e-324, 1.0, big], (600, 3))
    counts = check(grid, rb.Rays(origins, directions))
    assert min(counts["hits"], counts["ties"]) > 100, counts


def test_zero_directions_are_points():
    rng = np.random.default_rng(275)
    grid = rb.Grid(*[np.arange(-2.0, 4.0)] * 3)
    points = rng.integers(-5, 7, (600, 3)) * 0.5
    counts = check(grid, rb.Rays(points, np.zeros(3), t_min=rng.choice([-np.inf, 0.0], 600)))
    assert min(counts["hits"], counts["misses"], counts["corners"]) > 20, counts


# Grids of up to 64 cells an axis against the definition in integers, which equals that in Fractions


@pytest.mark.parametrize("kind", KINDS)
def test_integers_are_as_exact_as_fractions(kind):
    rng, counts = np.random.default_rng([290, KINDS.index(kind)]), Counter()
    for shape in ((5, 6, 7), (1, 30)):
        grid = random_grid(kind, rng, shape)
        rays = random_rays(rng, grid, 120)
        cuts = exact_grid.cut_all(grid.edges, rays), integer_grid.cut_all(grid.edges, rays)
        for want, got in zip(*cuts, strict=True):
            places = [(np.ravel_multi_index(one.cell, shape), one.begin, one.end) for one in want.stretches]
            stretches = [(one.cell, *(Fraction(t, got.scale) for t in one[1:])) for one in got.stretches]
            assert stretches == places
            assert got[3:] == want[1:]
            assert got.inside == sum(one.end - one.begin for one in got.stretches)
            counts += Counter(cells=len(places), corners=got.corners, ends=got.ends, planes=got.in_planes)
    assert min(counts[name] for name in ("cells", "corners", "ends", "planes")) > 5, counts


@pytest.mark.parametrize("kind", KINDS)
def test_cells_order_and_sums_in_large_grids(kind):
    rng, counts = np.random.default_rng([291, KINDS.index(kind)]), Counter()
    for shape in ((64, 64, 64), (64, 1, 50), (60, 64)):
        grid = random_grid(kind, rng, shape)
        scene, rays = rb.Scene(grid), random_rays(rng, grid, 150)
        segments, lengths = scene.segments(rays), scene.integrate(rays)
        cuts = integer_grid.cut_all(grid.edges, rays)
        assert segments.index.tolist() == [one.cell for cut in cuts for one in cut.stretches]
        assert np.diff(segments.offsets).tolist() == [len(cut.stretches) for cut in cuts]
        assert segments.t.tolist() == [one.begin / cut.scale for cut in cuts for one in cut.stretches]
        for length, cut, way in zip(lengths.tolist(), cuts, rays.directions.tolist(), strict=True):
            assert not integer_grid.is_off(length, cut, cut.stretches, way)
        hits = np.bincount(segments.index, minlength=len(grid))
        np.testing.assert_array_equal(scene.deposit(rays, per="hit"), hits)
        counts["cells"] += len(segments.index)
        counts["misses"] += sum(not cut.stretches for cut in cuts)
        counts["corners"] += sum(cut.corners for cut in cuts)
        counts["in planes"] += sum(cut.in_planes for cut in cuts if cut.stretches)
    assert min(counts[name] for name in ("cells", "misses", "corners", "in planes")) > 50, counts
