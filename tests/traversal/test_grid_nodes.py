"""The test of a node of cells: no child that a ray hits is dropped, and hardly any other is found."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import exact
import raybox as rb
from grids import KINDS, random_grid, random_rays
from raybox.bvh import cell_tree
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import int64, vector_code
from raybox.compiler.mask_flips import flip_of, flipped, swapped
from raybox.primitives.ray import get_ray
from raybox.queries.hit_query import HitOfRay
from raybox.queries.nearest.stream import Nearest
from raybox.scene import geometry_parts
from raybox.traversal.grid_nodes import emit_hit_near, hit_tame, hit_wild
from raybox.traversal.grid_rays import KIND, NEAR, OCTANT, STARTS, TAME, make_grid_scratch, put_ray
from raybox.traversal.single import RaySpan, make_scratch, traverse_rays
from raybox.traversal.tree import visits
from raybox.validation import NO_MASK

pytestmark = pytest.mark.jit
hit_near = vector_code(int64)(emit_hit_near)


@entry
def write_masks(rows: Any, tree: Any, rays: Any, scratch: Any, masks: Any) -> None:
    """Write the children that rays may hit by the tests that may be used, those of the octants, and kinds."""
    marks, starts = scratch.marks[0], tree.starts.reshape(-1)
    for k in range(masks.shape[0]):
        put_ray(scratch, 0, rows, 1, get_ray(rays, k))
        places = starts[marks[STARTS]], starts[marks[STARTS + 1]], starts[marks[STARTS + 2]]
        masks[k, 3], masks[k, 4] = marks[OCTANT], marks[KIND]
        masks[k, :3] = hit_wild(tree.planes, places, scratch.numbers, 0)
        if marks[KIND] == NEAR:
            masks[k, 2] = hit_near(tree.planes, places, scratch.numbers, 0)
        if marks[KIND] == TAME:
            masks[k, 1] = hit_tame(tree.planes, places, scratch.numbers, 0)
        masks[k, :3] = (
            flipped(masks[k, 0], masks[k, 3]),
            flipped(masks[k, 1], masks[k, 3]),
            flipped(masks[k, 2], masks[k, 3]),
        )


@entry
def flip_all(masks: Any, octant: int) -> None:
    """Write masks flipped, and flipped by swaps, to the second and the third column."""
    for k in range(masks.shape[0]):
        masks[k, 1], masks[k, 2] = flipped(masks[k, 0], octant), swapped(masks[k, 0], octant)


@pytest.mark.parametrize("kind", KINDS)
def test_no_child_that_a_ray_hits_is_dropped(kind):
    rng, counts = np.random.default_rng([295, KINDS.index(kind)]), Counter()
    for _ in range(4):
        grid = random_grid(kind, rng, (4, 4, 4))
        rays, tree = random_rays(rng, grid, 300), cell_tree.build(grid._rows())
        masks = np.zeros((300, 5), np.int64)
        write_masks(grid._rows(), tree, rays._rows(), make_grid_scratch(), masks)
        boxes = grid.boxes()
        low, high = (np.broadcast_to(t, 300) for t in (rays.t_min, rays.t_max))
        truth = exact.along(rays.origins, rays.directions, low, high, boxes.lower, boxes.upper)
        for row, found in zip(masks.tolist(), truth, strict=True):
            want = sum(1 << hit.index for hit in found)
            counts[f"kind {row[4]}"] += 1
            for mask in row[:3]:
                assert want & ~mask == 0
                counts["spurious"] += (mask & ~want & (2**64 - 1)).bit_count()
            counts["hit"] += 3 * want.bit_count()
            counts["rays"] += bool(found)
            counts["misses"] += not found
    assert min(counts[what] for what in ("rays", "misses", "kind 0", "kind 1")) > 100, counts
    # near 0, cells of 1e-12 are closer than times are rounded
    assert counts["spurious"] < (0.5 if kind == "contrast" else 0.1) * counts["hit"], counts


@pytest.mark.parametrize("octant", range(8))
def test_flipping_moves_each_bit(octant):
    flip, masks = flip_of(octant), np.zeros((65, 3), np.int64)
    assert flip == 48 * (octant >> 2) + 12 * (octant >> 1 & 1) + 3 * (octant & 1)
    masks[:64, 0] = [1 << k for k in range(63)] + [-(2**63)]
    masks[64, 0] = 0x0123456789ABCDEF
    flip_all(masks, octant)
    rows = [[int(mask) & (2**64 - 1) for mask in row] for row in masks.tolist()]
    assert [row[1:] for row in rows[:64]] == [[1 << (k ^ flip)] * 2 for k in range(64)]
    assert rows[64][1] == rows[64][2] == sum(1 << (k ^ flip) for k in range(64) if rows[64][0] >> k & 1)


def test_nearest_visits_what_is_before_the_hit_alone():
    """A ball in an empty grid: a ray enters few nodes, and resolves hardly more than the cell it hits."""
    cells = np.arange(64) - 31.5
    ball = cells[:, None, None] ** 2 + cells[:, None] ** 2 + cells**2 < 100
    edges = np.arange(65.0)
    part = rb.Scene(rb.Grid(edges, edges, edges, occupied=ball))._parts[0]
    rng = np.random.default_rng(296)
    origins = rng.normal(size=(2000, 3))
    origins *= 300.0 / np.linalg.norm(origins, axis=1)[:, None]
    rays = rb.Rays(origins + 32.0, rng.uniform(-6, 6, (2000, 3)) - origins)
    job = geometry_parts.job(part, rays._rows(), NO_MASK, None)
    scratch, index, t = make_scratch(), np.full(2000, -1), np.full(2000, np.inf)
    traverse_rays(job, RaySpan(0, 2000), scratch, HitOfRay(Nearest(index, t), 0))
    nodes, resolved = np.array(visits(scratch)) / 2000
    assert (index >= 0).mean() > 0.9
    assert nodes < 5.0
    assert resolved < 1.1
