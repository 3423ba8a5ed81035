"""Grids of up to 64 cells an axis against the definition in integers, which equals that in Fractions."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import exact_grid
import integer_grid
import raybox as rb
from grids import KINDS, random_grid, random_rays


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
