"""Packets: sixteen rays walked as one refuse no box, and answer as rays by themselves do; by Fractions."""

from collections import Counter
from itertools import pairwise

import numba
import numpy as np
import pytest

import exact
import raybox as rb
from aim import INF, Pairs
from cast import PLACES, as_rays_or_miss, unfolded
from raybox.bvh.build import build
from raybox.bvh.node import CHILD
from raybox.compiler.decorators import FLAGS
from raybox.queries import batches, scheduler
from raybox.queries.all_hits import run as all_run
from raybox.queries.count import CountRecorder
from raybox.threads import chunks
from raybox.traversal import packet_batches, ray_groups
from raybox.traversal.packet_recorder import (
    MAX_PACKET_HITS,
    MAX_UNDECIDED,
    NO_OCTANT,
    UNFIT,
    PacketRecorder,
)
from raybox.traversal.packet_setup import set_up_packet
from raybox.traversal.ray_setup import LANES, STOP, frame_of
from raybox.traversal.single import Job
from raybox.traversal.slab_coefficients import MARGIN
from raybox.traversal.workspace import make_workspace
from scenes import random_scene
from test_many_rays import ask, at_once, ties, truth

loop = numba.njit(**(FLAGS | {"_nrt": True}))


@loop
def aimed(job, desk, sink, at, packet):
    return set_up_packet(job, desk, sink, at, packet)


def bundle(rng, lower, upper) -> tuple[np.ndarray, ...]:
    """Sixteen rays from a box or from nearby, to points close together; a few that make no packet."""
    finite = np.flatnonzero(np.isfinite(lower).all(axis=1) & np.isfinite(upper).all(axis=1))
    a, b = rng.choice(finite, 2)
    size = (upper - lower)[finite].max()
    origin = lower[a] + rng.choice([0.1, 3.0, 1e3]) * size * rng.standard_normal(3)
    goals = lower[b] + rng.choice([1e-3, 0.1, 1.0]) * size * rng.random((LANES, 3))
    origins = origin + rng.choice([0.0, 1e-3, 0.5]) * size * rng.random((LANES, 3))
    ways = (goals - origins) * np.ldexp(1.0, rng.integers(-3, 4))
    low, high = np.zeros(LANES), np.full(LANES, INF)
    kind = rng.integers(0, 10)
    if kind == 0:
        ways[:, rng.integers(3)] = 0.0
    if kind == 1:
        ways[rng.integers(LANES), rng.integers(3)] *= -1.0
    if kind == 2:
        high[:] = rng.random(LANES) * 2.0
    if kind == 3:
        low[5:9], high[5:9] = INF, -INF
    return origins, ways, low, high


@pytest.mark.parametrize("place", PLACES)
def test_packets_refuse_no_box_that_a_ray_accepts(place):
    """Near and far times of packets bound those of rays, in float32, wherever rays may meet boxes."""
    lower, upper = PLACES[place]()
    rng, counts = np.random.default_rng(91), Counter()
    tree = build(lower, upper)
    given = [np.concatenate(x) for x in zip(*(bundle(rng, lower, upper) for _ in range(60)), strict=True)]
    rays = as_rays_or_miss(Pairs(*given, lower, upper)).rows()
    job = Job(tree, (), rays, (), frame_of(tree))
    memory, desk = packet_batches.make_packets(LANES)
    planes = tree.nodes.view(np.float32)[:, :CHILD].reshape(-1, 2, 3, 8)
    for at in range(0, len(given[0]), LANES):
        octant = aimed(job, desk, PacketRecorder(CountRecorder(()), *memory), at, 0)
        counts["unfit" if octant == UNFIT else "none" if octant == NO_OCTANT else "fit"] += 1
        if octant in (UNFIT, NO_OCTANT):
            continue
        words, line = memory[0][0], desk.packet_slabs[0].astype(float)
        alive, own = np.flatnonzero(words[STOP] >= 0), np.zeros((LANES, 16), np.float32)
        assert desk.packed_rays[0, STOP] == words[STOP].max()
        assert line[MARGIN] == INF
        unfolded(desk._replace(packed_rays=np.ascontiguousarray(words[:8].T)), own)
        own = own.astype(float)
        for axis in range(3):
            sides = [planes[:, side, axis].ravel() for side in (0, 1)]
            near, far = sides[::-1] if octant >> axis & 1 else sides
            with np.errstate(all="ignore"):
                first, last = (
                    (b.astype(float)[:, None] * own[alive, i] + own[alive, c]).astype(np.float32)
                    for b, i, c in ((near, 6 + axis, axis), (far, 9 + axis, 3 + axis))
                )
                both = [
                    (b.astype(float) * line[i] + line[c]).astype(np.float32)
                    for b, i, c in ((near, 6 + axis, axis), (far, 9 + axis, 3 + axis))
                ]
                tight = np.maximum(first.min(axis=1), 0) - np.maximum(both[0], 0)
            some = np.isfinite(near) & np.isfinite(far)
            assert (np.maximum(both[0], 0)[some] <= np.maximum(first.min(axis=1), 0)[some]).all(), (at, axis)
            best = last.max(axis=1)
            assert ((both[1] >= best) | (best < 0))[some].all(), (at, axis)
            counts["tight"] += int((tight[some] < 0.1 * words[STOP, alive].max()).sum())
            counts["planes"] += int(some.sum())
    assert counts["fit"] > 20 or place in {"open", "large"}, counts
    assert counts["unfit"] > 0, counts
    assert counts["tight"] >= counts["planes"] / 2, counts


# From outside


def picture(seed) -> tuple[np.ndarray, ...]:
    """Rows of pixels: from a point, side by side, from inside; through corners and edges of a grid."""
    rng = np.random.default_rng(seed)
    x, y = (a.ravel() for a in np.meshgrid(np.arange(32.0), np.arange(4.0)))
    rows = []
    for k in range(5):
        eye = np.array([-2.0, -1.75, -6.0]) + k * np.array([0.25, 0.0, 0.5])
        goals = np.stack([x / 16 - 1.0 + 0.0 * y, y / 8 + 0.5 * (k % 2) - 1.0, 0.0 * x], axis=1)
        if k == 3:
            rows.append((goals + np.array([0, 0, -5.0]), np.tile([2.0**-6, 2.0**-7, 1.0], (128, 1))))
        elif k == 4:
            rows.append((np.tile([0.3, 0.1, 0.2], (128, 1)), goals + np.array([1.5, 0.2, 3.0])))
        else:
            rows.append((np.tile(eye, (128, 1)), goals - eye))
    origins, ways = (np.concatenate(a) for a in zip(*rows, strict=True))
    low, high = np.zeros(len(ways)), np.full(len(ways), INF)
    high[100:120] = rng.random(20)
    low[140:150], high[140:150] = INF, -INF
    low[260:300] = -3.0
    return origins, ways, low, high


def cells(seed):
    """Some cells of a grid, and boxes here and there."""
    rng = np.random.default_rng(seed)
    lower = np.stack(np.meshgrid(*[np.arange(-2.0, 2.0, 0.5)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    lower, loose = lower[rng.random(len(lower)) < 0.15], rng.uniform(-3, 3, (60, 3))
    return np.concatenate([lower, loose]), np.concatenate([lower + 0.5, loose + 0.7])


@pytest.fixture(scope="module")
def world():
    pairs = Pairs(*picture(92), *cells(93))
    return pairs, list(exact.along(*pairs))


@pytest.fixture(scope="module")
def tied():
    pairs = Pairs(*picture(92), *ties(97))
    return pairs, list(exact.along(*pairs))


@pytest.fixture
def used(monkeypatch):
    """One span for all; remember how many rays packets left over, of how many."""
    for runner in (scheduler, all_run):
        monkeypatch.setattr(runner, "chunk_runner", at_once)
    monkeypatch.setattr(ray_groups, "SMALL_BATCH", 64)
    monkeypatch.setattr(batches, "_WORKSPACES", batches._Pool(make_workspace))
    monkeypatch.setattr(batches, "_PACKETS", batches._Pool(packet_batches.make_packets))
    monkeypatch.setattr(scheduler, "PACKET_WIDTH", 1)
    told, call = [], packet_batches.traverse_packets

    def spy(job, span, *rest):
        told.append((call(job, span, *rest), span.end - span.begin))
        return told[-1][0]

    monkeypatch.setattr(packet_batches, "traverse_packets", spy)
    return told


def kept():
    """Give the memory and the desk of packets that was used last."""
    ((*_, last),) = batches._PACKETS._free.values()
    return last


def unsure() -> int:
    """Count the packets of the last group in which a ray held a box that it was not sure of."""
    (*_, told), _ = kept()
    return int(np.count_nonzero(told[: 640 // LANES]))


def picked(pairs, found, order):
    return Pairs(*(x[order] for x in pairs[:4]), *pairs[4:]), [found[k] for k in order]


@pytest.mark.parametrize("question", ["nearest", "occluded", "count", "all"])
def test_pictures_of_a_scene_full_of_ties(question, world, tied, used):
    pairs, found = world
    assert ask(question, pairs) == truth(question, found)
    (left, number), *_ = used
    assert 0 < left < number * 0.7 if question == "all" else left == 0
    assert (unsure() > 5) == (question != "all")
    seen = Counter("hit" if row else "miss" for row in found)
    seen["tie"] = sum(exact.ties(row) > 0 for row in found if row)
    assert min(seen["hit"], seen["miss"], 3 * seen["tie"]) > 20, seen
    same, found = tied
    assert ask(question, same) == truth(question, found)


@pytest.mark.parametrize("question", ["nearest", "occluded", "count", "all"])
@pytest.mark.parametrize("n", [65, 79, 80, 81, 96, 127, 640])
@pytest.mark.parametrize("group", [16, 48, 4096])
def test_any_number_of_rays_and_packets(question, n, group, world, used, monkeypatch):
    monkeypatch.setattr(batches, "GROUP", group)
    pairs, found = picked(*world, np.arange(n))
    assert ask(question, pairs) == truth(question, found)
    assert used[0][0] < n


@pytest.mark.parametrize("question", ["nearest", "occluded", "count", "all"])
@pytest.mark.parametrize("first", [9, 16, 40, 100])
def test_threads_share_packets_and_what_is_left_over(question, first, world, used, monkeypatch):
    """Chunks that begin in the midst of packets, or are shorter than one."""
    monkeypatch.setattr(scheduler, "chunk_runner", chunks.chunk_runner)
    monkeypatch.setattr(chunks, "_FIRST", first)
    monkeypatch.setattr(chunks, "_SMALLEST", first)
    for n in (640, 531, 530):
        pairs, found = picked(*world, np.arange(n))
        for _ in range(4):
            assert ask(question, pairs, workers=3) == truth(question, found)
    assert 0 < sum(left for left, _ in used) < sum(number for _, number in used)


@pytest.mark.parametrize("question", ["nearest", "occluded", "count", "all"])
def test_where_holds_for_packets(question, world, used):
    pairs, found = world
    where = np.random.default_rng(94).random(len(pairs.lower)) < 0.4
    assert ask(question, pairs, where=where) == truth(
        question, [[f for f in r if where[f.index]] for r in found]
    )
    assert used[0][0] < used[0][1]


@pytest.mark.parametrize("question", ["nearest", "occluded", "count", "all"])
def test_plates_at_the_edge_of_the_scene_seen_from_far_away(question, used):
    """Rays come in where the plates are: what is rounded on the long way there must not lose them."""
    rng = np.random.default_rng(99)
    lower = rng.integers(-4, 5, (60, 3)) * 0.25
    lower[:, 2] = rng.choice([-1.0, 1.0], 60)
    upper = lower + np.array([0.75, 0.75, 0.0])
    origins, ways = [], []
    for k in range(64):
        goal = np.array([*(rng.integers(-5, 6, 2) * 0.25 + 0.01), -1.0])
        eye = goal + np.array([1.0, 0.7, -1.0]) * rng.choice([3.0, 1e5, 1e9, 2.0**40]) * (1.0 + rng.random())
        goals = goal + np.stack([np.arange(LANES) * 0.01, np.zeros(LANES), np.zeros(LANES)], axis=1)
        origins.append(np.tile(eye, (LANES, 1)) + (goals - goal if k % 2 else 0.0))
        ways.append(goals - origins[-1])
    low, high = np.zeros(64 * LANES), np.full(64 * LANES, INF)
    pairs = Pairs(np.concatenate(origins), np.concatenate(ways), low, high, lower, upper)
    found = list(exact.along(*pairs))
    assert ask(question, pairs) == truth(question, found)
    assert used
    assert sum(not row for row in found) > 100
    assert sum(len(row) > 1 for row in found) > 100


@pytest.mark.parametrize("question", ["nearest", "occluded", "count", "all"])
def test_rays_of_both_kinds_in_one_batch(question, world, used):
    """Blocks of a picture, blocks of rays from all over, and blocks of both."""
    pairs, found = world
    rng = np.random.default_rng(95)
    order = np.arange(640).reshape(-1, LANES)
    order[1::3] = rng.integers(0, 640, order[1::3].shape)
    order[2::6, 7] = 5
    rays, want = picked(pairs, found, order.ravel())
    assert ask(question, rays) == truth(question, want)
    left, number = used[0]
    assert number // 3 < left < number


def looks(rays, numbers, places):
    """Look at sixteen rays from each place on: nothing but those can be sampled then."""
    return np.array([packet_batches.seem_coherent(rays, numbers, at, at + LANES) for at in places])


def test_looking_finds_pictures_and_no_crowd():
    rng = np.random.default_rng(96)
    scene = rb.Boxes.from_centers(rng.random((1000, 3)), 0.05)
    numbers = frame_of(build(*scene.rows())).numbers
    assert 0.08 < numbers[16] < 0.12  # twice as long as in the world, where a unit is two of the tree's
    eye, goals = np.array([0.5, 0.5, -2.0]), np.stack(np.meshgrid(*[np.linspace(0, 1, 256)] * 2), axis=-1)
    goals = np.concatenate([goals, np.zeros((256, 256, 1))], axis=-1).reshape(-1, 3)
    picture = rb.Rays(np.tile(eye, (len(goals), 1)), goals - eye).rows()
    at = np.arange(0, len(goals), LANES)
    assert looks(picture, numbers, at).mean() > 0.8
    crowd = rb.Rays(rng.random(goals.shape), rng.standard_normal(goals.shape)).rows()
    assert not looks(crowd, numbers, at).any()
    assert packet_batches.seem_coherent(picture, numbers, 0, len(goals))
    assert not packet_batches.seem_coherent(crowd, numbers, 0, len(goals))
    coarse = rb.Rays(picture.origins[::64], picture.directions[::64]).rows()
    assert not looks(coarse, numbers, np.arange(0, 1000, LANES)).any()


WORK = {"nearest": (24_089, 178), "occluded": (24_964, 168), "count": (29_042, 105)}


@pytest.mark.parametrize("question", WORK)
def test_nodes_looked_at_by_packets(question, used, monkeypatch):
    """Packets times nodes tested in lists, and nodes tested for packets alone: lower is good news."""
    scene = random_scene(98, 10_000, 1, size=0.05)[4:]
    x, y = (a.ravel() for a in np.meshgrid(np.linspace(-0.3, 0.3, 512), np.linspace(-0.1, 0.1, 32)))
    ways = np.stack([x, y, np.ones(len(x))], axis=1)
    eye = np.tile([0.013, 0.027, -3.0], (len(x), 1))
    ask(question, Pairs(eye, ways, np.zeros(len(x)), np.full(len(x), INF), *scene))
    (left, number), (_, desk) = used[0], kept()
    assert left < number / 100
    assert tuple(desk.work[:2].tolist()) == WORK[question]

    # In wider groups nodes are fetched for more packets at once, and fewer go alone.
    monkeypatch.setattr(scheduler, "PACKET_WIDTH", 4)
    monkeypatch.setattr(batches, "_PACKETS", batches._Pool(packet_batches.make_packets))
    ask(question, Pairs(eye, ways, np.zeros(len(x)), np.full(len(x), INF), *scene))
    wide, times = kept()[1].work, 1 if question == "all" else 4
    assert set(batches._PACKETS._free) == {(times * batches.GROUP,)}
    assert (wide[3] < desk.work[3] * 0.8) == (times > 1)
    assert wide[1] <= desk.work[1]


def stack():
    """Eighty slabs one after the other, as wide as a picture's part: rays meet sixty of them, or more."""
    rng = np.random.default_rng(100)
    low = np.stack([np.full(80, -9.0), np.full(80, -9.0), np.arange(80.0)], axis=1)
    up = np.stack([np.linspace(-0.9, 4.0, 80), np.full(80, 9.0), np.arange(80) + 0.5], axis=1)
    order = rng.permutation(80)
    origins = np.stack([np.linspace(-1.0, 4.0, 256), np.full(256, 0.1), np.full(256, -1.0)], axis=1)
    ways = np.tile([2.0**-12, 2.0**-12, 1.0], (256, 1))
    return Pairs(origins, ways, np.zeros(256), np.full(256, INF), low[order], up[order])


@pytest.mark.parametrize("group", [16, 48, 4096])
@pytest.mark.parametrize("rooms", [1, 4])
def test_rays_that_meet_more_than_a_packet_holds_are_left(group, rooms, used, monkeypatch):
    """What a packet holds is put in order, in one room after the other; more is left to others."""
    monkeypatch.setattr(batches, "GROUP", group)
    monkeypatch.setattr(all_run, "_PACKET_GROUPS", rooms)
    pairs = stack()
    found = list(exact.along(*pairs))
    depth = np.array([len(row) for row in found])
    assert ask("all", pairs) == truth("all", found)
    assert sum(left for left, _ in used) == (depth > MAX_PACKET_HITS).sum() > 20
    assert {MAX_PACKET_HITS, MAX_PACKET_HITS + 1, MAX_PACKET_HITS - 1} <= set(depth.tolist())
    assert (len(used) > 1) == (group * rooms < 100)
    assert (depth[depth <= MAX_PACKET_HITS].sum()) > 1000


def plates(number, flat) -> Pairs:
    """One box many times over, or flat plates one after the other, that half of a picture's rays meet."""
    low = np.stack([np.full(number, 0.0), np.full(number, -9.0), np.full(number, 1.0)], axis=1)
    up = np.array([9.0, 9.0, 2.0]) + np.zeros_like(low)
    if flat:
        low[:, 2] = up[:, 2] = 1.0 + np.arange(number)[::-1]
    loose = np.array([[-8.0, -8.0, 100.0], [-0.5, -9.0, 10.0]])
    origins = np.stack([np.linspace(-4.0, 4.0, 256), np.full(256, 0.1), np.full(256, -1.0)], axis=1)
    ways = np.tile([2.0**-12, 2.0**-12, 1.0], (256, 1))
    low, up = np.concatenate([low, loose]), np.concatenate([up, loose + 9.0])
    return Pairs(origins, ways, np.zeros(256), np.full(256, INF), low, up)


@pytest.mark.parametrize("question", ["nearest", "occluded", "count"])
@pytest.mark.parametrize(
    "number", [1, MAX_UNDECIDED, MAX_UNDECIDED + 1, MAX_UNDECIDED + 2, 3 * MAX_UNDECIDED]
)
@pytest.mark.parametrize("flat", [True, False])
def test_rays_hold_some_boxes_that_they_are_not_sure_of(question, number, flat, used):
    """One of many equal boxes is sure to be met, but not to be the first; of flat plates none is."""
    pairs = plates(number, flat)
    found = list(exact.along(*pairs))
    assert ask(question, pairs) == truth(question, found)
    met = sum(any(f.index < number for f in row) for row in found)
    assert 100 < met < 156
    many = number > MAX_UNDECIDED if flat else number > MAX_UNDECIDED + 1 and question == "nearest"
    settled = sum(len(row) > number for row in found) if question == "occluded" else 0  # by another box
    assert 0 <= settled < met
    assert used[0][0] == (met - settled if many else 0)


@pytest.mark.parametrize("question", ["nearest", "occluded", "count"])
def test_more_boxes_are_held_than_are_decided_at_a_time(question, used):
    pairs, times = plates(MAX_UNDECIDED, flat=True), 24
    found = list(exact.along(*pairs)) * times
    many = Pairs(*(np.concatenate([x] * times) for x in pairs[:4]), *pairs[4:])
    assert ask(question, many) == truth(question, found)
    (*_, told), desk = kept()
    assert np.count_nonzero(told) * LANES * MAX_UNDECIDED > desk.pairs.ray.size
    assert used[0][0] == 0


def test_what_floats_cannot_tell_of_boxes_that_are_held_is_calculated(used, monkeypatch):
    """Plates so close to each other that bounds of times overlap, and rays through edges."""
    doubts, call = [], packet_batches.traverse_packets

    def spy(job, span, order, *rest):
        left = call(job, span, order, *rest)
        doubts.append(int(order.place[1]))
        return left

    monkeypatch.setattr(packet_batches, "traverse_packets", spy)
    pairs = plates(3, flat=True)
    pairs.lower[:3, 2] = pairs.upper[:3, 2] = 1.0 + 2.0**-52 * np.array([2, 0, 1])
    found = list(exact.along(*pairs))
    assert ask("nearest", pairs) == truth("nearest", found)
    assert doubts[-1] > 100
    pairs.origins[:, 0] = -2.0 * pairs.directions[:, 0]
    pairs.directions[:, 1] = np.linspace(0.001, 0.01, 256)
    pairs.lower[3:, 0] += 50.0
    pairs.upper[3:, 0] += 50.0
    found = list(exact.along(*pairs))
    for question in ("occluded", "count"):
        assert ask(question, pairs) == truth(question, found)
        assert doubts[-1] > 100
    assert used[-1][0] == 0


def test_times_that_round_to_one_float_are_told_apart_in_packets(used):
    """Boxes that rays meet so close to each other that float64 times are equal: exact arithmetic decides."""
    pairs = stack()
    step = 2.0**-51
    low = np.stack([np.full(40, -9.0), np.full(40, -9.0), 2.0 + step * np.arange(40)[::-1]], axis=1)
    origins = pairs.origins.copy()
    origins[:, 2] = -1000.0
    same = Pairs(origins, *pairs[1:4], low, low + np.array([18.0, 18.0, 1.0]))
    found = list(exact.along(*same))
    assert ask("all", same) == truth("all", found)
    times = [[f.plain[1] for f in row] for row in found]
    assert sum(len(set(row)) < len(row) for row in times) == 256
    assert sum(f.index > g.index for row in found for f, g in pairwise(row)) > 1000
    assert used
