"""Boxes that rays meet for sure by float32 alone: sure is true, by Fractions; what is not sure is kept."""

from collections import Counter

import numpy as np
import pytest

import exact
import raybox as rb
from aim import INF
from cast import PLACES, aimed, as_rays_or_miss, cast, loop
from judging import planes_entered
from raybox.bvh.build import build
from raybox.bvh.node import CHILD, EMPTY, ROW, WIDTH
from raybox.primitives.box_simd import make_pairs
from raybox.primitives.table import tie_is_certain
from raybox.queries.all_hits.recorder import AllHitsRecorder
from raybox.queries.count import CountRecorder
from raybox.queries.nearest.entry_plane import BY, WITHIN
from raybox.queries.nearest.stream import NearestRecorder
from raybox.queries.occluded import OccludedRecorder
from raybox.traversal.certain_hits import intersect_lists
from raybox.traversal.node_test import GROWTH, boxes, intersect_slots
from raybox.traversal.protocol import add_candidate, record_certain
from raybox.traversal.ray_setup import MISS, PASSES, RESULT, STOP, TIMED, frame_of
from raybox.traversal.single import Job
from raybox.traversal.slab_coefficients import load_single_ray
from raybox.traversal.stream_lists import open_lists, pad
from raybox.traversal.workspace import make_workspace
from scenes import random_scene
from test_stream import EARLY, LATE

SINKS = {"count": CountRecorder(()), "occluded": OccludedRecorder(()), "nearest": NearestRecorder((), (), ())}
ROOM = 4096


def close(seed):
    """Boxes each of which is there eight times, moved by shares of its size from 1/8 down to 2^-52."""
    rng = np.random.default_rng(seed)
    lower, upper = (np.repeat(x, 8, axis=0) for x in random_scene(seed, 1, 60, size=0.6)[4:])
    moved = rng.choice([-1, 0, 1], lower.shape) * np.ldexp(1.0, rng.integers(-52, -2, lower.shape))
    return lower + moved, upper + rng.permutation(moved)


SCENES = PLACES | {"close": lambda: close(81)}


@loop
def sifted(sink, job, desk, place, number):
    """Sort the rays of the desk's first list by the boxes of a node; place: node, octant."""
    row, octant = place[0] * ROW, place[1]
    pad(desk.lists, desk.lists[0], number)
    open_lists(desk, number + 16, number + 16)
    intersect_lists(sink, job, desk, (row, octant, place[2], 0), (0, number))


@loop
def alone(sink, job, desk, place, number):
    """The same, ray by ray."""
    row, octant = place[0] * ROW, place[1]
    open_lists(desk, number + 16, number + 16)
    for k in range(number):
        r = np.int64(desk.lists[k])
        load_single_ray(sink, desk, r)
        met = intersect_slots(job.tree.nodes, desk, row, octant, r)
        for slot in range(WIDTH):
            if (met & place[2]) >> slot & 1:
                sure = met >> (WIDTH + slot) & 1
                if not sure or not record_certain(sink, job, desk, (place[0], octant, slot), r):
                    desk.lists[desk.starts[slot] + desk.lengths[slot]] = r
                    desk.lengths[slot] += 1


@loop
def leaves_of(nodes, node):
    return boxes(nodes, node * ROW)


class Asked:
    """Rays at a scene, aimed, and what each meets in truth: box by box, when, and whether at a point only."""

    def __init__(self, place):
        lower, upper = SCENES[place]()
        self.pairs = cast(82, lower, upper, n=240)
        self.tree = build(lower, upper)
        rays = as_rays_or_miss(self.pairs).rows()
        self.job = Job(self.tree, rb.Boxes(lower, upper).rows(), rays, (), frame_of(self.tree))
        self.desk = aimed(self.job.frame, rays, range(240))
        self.fresh = self.desk.packed_rays.copy()
        self.unanswered = self.desk.state.copy()
        self.met = [{f.index: f for f in row} for row in exact.along(*self.pairs)]
        self.octant = (self.pairs.directions < 0) @ [1, 2, 4]

    def ask(self, walk, sink):
        """Yield, for each node with boxes and each octant, its boxes and rays, and the lists of its slots."""
        for node, children in enumerate(self.tree.nodes[:, CHILD:].tolist()):
            leaves = sum(1 << s for s, c in enumerate(children) if EMPTY < c < 0)
            assert leaves == leaves_of(self.tree.nodes, node) & sum(
                1 << s for s, c in enumerate(children) if c != EMPTY
            )
            for octant in range(8):
                live = np.flatnonzero((self.octant == octant) & (self.fresh[:240, STOP] >= 0))
                if leaves and live.size:
                    self.desk.packed_rays[:], self.desk.state[:] = self.fresh, self.unanswered
                    self.desk.lists[: live.size] = live
                    walk(sink, self.job, self.desk, (node, octant, leaves), live.size)
                    lists = zip(self.desk.starts.tolist(), self.desk.lengths.tolist(), strict=True)
                    listed = [set(self.desk.lists[a : a + n].tolist()) for a, n in lists]
                    yield {~c: s for s, c in enumerate(children) if leaves >> s & 1}, live.tolist(), listed


@pytest.mark.parametrize("walk", [sifted, alone])
@pytest.mark.parametrize("place", SCENES)
def test_sure_boxes_are_met_and_others_are_listed(place, walk):
    asked, counts = Asked(place), Counter()
    for items, rays, listed in asked.ask(walk, SINKS["count"]):
        for r in rays:
            met = {i for i in items if i in asked.met[r]}
            left = {i for i, slot in items.items() if r in listed[slot]}
            counts["in doubt"] += len(left & met)
            number = asked.desk.state[r, RESULT] + 1
            assert number == len(met - left), (r, met, left)  # were one sure and not met, another would lack
            counts["sure"] += number
            counts["passed"] += len(left - met)
    assert counts["in doubt"] > 0 or place == "plane", counts
    assert (counts["sure"] > 50) == (place not in {"plane", "cells"}), counts


@pytest.mark.parametrize("walk", [sifted, alone])
@pytest.mark.parametrize("place", SCENES)
def test_a_ray_ends_at_a_sure_box(place, walk):
    asked, ended = Asked(place), 0
    for items, rays, listed in asked.ask(walk, SINKS["occluded"]):
        for r in rays:
            met = [asked.met[r][i] for i in items if i in asked.met[r]]
            if asked.desk.state[r, RESULT] == 1:
                assert any(not f.plain[5] for f in met)
                assert asked.desk.packed_rays[r, STOP] == PASSES
                ended += 1
            else:
                assert asked.desk.state[r, RESULT] == MISS
                assert all(r in listed[items[f.index]] for f in met)
                assert asked.desk.packed_rays[r, STOP] == asked.fresh[r, STOP]
    assert (ended > 30) == (place not in {"plane", "cells"}), ended


@pytest.mark.parametrize("walk", [sifted, alone])
@pytest.mark.parametrize("place", SCENES)
def test_the_nearest_sure_box_is_before_all_that_are_not_listed(place, walk):
    asked, counts = Asked(place), Counter()
    for items, rays, listed in asked.ask(walk, SINKS["nearest"]):
        for r in rays:
            met = {i: asked.met[r][i] for i in items if i in asked.met[r]}
            left = {i for i, slot in items.items() if r in listed[slot]}
            answer = int(asked.desk.state[r, RESULT])
            if answer == MISS:
                assert set(met) <= left
                assert asked.desk.state[r, TIMED] == MISS
                continue
            first = met[answer]
            counts[told_plane(asked, r, answer, first)] += 1
            counts["upper" if asked.desk.state[r, TIMED] <= BY - 3 else "lower or none"] += 1
            assert answer not in left
            for i in set(met) - left - {answer}:
                assert first.t < met[i].t, (r, i)
            counts["alone" if len(met) == 1 else "among others"] += 1
            counts["in doubt"] += len(left & set(met))
            limit = (first.t * 2 ** int(asked.desk.power[r]) if first.t < INF else INF) - exact.real(
                float(asked.desk.shift[r])
            )
            assert limit < exact.real(float(asked.desk.packed_rays[r, STOP])) <= asked.fresh[r, STOP]
    if place == "close":
        assert min(counts["in doubt"], counts["among others"]) > 20, counts
        assert counts["told"] > 5, counts
    if place in {"crowd", "map", "small", "large"}:
        assert counts["told"] > 30, counts
        assert counts["not told"] < counts["told"] / 10, counts
        assert min(counts["within"], counts["upper"], counts["lower or none"]) > 5, counts


def rows_of(asked, r, i) -> list[list[float]]:
    """Give a ray's origin and direction, and a box's corners."""
    return [x[r].tolist() for x in asked.pairs[:2]] + [x[i].tolist() for x in asked.pairs[4:]]


def told_plane(asked, r, answer, first) -> str:
    """Hold what is said of the plane by which a ray enters its box to the truth; say what it was."""
    told = int(asked.desk.state[r, TIMED])
    planes = planes_entered(*rows_of(asked, r, answer))
    if told == WITHIN:
        assert first.t == asked.pairs.t_min[r]
        assert all(t < first.t for t, _ in planes)
        return "within"
    if told == MISS:
        return "not told" if planes and first.t == planes[0][0] else "not told, within"
    assert told == BY - planes[0][1], (r, answer)
    assert first.t == planes[0][0] > asked.pairs.t_min[r]
    assert all(later < first.t for later, _ in planes[1:])
    return "told"


@pytest.mark.parametrize("walk", [sifted, alone])
def test_planes_are_not_guessed_where_rays_enter_by_an_edge(walk, monkeypatch):
    """One box, with rays aimed at its edges and corners: near times tie, or nearly do, on any two axes."""
    rng, counts = np.random.default_rng(83), Counter()
    for _ in range(4):
        lower, size = rng.uniform(-1, 1, (1, 3)), rng.uniform(0.1, 1, (1, 3))
        monkeypatch.setitem(SCENES, "box", lambda ends=(lower, lower + size): ends)
        asked = Asked("box")
        for _, rays, _ in asked.ask(walk, SINKS["nearest"]):
            for r in (r for r in rays if asked.desk.state[r, RESULT] == 0):
                said = told_plane(asked, r, 0, asked.met[r][0])
                second = planes_entered(*rows_of(asked, r, 0))[1][1] % 3 if said == "not told" else said
                counts[second] += 1
    assert min(counts["told"], counts["within"]) > 20, counts
    assert min(counts[axis] for axis in range(3)) > 5, counts


@pytest.mark.parametrize("walk", [sifted, alone])
@pytest.mark.parametrize("place", SCENES)
@pytest.mark.parametrize("room", [ROOM, 0])
def test_sure_boxes_are_contacts(place, walk, room):
    """But for those that may be met where the range begins; without room they are but counted."""
    asked, counts, size = Asked(place), Counter(), np.zeros(2, np.int64)
    contacts = make_pairs(room)
    contacts.item[:] = contacts.ray[:] = -7
    sink = AllHitsRecorder(contacts, size, (), (), (), ())
    for items, rays, listed in asked.ask(walk, sink):
        number, size[0] = int(size[0]), 0
        pairs = zip(contacts.ray[:number].tolist(), contacts.item[:number].tolist(), strict=False)
        got = set(pairs) if room else set()
        wanted = {(r, i) for r in rays for i in items if i in asked.met[r] and r not in listed[items[i]]}
        assert number == len(wanted)
        assert got == (wanted if room else set())
        assert all(asked.met[r][i].t > asked.pairs.t_min[r] for r, i in got)
        assert (contacts.high[:number] == np.inf).all() or not room
        counts["sure"] += number
    assert contacts.item[-8:].tolist() == [-7] * 8
    assert (counts["sure"] > 20) == (place not in {"plane", "cells"}), counts


@loop
def proposed(sink, desk, rays, items):
    number = 0
    for k in range(rays.size):
        number = add_candidate(sink, desk, number, rays[k], items[k])
    return number


def test_what_came_in_for_sure_is_screened_before_it_is_compared():
    desk = make_workspace(16)
    desk.state[:4, RESULT], desk.state[:4, TIMED] = [MISS, 5, 5, -2], [MISS, 5, MISS, MISS]
    number = proposed(SINKS["nearest"], desk, np.array([0, 1, 2, 2, 3]), np.array([7, 7, 7, 8, 7]))
    got = list(zip(desk.pairs.ray[:number].tolist(), desk.pairs.item[:number].tolist(), strict=True))
    assert got == [(0, 7), (1, 7), (2, 5), (2, 7), (2, 8), (3, 7)]
    assert proposed(SINKS["count"], desk, np.array([2]), np.array([9])) == 1


def test_there_is_room_to_spare():
    """More than near times and far times are off together, beside margins (`test_streams`), and roundings."""
    assert EARLY + LATE < GROWTH - 1 <= 2 * (EARLY + LATE)


@loop
def together_all(rows, exact_rows, r, one, other, out):
    for k in range(r.size):
        out[k] = tie_is_certain(rows, exact_rows, r[k], one[k], other[k])


@pytest.mark.parametrize("place", SCENES)
def test_two_boxes_in_one_plane_are_met_together(place):
    """What is said to be met at once is, by Fractions; on a grid that is nearly all of what is."""
    asked, counts = Asked(place), Counter()
    rows = rb.Boxes(*asked.pairs[4:]).rows()
    triples = [(r, i, j) for r, met in enumerate(asked.met) for i in met for j in met if i < j]
    if asked.fresh.size and triples:
        triples = [t for t in triples if asked.fresh[t[0], STOP] >= 0]
        r, i, j = np.array(triples).T
        out = np.zeros(len(r), np.bool_)
        together_all(rows, asked.desk.rays64, r, i, j, out)
        for ray, one, other, said in zip(r.tolist(), i.tolist(), j.tolist(), out.tolist(), strict=True):
            first, second = asked.met[ray][one], asked.met[ray][other]
            same = first.t == second.t > asked.pairs.t_min[ray]
            assert same or not said, (ray, one, other)
            counts["tie" if same else "apart"] += 1
            counts["said"] += said
    if place == "cells":
        assert counts["said"] > counts["tie"] * 0.3 > 5, counts
