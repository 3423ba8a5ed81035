"""rb.Scene: shapes, empty inputs, kinds of rays, rows of AllHits; threads and order change nothing."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import exact
import families
import raybox as rb
from compare import FIELDS, assert_same, assert_scene
from scenes import as_rays, build, random_scene, truth

INF = np.inf


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


# Results do not depend on workers, the order of rays and boxes, updates, or threads; masks apply


ALL_FIELDS = ("offsets", "ray", "index", "t", "t_enter", "t_exit")


@pytest.fixture(scope="module")
def large_scene():
    """A scene of 3,000 boxes, 20,000 rays, and the results of one worker."""
    pairs = random_scene(11, 3000, 20_000, size=0.15)
    scene = build(*pairs[4:])
    rays = as_rays(pairs)
    return pairs, scene, rays, scene.nearest(rays, workers=1), scene.all(rays, workers=1)


@pytest.mark.parametrize("workers", [1, 2, 4, -1])
def test_any_number_of_workers_gives_the_same_bits(large_scene, workers):
    _, scene, rays, nearest, all_hits = large_scene
    assert_same(scene.nearest(rays, workers=workers), nearest)
    assert_same(scene.all(rays, workers=workers), all_hits, ALL_FIELDS)
    np.testing.assert_array_equal(scene.occluded(rays, workers=workers), nearest.hit)
    np.testing.assert_array_equal(scene.count(rays, workers=workers), np.diff(all_hits.offsets))
    assert_same(scene.first(rays, 2, workers=workers), scene.first(rays, 2, workers=1))


def test_rays_in_another_order_give_results_in_that_order(large_scene):
    _, scene, rays, nearest, all_hits = large_scene
    order = np.random.default_rng(12).permutation(len(rays))
    moved = scene.nearest(rays[order])
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(moved, field), getattr(nearest, field)[order])
    np.testing.assert_array_equal(scene.count(rays[order]), np.diff(all_hits.offsets)[order])
    one_by_one = [scene.nearest(rays[i]) for i in range(0, 20_000, 500)]
    np.testing.assert_array_equal([h.t for h in one_by_one], nearest.t[::500])
    np.testing.assert_array_equal([h.index for h in one_by_one], nearest.index[::500])


def test_boxes_in_another_order_give_the_same_boxes(large_scene):
    pairs, _, rays, nearest, all_hits = large_scene
    order = np.random.default_rng(13).permutation(len(pairs.lower))
    scene = build(pairs.lower[order], pairs.upper[order])
    again = scene.all(rays)
    np.testing.assert_array_equal(again.offsets, all_hits.offsets)
    np.testing.assert_array_equal(again.t, all_hits.t)
    named = order[again.index]  # in the original numbers: the same boxes, with ties in another order
    sort = np.lexsort((named, again.t, again.ray))
    np.testing.assert_array_equal(named[sort], all_hits.index)
    np.testing.assert_array_equal(again.t_enter[sort], all_hits.t_enter)

    moved = scene.nearest(rays)
    np.testing.assert_array_equal(moved.t, nearest.t)
    np.testing.assert_array_equal(moved.index[moved.hit], again.index[again.offsets[:-1][moved.hit]])
    tied = moved.hit & (np.where(moved.hit, order[moved.index], -1) != nearest.index)
    assert (moved.t[tied] == 0).all()  # these rays start in several boxes at once


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_where_selects_the_boxes_that_may_be_hit(share):
    pairs = families.scene("exact_ties", 14, n_boxes=200, n_rays=100)
    where = np.random.default_rng(14).random(200) < share
    assert_scene(build(*pairs[4:]), as_rays(pairs), truth(pairs, where), where=where)


@pytest.mark.parametrize("name", ["touching_edges", "half_spaces", "mixed_scales", "planar"])
def test_update_equals_a_new_scene(name):
    before, after = families.scene(name, 15, n_boxes=120), families.scene(name, 16, n_boxes=120)
    scene = moved(build(*before[4:]), after)
    scene.check()
    assert len(scene) == 120
    assert_scene(scene, as_rays(after), truth(after))
    back = moved(scene, before)
    assert_scene(back, as_rays(before), truth(before))


def moved(scene, pairs):
    updated = scene.update(rb.Boxes(*pairs[4:]))
    return scene if updated is None else updated


def test_several_threads_may_query_one_scene(large_scene):
    _, scene, rays, nearest, all_hits = large_scene
    with ThreadPoolExecutor(6) as pool:
        jobs = [pool.submit(scene.nearest, rays, workers=2) for _ in range(6)]
        jobs_all = [pool.submit(scene.all, rays) for _ in range(3)]
        parts = [pool.submit(scene.nearest, rays[k::4]) for k in range(4)]
    for job in jobs:
        assert_same(job.result(), nearest)
    for job in jobs_all:
        assert_same(job.result(), all_hits, ALL_FIELDS)
    for k, job in enumerate(parts):
        np.testing.assert_array_equal(job.result().t, nearest.t[k::4])


def test_progress_keeps_stdout_clean(large_scene, capfd):
    _, scene, rays, nearest, _ = large_scene
    assert_same(scene.nearest(rays, progress=True), nearest)
    scene.all(rays, progress=True)
    assert capfd.readouterr().out == ""
