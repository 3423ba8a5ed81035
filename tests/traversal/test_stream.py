"""Sort keys, packed rays and lists of a stream lose no box, against Fractions."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import exact
import raybox as rb
from aim import INF
from ray_cases import (
    BETWEEN,
    BOX_SETS,
    EARLY,
    FUSED,
    LATE,
    TreeRay,
    U,
    copy_rows,
    f32,
    loop,
    make_case,
    outward,
    parents_of,
    set_up,
    time_at,
    times_at,
    write_slabs,
)
from raybox.bvh.build import build
from raybox.bvh.node import CHILD, ROW, Tree
from raybox.primitives.status import MISS_INDEX, UNDECIDED_INDEX
from raybox.queries.first import FirstRecorder
from raybox.traversal.job import Job
from raybox.traversal.node_test import boxes, used
from raybox.traversal.protocol import intersect_lists
from raybox.traversal.ray_keys import MISS_KEY, SINGLE_RAY_KEY, keep_keys, sort_keys
from raybox.traversal.ray_setup import CELLS, NOT_PACKED, PASSES, RESULT, STOP, TIMED, frame_of
from raybox.traversal.ray_state import latest_for
from raybox.traversal.single_walk import unpack, walk_nearest
from raybox.traversal.slab_coefficients import MARGIN, load_single_ray
from raybox.traversal.stream_lists import drop_ended, open_lists, pad, pair_up
from raybox.traversal.workspace import ListSpan, NodeSlots, make_workspace


@loop
def keys_of(rays, frame, begin, end, keys):
    sort_keys(rays, frame, begin, end, keys)


@pytest.mark.parametrize("name", BOX_SETS)
def test_keys_classify_rays(name):
    tree, rays, tree_rays, pairs = make_case(name)
    keys, frame = np.full(len(tree_rays) + 32, -7, np.int32), frame_of(tree)
    keys_of(rays, frame, 3, len(tree_rays), keys)
    corner, each = np.array(frame.numbers[10:13]), np.array(frame.numbers[13:16])
    counts = Counter()
    for ray, key, d in zip(tree_rays[3:], keys.tolist(), pairs.directions[3:], strict=False):
        longest, steady = max(abs(d)), (d != 0).all() and min(abs(d)) > max(abs(d)) / 2**10
        kind = "empty" if not ray.is_real else "hit" if ray.hit else "miss"
        wild = longest != 0 and not 2.0**-80 < longest < 2.0**80
        counts[kind if kind == "empty" or not wild else "wild"] += 1
        counts["points"] += kind == "hit" and longest == 0
        counts["miss, but live"] += (
            kind == "miss" and key < SINGLE_RAY_KEY and steady and max(map(abs, ray.v)) < 2**12
        )
        assert key == MISS_KEY or (key == SINGLE_RAY_KEY) == wild, (key, longest)
        assert {"empty": key == MISS_KEY, "hit": key != MISS_KEY, "miss": True}[kind]
        if kind == "hit" and not wild and ray.tame:
            assert [key >> (9 + k) & 1 for k in range(3)] == (d < 0).tolist()
        if kind == "hit" and not wild and steady and max(map(abs, ray.v)) < 2**6:
            cell = [sum((key >> (3 * bit + k) & 1) << bit for bit in range(3)) for k in range(3)]
            where = [float(v + ray.hit.t * w) for v, w in zip(ray.v, ray.w, strict=True)]
            want = np.clip((np.array(where) - corner) * each, 0, CELLS - 1)
            ends = (
                np.clip(np.floor(want + sign * (0.25 + each / 2.0**18)), 0, CELLS - 1) for sign in (-1, 1)
            )
            assert all((sign * (cell - end) >= 0).all() for sign, end in zip((1, -1), ends, strict=True))
            counts["cells"] += 1
    assert keys[len(tree_rays) + 16 :].tolist() == [-7] * 16
    least = {"hit": 50, "wild": 3, "empty": 0, "cells": 10, "points": 0}
    assert all(counts[kind] > number for kind, number in least.items()), counts
    # A flat scene is touched by rays that end just before it.
    assert counts["miss, but live"] <= (10 if name == "plane" else 3), counts


@loop
def list_keys(keys, span, row, live, numbers):
    return keep_keys(keys, (span[0], span[1]), row, live, numbers)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("number", [0, 1, 15, 16, 17, 250])
def test_live_rays_are_listed(number, share):
    rng = np.random.default_rng([78, number])
    live_keys = rng.choice(np.array([0, 5, SINGLE_RAY_KEY], np.int32), number)
    keys = np.where(rng.random(number) < share, live_keys, MISS_KEY).astype(np.int32)
    left = np.flatnonzero(keys != MISS_KEY)
    live, numbers = (np.full(number + 40, -7, np.int32) for _ in range(2))
    end = 11 + len(left)
    assert list_keys(keys, (30, 30 + number), 11, live, numbers) == end
    assert numbers[11:end].tolist() == (30 + left).tolist()
    assert live[11:end].tolist() == keys[left].tolist()
    assert set(live[:11]) | set(numbers[:11]) == {-7}
    # The same where the list overwrites the keys, and keys of other threads follow.
    within = np.concatenate([np.full(30, -7), keys, np.full(16, -8)]).astype(np.int32)
    assert list_keys(within[30:], (30, 30 + number), 30, within, numbers) == 30 + len(left)
    assert within[30 : 30 + len(left)].tolist() == keys[left].tolist()
    assert set(within[:30]) == {-7}
    assert set(within[30 + number :]) == {-8}


@pytest.mark.parametrize("bounds", ["of each", "of all"])
def test_rows_are_the_listed_rays(bounds):
    rng = np.random.default_rng(77)
    o, d = rng.standard_normal((2, 300, 3))
    low, high = rng.choice([-np.inf, -0.0, 0.0, 0.3], 300), rng.choice([np.inf, 1.5], 300)
    if bounds == "of all":
        low, high = -0.0, np.inf
    rays = rb.Rays(o, d, t_min=low, t_max=high)._rows()
    numbers = rng.permutation(280).astype(np.int32)
    rows = np.full((300, 8), np.nan)
    copy_rows(rays, 20, numbers, (11, 250), rows)
    of = 20 + numbers[11:250]
    want = np.column_stack([o[of], d[of], *(np.broadcast_to(t, 300)[of] for t in (low, high))])
    np.testing.assert_array_equal(rows[11:250], want)
    assert not np.signbit(rows[11:250, 6][want[:, 6] == 0]).any()
    assert np.isnan(rows[:11]).all()
    assert np.isnan(rows[250:]).all()


@loop
def pair_list(workspace, slot, item, found):
    return pair_up(workspace, slot, item, found)


@pytest.mark.parametrize("number", [0, 1, 7, 8, 9, 16, 41])
def test_a_list_of_rays_is_paired_with_a_primitive(number):
    rng, workspace = np.random.default_rng(79), make_workspace(64)
    workspace.lists[:] = rng.permutation(workspace.lists.size)
    workspace.starts[3], workspace.lengths[3] = 5, number
    workspace.pairs.ray[:], workspace.pairs.item[:] = -7, -7
    assert pair_list(workspace, 3, 12345, 6) == 6 + number
    assert workspace.pairs.ray[6 : 6 + number].tolist() == workspace.lists[5 : 5 + number].tolist()
    assert set(workspace.pairs.item[6 : 6 + number]) <= {12345}
    assert set(workspace.pairs.ray[:6]) | set(workspace.pairs.item[:6]) == {-7}


def slabs_of(workspace, number) -> list[list[float]]:
    """Return the slab coefficients and margins of packed rays."""
    rows = np.zeros((number, 16), np.float32)
    write_slabs(workspace, rows)
    return rows.tolist()


@pytest.mark.parametrize("name", BOX_SETS)
def test_packed_rays_lose_no_box_and_are_seldom_loose(name):
    tree, rays, tree_rays, pairs = make_case(name)
    ids = [k for k, ray in enumerate(tree_rays) if ray.hit and ray.tame and k]
    packed_rays, words, exactly, _, power, shifts, *_ = workspace = set_up(frame_of(tree), rays, ids)
    planes = np.unique(tree.nodes.view(np.float32)[:, :CHILD])
    planes = planes[np.abs(planes) < 2.0**50]
    rng, counts = np.random.default_rng(62), Counter()
    for k, packed_ray, slab, word, row, n, shift in zip(
        ids,
        packed_rays.tolist(),
        slabs_of(workspace, len(ids)),
        words.tolist(),
        exactly,
        power.tolist(),
        map(Fraction, shifts.tolist()),
        strict=False,
    ):
        ray, o, d = tree_rays[k], *(x[k] for x in pairs[:2])
        want = [*o, *d, pairs.t_min[k] + 0.0, pairs.t_max[k]]
        np.testing.assert_array_equal(row, want)
        assert not np.signbit(row[6]) or row[6] < 0
        assert (word[RESULT], word[TIMED], n) == (MISS_INDEX, MISS_INDEX, ray.power)

        # Times count from shortly before the ray's entry, if it begins before, and end after its exit.
        stop = packed_ray[STOP]
        size = abs(ray.hit.t) + max(map(abs, ray.v)) / min((abs(w) for w in ray.w if w), default=1)
        early = min(Fraction(2) ** -12, max(ray.hit.t - ray.low, 0))
        assert 0 < ray.hit.t - early - shift <= size / 2**20 + Fraction(2) ** -98, k
        last = ray.hit.t_exit
        assert stop >= last - shift
        if last < INF:
            reach = abs(last - shift) / 2 + abs(last) + size
            assert stop - (last - shift) <= reach / 2**20 + Fraction(2) ** -98

        # The margin covers the errors of the ends of the range.
        margin = exact.real(slab[MARGIN])
        assert ray.low - shift <= margin
        assert exact.real(stop) * (1 - 8 * U) - margin <= ray.high - shift
        stands = any(w == 0 for w in ray.w)
        assert (margin > 2**62) == stands
        x = [v + shift * w for v, w in zip(ray.v, ray.w, strict=True)]
        off = [
            (10 if FUSED else 16) * U * abs(a) + max(map(abs, ray.v)) / 2**48 + Fraction(2) ** -36 for a in x
        ]
        wide = ray.low < ray.hit.t - early - size / 2**19 and ray.high > last + size / 2**19
        if wide and not stands:
            assert margin <= max(far / abs(w) for far, w in zip(off, ray.w, strict=True))
            counts["tight"] += 1
        counts["marginless" if stands else "margin"] += 1

        for axis in range(3):
            c_near, c_far, near, far = map(exact.real, slab[axis:12:3])
            v, w, x_k = ray.v[axis], ray.w[axis], x[axis]
            if w == 0:
                counts["standing"] += 1
                assert_zero_direction(slab, axis, v, f32(last - shift))
                continue
            assert (near > 0) == (far > 0) == (w > 0)
            own = np.float32(float(x_k)) + np.float32([-1e-3, -1e-7, 0, 1e-7, 1e-3])
            for b in map(Fraction, [*rng.choice(planes, 12).tolist(), *own.tolist()]):
                t = (b - v) / w - shift
                first, final = time_at(b, near, c_near), time_at(b, far, c_far)
                rough = min(margin, off[axis] / abs(w))
                assert first <= max(t, 0) * (1 + BETWEEN), (k, axis)
                assert final >= t * (1 + BETWEEN) or t < 0, (k, axis)
                assert t - first <= EARLY * abs(t) + rough, (k, axis)
                assert final - t <= LATE * abs(t) + rough, (k, axis)
                counts["ahead" if t > 0 else "behind"] += 1
    assert min(counts["standing"] - 20, counts["ahead"] - 300, counts["behind"] - 300) > 0, counts
    assert name == "open" or min(counts["margin"], counts["tight"] + 5) > 20, counts


def assert_zero_direction(slab, axis, v, stop):
    """Assert that an axis of zero direction excludes exactly the slabs without the origin."""
    c_near, c_far, near, far = slab[axis:12:3]
    away = 2.0**-20 * max(1.0, abs(float(v)))
    below, above = np.empty(3, np.float32), np.empty(3, np.float32)
    outward(float(v) + np.array([0.0, away, -away]), below, above)
    with np.errstate(over="ignore"):
        first, last = times_at(below, near, c_near), times_at(above, far, c_far)
    assert first[0] <= 0
    assert last[0] >= min(stop, 2.0**61)
    assert stop == INF or (first[1] > stop and last[2] < 0), (first, last, stop)


def test_slabs_of_distant_rays_lose_no_box():
    """The float64 rounding error of their entry exceeds all float32 errors."""
    rng, counts = np.random.default_rng(66), Counter()
    lower = rng.uniform(-1, 1, (50, 3))
    tree = build(lower, lower + 0.1)
    origins = rng.normal(size=(80, 3)) * 2.0 ** rng.integers(28, 44, 80)[:, None]
    ways = rng.uniform(-1, 1, (80, 3)) - origins
    rays = rb.Rays(origins, ways)._rows()
    workspace = set_up(frame_of(tree), rays, range(80))
    planes = [Fraction(float(x)) for x in np.unique(tree.nodes.view(np.float32)[:, :CHILD]) if abs(x) < 4]
    for k, slab in enumerate(slabs_of(workspace, 80)):
        ray, shift = (
            TreeRay(tree, origins[k].tolist(), ways[k].tolist(), 0.0, INF),
            Fraction(float(workspace.shift[k])),
        )
        if workspace.packed_rays[k, STOP] < 0:
            counts["passes"] += 1
            continue
        for axis in range(3):
            c_near, c_far, near, far = map(Fraction, slab[axis:12:3])
            v, w = ray.v[axis], ray.w[axis]
            for b in planes[::5]:
                t = (b - v) / w - shift
                assert time_at(b, near, c_near) <= max(t, 0) * (1 + BETWEEN), (k, axis)
                assert time_at(b, far, c_far) >= t * (1 + BETWEEN) or t < 0, (k, axis)
                counts["ahead" if t > 0 else "behind"] += 1
    assert counts["ahead"] > 5000, counts


@pytest.mark.parametrize("place", ["at the centre", "by the plane", "anywhere"])
def test_roundings_that_add_up_stay_within_margins(place):
    """Of many rays and planes some have nearly all roundings in one direction."""
    rng, number = np.random.default_rng(68), 40_000
    signs = rng.choice([-1.0, 1.0], (number, 3))
    origins = signs * rng.uniform(0.5, 1, (number, 3)) * (2.0**-12 if place == "at the centre" else 1.0)
    ways = rng.uniform(0.5, 1, (number, 3)) * rng.choice([-1.0, 1.0], (number, 3))
    ways[:, 0] = 1.0 - 2.0**-53  # times are counted in units of the longest part
    nodes, root = np.empty((0, ROW), np.int32), np.array([[-2.0] * 3, [2.0] * 3])
    frame = frame_of(Tree(nodes, np.zeros(3), root, 1.0, 0, np.empty(0, np.int64)))
    workspace = set_up(frame, rb.Rays(origins, ways)._rows(), range(number))
    assert np.abs(workspace.shift[:number]).max() < 2.0**-90
    slabs = np.zeros((number, 16), np.float32)
    write_slabs(workspace, slabs)
    counts = Counter()
    for axis in (1, 2):
        x, w = origins[:, axis], ways[:, axis]
        near_offset, far_offset, near, far = slabs[:, axis:12:3].T.astype(float)
        for _ in range(8):
            planes = np.float32(rng.uniform(0.5, 1, number) * np.sign(w))
            if place == "by the plane":
                planes = np.float32(x) * (1 + np.float32(2.0**-23) * rng.integers(-9, 10, number)).astype("f")
            t = (planes - x) / w  # in float64: errors are far below 2^-24
            first = times_at(planes, near, near_offset).astype(float)
            last = times_at(planes, far, far_offset).astype(float)
            rough = 2.0**-50
            assert (first <= np.maximum(t, 0) * (1 + float(BETWEEN)) + rough).all(), axis
            assert ((last >= t * (1 + float(BETWEEN)) - rough) | (t < 0)).all(), axis
            counts["ahead"] += int((t > 0).sum())
            counts["close"] += int((np.abs(t) < 2.0**-18).sum())
    assert counts["ahead"] > number, counts
    assert (counts["close"] > 100_000) == (place == "by the plane"), counts


def test_zero_directions_far_from_the_bulk_are_not_packed():
    """One stray box is as far away as float32 can resolve, another is farther."""
    lower = np.concatenate(
        [np.random.default_rng(67).uniform(-1, 1, (60, 3)), [[2.0**24] * 3, [2.0**28] * 3]]
    )
    upper = lower + np.array([[0.2]] * 60 + [[2.0], [16.0]])
    origins = np.array([[2.0**24 + 1, 2.0**24 + 1, -9.0], [2.0**28 + 3, 2.0**28 + 1, -9.0]])
    tree, ways = build(lower, upper), np.array([[0.0, 0.0, 1.0]] * 2)
    workspace = set_up(frame_of(tree), rb.Rays(origins, ways)._rows(), range(2))
    assert workspace.packed_rays[0, STOP] > 2.0**24
    assert (workspace.packed_rays[1, STOP], workspace.state[1, RESULT]) == (NOT_PACKED, UNDECIDED_INDEX)
    hits = rb.Scene(rb.Boxes(lower, upper)).nearest(
        rb.Rays(np.tile(origins, (900, 1)), np.tile(ways, (900, 1)))
    )
    assert hits.index.tolist() == [60, 61] * 900


def test_zero_directions_beside_all_boxes_miss_at_once():
    """Also where boxes are unbounded along the ray, so that no time excludes them."""
    lower, upper = (
        np.array([[0.0, 0.0, -INF], [2.0, 0.5, -1.0]]),
        np.array([[1.0, 1.0, INF], [3.0, 0.7, 4.0]]),
    )
    origins = np.array([[-5.0, 0.5, 0.0], [1.5, 9.0, 2.0], [0.5, 1.0, 7.0], [2.5, 1.5, 0.0]])
    rays = rb.Rays(origins, np.tile([0.0, -0.0, 1.0], (4, 1)))._rows()
    packed_rays = set_up(frame_of(build(lower, upper)), rays, range(4)).packed_rays
    assert packed_rays[:2, STOP].tolist() == [PASSES] * 2
    assert packed_rays[2, STOP] >= 0
    assert packed_rays[3, STOP] == PASSES


def test_invalid_rays_miss_at_once():
    """They are not traversed one by one: sensor data may be full of them."""
    origins, ways = np.array([[-5.0, 0.5, 0.5], [np.nan, 0.5, 0.5], [-5.0, 0.5, 0.5]]), np.eye(3)[[0, 0, 0]]
    ways[2, 1] = np.nan
    rays = rb.Rays(origins, ways, t_min=[0.0, 0.0, 0.0], t_max=[9.0, 9.0, 9.0], invalid="miss")._rows()
    packed_rays = set_up(frame_of(build(np.zeros((1, 3)), np.ones((1, 3)))), rays, range(3)).packed_rays
    assert packed_rays[0, STOP] >= 0
    assert packed_rays[1:3, STOP].tolist() == [PASSES] * 2


# No box is lost


@loop
def intersect_node(recorder, job, node, workspace, number, single, all_boxes):
    """Intersect the rays of the first list with a node, as a list and one by one; node: row, octant.

    all_boxes: the nodes, as if each slot in use were a box.
    """
    nodes, row, octant = job.tree.nodes, node[0] * ROW, node[1]
    pad(workspace.lists, workspace.lists[0], number)
    open_lists(workspace, number + 16, number + 16)
    leaves = boxes(nodes, row)
    intersect_lists(
        recorder,
        job,
        workspace,
        NodeSlots(row, octant, used(nodes, row) & leaves, used(nodes, row) & ~leaves),
        ListSpan(0, number),
    )
    for k in range(number):
        load_single_ray(recorder, workspace, np.int64(workspace.lists[k]))
        workspace.node[0], workspace.time[0] = node[0], 0.0
        found = unpack(walk_nearest(all_boxes, workspace, (1, octant, np.int64(workspace.lists[k]))))
        single[k] = found.possible if found.node >= 0 else 0
        workspace.rays64[k] = workspace.slots


@loop
def latest_of(workspace, t):
    for r in range(t.size):
        if t[r] < np.inf:
            workspace.packed_rays[r, STOP] = min(
                workspace.packed_rays[r, STOP], latest_for(workspace, r, t[r])
            )


@loop
def drop_ended_rays(workspace, number):
    pad(workspace.lists, workspace.lists[0], number)
    return drop_ended(workspace, 0, number)


@pytest.mark.parametrize("name", BOX_SETS)
def test_every_slot_above_a_hit_is_a_candidate(name):
    tree, rays, tree_rays, pairs = make_case(name, seed=63)
    ids = [k for k, ray in enumerate(tree_rays) if ray.hit and ray.tame and k]
    found = list(exact.along(*(x[ids] for x in pairs[:4]), *pairs[4:]))
    workspace, above, single = (
        set_up(frame_of(tree), rays, ids),
        parents_of(tree),
        np.zeros(len(ids), np.int64),
    )
    octants = ((pairs.directions[ids] < 0) @ [1, 2, 4]).tolist()
    all_boxes = tree.nodes.copy()
    children = all_boxes[:, CHILD:]
    children[children >= 0] = ~children[children >= 0]
    all_boxes.flags.writeable = False
    for pruned in (False, True):
        wanted = {}
        for r, row in enumerate(found):
            for box in row[:1] if pruned else row:
                step = above[~box.index]
                while step is not None:
                    wanted.setdefault((step[0], octants[r]), set()).add((r, step[1]))
                    step = above[step[0]]
        if pruned:
            latest_of(workspace, np.array([row[0].plain[1] if row else INF for row in found]))
        for (node, octant), wanted_pairs in wanted.items():
            group = [r for r in range(len(ids)) if octants[r] == octant]
            workspace.lists[: len(group)] = group
            intersect_node(
                FirstRecorder(*[()] * 5),
                Job(tree, (), (), (), ()),
                (node, octant),
                workspace,
                len(group),
                single,
                all_boxes,
            )
            lists = [
                workspace.lists[a : a + n].tolist()
                for a, n in zip(workspace.starts.tolist(), workspace.lengths.tolist(), strict=True)
            ]
            hit = {(r, slot) for slot, rows in enumerate(lists) for r in rows}
            assert wanted_pairs <= hit, (node, sorted(wanted_pairs - hit)[:3])
            assert hit == {
                (r, s)
                for r, bits in zip(group, single.tolist(), strict=False)
                for s in range(8)
                if bits >> s & 1
            }
            for slot, (begin, number) in enumerate(
                zip(workspace.starts.tolist(), workspace.lengths.tolist(), strict=True)
            ):
                want = [workspace.rays64[group.index(r), slot] for r in lists[slot]]
                assert workspace.times[begin : begin + number].tolist() == want
                assert lists[slot] == sorted(lists[slot])
    assert sum(map(len, found)) > 200


def test_ended_rays_are_dropped_from_a_list():
    rng, workspace = np.random.default_rng(64), make_workspace(100)
    workspace.packed_rays[:, STOP] = rng.choice([0.0, 1.0, 2.0, 3.0, INF], 116)
    for number in (1, 15, 16, 17, 70):
        workspace.times[:120] = rng.integers(0, 4, 120)
        workspace.lists[:number] = rays = rng.permutation(100)[:number]
        want = rays[workspace.times[:number] <= workspace.packed_rays[rays, STOP]].tolist()
        assert workspace.lists[: drop_ended_rays(workspace, number)].tolist() == want


def test_the_latest_time_is_late_and_not_by_much():
    tree, rays, tree_rays, _pairs = make_case("map", seed=65)
    ids = [k for k, ray in enumerate(tree_rays) if ray.hit and ray.tame and k]
    workspace = set_up(frame_of(tree), rays, ids)
    for share in (0.0, 1.0, 0.5, 1.5):
        workspace.packed_rays[:, STOP] = INF
        spans = [
            (tree_rays[k].hit.t, min(tree_rays[k].hit.t_exit, 2**60), Fraction(2) ** -tree_rays[k].power)
            for k in ids
        ]
        t = np.array([float((low + Fraction(share) * (high - low)) * unit) for low, high, unit in spans])
        latest_of(workspace, t)
        for k, when, packed_ray, shift in zip(
            ids, t.tolist(), workspace.packed_rays.tolist(), workspace.shift.tolist(), strict=False
        ):
            whole = Fraction(when) * Fraction(2) ** tree_rays[k].power
            want = whole - Fraction(shift)
            loose = abs(want) / 2**20 + abs(whole) / 2**46 + Fraction(2) ** -97
            assert max(want, 0) <= Fraction(packed_ray[STOP]) <= max(want, 0) + loose
