"""First cells of full grids, found without traversal, against the boxes of the cells."""

from collections import Counter

import numpy as np
import pytest

import grid_hits
import raybox as rb
from grids import KINDS, random_grid, random_rays
from loops import loop
from raybox.primitives.ray import get_ray
from raybox.traversal.grid_first import MISS, UNDECIDED, first_cell, full_grid


@loop
def write_first_cells(rows, rays, cells) -> None:
    """Write what `first_cell` returns for each ray."""
    grid = full_grid(rows)
    for k in range(cells.size):
        cells[k] = first_cell(rows, get_ray(rays, k), grid.scales) if grid.is_direct else UNDECIDED


def first_cells(grid: rb.Grid, rays: rb.Rays) -> np.ndarray:
    cells = np.empty(len(rays), np.int64)
    write_first_cells(grid._rows(), rays._rows(), cells)
    return cells


def check_first_cells(grid: rb.Grid, rays: rb.Rays) -> Counter:
    """Assert that decided rays hit these cells first, or none; count them."""
    cells, want = first_cells(grid, rays), rb.Scene(grid.boxes()).nearest(rays).index
    decided = cells != UNDECIDED
    np.testing.assert_array_equal(np.where(cells == MISS, -1, cells)[decided], want[decided])
    hit = cells >= 0
    return Counter(
        hits=int(hit.sum()),
        misses=int((cells == MISS).sum()),
        undecided=int((~decided).sum()),
        started_inside=int((hit & (rb.Scene(grid.boxes()).nearest(rays).t == rays.t_min)).sum()),
        still=int((hit & (rays.directions == 0.0).any(axis=1)).sum()),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_first_cells_are_those_of_boxes(kind):
    rng, counts = np.random.default_rng([320, KINDS.index(kind)]), Counter()
    for shape in ((7, 5, 9), (1, 12, 2), (9, 8), (1, 1, 1), (3, 1), (20, 20, 20)):
        grid = random_grid(kind, rng, shape)
        rays = random_rays(rng, grid, 1500)
        counts += check_first_cells(grid, rays)
        counts["where"] += grid_hits.check(grid, rays[:300], where=rng.random(grid.shape) < 0.7)["hits"]
        grid_hits.check(grid, rays[:300])
    assert min(counts.values()) > 100, counts


def test_rays_that_begin_within_ulps_of_planes():
    rng, counts = np.random.default_rng(321), Counter()
    for _ in range(4):
        grid = random_grid("random", rng, (6, 7, 8))
        origins = np.stack([rng.choice(one, 3000) for one in grid.edges], axis=1)
        for _ in range(int(rng.integers(1, 4))):
            origins = np.nextafter(origins, rng.choice([-2.0, 2.0], origins.shape))
        directions = rng.normal(size=origins.shape)
        t = rng.choice([0.0, 1.0, 3.0], (3000, 1))
        counts += check_first_cells(grid, rb.Rays(origins - t * directions, directions, t_min=t[:, 0]))
        ends = rb.Rays(origins - t * directions, directions, t_min=-np.inf, t_max=t[:, 0])
        counts += check_first_cells(grid, ends)
    assert counts["undecided"] > 3000
    assert min(counts["hits"], counts["misses"]) > 1000, counts


@pytest.mark.core
def test_grids_and_rays_of_extreme_sizes_are_undecided():
    rays = rb.Rays([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [2.0**-550, 1.0], [0.0, 0.0]])
    assert first_cells(rb.Grid.uniform([0, 0], 1.0, (2, 2)), rays).tolist() == [0, UNDECIDED, UNDECIDED]
    huge = rb.Grid(np.arange(3) * 2.0**600, np.arange(3.0))
    assert first_cells(huge, rays).tolist() == [UNDECIDED] * 3
    masked = rb.Grid.uniform([0, 0], 1.0, (2, 2), occupied=[[False, True], [True, True]])
    assert first_cells(masked, rays).tolist() == [UNDECIDED] * 3
