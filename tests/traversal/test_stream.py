"""Rays as the tree sees them: keys, probes and lists that lose no box, held to Fractions."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import exact
import raybox as rb
from aim import INF
from cast import PLACES, Seen, aimed, copied, loop, see, unfolded
from raybox.bvh.build import build
from raybox.bvh.node import CHILD, EMPTY, ROW, outward_down, outward_up
from raybox.queries.first import FirstRecorder
from raybox.traversal.certain_hits import intersect_lists
from raybox.traversal.node_test import boxes, intersect_slots, used
from raybox.traversal.ray_keys import MISS_KEY, SINGLE_RAY_KEY, keep_keys, sort_keys
from raybox.traversal.ray_setup import (
    CELLS,
    MISS,
    NOT_PACKED,
    PASSES,
    RESULT,
    STOP,
    TIMED,
    UNDECIDED,
    frame_of,
)
from raybox.traversal.ray_state import latest_for
from raybox.traversal.single import Job
from raybox.traversal.slab_coefficients import MARGIN, load_single_ray
from raybox.traversal.stream_lists import drop_ended, open_lists, pad, pair_up
from raybox.traversal.workspace import make_workspace


@loop
def keys_of(rays, frame, begin, end, keys):
    sort_keys(rays, frame, begin, end, keys)


@pytest.mark.parametrize("place", PLACES)
def test_keys_are_those_of_what_rays_are(place):
    tree, rays, seen, pairs = see(place)
    keys, frame = np.full(len(seen) + 32, -7, np.int32), frame_of(tree)
    keys_of(rays, frame, 3, len(seen), keys)
    corner, each = np.array(frame.numbers[10:13]), np.array(frame.numbers[13:16])
    counts = Counter()
    for ray, key, d in zip(seen[3:], keys.tolist(), pairs.directions[3:], strict=False):
        longest, steady = max(abs(d)), (d != 0).all() and min(abs(d)) > max(abs(d)) / 2**10
        kind = "empty" if not ray.is_real else "met" if ray.met else "missed"
        wild = not 2.0**-80 < longest < 2.0**80
        counts[kind if kind == "empty" or not wild else "wild"] += 1
        counts["missed, but kept"] += (
            kind == "missed" and key < SINGLE_RAY_KEY and steady and max(map(abs, ray.v)) < 2**12
        )
        assert key == MISS_KEY or (key == SINGLE_RAY_KEY) == wild, (key, longest)
        assert {"empty": key == MISS_KEY, "met": key != MISS_KEY, "missed": True}[kind]
        if kind == "met" and not wild and ray.tame:
            assert [key >> (9 + k) & 1 for k in range(3)] == (d < 0).tolist()
        if kind == "met" and not wild and steady and max(map(abs, ray.v)) < 2**6:
            cell = [sum((key >> (3 * bit + k) & 1) << bit for bit in range(3)) for k in range(3)]
            where = [float(v + ray.met.t * w) for v, w in zip(ray.v, ray.w, strict=True)]
            want = np.clip((np.array(where) - corner) * each, 0, CELLS - 1)
            ends = (
                np.clip(np.floor(want + sign * (0.25 + each / 2.0**18)), 0, CELLS - 1) for sign in (-1, 1)
            )
            assert all((sign * (cell - end) >= 0).all() for sign, end in zip((1, -1), ends, strict=True))
            counts["cells"] += 1
    assert keys[len(seen) + 16 :].tolist() == [-7] * 16
    assert min(counts["met"] - 50, counts["wild"] - 3, counts["empty"], counts["cells"] - 10) > 0, counts
    # a flat scene is touched by rays that end just short of it
    assert counts["missed, but kept"] <= (10 if place == "plane" else 3), counts


@loop
def kept_of(keys, span, row, kept, numbers):
    return keep_keys(keys, (span[0], span[1]), row, kept, numbers)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("number", [0, 1, 15, 16, 17, 250])
def test_rays_that_are_not_lost_are_listed(number, share):
    rng = np.random.default_rng([78, number])
    few = rng.choice(np.array([0, 5, SINGLE_RAY_KEY], np.int32), number)
    keys = np.where(rng.random(number) < share, few, MISS_KEY).astype(np.int32)
    left = np.flatnonzero(keys != MISS_KEY)
    kept, numbers = (np.full(number + 40, -7, np.int32) for _ in range(2))
    end = 11 + len(left)
    assert kept_of(keys, (30, 30 + number), 11, kept, numbers) == end
    assert numbers[11:end].tolist() == (30 + left).tolist()
    assert kept[11:end].tolist() == keys[left].tolist()
    assert set(kept[:11]) | set(numbers[:11]) == {-7}
    # the same where the list takes the place of the keys, which other threads' keys follow
    within = np.concatenate([np.full(30, -7), keys, np.full(16, -8)]).astype(np.int32)
    assert kept_of(within[30:], (30, 30 + number), 30, within, numbers) == 30 + len(left)
    assert within[30 : 30 + len(left)].tolist() == keys[left].tolist()
    assert set(within[:30]) == {-7}
    assert set(within[30 + number :]) == {-8}


@pytest.mark.parametrize("bounds", ["of each", "of all"])
def test_rows_are_the_rays_that_are_listed(bounds):
    rng = np.random.default_rng(77)
    o, d = rng.standard_normal((2, 300, 3))
    low, high = rng.choice([-np.inf, -0.0, 0.0, 0.3], 300), rng.choice([np.inf, 1.5], 300)
    if bounds == "of all":
        low, high = -0.0, np.inf
    rays = rb.Rays(o, d, t_min=low, t_max=high).rows()
    numbers = rng.permutation(280).astype(np.int32)
    rows = np.full((300, 8), np.nan)
    copied(rays, 20, numbers, (11, 250), rows)
    of = 20 + numbers[11:250]
    want = np.column_stack([o[of], d[of], *(np.broadcast_to(t, 300)[of] for t in (low, high))])
    np.testing.assert_array_equal(rows[11:250], want)
    assert not np.signbit(rows[11:250, 6][want[:, 6] == 0]).any()
    assert np.isnan(rows[:11]).all()
    assert np.isnan(rows[250:]).all()


@loop
def paired(desk, slot, item, found):
    return pair_up(desk, slot, item, found)


@pytest.mark.parametrize("number", [0, 1, 7, 8, 9, 16, 41])
def test_rays_of_a_list_are_paired_with_a_primitive(number):
    rng, desk = np.random.default_rng(79), make_workspace(64)
    desk.lists[:] = rng.permutation(desk.lists.size)
    desk.starts[3], desk.lengths[3] = 5, number
    desk.pairs.ray[:], desk.pairs.item[:] = -7, -7
    assert paired(desk, 3, 12345, 6) == 6 + number
    assert desk.pairs.ray[6 : 6 + number].tolist() == desk.lists[5 : 5 + number].tolist()
    assert set(desk.pairs.item[6 : 6 + number]) <= {12345}
    assert set(desk.pairs.ray[:6]) | set(desk.pairs.item[:6]) == {-7}


U = Fraction(2) ** -24
EARLY, LATE = (
    7 * U,
    16 * U,
)  # by such shares of themselves near times are early, far ones late, beside a margin


def lines_of(desk, number) -> list[list[float]]:
    """Return the lines and margins that walks make of probes."""
    rows = np.zeros((number, 16), np.float32)
    unfolded(desk, rows)
    return rows.tolist()


def f32(x: Fraction | float) -> Fraction | float:
    return exact.real(float(np.float32(float(x))))


@pytest.mark.parametrize("place", PLACES)
def test_probes_are_never_too_strict_and_seldom_loose(place):
    tree, rays, seen, pairs = see(place)
    ids = [k for k, ray in enumerate(seen) if ray.met and ray.tame and k]
    probes, words, exactly, power, shifts, *_ = desk = aimed(frame_of(tree), rays, ids)
    planes = np.unique(tree.nodes.view(np.float32)[:, :CHILD])
    planes = planes[np.abs(planes) < 2.0**50]
    rng, counts = np.random.default_rng(62), Counter()
    for k, probe, line, word, row, n, shift in zip(
        ids,
        probes.tolist(),
        lines_of(desk, len(ids)),
        words.tolist(),
        exactly,
        power.tolist(),
        map(Fraction, shifts.tolist()),
        strict=False,
    ):
        ray, o, d = seen[k], *(x[k] for x in pairs[:2])
        want = [*o, *d, pairs.t_min[k] + 0.0, pairs.t_max[k]]
        np.testing.assert_array_equal(row, want)
        assert not np.signbit(row[6]) or row[6] < 0
        assert (word[RESULT], word[TIMED], n) == (MISS, MISS, ray.power)

        # Times count from where the ray comes in, at the latest, and end where it has left.
        stop = probe[STOP]
        size = abs(ray.met.t) + max(map(abs, ray.v)) / min(abs(w) for w in ray.w if w)
        assert 0 < ray.met.t - shift <= size / 2**20 + Fraction(2) ** -98, k
        last = ray.met.t_exit
        assert stop >= last - shift
        if last < INF:
            reach = abs(last - shift) / 2 + abs(last) + size
            assert stop - (last - shift) <= reach / 2**20 + Fraction(2) ** -98

        # The margin makes up for how far off the ends of the range are.
        margin = exact.real(line[MARGIN])
        assert ray.low - shift <= margin
        assert exact.real(stop) * (1 - 8 * U) - margin <= ray.high - shift
        stands = any(w == 0 for w in ray.w)
        assert (margin > 2**62) == stands
        x = [v + shift * w for v, w in zip(ray.v, ray.w, strict=True)]
        off = [10 * U * abs(a) + max(map(abs, ray.v)) / 2**48 + Fraction(2) ** -36 for a in x]
        wide = ray.low < ray.met.t - size / 2**19 and ray.high > last + size / 2**19
        if wide and not stands:
            assert margin <= max(far / abs(w) for far, w in zip(off, ray.w, strict=True))
            counts["tight"] += 1
        counts["marginless" if stands else "margin"] += 1

        for axis in range(3):
            c_near, c_far, near, far = map(exact.real, line[axis:12:3])
            v, w, x_k = ray.v[axis], ray.w[axis], x[axis]
            if w == 0:
                counts["standing"] += 1
                hold_standing(line, axis, v, f32(last - shift))
                continue
            assert (near > 0) == (far > 0) == (w > 0)
            own = np.float32(float(x_k)) + np.float32([-1e-3, -1e-7, 0, 1e-7, 1e-3])
            for b in map(Fraction, [*rng.choice(planes, 12).tolist(), *own.tolist()]):
                t = (b - v) / w - shift
                first, final = f32(b * near + c_near), f32(b * far + c_far)
                rough = min(margin, off[axis] / abs(w))
                assert first <= max(t, 0) * (1 + 4 * U), (k, axis)
                assert final >= t * (1 + 4 * U) or t < 0, (k, axis)
                assert t - first <= EARLY * abs(t) + rough, (k, axis)
                assert final - t <= LATE * abs(t) + rough, (k, axis)
                counts["ahead" if t > 0 else "behind"] += 1
    assert min(counts["standing"] - 20, counts["ahead"] - 300, counts["behind"] - 300) > 0, counts
    assert place == "open" or min(counts["margin"], counts["tight"] + 5) > 20, counts


@loop
def outward(x, down, up):
    for k in range(x.size):
        down[k], up[k] = outward_down(x[k]), outward_up(x[k])


def hold_standing(line, axis, v, stop):
    """Hold an axis without motion: slabs round the origin constrain nothing, others are not met."""
    c_near, c_far, near, far = line[axis:12:3]
    away = 2.0**-20 * max(1.0, abs(float(v)))
    below, above = np.empty(3, np.float32), np.empty(3, np.float32)
    outward(float(v) + np.array([0.0, away, -away]), below, above)
    with np.errstate(over="ignore"):
        first = np.float32(below.astype(float) * near + c_near)
        last = np.float32(above.astype(float) * far + c_far)
    assert first[0] <= 0
    assert last[0] >= min(stop, 2.0**61)
    assert stop == INF or (first[1] > stop and last[2] < 0), (first, last, stop)


def test_lines_of_rays_from_afar_are_not_too_strict():
    """Where float64 rounds off more of where they come in than float32 of anything else."""
    rng, counts = np.random.default_rng(66), Counter()
    lower = rng.uniform(-1, 1, (50, 3))
    tree = build(lower, lower + 0.1)
    origins = rng.normal(size=(80, 3)) * 2.0 ** rng.integers(28, 44, 80)[:, None]
    ways = rng.uniform(-1, 1, (80, 3)) - origins
    rays = rb.Rays(origins, ways).rows()
    desk = aimed(frame_of(tree), rays, range(80))
    planes = [Fraction(float(x)) for x in np.unique(tree.nodes.view(np.float32)[:, :CHILD]) if abs(x) < 4]
    for k, line in enumerate(lines_of(desk, 80)):
        ray, shift = (
            Seen(tree, origins[k].tolist(), ways[k].tolist(), 0.0, INF),
            Fraction(float(desk.shift[k])),
        )
        if desk.packed_rays[k, STOP] < 0:
            counts["passes"] += 1
            continue
        for axis in range(3):
            c_near, c_far, near, far = map(Fraction, line[axis:12:3])
            v, w = ray.v[axis], ray.w[axis]
            for b in planes[::5]:
                t = (b - v) / w - shift
                assert f32(b * near + c_near) <= max(t, 0) * (1 + 4 * U), (k, axis)
                assert f32(b * far + c_far) >= t * (1 + 4 * U) or t < 0, (k, axis)
                counts["ahead" if t > 0 else "behind"] += 1
    assert counts["ahead"] > 5000, counts


def test_who_stands_still_far_from_the_bulk_is_not_for_vectors():
    """One stray box is as far away as float32 can tell who is beside it, another is farther."""
    lower = np.concatenate(
        [np.random.default_rng(67).uniform(-1, 1, (60, 3)), [[2.0**24] * 3, [2.0**28] * 3]]
    )
    upper = lower + np.array([[0.2]] * 60 + [[2.0], [16.0]])
    origins = np.array([[2.0**24 + 1, 2.0**24 + 1, -9.0], [2.0**28 + 3, 2.0**28 + 1, -9.0]])
    tree, ways = build(lower, upper), np.array([[0.0, 0.0, 1.0]] * 2)
    desk = aimed(frame_of(tree), rb.Rays(origins, ways).rows(), range(2))
    assert desk.packed_rays[0, STOP] > 2.0**24
    assert (desk.packed_rays[1, STOP], desk.state[1, RESULT]) == (NOT_PACKED, UNDECIDED)
    hits = rb.Scene(rb.Boxes(lower, upper)).nearest(
        rb.Rays(np.tile(origins, (900, 1)), np.tile(ways, (900, 1)))
    )
    assert hits.index.tolist() == [60, 61] * 900


def test_rays_that_stand_still_beside_all_boxes_are_lost_at_once():
    """Also where boxes have no ends along the way, so that no time would tell."""
    lower, upper = (
        np.array([[0.0, 0.0, -INF], [2.0, 0.5, -1.0]]),
        np.array([[1.0, 1.0, INF], [3.0, 0.7, 4.0]]),
    )
    origins = np.array([[-5.0, 0.5, 0.0], [1.5, 9.0, 2.0], [0.5, 1.0, 7.0], [2.5, 1.5, 0.0]])
    rays = rb.Rays(origins, np.tile([0.0, -0.0, 1.0], (4, 1))).rows()
    probes = aimed(frame_of(build(lower, upper)), rays, range(4)).packed_rays
    assert probes[:2, STOP].tolist() == [PASSES] * 2
    assert probes[2, STOP] >= 0
    assert probes[3, STOP] == PASSES


def test_what_is_no_ray_is_lost_at_once():
    """And not left to careful hands, one by one: a sensor's data may be full of it."""
    origins, ways = np.array([[-5.0, 0.5, 0.5], [np.nan, 0.5, 0.5], [-5.0, 0.5, 0.5]]), np.eye(3)[[0, 0, 0]]
    ways[2, 1] = np.nan
    rays = rb.Rays(origins, ways, t_min=[0.0, 0.0, 0.0], t_max=[9.0, 9.0, 9.0], invalid="miss").rows()
    probes = aimed(frame_of(build(np.zeros((1, 3)), np.ones((1, 3)))), rays, range(3)).packed_rays
    assert probes[0, STOP] >= 0
    assert probes[1:3, STOP].tolist() == [PASSES] * 2


# No box is lost


@loop
def sifted(sink, job, place, desk, number, alone):
    """Sort the rays of the desk's first list by slots, and ask of each ray alone; place: node, octant."""
    nodes, row, octant = job.tree.nodes, place[0] * ROW, place[1]
    pad(desk.lists, desk.lists[0], number)
    open_lists(desk, number + 16, number + 16)
    leaves = boxes(nodes, row)
    intersect_lists(
        sink, job, desk, (row, octant, used(nodes, row) & leaves, used(nodes, row) & ~leaves), (0, number)
    )
    for k in range(number):
        load_single_ray(sink, desk, np.int64(desk.lists[k]))
        alone[k] = intersect_slots(nodes, desk, row, octant, np.int64(desk.lists[k]))
        desk.rays64[k] = desk.slots


@loop
def latest_of(desk, t):
    for r in range(t.size):
        if t[r] < np.inf:
            desk.packed_rays[r, STOP] = min(desk.packed_rays[r, STOP], latest_for(desk, r, t[r]))


@loop
def kept(desk, number):
    pad(desk.lists, desk.lists[0], number)
    return drop_ended(desk, 0, number)


def parents_of(tree) -> dict:
    """Say in which (node, slot) each node, and each box ~i, stands; the root in none."""
    children = tree.nodes[:, CHILD:]
    return {0: None} | {int(children[n, s]): (n, s) for n, s in np.argwhere(children != EMPTY).tolist()}


@pytest.mark.parametrize("place", PLACES)
def test_every_slot_of_a_box_that_is_met_is_proposed(place):
    tree, rays, seen, pairs = see(place, seed=63)
    ids = [k for k, ray in enumerate(seen) if ray.met and ray.tame and k]
    found = list(exact.along(*(x[ids] for x in pairs[:4]), *pairs[4:]))
    desk, above, alone = aimed(frame_of(tree), rays, ids), parents_of(tree), np.zeros(len(ids), np.int64)
    octants = ((pairs.directions[ids] < 0) @ [1, 2, 4]).tolist()
    for pruned in (False, True):
        wanted = {}
        for r, row in enumerate(found):
            for box in row[:1] if pruned else row:
                step = above[~box.index]
                while step is not None:
                    wanted.setdefault((step[0], octants[r]), set()).add((r, step[1]))
                    step = above[step[0]]
        if pruned:
            latest_of(desk, np.array([row[0].plain[1] if row else INF for row in found]))
        for (node, octant), asked in wanted.items():
            group = [r for r in range(len(ids)) if octants[r] == octant]
            desk.lists[: len(group)] = group
            sifted(
                FirstRecorder(*[()] * 5), Job(tree, (), (), (), ()), (node, octant), desk, len(group), alone
            )
            lists = [
                desk.lists[a : a + n].tolist()
                for a, n in zip(desk.starts.tolist(), desk.lengths.tolist(), strict=True)
            ]
            met = {(r, slot) for slot, rows in enumerate(lists) for r in rows}
            assert asked <= met, (node, sorted(asked - met)[:3])
            assert met == {
                (r, s)
                for r, bits in zip(group, alone.tolist(), strict=False)
                for s in range(8)
                if bits >> s & 1
            }
            for slot, (begin, number) in enumerate(
                zip(desk.starts.tolist(), desk.lengths.tolist(), strict=True)
            ):
                want = [desk.rays64[group.index(r), slot] for r in lists[slot]]
                assert desk.times[begin : begin + number].tolist() == want
                assert lists[slot] == sorted(lists[slot])
    assert sum(map(len, found)) > 200


def test_rays_that_have_ended_are_dropped_from_a_list():
    rng, desk = np.random.default_rng(64), make_workspace(100)
    desk.packed_rays[:, STOP] = rng.choice([0.0, 1.0, 2.0, 3.0, INF], 116)
    for number in (1, 15, 16, 17, 70):
        desk.times[:120] = rng.integers(0, 4, 120)
        desk.lists[:number] = rays = rng.permutation(100)[:number]
        want = rays[desk.times[:number] <= desk.packed_rays[rays, STOP]].tolist()
        assert desk.lists[: kept(desk, number)].tolist() == want


def test_the_latest_time_is_late_and_not_by_much():
    tree, rays, seen, _pairs = see("map", seed=65)
    ids = [k for k, ray in enumerate(seen) if ray.met and ray.tame and k]
    desk = aimed(frame_of(tree), rays, ids)
    for share in (0.0, 1.0, 0.5, 1.5):
        desk.packed_rays[:, STOP] = INF
        spans = [(seen[k].met.t, min(seen[k].met.t_exit, 2**60), Fraction(2) ** -seen[k].power) for k in ids]
        t = np.array([float((low + Fraction(share) * (high - low)) * unit) for low, high, unit in spans])
        latest_of(desk, t)
        for k, when, probe, shift in zip(
            ids, t.tolist(), desk.packed_rays.tolist(), desk.shift.tolist(), strict=False
        ):
            whole = Fraction(when) * Fraction(2) ** seen[k].power
            want = whole - Fraction(shift)
            loose = abs(want) / 2**20 + abs(whole) / 2**46 + Fraction(2) ** -97
            assert max(want, 0) <= Fraction(probe[STOP]) <= max(want, 0) + loose
