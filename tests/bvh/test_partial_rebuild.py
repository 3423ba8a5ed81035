"""Partial rebuilds: the right parts, sound, and as good as a whole new tree."""

from typing import NamedTuple

import numpy as np
import pytest

import raybox as rb
from raybox.bvh import partial_rebuild
from raybox.bvh.build import build, build_some
from raybox.bvh.node import CHILD, EMPTY, MAX_DEPTH
from raybox.bvh.partial_rebuild import Costs, measure
from raybox.bvh.refit import copy_nodes, refit_into
from raybox.bvh.validate import check, cost
from raybox.errors import RayboxError
from raybox.queries.hit_query import HitOfRay
from raybox.queries.nearest.stream import Nearest
from raybox.traversal.job import Job
from raybox.traversal.single import RaySpan, make_scratch, traverse_rays
from raybox.traversal.tree import visits
from test_build import FAMILIES, assert_same_tree, clustered, levels, small_tasks, uniform
from test_scene_update import Backward, assert_as_fresh, random_rays

__all__ = ["small_tasks"]
INF = np.inf


def stray(boxes, straying, step, seed):
    """Return boxes of which some have taken a random step within the unit cube."""
    to = np.clip(
        boxes[0][straying] + np.random.default_rng(seed).standard_normal((len(straying), 3)) * step, 0, 1
    )
    shift = np.zeros_like(boxes[0])
    shift[straying] = to - boxes[0][straying]
    return boxes[0] + shift, boxes[1] + shift


def corner_of(boxes, number):
    """Return the numbers of the boxes nearest to a corner."""
    return np.argsort(np.abs(boxes[0] - 0.1).max(axis=1), kind="stable")[:number]


def moved_tree(tree, boxes):
    return refit_into(copy_nodes(tree.nodes), tree, *boxes)[0]


class ForcedRebuild(NamedTuple):
    tree: object
    before: object
    poor: list


def force_rebuild(tree, boxes, poor, monkeypatch, quality="balanced", **how):
    """Rebuild these parts whatever their cost; None where the whole tree should be."""
    monkeypatch.setattr(partial_rebuild, "_LIMIT", INF)
    excess = np.full(tree.parts.size, INF)
    excess[poor] = -1.0
    before = moved_tree(tree, boxes)
    rebuilt = partial_rebuild.rebuild_parts(before, boxes, Costs(0.5, excess), quality=quality, **how)
    return rebuilt and ForcedRebuild(rebuilt[0], before, poor)


def part(tree, k):
    """Return a part's nodes, with children counted from its root, and the slots that refer to it."""
    begins = [*tree.parts.tolist(), len(tree.nodes)]
    nodes = tree.nodes[begins[k] : begins[k + 1]].copy()
    children = nodes[:, CHILD:]
    children[children >= 0] -= begins[k]
    return nodes, np.argwhere(tree.nodes[: begins[0], CHILD:] == begins[k]).tolist()


def numbers_in(nodes):
    children = nodes[:, CHILD:]
    return np.sort(~children[(children < 0) & (children != EMPTY)])


def assert_only_rebuilt(rebuild, boxes):
    """Assert a sound tree of the same parts, of which only the chosen ones have changed."""
    tree, before, poor = rebuild
    check(tree, *boxes)
    assert tree.parts.size == before.parts.size
    assert tree.nodes.ctypes.data % 64 == 0
    assert not tree.parts.flags.writeable
    np.testing.assert_array_equal(tree.root, before.root)
    first = tree.parts[0]
    np.testing.assert_array_equal(tree.nodes[:first, :CHILD], before.nodes[:first, :CHILD])
    for k in range(tree.parts.size):
        (now, place), (then, old_place) = part(tree, k), part(before, k)
        assert place == old_place
        np.testing.assert_array_equal(numbers_in(now), numbers_in(then))
        if k not in poor:
            np.testing.assert_array_equal(now, then)


# Parts


def test_trees_of_a_single_part_list_no_parts():
    assert build(*uniform(3000)).parts.size == 0
    assert build(*uniform(0)).parts.size == 0
    assert build(*uniform(70_000), quality="fast").parts.size == 0
    assert build(*uniform(70_000)).parts.size == 8


@pytest.mark.parametrize(
    "wrong",
    [
        lambda p: np.delete(p, 2),
        lambda p: p + 1,
        lambda p: np.append(p, p[-1] + 1),
        lambda p: np.append(p, p[-1]),
    ],
    ids=["one less", "next rows", "one more", "one twice"],
)
def test_check_finds_wrong_parts(wrong, small_tasks):
    boxes = uniform(3000)
    tree = build(*boxes)
    check(tree, *boxes)
    with pytest.raises(RayboxError, match="part"):
        check(tree._replace(parts=wrong(tree.parts)), *boxes)


@pytest.mark.parametrize("name", FAMILIES)
def test_costs_of_parts_and_of_the_whole(name, small_tasks):
    """The cost of a part is what the nodes below its root add to the whole."""
    boxes, moved = uniform(1500), FAMILIES[name](1500)
    for quality in ("balanced", "fast"):
        tree = moved_tree(build(*boxes, quality=quality), moved)
        costs = measure(tree, *moved)
        assert costs.whole == pytest.approx(cost(tree, *moved), rel=1e-4)
        assert len(costs.parts) == tree.parts.size
        for k in range(0, tree.parts.size if np.isfinite(costs.whole) else 0, 5):
            begin, end = [*tree.parts, len(tree.nodes)][k : k + 2]
            rest = np.delete(tree.nodes, slice(begin + 1, end), axis=0)
            without = costs.whole - measure(tree._replace(nodes=rest, parts=np.zeros(0, int)), *moved).whole
            assert costs.parts[k] == pytest.approx(without, rel=1e-6, abs=1e-6 * costs.whole)


# Rebuilds


@pytest.mark.parametrize("quality", ["balanced", "best"])
@pytest.mark.parametrize("name", FAMILIES)
def test_parts_of_any_boxes_are_sound(name, quality, small_tasks, monkeypatch):
    boxes, start = FAMILIES[name](2500), uniform(2500)
    for tree in (build(*start, quality=quality), build(*boxes, quality=quality)):
        for poor in ([0], [1, tree.parts.size - 1]):
            rebuild = force_rebuild(tree, boxes, poor, monkeypatch, quality)
            if np.isfinite(cost(tree, *boxes)):
                assert_only_rebuilt(rebuild, boxes)
            else:  # the tree coordinates do not fit such boxes
                assert rebuild is None


def test_parts_of_equal_boxes_are_sound(small_tasks, monkeypatch):
    """A part has thousands of equal boxes, and a few unbounded ones."""
    monkeypatch.setattr("raybox.bvh.build._TASK", 4000)
    lower, upper = uniform(20_000)
    tree = build(lower, upper)
    numbers = numbers_in(part(tree, 2)[0])
    assert len(numbers) > 1000
    lower[numbers], upper[numbers] = 0.25, 0.5
    lower[numbers[:5]], upper[numbers[:5]] = -INF, INF
    upper[numbers[5:9], 0] = INF
    rebuild = force_rebuild(tree, (lower, upper), [2], monkeypatch)
    assert_only_rebuilt(rebuild, (lower, upper))
    assert levels(part(rebuild.tree, 2)[0]) <= 8


def test_the_depth_of_a_part_continues_that_of_the_top(small_tasks, monkeypatch):
    boxes = clustered(4000)
    tree = build(*boxes)
    depths = {}

    def record(framed, numbers, depth, quality):
        depths[numbers.min()] = depth
        return build_some(framed, numbers, depth, quality)

    monkeypatch.setattr(partial_rebuild, "build_some", record)
    for k in range(tree.parts.size):
        force_rebuild(tree, boxes, [k], monkeypatch)
    depth = {0: 1}
    for node, slot in np.argwhere(tree.nodes[:, CHILD:] >= 0).tolist():
        depth[int(tree.nodes[node, CHILD + slot])] = depth[node] + 1
    want = {numbers_in(part(tree, k)[0])[0]: depth[int(tree.parts[k])] for k in range(tree.parts.size)}
    assert depths == want
    assert len(set(want.values())) > 1
    assert max(want.values()) < MAX_DEPTH


@pytest.mark.parametrize("quality", ["balanced", "best"])
def test_threads_do_not_change_a_partial_rebuild(quality, small_tasks, monkeypatch):
    boxes = clustered(3000)
    tree = build(*boxes, quality=quality)
    poor, moved = [0, 2, 5, 7], (boxes[0][::-1].copy(), boxes[1][::-1].copy())
    serial = force_rebuild(tree, moved, poor, monkeypatch, quality)
    assert_only_rebuilt(serial, moved)
    for threads in (2, 3):
        assert_same_tree(
            force_rebuild(tree, moved, poor, monkeypatch, quality, threads=threads).tree, serial.tree
        )
    monkeypatch.setattr(partial_rebuild, "TaskRunner", Backward)
    assert_same_tree(force_rebuild(tree, moved, poor, monkeypatch, quality).tree, serial.tree)


# Choice


def chosen(tree, boxes, excess):
    """Return the parts that are chosen by their excess, in a tree of cost 10."""
    excess = np.array(excess, float)
    now = Costs(10.0 + excess.sum(), excess)
    at = partial_rebuild._locate_parts(tree)
    return list(
        partial_rebuild._choose(tree.nodes, at, now, Costs(10.0, np.zeros_like(excess)), len(boxes[0]))
    )


def test_the_poorest_parts_are_chosen_as_many_as_it_takes():
    boxes = uniform(70_000)
    tree = build(*boxes)
    assert chosen(tree, boxes, [0, 5, 0, 0, 9, 0, 0, 0]) == [4, 1]
    assert chosen(tree, boxes, [0.01, 5, 0, 0, 9, 0, 0, 0]) == [4, 1]
    assert chosen(tree, boxes, [0, 5, 0, -1, 9, 0, 0, 0]) == [4, 1]
    assert chosen(tree, boxes, [0, 0, 0, 7, 0, 0, 0, 1]) == [3, 7]
    # Four parts are half of the boxes: three are chosen if the excess of the rest is small, else none.
    assert chosen(tree, boxes, [1, 3, 3, 3, 0, 0, 0, 0]) == [1, 2, 3]
    assert chosen(tree, boxes, [3, 3, 3, 3, 0, 0, 0, 0]) == []
    assert chosen(tree, boxes, [2] * 8) == []


# A moving scene


def visited(tree, boxes, rays):
    """Return the number of nodes that rays visit to find their nearest box."""
    job = Job(tree, rb.Boxes(*boxes)._rows(), rays._rows(), np.empty(0, np.bool_))
    scratch, n = make_scratch(), len(rays)
    traverse_rays(job, RaySpan(0, n), scratch, HitOfRay(Nearest(np.full(n, -1), np.full(n, INF)), 0))
    return int(visits(scratch).nodes)


@pytest.fixture(scope="module")
def frames():
    """Boxes of 21 frames: 1 % of 10^5 boxes, all from one corner, stray over the scene."""
    boxes = uniform(100_000, size=0.01)
    places, straying = [boxes], corner_of(boxes, 1000)
    for frame in range(20):
        places.append(stray(places[-1], straying, 0.05, frame))
    return places


def test_boxes_leaving_a_corner_rebuild_parts_only(frames):
    scene, rays = rb.Scene(rb.Boxes(*frames[0])), random_rays(1000)
    refit_policy, visit_ratios = scene._parts[0].refit_policy, []
    for boxes in frames[1:]:
        times, built = refit_policy.partial_rebuilds, refit_policy.built
        scene.update(rb.Boxes(*boxes))
        scene.check()
        new = build(*boxes)
        assert scene.stats()["cost"] <= 1.4 * cost(new, *boxes)
        if refit_policy.partial_rebuilds > times:
            assert scene.stats()["cost"] <= 1.15 * cost(new, *boxes)
            visit_ratios.append(visited(scene._parts[0].tree, boxes, rays) / visited(new, boxes, rays))
            assert_as_fresh(scene, boxes, rays)
            assert refit_policy.built.whole == built.whole
            assert 0 < np.count_nonzero(refit_policy.built.parts != built.parts) < 4
    assert refit_policy.rebuilds == 0
    assert len(visit_ratios) == refit_policy.partial_rebuilds
    assert 3 <= len(visit_ratios) <= 8
    assert max(visit_ratios) <= 1.15, visit_ratios


def test_the_first_part_rebuilt_is_as_good_as_new(frames):
    """Golden numbers of visited nodes: refitted, with rebuilt parts, in a whole new tree."""
    tree, rays = build(*frames[0]), random_rays(1000)
    built = measure(moved_tree(tree, frames[0]), *frames[0])
    poor = moved_tree(tree, frames[6])
    rebuilt, costs = partial_rebuild.rebuild_parts(poor, frames[6], built, quality="balanced")
    check(rebuilt, *frames[6])
    work = [visited(one, frames[6], rays) for one in (poor, rebuilt, build(*frames[6]))]
    assert work == [24_845, 16_626, 16_546]
    assert np.flatnonzero(costs.parts != built.parts).tolist() == [0]
    assert costs.whole == built.whole
    assert costs.parts[0] == pytest.approx(measure(rebuilt, *frames[6]).parts[0])


def test_earlier_trees_and_hits_do_not_change(frames):
    scene, rays = rb.Scene(rb.Boxes(*frames[0])), random_rays(500)
    earlier = []
    for boxes in frames[1:]:
        scene.update(rb.Boxes(*boxes))
        state, hits = scene._parts[0], scene.nearest(rays)
        earlier.append((state.tree, state.tree.nodes.copy(), hits, hits.t_exit.copy()))
    assert scene._parts[0].refit_policy.partial_rebuilds > 1
    for tree, nodes, hits, t_exit in earlier:
        np.testing.assert_array_equal(tree.nodes, nodes)
        np.testing.assert_array_equal(hits.t_exit, t_exit)


def test_memory_of_a_tree_is_not_reused_for_one_of_another_size(frames):
    """Earlier trees are released late; a refit into their memory would have the wrong size."""
    scene = rb.Scene(rb.Boxes(*frames[0]))
    refit_policy, before, sizes = scene._parts[0].refit_policy, None, set()
    for boxes in frames[1:]:
        before = scene._parts[0].tree
        times = refit_policy.partial_rebuilds
        scene.update(rb.Boxes(*boxes))
        sizes.add(len(scene._parts[0].tree.nodes))
        if refit_policy.partial_rebuilds > times:
            del before
            for _ in range(3):
                scene.update(rb.Boxes(*boxes))
                assert all(len(nodes) == len(scene._parts[0].tree.nodes) for nodes in refit_policy.spare)
                scene.check()
    assert len(sizes) > 2


def test_the_whole_is_rebuilt_where_parts_are_no_better(frames, monkeypatch):
    tries = []

    def poorly(framed, numbers, _depth, quality):
        """Build a part by number alone, of boxes in random order."""
        tries.append(len(numbers))
        return build_some(framed, np.random.default_rng(0).permutation(numbers), 49, quality)

    monkeypatch.setattr(partial_rebuild, "build_some", poorly)
    scene = rb.Scene(rb.Boxes(*frames[0]))
    scene.update(rb.Boxes(*frames[10]))
    assert tries
    assert (scene._parts[0].refit_policy.rebuilds, scene._parts[0].refit_policy.partial_rebuilds) == (1, 0)
    assert_same_tree(scene._parts[0].tree, build(*frames[10]))


@pytest.mark.core
@pytest.mark.parametrize("quality", ["balanced", "best"])
def test_results_are_those_of_fresh_scenes(quality, small_tasks, monkeypatch):
    """Parts and the whole are rebuilt; equal boxes stay, and an unbounded box strays."""
    monkeypatch.setattr("raybox.bvh.build._TASK", 1200)
    boxes, rays = uniform(8000, size=0.003), random_rays(600)
    straying = corner_of(boxes, 320)
    boxes[0][straying[300:]], boxes[1][straying[300:]] = 0.1, 0.11
    boxes[1][straying[0], 1] = INF
    scene, straying = rb.Scene(rb.Boxes(*boxes), quality=quality), straying[:300]
    for frame in range(15):
        boxes = stray(boxes, straying, 0.05, frame)
        scene.update(rb.Boxes(*boxes))
        assert_as_fresh(scene, boxes, rays)
    assert scene._parts[0].refit_policy.partial_rebuilds > 0
    assert scene._parts[0].refit_policy.rebuilds > 0
