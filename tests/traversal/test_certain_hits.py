"""Certain hits of float32 are hits, by Fractions; undecided boxes are listed."""

from collections import Counter

import numpy as np
import pytest

import exact
import raybox as rb
from aim import INF
from pair_checks import near_planes
from ray_cases import BOX_SETS, EARLY, LATE, as_rays_or_miss, loop, make_rays_at, set_up
from raybox.bvh.build import build
from raybox.bvh.node import CHILD, EMPTY, ROW, WIDTH
from raybox.primitives.box_simd import make_pairs
from raybox.primitives.status import MISS_INDEX, UNKNOWN_ORDER
from raybox.primitives.table import certain_order
from raybox.queries.all_hits.recorder import AllHitsRecorder
from raybox.queries.nearest.certain import BY, WITHIN
from raybox.queries.table import QUERIES
from raybox.traversal.job import Job
from raybox.traversal.node_test import boxes
from raybox.traversal.protocol import StreamHooks, add_candidate, intersect_lists, record_certain
from raybox.traversal.ray_setup import PASSES, RESULT, STOP, TIMED, frame_of, margins
from raybox.traversal.single_walk import unpack, walk_nearest
from raybox.traversal.slab_coefficients import load_single_ray
from raybox.traversal.stream_lists import open_lists, pad
from raybox.traversal.workspace import LeafSlot, ListSpan, NodeSlots, make_workspace
from scenes import random_scene

ROOM = 4096


def recorder_of(query):
    """Return the recorder of a query without arrays of results."""
    recorder_class = next(one.recorder for one in QUERIES[query].hooks if isinstance(one, StreamHooks))
    return recorder_class(*((),) * len(recorder_class._fields))


def close(seed):
    """Return boxes, eight of each, moved by shares of its size from 1/8 down to 2^-52."""
    rng = np.random.default_rng(seed)
    lower, upper = (np.repeat(x, 8, axis=0) for x in random_scene(seed, 1, 60, size=0.6)[4:])
    moved = rng.choice([-1, 0, 1], lower.shape) * np.ldexp(1.0, rng.integers(-52, -2, lower.shape))
    return lower + moved, upper + rng.permutation(moved)


FLAT = {"plane", "cells"}
SCENES = BOX_SETS | {"close": lambda: close(81)}


@loop
def as_list(recorder, job, workspace, node, number):
    """Intersect the rays of the first list with the boxes of a node; node: row, octant, slots."""
    row, octant = node[0] * ROW, node[1]
    pad(workspace.lists, workspace.lists[0], number)
    open_lists(workspace, number + 16, number + 16)
    intersect_lists(recorder, job, workspace, NodeSlots(row, octant, node[2], 0), ListSpan(0, number))


@loop
def one_by_one(recorder, job, workspace, node, number):
    """Do the same ray by ray."""
    octant = node[1]
    open_lists(workspace, number + 16, number + 16)
    for k in range(number):
        r = np.int64(workspace.lists[k])
        load_single_ray(recorder, workspace, r)
        workspace.node[0], workspace.time[0] = node[0], 0.0
        found = unpack(walk_nearest(job.tree.nodes, workspace, (1, octant, r)))
        possible = found.possible & node[2] if found.node == node[0] else 0
        for slot in range(WIDTH):
            at = LeafSlot(node[0], octant, slot)
            certain = found.certain >> slot & 1
            if possible >> slot & 1 and not (certain and record_certain(recorder, job, workspace, at, r)):
                workspace.lists[workspace.starts[slot] + workspace.lengths[slot]] = r
                workspace.lengths[slot] += 1


@loop
def leaves_of(nodes, node):
    return boxes(nodes, node * ROW)


class Case:
    """Packed rays at a scene, and the exact hits of each by box."""

    def __init__(self, name):
        lower, upper = SCENES[name]()
        self.pairs = make_rays_at(82, lower, upper, n=240)
        self.tree = build(lower, upper)
        rays = as_rays_or_miss(self.pairs)._rows()
        self.job = Job(self.tree, rb.Boxes(lower, upper)._rows(), rays, (), frame_of(self.tree))
        self.workspace = set_up(self.job.frame, rays, range(240))
        self.initial_rays = self.workspace.packed_rays.copy()
        self.initial_state = self.workspace.state.copy()
        self.hits = [{f.index: f for f in row} for row in exact.along(*self.pairs)]
        self.octant = (self.pairs.directions < 0) @ [1, 2, 4]

    def intersect_nodes(self, intersect, recorder):
        """Yield the boxes, the rays and the lists of slots, of each node with boxes and each octant."""
        for node, children in enumerate(self.tree.nodes[:, CHILD:].tolist()):
            leaves = sum(1 << s for s, c in enumerate(children) if EMPTY < c < 0)
            assert leaves == leaves_of(self.tree.nodes, node) & sum(
                1 << s for s, c in enumerate(children) if c != EMPTY
            )
            for octant in range(8):
                live = np.flatnonzero((self.octant == octant) & (self.initial_rays[:240, STOP] >= 0))
                if leaves and live.size:
                    self.workspace.packed_rays[:], self.workspace.state[:] = (
                        self.initial_rays,
                        self.initial_state,
                    )
                    self.workspace.lists[: live.size] = live
                    intersect(recorder, self.job, self.workspace, (node, octant, leaves), live.size)
                    lists = zip(self.workspace.starts.tolist(), self.workspace.lengths.tolist(), strict=True)
                    listed = [set(self.workspace.lists[a : a + n].tolist()) for a, n in lists]
                    yield {~c: s for s, c in enumerate(children) if leaves >> s & 1}, live.tolist(), listed


@pytest.mark.parametrize("intersect", [as_list, one_by_one])
@pytest.mark.parametrize("name", SCENES)
def test_certain_hits_are_counted_and_others_are_listed(name, intersect):
    case, counts = Case(name), Counter()
    for items, rays, listed in case.intersect_nodes(intersect, recorder_of("count")):
        for r in rays:
            hits = {i for i in items if i in case.hits[r]}
            left = {i for i, slot in items.items() if r in listed[slot]}
            counts["undecided"] += len(left & hits)
            number = case.workspace.state[r, RESULT] + 1
            assert number == len(hits - left), (r, hits, left)  # a wrong one would leave another missing
            counts["certain"] += number
            counts["missed"] += len(left - hits)
    assert counts["undecided"] > 0 or name == "plane", counts
    if name in FLAT:  # in lists those are certain that are flat where rays enter them
        assert (counts["certain"] > 0) == (intersect is as_list), counts
    else:
        assert counts["certain"] > 50, counts


@pytest.mark.parametrize("intersect", [as_list, one_by_one])
@pytest.mark.parametrize("name", SCENES)
def test_a_ray_ends_at_a_certain_hit(name, intersect):
    case, ended = Case(name), 0
    for items, rays, listed in case.intersect_nodes(intersect, recorder_of("occluded")):
        for r in rays:
            hits = [case.hits[r][i] for i in items if i in case.hits[r]]
            if case.workspace.state[r, RESULT] == MISS_INDEX + 1:  # one hit
                assert hits
                assert case.workspace.packed_rays[r, STOP] == PASSES
                ended += 1
            else:
                assert case.workspace.state[r, RESULT] == MISS_INDEX
                assert all(r in listed[items[f.index]] for f in hits)
                assert case.workspace.packed_rays[r, STOP] == case.initial_rays[r, STOP]
    assert (ended > 0) == (name not in FLAT or intersect is as_list)
    assert ended > 30 or name in FLAT


@pytest.mark.parametrize("intersect", [as_list, one_by_one])
@pytest.mark.parametrize("name", SCENES)
def test_the_nearest_certain_hit_is_before_all_unlisted_ones(name, intersect):
    case, counts = Case(name), Counter()
    for items, rays, listed in case.intersect_nodes(intersect, recorder_of("nearest")):
        for r in rays:
            hits = {i: case.hits[r][i] for i in items if i in case.hits[r]}
            left = {i for i, slot in items.items() if r in listed[slot]}
            nearest = int(case.workspace.state[r, RESULT])
            if nearest == MISS_INDEX:
                assert set(hits) <= left
                assert case.workspace.state[r, TIMED] == MISS_INDEX
                continue
            first = hits[nearest]
            counts[check_plane(case, r, nearest, first)] += 1
            counts["upper" if case.workspace.state[r, TIMED] <= BY - 3 else "lower or none"] += 1
            assert nearest not in left
            for i in set(hits) - left - {nearest}:
                assert (first.t, nearest) < (hits[i].t, i), (r, i)
                counts["tied"] += first.t == hits[i].t
            counts["single" if len(hits) == 1 else "among others"] += 1
            counts["undecided"] += len(left & set(hits))
            limit = (first.t * 2 ** int(case.workspace.power[r]) if first.t < INF else INF) - exact.real(
                float(case.workspace.shift[r])
            )
            assert (
                limit < exact.real(float(case.workspace.packed_rays[r, STOP])) <= case.initial_rays[r, STOP]
            )
    if name == "close":
        assert counts["tied"] > 20, counts
        assert min(counts["undecided"], counts["among others"]) > 20, counts
        assert counts["known"] > 5, counts
    if name in {"cloud", "map", "small", "large"}:
        assert counts["known"] > 30, counts
        assert counts["unknown"] < counts["known"] / 10, counts
        assert min(counts["within"], counts["upper"], counts["lower or none"]) > 5, counts


def rows_of(case, r, i) -> list[list[float]]:
    """Return a ray's origin and direction, and a box's corners."""
    return [x[r].tolist() for x in case.pairs[:2]] + [x[i].tolist() for x in case.pairs[4:]]


def check_plane(case, r, nearest, first) -> str:
    """Assert the recorded plane of entry against the truth; return its kind."""
    plane = int(case.workspace.state[r, TIMED])
    planes = near_planes(*rows_of(case, r, nearest))
    if plane == WITHIN:
        assert first.t == case.pairs.t_min[r]
        assert all(t < first.t for t, _ in planes)
        return "within"
    if plane == MISS_INDEX:
        return "unknown" if planes and first.t == planes[0][0] else "unknown, within"
    assert plane == BY - planes[0][1], (r, nearest)
    assert first.t == planes[0][0] > case.pairs.t_min[r]
    assert all(later < first.t for later, _ in planes[1:])
    return "known"


@pytest.mark.parametrize("intersect", [as_list, one_by_one])
def test_planes_of_entry_are_unknown_at_edges(intersect, monkeypatch):
    """Rays are aimed at edges and corners of one box: near times tie, or nearly, on any two axes."""
    rng, counts = np.random.default_rng(83), Counter()
    for _ in range(8):
        lower, size = rng.uniform(-1, 1, (1, 3)), rng.uniform(0.1, 1, (1, 3))
        monkeypatch.setitem(SCENES, "box", lambda ends=(lower, lower + size): ends)
        case = Case("box")
        for _, rays, _ in case.intersect_nodes(intersect, recorder_of("nearest")):
            for r in (r for r in rays if case.workspace.state[r, RESULT] == 0):
                claimed = check_plane(case, r, 0, case.hits[r][0])
                second = near_planes(*rows_of(case, r, 0))[1][1] % 3 if claimed == "unknown" else claimed
                counts[second] += 1
    assert min(counts["known"], counts["within"]) > 20, counts
    assert min(counts[axis] for axis in range(3)) > 5, counts


@pytest.mark.long
@pytest.mark.parametrize("intersect", [as_list, one_by_one])
@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("room", [ROOM, 0])
def test_certain_hits_are_hits(name, intersect, room):
    """Except for those at t_min; without memory they are counted only."""
    case, counts, pair_count = Case(name), Counter(), np.zeros(1, np.int64)
    contacts = make_pairs(room)
    contacts.item[:] = contacts.ray[:] = -7
    recorder = AllHitsRecorder(contacts, pair_count, (), (), (), (), ())
    for items, rays, listed in case.intersect_nodes(intersect, recorder):
        number, pair_count[0] = int(pair_count[0]), 0
        pairs = zip(contacts.ray[:number].tolist(), contacts.item[:number].tolist(), strict=False)
        got = set(pairs) if room else set()
        wanted = {(r, i) for r in rays for i in items if i in case.hits[r] and r not in listed[items[i]]}
        assert number == len(wanted)
        assert got == (wanted if room else set())
        assert all(case.hits[r][i].t > case.pairs.t_min[r] for r, i in got)
        assert (contacts.high[:number] == np.inf).all() or not room
        counts["certain"] += number
    assert contacts.item[-8:].tolist() == [-7] * 8
    assert (counts["certain"] > 20) == (name not in {"plane", "cells"}), counts


@loop
def add_candidates(recorder, workspace, rays, items):
    number = 0
    for k in range(rays.size):
        number = add_candidate(recorder, workspace, number, rays[k], items[k])
    return number


def test_a_certain_hit_becomes_a_candidate_before_it_is_compared():
    workspace = make_workspace(16)
    workspace.state[:4, RESULT], workspace.state[:4, TIMED] = (
        [MISS_INDEX, 5, 5, -2],
        [MISS_INDEX, 5, MISS_INDEX, MISS_INDEX],
    )
    number = add_candidates(
        recorder_of("nearest"), workspace, np.array([0, 1, 2, 2, 3]), np.array([7, 7, 7, 8, 7])
    )
    got = list(
        zip(workspace.pairs.ray[:number].tolist(), workspace.pairs.item[:number].tolist(), strict=True)
    )
    assert got == [(0, 7), (1, 7), (2, 5), (2, 7), (2, 8), (3, 7)]
    assert add_candidates(recorder_of("count"), workspace, np.array([2]), np.array([9])) == 1


@pytest.mark.jit
def test_the_growth_exceeds_all_relative_errors():
    """Those of near and far times together, beside margins (`test_stream`)."""
    assert EARLY + LATE < margins().growth - 1 <= 2 * (EARLY + LATE)


@loop
def certain_orders(rows, exact_rows, r, one, other, out):
    for k in range(r.size):
        out[k] = certain_order(rows, exact_rows, r[k], one[k], other[k])


@pytest.mark.parametrize("name", SCENES)
def test_planes_of_one_axis_order_boxes(name):
    """Claimed orders are right, by Fractions; on a grid most ties are claimed."""
    case, counts = Case(name), Counter()
    rows = rb.Boxes(*case.pairs[4:])._rows()
    triples = [(r, i, j) for r, hits in enumerate(case.hits) for i in hits for j in hits if i < j]
    if case.initial_rays.size and triples:
        triples = [t for t in triples if case.initial_rays[t[0], STOP] >= 0]
        r, i, j = np.array(triples).T
        out = np.zeros(len(r), np.int64)
        certain_orders(rows, case.workspace.rays64, r, i, j, out)
        for ray, one, other, claimed in zip(r.tolist(), i.tolist(), j.tolist(), out.tolist(), strict=True):
            first, second = case.hits[ray][one], case.hits[ray][other]
            order = (first.t > second.t) - (first.t < second.t)
            assert claimed in (order, UNKNOWN_ORDER), (ray, one, other)
            assert claimed == UNKNOWN_ORDER or min(first.t, second.t) > case.pairs.t_min[ray]
            counts["apart" if order else "tie"] += 1
            counts["claimed apart" if claimed in (-1, 1) else "claimed"] += claimed != UNKNOWN_ORDER
    assert name not in {"cloud", "map", "close"} or counts["claimed apart"] > 100, counts
    if name == "cells":
        assert counts["claimed"] > counts["tie"] * 0.3 > 5, counts
