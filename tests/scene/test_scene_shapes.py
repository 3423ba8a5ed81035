"""rb.Scene: shapes, empty inputs, kinds of rays, rows of AllHits, and errors."""

import numpy as np
import pytest

import exact
import families
import raybox as rb
from aim import Pairs
from compare import FIELDS, assert_scene
from scenes import build

INF = np.inf
UNIT = ([[0.0, 0, 0]], [[1.0, 1, 1]])


@pytest.fixture(scope="module")
def edges():
    pairs = families.scene("touching_edges", 20, n_boxes=90, n_rays=20)
    return pairs, build(*pairs[4:]), rb.Rays(*pairs[:2], t_min=pairs[2], t_max=pairs[3])


def test_results_have_the_shape_of_the_rays(edges):
    _, scene, flat = edges
    rays = flat.reshape(4, 5)
    nearest, first, all_hits = scene.nearest(rays), scene.first(rays, 3), scene.all(rays)
    for field in FIELDS:
        assert getattr(nearest, field).shape == (4, 5)
        np.testing.assert_array_equal(getattr(nearest, field).ravel(), getattr(scene.nearest(flat), field))
        assert getattr(first, field).shape == (4, 5, 3)
    assert nearest.points.shape == nearest.normals.shape == (4, 5, 3)
    assert first.points.shape == first.normals.shape == (4, 5, 3, 3)
    np.testing.assert_array_equal(first.t[..., 0], nearest.t)
    np.testing.assert_array_equal(first.normals[..., 0, :][nearest.hit], nearest.normals[nearest.hit])
    assert scene.occluded(rays).shape == scene.count(rays).shape == (4, 5)
    assert scene.occluded(rays).dtype == np.bool_
    assert scene.count(rays).dtype == np.int64
    assert all_hits.offsets.shape == (21,)
    np.testing.assert_array_equal(all_hits.offsets, scene.all(flat).offsets)


def test_a_single_ray_gives_a_single_result(edges):
    pairs, scene, flat = edges
    (found,) = exact.along(*(x[:1] for x in pairs[:4]), *pairs[4:])
    nearest = scene.nearest(flat[0])
    assert nearest.t.shape == ()
    assert (int(nearest.index), float(nearest.t)) == (found[0].index, found[0].plain[1])
    assert scene.first(flat[0], 2).t.shape == (2,)
    assert int(scene.count(flat[0])) == len(found)
    assert scene.all(flat[0]).offsets.tolist() == [0, len(found)]


def test_bounds_and_len(edges):
    pairs, scene, _ = edges
    assert len(scene) == 90
    low, high = scene.bounds
    np.testing.assert_array_equal(low, pairs.lower.min(axis=0))
    np.testing.assert_array_equal(high, pairs.upper.max(axis=0))


def test_all_hits_by_ray(edges):
    pairs, scene, rays = edges
    all_hits = scene.all(rays)
    for i, found in enumerate(exact.along(*pairs)):
        row = all_hits[i]
        np.testing.assert_array_equal(row.index, [f.index for f in found])
        np.testing.assert_array_equal(row.t, [f.plain[1] for f in found])
    stretch = np.minimum(all_hits.t_exit, pairs.t_max[all_hits.ray]) - all_hits.t
    length = stretch * np.linalg.norm(pairs.directions[all_hits.ray], axis=1)
    finite = np.isfinite(length)
    assert finite.sum() > 100
    np.testing.assert_allclose(all_hits.lengths[finite], length[finite], rtol=1e-12, atol=1e-12)


@pytest.mark.core
def test_first_pads_with_misses(edges):
    _, scene, rays = edges
    first, count = scene.first(rays, 100), scene.count(rays)
    np.testing.assert_array_equal(first.hit, np.arange(100) < count[:, None])
    assert (first.index[~first.hit] == -1).all()
    assert (first.t[~first.hit] == INF).all()
    for field in ("t_enter", "t_exit", "points", "normals"):
        assert np.isnan(getattr(first, field)[~first.hit]).all()


@pytest.mark.parametrize("k", [0, -1, 2.5])
def test_first_needs_k_of_one_or_more(edges, k):
    with pytest.raises(rb.InvalidInput):
        edges[1].first(edges[2], k)


@pytest.mark.core
@pytest.mark.parametrize("dim", [2, 3])
def test_rays_miss_an_empty_scene(dim):
    scene = build(np.empty((0, dim)), np.empty((0, dim)))
    rays = rb.Rays(np.zeros((3, dim)), np.ones((3, dim)))
    assert len(scene) == 0
    assert_scene(scene, rays, [[], [], []])
    assert scene.nearest(rays).points.shape == (3, dim)


def test_no_rays_give_empty_results(edges):
    rays = rb.Rays(np.empty((0, 3)), np.empty((0, 3)))
    assert_scene(edges[1], rays, [])
    deep = rb.Rays(np.empty((4, 0, 3)), np.empty((4, 0, 3)))
    assert edges[1].nearest(deep).t.shape == (4, 0)
    assert edges[1].first(deep, 2).t.shape == (4, 0, 2)


def test_segments_reach_both_ends(edges):
    rng = np.random.default_rng(21)
    starts, ends = rng.integers(-3, 4, (2, 60, 3)).astype(float)
    pairs = Pairs(starts, ends - starts, np.zeros(60), np.ones(60), *edges[0][4:])
    assert_scene(edges[1], rb.Rays.segments(starts, ends), list(exact.along(*pairs)))


def test_lines_extend_backwards(edges):
    rng = np.random.default_rng(22)
    points, ways = rng.integers(-3, 4, (2, 60, 3)).astype(float)
    pairs = Pairs(points, ways, np.full(60, -INF), np.full(60, INF), *edges[0][4:])
    assert_scene(edges[1], rb.Rays.lines(points, ways), list(exact.along(*pairs)))


def test_invalid_rays_are_misses_on_request(edges):
    pairs, scene, _ = edges
    origins, directions, low, high = (x.copy() for x in pairs[:4])
    origins[0, 1], directions[1, 2], low[2], directions[3, 0] = np.nan, np.inf, np.nan, -np.inf
    low[4], high[4] = 2.0, 1.0
    rays = rb.Rays(origins, directions, t_min=low, t_max=high, invalid="miss")
    found = list(exact.along(origins, directions, low, high, *pairs[4:]))
    assert not any(found[:5])
    assert_scene(scene, rays, found)
    with pytest.raises(rb.InvalidInput):
        rb.Rays(origins, directions, t_min=low, t_max=high)


def test_a_zero_direction_hits_the_boxes_that_contain_the_point(edges):
    pairs = edges[0]
    points = np.concatenate([pairs.lower[:20], pairs.upper[:20], (pairs.lower + pairs.upper)[:20] / 2])
    rays = rb.Rays(points, np.zeros(3))
    whole = Pairs(points, np.zeros((60, 3)), np.zeros(60), np.full(60, INF), *pairs[4:])
    assert_scene(edges[1], rays, list(exact.along(*whole)))
    inside = ((pairs.lower <= points[:, None]) & (points[:, None] <= pairs.upper)).all(axis=2)
    np.testing.assert_array_equal(edges[1].count(rays), inside.sum(axis=1))


def test_dimensions_that_differ_are_refused(edges):
    with pytest.raises(rb.InvalidInput):
        edges[1].nearest(rb.Rays([[0.0, 0.0]], [[1.0, 0.0]]))


def test_arrays_in_place_of_rays_are_refused(edges):
    with pytest.raises((rb.InvalidInput, TypeError)):
        edges[1].nearest(np.zeros((3, 3)))


def test_input_arrays_are_copied():
    lower, upper = (np.array(x) for x in UNIT)
    scene = build(lower, upper)
    lower[:], upper[:] = 5.0, 6.0
    assert scene.nearest(rb.Rays([-1.0, 0.5, 0.5], [1.0, 0.0, 0.0])).t == 1.0
