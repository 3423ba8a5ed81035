"""Results do not depend on workers, the order of rays and boxes, updates, or threads; masks apply."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import families
import raybox as rb
from aim import Pairs
from compare import FIELDS, assert_same, assert_scene
from scenes import as_rays, build, random_scene, truth

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


def test_where_of_another_length_is_refused(large_scene):
    with pytest.raises(rb.InvalidInput):
        large_scene[1].nearest(large_scene[2][:3], where=np.ones(5, dtype=bool))


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


def test_update_of_a_large_scene(large_scene):
    pairs = large_scene[0]
    shift = np.random.default_rng(17).uniform(-0.5, 0.5, pairs.lower.shape)
    there = Pairs(*pairs[:4], pairs.lower + shift, pairs.upper + shift)
    scene, fresh = moved(build(*pairs[4:]), there), build(*there[4:])
    scene.check()
    assert_same(scene.nearest(large_scene[2]), fresh.nearest(large_scene[2]))
    assert_same(scene.all(large_scene[2]), fresh.all(large_scene[2]), ALL_FIELDS)


def test_update_needs_the_same_number_of_boxes(large_scene):
    with pytest.raises(rb.InvalidInput):
        build(*large_scene[0][4:]).update(rb.Boxes(*(x[:-1] for x in large_scene[0][4:])))


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
