"""First cells of grids, found with and without traversal, against the boxes of the cells."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import grid_hits
import raybox as rb
from core_marks import with_core
from grid_hits import check
from grids import KINDS, even_grid, random_grid, random_rays
from loops import loop
from raybox.compiler.entry_points import entry
from raybox.compiler.mask_flips import flip_of, flipped, swapped
from raybox.primitives.ray import get_ray
from raybox.queries.hit_query import HitOfRay
from raybox.queries.nearest.stream import Nearest
from raybox.scene import geometry_parts
from raybox.traversal.grid_clip import scale_of
from raybox.traversal.grid_first import MISS, UNDECIDED, first_cell, full_grid
from raybox.traversal.grid_rays import KIND, NEAR, TAME, TURNS, WILD, make_grid_scratch, put_ray
from raybox.traversal.grid_scan import scan_cells, scanned_grid
from raybox.traversal.single import RaySpan, make_scratch, traverse_rays
from raybox.traversal.tree import visits
from raybox.validation import NO_MASK
from strategies import even_grids_and_rays

pytestmark = pytest.mark.jit


@loop
def write_first_cells(rows, rays, cells) -> None:
    """Write what is found of each ray in a grid all of whose cells are occupied."""
    grid = full_grid(rows)
    for k in range(cells.size):
        cells[k] = first_cell(rows, get_ray(rays, k), grid.scales) if grid.is_direct else UNDECIDED


@loop
def write_first_occupied(rows, rays, cells) -> None:
    """Write what is found of each ray, slab by slab."""
    scales = scale_of(rows.x_edges), scale_of(rows.y_edges), scale_of(rows.z_edges)
    for k in range(cells.size):
        cells[k] = scan_cells(rows, get_ray(rays, k), scales, False)


@loop
def write_counts(rows, rays, counts) -> None:
    """Write how many cells each ray hits, slab by slab."""
    scales = scale_of(rows.x_edges), scale_of(rows.y_edges), scale_of(rows.z_edges)
    for k in range(counts.size):
        counts[k] = scan_cells(rows, get_ray(rays, k), scales, True)


def first_cells(write, grid: rb.Grid, rays: rb.Rays) -> np.ndarray:
    cells = np.empty(len(rays), np.int64)
    write(grid._rows(), rays._rows(), cells)
    return cells


def has_blocks(grid: rb.Grid) -> bool:
    """Return whether a grid stores the blocks of which slabs are scanned."""
    return grid._rows().words.size == 32 * grid._rows().blocks.size > 0


def check_first_cells(grid: rb.Grid, rays: rb.Rays) -> Counter:
    """Assert that decided rays hit these cells first, and so many, or none; count them."""
    is_full = grid.occupied.all()
    assert is_full or has_blocks(grid)
    cells = first_cells(write_first_cells if is_full else write_first_occupied, grid, rays)
    boxes, occupied = rb.Scene(grid.boxes()), grid.occupied.flatten()
    want, numbers = boxes.nearest(rays, where=occupied), first_cells(write_counts, grid, rays)
    counted = numbers != UNDECIDED
    np.testing.assert_array_equal(numbers[counted], boxes.count(rays, where=occupied)[counted])
    decided, hit = cells != UNDECIDED, cells >= 0
    np.testing.assert_array_equal(np.where(cells == MISS, -1, cells)[decided], want.index[decided])
    return Counter(
        hits=int(hit.sum()),
        misses=int((cells == MISS).sum()),
        undecided=int((~decided).sum()),
        counted=int((numbers > 1).sum()),
        uncounted=int((~counted).sum()),
        started_inside=int((hit & (want.t == rays.t_min)).sum()),
        still=int((hit & (rays.directions == 0.0).any(axis=1)).sum()),
    )


# Grids all of whose cells are occupied


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
    assert first_cells(write_first_cells, rb.Grid.uniform([0, 0], 1.0, (2, 2)), rays).tolist() == [
        0,
        UNDECIDED,
        UNDECIDED,
    ]
    huge = rb.Grid(np.arange(3) * 2.0**600, np.arange(3.0))
    assert first_cells(write_first_cells, huge, rays).tolist() == [UNDECIDED] * 3
    masked = rb.Grid.uniform([0, 0], 1.0, (2, 2), occupied=[[False, True], [True, True]])
    assert first_cells(write_first_cells, masked, rays).tolist() == [UNDECIDED] * 3


# Grids of which slabs are scanned


@entry
def is_scanned(job: Any) -> int:
    """Return 1 if the cells of a job's grid are scanned."""
    return 1 if scanned_grid(job).is_scanned else 0


def job_of(grid: rb.Grid, where=None):
    """Return the job of a query on a grid."""
    return rb.Scene(grid)._view(where, None).jobs[0].value


@pytest.mark.parametrize("share", with_core([0.02, 0.3, 0.9], 0.3))
def test_first_occupied_cells_are_those_of_boxes(share):
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
    if has_blocks(grid):
        check_first_cells(grid, rays)


@entry
def is_counted(job: Any) -> int:
    """Return 1 if the cells of a job's grid that a ray hits are counted by a scan."""
    return 1 if scanned_grid(job).is_counted else 0


def test_which_grids_are_counted():
    full, where = rb.Grid.uniform([-1, 2, 3], 0.1, (64, 64, 64)), np.ones((64, 64, 64), np.bool_)
    assert is_counted(job_of(full))
    assert not is_counted(job_of(full, where))
    assert not is_counted(job_of(rb.Grid.uniform([-1, 2, 3], 2.0**600, (64, 64, 64))))
    assert not is_counted(job_of(rb.Grid([0.0, 1.0, 3.0], np.arange(65.0), np.arange(65.0))))
    cells = np.random.default_rng(337).random((64, 64, 64)) < 0.01
    assert is_counted(job_of(rb.Grid.uniform([-1, 2, 3], 0.1, cells.shape, occupied=cells)))
    cells[:50] = False
    assert not is_counted(job_of(rb.Grid.uniform([-1, 2, 3], 0.1, cells.shape, occupied=cells)))


def test_a_ray_that_may_not_hit_a_cell_counts_the_others():
    scene = rb.Scene(rb.Grid.uniform([0, 0, 0], 1.0, (20, 20, 20)))
    rays = rb.Rays(
        [[-1.0, 3.3, 4.4], [-1.0, 3.3, 4.4], [0.3, 0.4, 0.45]], [[1.0, 0, 0], [1.0, 0, 0], [1, 0.9, 0.8]]
    )
    cell = np.ravel_multi_index((7, 3, 4), (20, 20, 20))
    assert scene.count(rays, exclude=[cell, 5, -1]).tolist() == [19, 20, len(scene.segments(rays[2:]).index)]


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


# Rays that take turns in a grid: the first hits, and the counts, of rays of every kind and number


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
    assert min(counts["hits"], counts["misses"]) > 60, counts
    wanted = {"inside": [NEAR], "touching": [NEAR, TAME], "extreme": [TAME, WILD]}.get(kind, [TAME])
    assert set(kinds) == set(wanted), kinds


def test_grids_too_small_for_float32():
    rng = np.random.default_rng(311)
    grid = clumps(rng, pitch=2.0**-130)
    rays = rb.Rays(*crossing(rng, grid, 300))
    counts = check(grid, rays)
    assert min(counts["hits"], counts["misses"]) > 20, counts
    assert set(kinds_of(grid, rays)) == {TAME}


@pytest.mark.parametrize("number", range(2 * TURNS + 2))
def test_any_number_of_rays_some_of_them_invalid(number):
    rng = np.random.default_rng([312, number])
    grid, counts = clumps(rng), Counter()
    for _ in range(4):
        origins, directions = crossing(rng, grid, number)
        origins[rng.random(number) < 0.3, 1] = np.nan
        rays = rb.Rays(origins, directions, invalid="miss")
        counts += check(grid, rays)
    assert not number or min(counts["hits"], counts["misses"]) > 0, counts


def test_a_direction_of_zero_beside_the_grid_enters_no_node():
    grid = clumps(np.random.default_rng(313))
    points = np.array([[-1.0, -1.0, -1.0], [-1.0, 5.0, 5.0], [5.0, 5.0, 100.0], [80.0, 80.0, 80.0]])
    assert check(grid, rb.Rays(points, np.zeros(3)))["misses"] == 4


@entry
def flip_all(masks: Any, octant: int) -> None:
    """Write masks flipped, and flipped by swaps, to the second and the third column."""
    for k in range(masks.shape[0]):
        masks[k, 1], masks[k, 2] = flipped(masks[k, 0], octant), swapped(masks[k, 0], octant)


@pytest.mark.parametrize("octant", range(8))
def test_flipping_moves_each_bit(octant):
    """Swaps are what machines without shuffles do, on which no query runs here."""
    flip, masks = flip_of(octant), np.zeros((65, 3), np.int64)
    masks[:64, 0] = [1 << k for k in range(63)] + [-(2**63)]
    masks[64, 0] = 0x0123456789ABCDEF
    flip_all(masks, octant)
    rows = [[int(mask) & (2**64 - 1) for mask in row] for row in masks.tolist()]
    assert [row[1:] for row in rows[:64]] == [[1 << (k ^ flip)] * 2 for k in range(64)]
    assert rows[64][1] == rows[64][2] == sum(1 << (k ^ flip) for k in range(64) if rows[64][0] >> k & 1)


@pytest.mark.parametrize("distance", [300.0, 60.0])
def test_nearest_visits_what_is_before_the_hit_alone(distance):
    """A ball in an empty grid: a ray enters few nodes, and resolves hardly more than the cell it hits."""
    cells = np.arange(64) - 31.5
    ball = cells[:, None, None] ** 2 + cells[:, None] ** 2 + cells**2 < 100
    edges = np.arange(65.0)
    part = rb.Scene(rb.Grid(edges, edges, edges, occupied=ball))._parts[0]
    rng = np.random.default_rng(296)
    origins = rng.normal(size=(2000, 3))
    origins *= distance / np.linalg.norm(origins, axis=1)[:, None]
    rays = rb.Rays(origins + 32.0, rng.uniform(-6, 6, (2000, 3)) - origins)
    job = geometry_parts.job(part, rays._rows(), NO_MASK, None)
    scratch, index, t = make_scratch(), np.full(2000, -1), np.full(2000, np.inf)
    traverse_rays(job, RaySpan(0, 2000), scratch, HitOfRay(Nearest(index, t), 0))
    nodes, resolved = np.array(visits(scratch)) / 2000
    assert (index >= 0).mean() > 0.9
    assert nodes < 5.0
    assert resolved < 1.1
