"""Scene.update: right wherever boxes move, rebuilt when that pays, safe during queries."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

import raybox as rb
from core_marks import with_core
from raybox.bvh import partial_rebuild
from raybox.bvh import refit as refit_module
from raybox.bvh.build import QUALITIES, build
from raybox.bvh.build_threads import TaskRunner
from raybox.bvh.refit import copy_nodes, refit, refit_into
from raybox.bvh.validate import check, cost
from test_build import FAMILIES, assert_same_tree, clustered, small_tasks, uniform  # noqa: F401  # a fixture

ALL_FIELDS = ("offsets", "ray", "index", "t", "t_enter", "t_exit")


def jitter(boxes, size, seed=7):
    by = np.random.default_rng(seed).uniform(-size, size, boxes[0].shape)
    return boxes[0] + by, boxes[1] + by


def random_rays(n=2000, seed=8, inside=1.0):
    rng = np.random.default_rng(seed)
    return rb.Rays(rng.random((n, 3)) * inside, rng.standard_normal((n, 3)))


def results_of(scene, rays):
    nearest, all_hits = scene.nearest(rays), scene.all(rays)
    return [nearest.index, nearest.t, *(getattr(all_hits, name) for name in ALL_FIELDS), scene.count(rays)]


def assert_as_fresh(scene, boxes, rays):
    scene.check()
    for got, want in zip(results_of(scene, rays), results_of(rb.Scene(rb.Boxes(*boxes)), rays), strict=True):
        np.testing.assert_array_equal(got, want)


# Results


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("size", with_core([0.0, 1e-6, 0.01, 3.0, 1e9], 0.01))
def test_moved_boxes_are_hit_where_they_are(quality, size):
    boxes = uniform(4000)
    scene, rays = rb.Scene(rb.Boxes(*boxes), quality=quality), random_rays()
    for seed in range(3):
        moved = jitter(boxes, size, seed)
        scene.update(rb.Boxes(*moved))
        assert_as_fresh(scene, moved, rays)
    scene.update(rb.Boxes(*boxes))
    assert_as_fresh(scene, boxes, rays)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_refit_to_any_boxes_is_sound(name, monkeypatch):
    monkeypatch.setattr(refit_module, "_CHUNK", 37)
    lower, upper = FAMILIES[name](1500)
    start = uniform(1500)
    for tree in (build(*start), build(lower, upper), build(lower, upper, quality="fast")):
        check(refit(tree, lower, upper), lower, upper)
        check(refit(tree, *start), *start)


# The refit itself


@pytest.mark.parametrize("quality", QUALITIES)
def test_a_refit_to_the_same_boxes_changes_nothing(quality, monkeypatch):
    monkeypatch.setattr(refit_module, "_CHUNK", 64)
    boxes = uniform(3000)
    tree = build(*boxes, quality=quality)
    assert_same_tree(refit(tree, *boxes), tree)
    assert_same_tree(refit(refit(tree, *jitter(boxes, 1.0)), *boxes), tree)


def test_threads_do_not_change_a_refit(monkeypatch):
    monkeypatch.setattr(refit_module, "_CHUNK", 50)
    boxes, moved = uniform(3000), jitter(uniform(3000), 0.1)
    tree = build(*boxes)

    def again(**how):
        return refit_into(copy_nodes(tree.nodes), tree, *moved, **how)

    serial, refit_cost = again()
    for threads in (2, 3, 5):
        parallel, same = again(threads=threads)
        assert_same_tree(parallel, serial)
        assert same == refit_cost
    monkeypatch.setattr(refit_module, "TaskRunner", Backward)
    backward, same = again()
    assert_same_tree(backward, serial)
    assert same == refit_cost


class Backward(TaskRunner):
    """Runs items in the opposite order."""

    def __call__(self, work, items):
        return super().__call__(work, list(items)[::-1])[::-1]


# Rebuilding


def rebuilds(scene):
    return scene._parts[0].refit_policy.rebuilds


@pytest.mark.parametrize("quality", QUALITIES)
def test_a_poor_tree_is_rebuilt(quality, small_tasks):  # noqa: F811
    boxes = uniform(5000)
    scene = rb.Scene(rb.Boxes(*boxes), quality=quality)
    order = np.random.default_rng(10).permutation(5000)
    mixed = boxes[0][order], boxes[1][order]
    poor = cost(refit(build(*boxes, quality=quality), *mixed), *mixed)
    scene.update(rb.Boxes(*mixed))
    assert (rebuilds(scene), scene._parts[0].refit_policy.partial_rebuilds) == (1, 0)
    assert poor > 10 * scene.stats()["cost"]
    assert_same_tree(scene._parts[0].tree, build(*mixed, quality=quality))
    scene.update(rb.Boxes(*mixed))
    assert rebuilds(scene) == 1
    scene.update(rb.Boxes(*boxes))
    assert rebuilds(scene) == 2
    assert_as_fresh(scene, boxes, random_rays(500))


@pytest.mark.parametrize(
    "move",
    [
        lambda x: x,
        lambda x: x + 0.5,
        lambda x: x * 1e6,
        lambda x: 0.5 + (x - 0.5) / 100,
        lambda x: x + 1e-4 * np.sin(1000 * x),
        lambda x: np.vstack([x[:1] + 1e6, x[1:]]),
        lambda x: np.vstack([x[:1] - 1e200, x[1:]]),
    ],
    ids=["stay", "shift", "grow", "shrink", "tremble", "stray", "far stray"],
)
def test_a_tree_that_stays_good_is_not_rebuilt(move):
    boxes = uniform(5000)
    scene = rb.Scene(rb.Boxes(*boxes))
    before = scene.stats()["cost"]
    for _ in range(3):
        scene.update(rb.Boxes(*map(move, boxes)))
    scene.check()
    assert rebuilds(scene) == 0
    assert scene.stats()["cost"] < 1.5 * before


def test_a_stray_box_does_not_hide_mixed_others():
    boxes = uniform(5000)
    scene = rb.Scene(rb.Boxes(*boxes))
    lower, upper = (x[np.random.default_rng(11).permutation(5000)] for x in (boxes[0],) * 2)
    lower, upper = lower.copy(), lower + 0.01
    lower[3], upper[3] = 1e7, 1e7 + 1
    scene.update(rb.Boxes(lower, upper))
    assert rebuilds(scene) == 1


def test_a_scene_that_moves_far_away_gets_new_tree_coordinates():
    """The old ones would have no resolution left."""
    boxes = uniform(3000)
    scene = rb.Scene(rb.Boxes(*boxes))
    there = boxes[0] + 1e9, boxes[1] + 1e9
    scene.update(rb.Boxes(*there))
    assert rebuilds(scene) == 1
    assert_same_tree(scene._parts[0].tree, build(*there))


def test_a_cost_that_no_rebuild_lowers_is_rebuilt_once():
    """Larger boxes cost more in any tree: the cost of the new one is the new baseline."""
    lower, upper = uniform(3000, size=0.001)
    scene = rb.Scene(rb.Boxes(lower, upper))
    for _ in range(5):
        scene.update(rb.Boxes(lower - 0.2, upper + 0.2))
    assert rebuilds(scene) <= 1


# Queries during updates


def test_a_tree_in_use_is_not_changed():
    boxes = uniform(3000)
    scene = rb.Scene(rb.Boxes(*boxes))
    trees = []
    for seed in range(5):
        scene.update(rb.Boxes(*jitter(boxes, 0.01, seed)))
        tree = scene._parts[0].tree
        trees.append((tree, tree.nodes.copy(), tree.root.copy()))
    for tree, nodes, root in trees:
        np.testing.assert_array_equal(tree.nodes, nodes)
        np.testing.assert_array_equal(tree.root, root)
    assert len({tree.nodes.ctypes.data for tree, *_ in trees}) == 5


def test_memory_of_two_trees_is_enough():
    boxes = uniform(3000)
    scene = rb.Scene(rb.Boxes(*boxes))
    places = set()
    for seed in range(8):
        scene.update(rb.Boxes(*jitter(boxes, 0.01, seed)))
        places.add(scene._parts[0].tree.nodes.ctypes.data)
    assert len(places) == 2
    assert rebuilds(scene) == 0


def test_queries_during_an_update_return_old_or_new_results():
    here = uniform(20_000, size=0.02)
    there = here[0] + 0.01, here[1] + 0.01
    both = rb.Boxes(*here), rb.Boxes(*there)
    rays = random_rays(3000)
    want = [rb.Scene(boxes).nearest(rays, workers=1).t for boxes in both]
    assert (want[0] != want[1]).mean() > 0.5
    scene, stop = rb.Scene(both[0]), Event()

    def query():
        matches = []
        while not stop.is_set() or not matches:
            t = scene.nearest(rays, workers=1).t
            matches.append([np.array_equal(t, w) for w in want])
        return matches

    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(query) for _ in range(3)]
        try:
            for k in range(60):
                scene.update(both[(k + 1) % 2])
        finally:
            stop.set()
        matches = np.array([pair for job in jobs for pair in job.result()])
    assert (matches.sum(axis=1) == 1).all()
    assert matches.any(axis=0).all()


def test_updates_from_several_threads_follow_each_other():
    boxes = uniform(3000)
    scene, places = rb.Scene(rb.Boxes(*boxes)), [jitter(boxes, 0.01, seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda moved: scene.update(rb.Boxes(*moved)), places * 4))
    scene.check()
    last = scene.geometry
    assert_as_fresh(scene, (last.lower, last.upper), random_rays(300))


def test_a_refused_update_leaves_the_scene_unchanged():
    boxes, rays = uniform(300), random_rays(300)
    scene = rb.Scene(rb.Boxes(*boxes))
    with pytest.raises(rb.InvalidInput):
        scene.update(rb.Boxes(boxes[0][1:], boxes[1][1:]))
    assert_as_fresh(scene, boxes, rays)


def test_rebuilds_and_copies_have_the_scene_s_quality(monkeypatch):
    made = []
    monkeypatch.setattr(
        partial_rebuild, "build", lambda *boxes, **how: made.append(how) or build(*boxes, **how)
    )
    boxes = uniform(2000)
    scene = rb.Scene(rb.Boxes(*boxes), quality="fast", workers=1)
    scene.update(rb.Boxes(boxes[0][::-1], boxes[1][::-1]))
    copy = pickle.loads(pickle.dumps(scene))
    assert [how["threads"] for how in made] == [1, 1]  # the copy is not built again
    assert_same_tree(copy._parts[0].tree, scene._parts[0].tree)
    copy.update(rb.Boxes(*boxes))
    assert [how["quality"] for how in made] == ["fast"] * 3


def test_clusters_passing_through_each_other_end_in_a_good_tree():
    boxes = clustered(4000)
    scene = rb.Scene(rb.Boxes(*boxes))
    rng = np.random.default_rng(12)
    drift = rng.standard_normal((4000, 3)) * 20
    for step in range(12):
        moved = boxes[0] + step * drift, boxes[1] + step * drift
        scene.update(rb.Boxes(*moved))
        assert scene.stats()["cost"] <= 1.5 * cost(build(*moved), *moved) * 1.5
    assert 1 <= rebuilds(scene) <= 8
