"""Rays that take turns in a grid: the first hits, and the counts, of rays of every kind and number."""

from collections import Counter

import numpy as np
import pytest

import raybox as rb
from compare import assert_same
from grids import random_rays
from raybox.compiler.entry_points import entry
from raybox.primitives.ray import get_ray
from raybox.traversal.grid_rays import KIND, NEAR, TAME, TURNS, WILD, make_grid_scratch, put_ray

pytestmark = pytest.mark.jit

SHAPE = (70, 18, 21)


@entry
def write_kinds(rows, rays, scratch, kinds) -> None:
    """Write the kind of each ray."""
    for k in range(kinds.size):
        put_ray(scratch, 0, rows, 4, get_ray(rays, k))
        kinds[k] = scratch.marks[0, KIND]


def kinds_of(grid: rb.Grid, rays: rb.Rays) -> Counter:
    kinds = np.empty(len(rays), np.int64)
    write_kinds(grid._rows(), rays._rows(), make_grid_scratch(), kinds)
    return Counter(kinds.tolist())


def clumps(rng, shift=0.0, pitch=1.0) -> rb.Grid:
    """Return a grid of four levels, in which a few small blocks are occupied."""
    occupied = np.zeros(SHAPE, bool)
    for corner in rng.integers(0, np.array(SHAPE) - 3, (25, 3)):
        occupied[tuple(slice(k, k + int(n)) for k, n in zip(corner, rng.integers(1, 4, 3), strict=True))] = (
            True
        )
    return rb.Grid.uniform(np.full(3, shift), pitch, SHAPE, occupied=occupied)


def crossing(rng, grid: rb.Grid, number: int):
    """Return origins and directions of rays that begin inside, half of them towards an occupied cell."""
    origins, directions = rng.uniform(*grid.bounds, (number, 3)), rng.normal(size=(number, 3))
    cells = grid.boxes(rng.choice(np.flatnonzero(grid.occupied), number))
    aimed = rng.random(number) < 0.5
    directions *= (grid.bounds[1] - grid.bounds[0]).max()
    directions[aimed] = ((cells.lower + cells.upper) * 0.5 - origins)[aimed]
    return origins, directions


def check(grid: rb.Grid, rays: rb.Rays) -> Counter:
    """Assert that hits are those of the boxes of the cells; count them."""
    scene, allowed = rb.Scene(grid), grid.occupied.ravel()
    boxes = rb.Scene(grid.boxes(allowed))
    hits, want = scene.nearest(rays), boxes.nearest(rays)
    assert_same(hits, want, ("t", "hit"))
    numbers = np.append(np.flatnonzero(allowed), -1)
    np.testing.assert_array_equal(hits.index, numbers[want.index])
    np.testing.assert_array_equal(scene.occluded(rays), want.hit)
    count = boxes.count(rays)
    np.testing.assert_array_equal(scene.count(rays), count)
    return Counter(hits=int(want.hit.sum()), misses=int((~want.hit).sum()), several=int((count > 1).sum()))


@pytest.mark.parametrize("kind", ["inside", "touching", "far", "lines", "extreme"])
def test_rays_of_every_kind(kind):
    rng, counts, kinds = np.random.default_rng([310, len(kind)]), Counter(), Counter()
    for shift in (0.0, -40.0, 5e6):
        grid = clumps(rng, shift)
        origins, directions = crossing(rng, grid, 400)
        ranges = {"t_min": -np.inf} if kind == "lines" else {}
        if kind == "far":
            origins = origins - 2.0**20 * directions
        if kind == "extreme":
            directions *= 2.0 ** rng.choice([-300, -70, 70, 550], (400, 1))
        rays = random_rays(rng, grid, 400) if kind == "touching" else rb.Rays(origins, directions, **ranges)
        counts += check(grid, rays)
        kinds += kinds_of(grid, rays)
    assert min(counts.values()) > 60, counts
    wanted = {"inside": [NEAR], "touching": [NEAR, TAME], "extreme": [TAME, WILD]}.get(kind, [TAME])
    assert set(kinds) == set(wanted), kinds


def test_grids_too_small_for_float32():
    rng = np.random.default_rng(311)
    grid = clumps(rng, pitch=2.0**-130)
    rays = rb.Rays(*crossing(rng, grid, 300))
    assert min(check(grid, rays).values()) > 20
    assert set(kinds_of(grid, rays)) == {TAME}


@pytest.mark.parametrize("number", range(2 * TURNS + 2))
def test_any_number_of_rays_some_of_them_invalid(number):
    rng = np.random.default_rng([312, number])
    grid, counts = clumps(rng), Counter()
    for _ in range(20):
        origins, directions = crossing(rng, grid, number)
        origins[rng.random(number) < 0.3, 1] = np.nan
        rays = rb.Rays(origins, directions, invalid="miss")
        counts += check(grid, rays)
    assert not number or min(counts["hits"], counts["misses"]) > 0, counts


def test_a_direction_of_zero_beside_the_grid_enters_no_node():
    grid = clumps(np.random.default_rng(313))
    points = np.array([[-1.0, -1.0, -1.0], [-1.0, 5.0, 5.0], [5.0, 5.0, 100.0], [80.0, 80.0, 80.0]])
    assert check(grid, rb.Rays(points, np.zeros(3)))["misses"] == 4
