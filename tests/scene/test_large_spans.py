"""Scenes whose bounds are farther apart than the largest float: no difference that overflows loses a hit."""

from collections import Counter

import numpy as np
import pytest

import raybox as rb
from compare import assert_scene
from exact import INF
from exact_instances import along, assert_queries
from grid_hits import check as check_grid
from large_spans import BIG, FAR_BOX, LOWER, UPPER, large_boxes, numbers, rays_at
from loops import loop
from raybox.bvh.build import QUALITIES
from raybox.traversal.grid_axes import interval_of
from sweeping import check_sweep

DOWN = rb.Rays([[0, -5e307]], [0, -1e307], t_max=10.0)


def assert_far_box(scene):
    hits = scene.nearest(DOWN)
    assert (hits.index.tolist(), hits.t.tolist()) == ([0], [6.0])
    assert_queries(scene, DOWN, along(DOWN, FAR_BOX))


@pytest.mark.parametrize("quality", QUALITIES)
def test_a_far_box_is_found_in_a_new_tree_and_after_an_update(quality):
    scene = rb.Scene(FAR_BOX, quality=quality)
    assert_far_box(scene)
    scene.check()
    moved = rb.Scene(rb.Boxes(LOWER[[1, 1, 1]], UPPER[[1, 1, 1]]), quality=quality)
    moved.update(FAR_BOX)
    assert_far_box(moved)
    moved.check()


def test_a_far_box_is_found_beside_another_geometry():
    hits = rb.Scene([rb.Planes([0, 1], 1.0), FAR_BOX]).nearest(DOWN)
    assert (hits.geometry.tolist(), hits.index.tolist(), hits.t.tolist()) == ([1], [0], [6.0])


def test_a_far_box_is_found_by_a_sweep():
    moving = rb.Boxes([-1e300, -5e307], [1e300, -5e307])
    hits = rb.sweep(moving, [0, -1e308], rb.Scene(FAR_BOX))
    assert (hits.index.tolist(), hits.t.tolist()) == ([0], [0.6])


def test_a_far_triangle_is_found():
    y = np.array([-1.1e308, 0.9e308, 0.9e308])
    corners = np.array([[-1e307, 0, -1e307], [1e307, 0, -1e307], [0, 0, 1e307]]) + y[:, None, None] * [
        0,
        1,
        0,
    ]
    mesh = rb.Mesh(corners.reshape(-1, 3), np.arange(9).reshape(-1, 3))
    for quality in QUALITIES:
        scene = rb.Scene(mesh, quality=quality)
        hits = scene.nearest(rb.Rays([0, -5e307, 0], [0, -1e307, 0], t_max=10.0))
        assert (hits.index, hits.t) == (0, 6.0)
        scene.check()


@pytest.mark.parametrize("shift", [0.0, 1.0, -3e307])
def test_a_far_box_is_found_in_an_instance(shift):
    instances = rb.Instances(FAR_BOX, [[[1, 0, 0], [0, 1, shift]]])
    counts = assert_queries(rb.Scene(instances), DOWN, along(DOWN, instances))
    assert counts["hits"] == 1
    assert instances.boxes().bounds[0, 1] <= -1.2e308 + shift


def test_a_far_instance_is_found():
    cube, shift = rb.Boxes([-1, -1], [1, 1]), [-1.15e308, 0.95e308, 0.95e308]
    instances = rb.Instances(cube, [[[5e306, 0, 0], [0, 5e306, y]] for y in shift])
    scene = rb.Scene(instances)
    assert assert_queries(scene, DOWN, along(DOWN, instances))["hits"] == 1
    scene.check()


def test_tiny_boxes_in_a_far_plane_are_found():
    """The scale is 2^332, and the plane times the scale overflows."""
    lower = np.insert(1e-100 * np.random.default_rng(23).random((20, 2)), 0, 1e300, axis=1)
    boxes = rb.Boxes(lower, lower + np.array([0, 3e-101, 3e-101]))
    rays = rb.Rays(boxes.centers - [1e300, 0, 0], [1e300, 0, 0])
    for quality in QUALITIES:
        scene = rb.Scene(boxes, quality=quality)
        scene.check()
        counts = assert_queries(scene, rays, along(rays, boxes))
        assert counts["several"] > 5, counts


# Seeded scenes against Fractions


@pytest.mark.long
@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("dim", [2, 3])
def test_boxes_before_and_after_an_update(dim, quality):
    counts = Counter()
    for seed in range(3):
        rng = np.random.default_rng([seed, dim])
        boxes, moved = (rb.Boxes(*large_boxes(rng, 60, dim)) for _ in range(2))
        rays, scene = rays_at(rng, 50, boxes), rb.Scene(boxes, quality=quality)
        scene.check()
        counts.update(assert_queries(scene, rays, along(rays, boxes)))
        scene.update(moved)
        scene.check()
        rays = rays_at(rng, 50, moved)
        counts.update(assert_queries(scene, rays, along(rays, moved)))
    assert 60 < counts["hits"] < 280, counts
    assert min(counts["touches"], counts["ties"], counts["inside"]) > 60, counts


def test_many_rays_are_sorted():
    counts = Counter()
    for seed in range(4):
        rng = np.random.default_rng([seed, 7])
        boxes = rb.Boxes(*large_boxes(rng, 40, 3))
        rays = rays_at(rng, 50, boxes)
        want = [[hit.found() for hit in row] for row in along(rays, boxes)]
        many = rays[np.tile(np.arange(50), 24)]  # 1,200: they are sorted
        assert_scene(rb.Scene(boxes), many, want * 24)
        every = rb.intersect(many[:, None], boxes)  # thousands of pairs are tested in blocks of sixteen boxes
        hit = np.zeros((50, 40), bool)
        for k, row in enumerate(want):
            hit[k, [found.index for found in row]] = True
        np.testing.assert_array_equal(every.hit, np.tile(hit, (24, 1)))
        counts.update(hits=sum(map(bool, want)), misses=want.count([]))
    assert min(counts["hits"], counts["misses"]) > 20, counts


@pytest.mark.parametrize("quality", QUALITIES)
def test_triangles(quality):
    counts = Counter()
    for seed in range(4):
        rng = np.random.default_rng([seed, 11])
        lower, upper = large_boxes(rng, 20, 3, endless=False)
        corners = np.where(rng.random((20, 3, 3)) < 0.5, lower[:, None], upper[:, None])
        mesh = rb.Mesh(corners.reshape(-1, 3), np.arange(60).reshape(-1, 3))
        some = corners[rng.integers(0, 20, 20)]
        target = some[:, 0] / 2 + some[:, 1] / 4 + some[:, 2] / 4
        origins = numbers(rng, (20, 3))
        rays = rb.Rays(origins, target / 4 - origins / 4)
        scene = rb.Scene(mesh, quality=quality)
        scene.check()
        counts.update(assert_queries(scene, rays, along(rays, mesh)))
    assert 20 < counts["hits"] < 78, counts


def test_instances():
    counts = Counter()
    for seed in range(8):
        rng = np.random.default_rng([seed, 13])
        maps = np.zeros((4, 3, 4))
        if seed % 2:
            boxes = rb.Boxes([[0, 0, 0], [1, 0, 1]], [[1, 1, 1], [2, 3, 4]])
            maps[:, range(3), range(3)] = rng.choice([2.0**1000, 1e307, -1e307], (4, 3))
            maps[:, :, 3] = numbers(rng, (4, 3)) / 2
        else:
            boxes = rb.Boxes(*large_boxes(rng, 4, 3, endless=False))
            maps[:, range(3), range(3)] = rng.choice([1.0, -1.0, 0.5], (4, 3))
            maps[:, :, 3] = rng.choice([0.0, 1.0, 3.0], (4, 3))
        instances = rb.Instances(boxes, maps)
        rays = rays_at(rng, 16, instances.boxes())
        scene = rb.Scene(instances)
        scene.check()
        counts.update(assert_queries(scene, rays, along(rays, instances)))
    assert 15 < counts["hits"] < 65, counts


def test_an_instance_is_entered_later_than_the_largest_time():
    cube = rb.Boxes([[1e308, -1, -1], [1.2e308, -1, -1]], [[1.5e308, 1, 1], [1.6e308, 1, 1]])
    instances = rb.Instances(cube, np.eye(4)[None])
    rays = rb.Rays([0, 0, 0], [[2.0**-190, 0, 0], [-(2.0**-190), 0, 0]])
    assert [len(row) for row in along(rays, instances)] == [2, 0]
    assert_queries(rb.Scene(instances), rays, along(rays, instances))


@pytest.mark.parametrize("dim", [2, 3])
def test_sweeps(dim):
    counts = Counter()
    for seed in range(4):
        rng = np.random.default_rng([seed, dim, 17])
        low, high = large_boxes(rng, 30, dim, endless=False)
        high = np.where(rng.random((30, 1)) < 0.7, low, high)
        way = numbers(rng, (30, dim)) * rng.choice([1.0, 0.25, 0.0], (30, dim), p=[0.6, 0.2, 0.2])
        counts.update(check_sweep(low, high, way, *large_boxes(rng, 20, dim)))
    assert min(counts["hit"], counts["miss"], counts["tied"]) > 5, counts


@pytest.mark.parametrize("dim", [2, 3])
def test_grids(dim):
    counts = Counter()
    for seed in range(8):
        rng = np.random.default_rng([seed, dim, 19])
        edges = [np.unique([-BIG, *numbers(rng, 4), BIG]) for _ in range(dim)]
        occupied = rng.random([len(one) - 1 for one in edges]) < 0.7
        grid = rb.Grid(*edges, occupied=occupied) if seed % 2 else rb.Grid(*edges)
        boxes = grid.boxes(grid.occupied)
        rays = rays_at(rng, 20, boxes)
        found = check_grid(grid, rays)
        want = along(rays, boxes)
        assert_queries(rb.Scene(boxes), rays, want)
        counts.update(found)
    assert min(counts["hits"], counts["touches"], counts["misses"]) >= 5, counts


@loop
def places(edges, x, out):
    for k in range(x.size):
        out[k] = interval_of(edges, x[k])


def test_the_place_in_a_grid_wider_than_the_largest_float():
    edges = np.array([-1.7e308, 1.6e308, 1.65e308, 1.7e308])
    x = np.array([-1.7e308, -1e308, 0.0, 0.5e308, 1.59e308, 1.6e308, 1.66e308, 1.7e308, -INF, INF, BIG, -BIG])
    beyond = np.array([*edges, -BIG, BIG])  # what is read at a place of -2^63, modulo 2^64 bytes
    out = np.empty(x.size, np.int64)
    places(beyond[:4], x, out)
    assert out.tolist() == [0, 0, 0, 0, 0, 1, 2, 2, 0, 2, 2, 0]
