"""The test of a node of cells: no child that a ray hits is dropped, and hardly any other is found."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import exact
import raybox as rb
from grids import KINDS, random_grid, random_rays
from raybox.bvh import cell_tree
from raybox.compiler.decorators import entry
from raybox.primitives.ray import get_ray
from raybox.queries.nearest.query import ExactNearest
from raybox.scene import geometry_parts
from raybox.traversal.grid import flipped
from raybox.traversal.grid_nodes import GridRay, hit_children, hit_moving, hit_wild, later
from raybox.traversal.single import make_scratch, traverse_rays
from raybox.validation import NO_MASK


@entry
def write_masks(planes: Any, starts: Any, rays: Any, masks: Any) -> None:
    """Write the children that rays may hit by each of the three tests; that for moving rays, if they move."""
    places = starts[0, 0], starts[0, 1], starts[0, 2]
    for k in range(masks.shape[0]):
        ray = get_ray(rays, k)
        o, d = ray.origin, ray.direction
        one = GridRay(o, d, (1.0 / d[0], 1.0 / d[1], 1.0 / d[2]), ray.t_min)
        masks[k, 0] = hit_wild(planes, places, one, later(ray.t_max))
        masks[k, 1] = hit_children(planes, places, one, later(ray.t_max))
        masks[k, 2] = masks[k, 1]
        if d[0] != 0.0 and d[1] != 0.0 and d[2] != 0.0:
            masks[k, 2] = hit_moving(planes, places, one, later(ray.t_max))


@entry
def flip_all(masks: Any, flip: int) -> None:
    """Flip masks in place."""
    for k in range(masks.size):
        masks[k] = flipped(masks[k], flip)


@pytest.mark.parametrize("kind", KINDS)
def test_no_child_that_a_ray_hits_is_dropped(kind):
    rng, counts = np.random.default_rng([295, KINDS.index(kind)]), Counter()
    for _ in range(4):
        grid = random_grid(kind, rng, (4, 4, 4))
        rays, tree = random_rays(rng, grid, 300), cell_tree.build(grid.rows())
        masks = np.zeros((300, 3), np.int64)
        with np.errstate(divide="ignore"):
            write_masks(tree.planes, tree.starts, rays.rows(), masks)
        boxes = grid.boxes()
        low, high = (np.broadcast_to(t, 300) for t in (rays.t_min, rays.t_max))
        truth = exact.along(rays.origins, rays.directions, low, high, boxes.lower, boxes.upper)
        for row, found in zip(masks.tolist(), truth, strict=True):
            want = sum(1 << hit.index for hit in found)
            for mask in row:
                assert want & ~mask == 0
                counts["spurious"] += (mask & ~want & (2**64 - 1)).bit_count()
            counts["hit"] += 3 * want.bit_count()
            counts["rays"] += bool(found)
            counts["misses"] += not found
    assert min(counts["rays"], counts["misses"]) > 100, counts
    # near 0, cells of 1e-12 are closer than times are rounded
    assert counts["spurious"] < (0.5 if kind == "contrast" else 0.1) * counts["hit"], counts


@pytest.mark.parametrize("flip", [0, 3, 12, 15, 48, 51, 60, 63])
def test_flipping_moves_each_bit(flip):
    masks = np.array([1 << k for k in range(63)] + [-(2**63)])
    flip_all(masks, flip)
    bits = [int(mask) & (2**64 - 1) for mask in masks]
    assert bits == [1 << (k ^ flip) for k in range(64)]
    both = np.array([0x0123456789ABCDEF])
    flip_all(both, flip)
    assert both[0].item() & (2**64 - 1) == sum(
        1 << (k ^ flip) for k in range(64) if 0x0123456789ABCDEF >> k & 1
    )


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
    scratch, index, t = make_scratch(), np.full(2000, -1), np.full(2000, np.inf)
    traverse_rays(geometry_parts.job(part, rays, NO_MASK, None), (0, 2000), scratch, ExactNearest(index, t))
    nodes, resolved = scratch.visited / 2000
    assert (index >= 0).mean() > 0.9
    assert nodes < 5.0
    assert resolved < 1.1
