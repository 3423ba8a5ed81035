"""First occupied cells, found slab by slab, against the boxes of the cells."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import grid_hits
import raybox as rb
from core_marks import with_core
from grids import even_grid, random_rays
from loops import loop
from raybox.compiler.entry_points import entry
from raybox.primitives.ray import get_ray
from raybox.traversal.grid_clip import scale_of
from raybox.traversal.grid_first import MISS, UNDECIDED
from raybox.traversal.grid_scan import first_occupied, scanned_grid
from strategies import even_grids_and_rays

pytestmark = pytest.mark.jit


@loop
def write_first_cells(rows, rays, cells) -> None:
    """Write what `first_occupied` returns for each ray."""
    scales = scale_of(rows.x_edges), scale_of(rows.y_edges), scale_of(rows.z_edges)
    for k in range(cells.size):
        cells[k] = first_occupied(rows, get_ray(rays, k), scales)


@entry
def is_scanned(job: Any) -> int:
    """Return 1 if the cells of a job's grid are scanned."""
    return 1 if scanned_grid(job).is_scanned else 0


def job_of(grid: rb.Grid, where=None):
    """Return the job of a query on a grid."""
    return rb.Scene(grid)._view(where, None).jobs[0].value


def check_first_cells(grid: rb.Grid, rays: rb.Rays) -> Counter:
    """Assert that decided rays hit these cells first, or none; count them."""
    cells, boxes = np.empty(len(rays), np.int64), rb.Scene(grid.boxes())
    want = boxes.nearest(rays, where=grid.occupied.flatten())
    assert grid._rows().words.size == 32 * grid._rows().blocks.size > 0
    write_first_cells(grid._rows(), rays._rows(), cells)
    decided = cells != UNDECIDED
    np.testing.assert_array_equal(np.where(cells == MISS, -1, cells)[decided], want.index[decided])
    hit = cells >= 0
    return Counter(
        hits=int(hit.sum()),
        misses=int((cells == MISS).sum()),
        undecided=int((~decided).sum()),
        started_inside=int((hit & (want.t == rays.t_min)).sum()),
        still=int((hit & (rays.directions == 0.0).any(axis=1)).sum()),
    )


@pytest.mark.parametrize("share", with_core([0.02, 0.3, 0.9], 0.3))
def test_first_cells_are_those_of_boxes(share):
    rng, counts = np.random.default_rng([330, int(100 * share)]), Counter()
    for shape in ((19, 3, 30), (13, 14, 15), (60, 40), (2, 2, 700), (23, 24, 25)):
        grid = even_grid(rng, shape, share)
        counts += check_first_cells(grid, random_rays(rng, grid, 1500))
    assert min(counts.values()) > 20, counts


def test_rays_that_begin_and_end_within_ulps_of_planes():
    rng, counts = np.random.default_rng(331), Counter()
    for _ in range(4):
        grid = even_grid(rng, (16, 17, 18), 0.2)
        origins = np.stack([rng.choice(one, 3000) for one in grid.edges], axis=1)
        for _ in range(int(rng.integers(1, 4))):
            origins = np.nextafter(origins, rng.choice([-1e9, 1e9], origins.shape))
        directions = rng.normal(size=origins.shape)
        t = rng.choice([0.0, 1.0, 3.0], (3000, 1))
        for low, high in ((t, np.inf), (-np.inf, t), (t, t + 0.5)):
            ends = np.broadcast_to(low, t.shape)[:, 0], np.broadcast_to(high, t.shape)[:, 0]
            rays = rb.Rays(origins - t * directions, directions, t_min=ends[0], t_max=ends[1])
            counts += check_first_cells(grid, rays)
    assert min(counts["hits"], counts["misses"], counts["undecided"]) > 1000, counts


def test_planes_that_are_crossed_sooner_than_guessed():
    """Planes of two axes just before one of the third, moved a little: they might be guessed a slab later."""
    rng, counts = np.random.default_rng(335), Counter()
    for _ in range(30):
        edges = [pitch * (np.arange(25) + rng.uniform(-0.01, 0.01, 25)) for pitch in (0.1, 0.25, 0.25)]
        grid = rb.Grid(*edges, occupied=rng.random((24, 24, 24)) < 0.05)
        number = rng.integers(3, 22, (600, 3))
        at = np.stack([one[n] for one, n in zip(edges, number.T, strict=True)], axis=1)
        directions = np.array([1.0, 1.0, 1.5]) * rng.choice([-1.0, 1.0], (600, 3))
        sooner = rng.uniform(-0.002, 0.002, (600, 3))
        counts += check_first_cells(grid, rb.Rays(at - (0.3 + sooner) * directions, directions))
    assert min(counts["hits"], counts["misses"], counts["undecided"]) > 100, counts


def test_rays_through_edges_and_beside_them():
    """Occupied cells that touch a ray at an edge or a corner alone are hit, as boxes are."""
    rng, counts = np.random.default_rng(332), Counter()
    grid = rb.Grid(*[np.arange(25.0)] * 3, occupied=rng.random((24, 24, 24)) < 0.05)
    through = rng.integers(0, 25, (6000, 3)) + np.where(rng.random((6000, 3)) < 0.2, 0.5, 0.0)
    directions = rng.integers(-3, 4, (6000, 3)).astype(float)
    directions[(directions == 0.0).all(axis=1)] = 1.0
    off = rng.choice([0.0, 0.0, 1.0, 3.0, 2.0**8, 2.0**44], (6000, 1)) * rng.normal(size=(6000, 3)) * 2.0**-48
    rays = rb.Rays(through - 7.3 * directions + off, directions)
    counts += check_first_cells(grid, rays)
    assert min(counts["hits"], counts["misses"], counts["undecided"], counts["still"]) > 100, counts
    found = grid_hits.check(grid, rays[:2000])
    assert min(found["hits"], found["ties"], found["misses"]) > 40, found


def test_rays_of_any_size():
    """Directions so large or so small that their inverses or times overflow or underflow."""
    rng, counts = np.random.default_rng(336), Counter()
    grid = even_grid(rng, (16, 17, 18), 0.2)
    rays = random_rays(rng, grid, 4000)
    powers = rng.choice([-1060.0, -1022.0, -700.0, 700.0, 1020.0], rays.directions.shape)
    powers[rng.random(powers.shape) < 0.6] = 0.0
    with np.errstate(under="ignore"):
        directions = rays.directions / np.abs(rays.directions).max() * 2.0**powers
    directions[(directions == 0.0).all(axis=1)] = 1.0
    counts += check_first_cells(grid, rb.Rays(rays.origins, directions))
    counts += check_first_cells(
        grid, rb.Rays(rays.origins * 2.0 ** rng.choice([0.0, 900.0], (4000, 1)), directions)
    )
    assert min(counts["hits"], counts["misses"], counts["undecided"]) > 100, counts


@given(even_grids_and_rays())
@settings(max_examples=300, deadline=None)
def test_any_even_grid(drawn):
    edges, rays = drawn
    occupied = np.random.default_rng(333).random([len(one) - 1 for one in edges]) < 0.3
    grid = rb.Grid(*edges, occupied=occupied)
    if grid._rows().words.size == 32 * grid._rows().blocks.size > 0:
        check_first_cells(grid, rays)


def test_which_grids_are_scanned():
    rng = np.random.default_rng(334)
    cells = rng.random((64, 64, 64)) < 0.01
    assert is_scanned(job_of(rb.Grid.uniform([-1, 2, 3], 0.1, cells.shape, occupied=cells)))
    assert not is_scanned(job_of(rb.Grid.uniform([-1, 2, 3], 2.0**600, cells.shape, occupied=cells)))
    assert not is_scanned(job_of(rb.Grid.uniform([-1, 2, 3], 0.1, cells.shape)))
    uneven = np.concatenate([[-0.5], np.arange(1.0, 65.0)])
    assert not is_scanned(job_of(rb.Grid(uneven, np.arange(65.0), np.arange(65.0), occupied=cells)))
    sparse, half, solid = cells.copy(), cells.copy(), np.zeros_like(cells)
    sparse[rng.random(sparse.shape) < 0.9] = False
    half[:50] = False
    solid[:32] = True
    for occupied in (sparse, half, solid):
        assert not is_scanned(job_of(rb.Grid.uniform([0, 0, 0], 1.0, cells.shape, occupied=occupied)))
    where = np.ones(cells.shape, np.bool_)
    assert not is_scanned(job_of(rb.Grid.uniform([0, 0, 0], 1.0, cells.shape, occupied=cells), where))
