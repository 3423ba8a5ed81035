"""What queries record of resolved candidates: nothing that a later one may not change is overwritten."""

from collections import Counter

import numpy as np
import pytest

import exact
import raybox as rb
from aim import INF, Pairs
from ray_cases import loop
from raybox.primitives.status import HIT, MISS, MISS_INDEX, UNDECIDED, UNDECIDED_INDEX
from raybox.queries.nearest.stream import Nearest
from raybox.queries.occluded import Occluded
from raybox.traversal.job import Job
from raybox.traversal.protocol import record
from raybox.traversal.ray_setup import PASSES, RESULT, STOP
from raybox.traversal.workspace import make_workspace
from test_many_rays import run_query, truth

RAYS = 16  # of a workspace


@loop
def record_all(recorder, job, workspace, number):
    record(recorder, job, workspace, number)


def recorded(recorder, candidates, result=MISS_INDEX, direction=(1.0, 1.0, 1.0), bounds=np.nan):
    """Return a workspace after the candidates of each ray: status, low and high of primitive 0, 1, ...

    By default rays enter at corners: the order of hits that are too close is unknown. bounds: what the memory
    holds before.
    """
    workspace = make_workspace(RAYS)
    workspace.state[:], workspace.packed_rays[:, STOP] = result, np.inf
    workspace.power[:], workspace.shift[:], workspace.bounds[:] = 0, 0.0, bounds
    workspace.rays64[:] = [0.0, 0.0, 0.0, *direction, 0.0, INF]
    number = 0
    for r, some in enumerate(candidates):
        for i, (status, low, high) in enumerate(some):
            pairs = workspace.pairs
            pairs.ray[number], pairs.item[number], pairs.status[number] = r, i, status
            pairs.low[number], pairs.high[number] = low, high
            number += 1
    boxes = rb.Boxes(np.arange(1.0, 6.0)[:, None] * np.ones(3), 9.0 * np.ones((5, 3)))
    record_all(recorder, Job((), boxes._rows(), (), ()), workspace, number)
    return workspace


AFTER_UNDECIDED = {
    "undecided, then a hit": [(UNDECIDED, 1.0, 3.0), (HIT, 2.0, 2.5)],
    "a hit and an undecided one, then an earlier hit": [
        (HIT, 5.0, 6.0),
        (UNDECIDED, 3.0, 5.5),
        (HIT, 4.0, 4.5),
    ],
    "two hits too close, then an earlier hit": [(HIT, 5.0, 6.0), (HIT, 4.0, 5.5), (HIT, 3.0, 3.5)],
    "undecided, then where the range begins": [(UNDECIDED, 1.0, 3.0), (HIT, 0.0, 0.0)],
    "undecided, then a miss": [(UNDECIDED, 1.0, 3.0), (MISS, 1.0, 3.0)],
}


@pytest.mark.parametrize("earlier_time", [0.0, 9.0, np.inf, np.nan])
def test_a_hit_decides_no_undecided_ray(earlier_time):
    """Whatever times the memory holds, of another ray or of the hit before."""
    workspace = recorded(Nearest((), ()), AFTER_UNDECIDED.values(), bounds=earlier_time)
    for r, name in enumerate(AFTER_UNDECIDED):
        assert workspace.state[r, RESULT] == UNDECIDED_INDEX, name
        assert workspace.packed_rays[r, STOP] == PASSES, name


def test_hits_that_are_certainly_first_are_recorded():
    workspace = recorded(
        Nearest((), ()),
        [
            [(HIT, 5.0, 6.0), (HIT, 3.0, 4.0), (UNDECIDED, 4.5, 7.0), (MISS, 1.0, 2.0)],
            [(HIT, 0.0, 0.0), (HIT, 0.0, 0.0), (HIT, 0.5, 0.75)],
            [(MISS, 0.0, 0.0), (MISS, 1.0, 1.0)],
        ],
    )
    assert workspace.state[:3].tolist() == [[1, 1], [0, 0], [MISS_INDEX, MISS_INDEX]]
    assert workspace.packed_rays[0, STOP] < 4.001


def test_hits_too_close_are_ordered_by_their_planes():
    close = [[(HIT, 1.0, 3.0), (HIT, 1.5, 2.5)]]
    workspace = recorded(Nearest((), ()), close, direction=(1.0, 0.0, 0.0))
    assert workspace.state[0].tolist() == [0, 0]
    assert workspace.bounds[0].tolist() == [1.0, 2.5]


CERTAIN = {
    "no other": ([(HIT, 1.0, 1.5)], 0),
    "a later hit": ([(HIT, 1.0, 1.5), (HIT, 2.0, 3.0)], 0),
    "an earlier hit": ([(HIT, 5.0, 6.0), (HIT, 2.0, 3.0)], 1),
    "no bounds": ([(UNDECIDED, 1.0, 1.5), (HIT, 0.25, 0.5)], UNDECIDED_INDEX),
}


def test_a_certain_hit_is_compared_by_the_times_of_its_candidate():
    """Its candidate comes first; without bounds of its time, the exact fallback decides."""
    workspace = recorded(Nearest((), ()), [some for some, _ in CERTAIN.values()], result=0)
    assert workspace.state[: len(CERTAIN), RESULT].tolist() == [result for _, result in CERTAIN.values()]
    assert workspace.bounds[: len(CERTAIN), 0].tolist() == [1.0, 1.0, 2.0, 1.0]


ONE = MISS_INDEX + 1  # RESULT is the number of hits less 1
OCCLUDED = {
    (HIT, UNDECIDED): ONE,
    (UNDECIDED, HIT): ONE,
    (HIT, MISS): ONE,
    (UNDECIDED, HIT, UNDECIDED): ONE,
    (UNDECIDED, MISS): UNDECIDED_INDEX,
    (MISS, UNDECIDED, UNDECIDED): UNDECIDED_INDEX,
    (MISS, MISS): MISS_INDEX,
}


def test_an_undecided_box_leaves_a_hit_ray_as_it_is():
    rays = [[(status, 1.0, 2.0) for status in some] for some in OCCLUDED]
    workspace = recorded(Occluded(()), rays)
    assert workspace.state[: len(rays), RESULT].tolist() == list(OCCLUDED.values())
    ended = workspace.packed_rays[: len(rays), STOP] == PASSES
    assert ended.tolist() == [result == ONE for result in OCCLUDED.values()]


def endless(seed) -> Pairs:
    """Return boxes in twos, entered nearly at once; some are so long that float64 leaves them undecided."""
    rng, twos, times = np.random.default_rng(seed), 40, 12
    lower = np.zeros((twos, 2, 3))
    lower[:, :, 1] = 4.0 * np.arange(twos)[:, None]
    lower[:, 1, 0] = (-1.0) ** (np.arange(twos) // 6) * np.ldexp(1.0, rng.integers(-40, -25, twos))
    upper = lower + 1.0
    upper[::6, 0, 0] = 2.0**501
    lower[0, 0, 0] = -9.0  # so the long boxes are tested first
    order = rng.permutation(2 * twos)
    goals = lower[:, 0].repeat(times, axis=0) + rng.uniform(0.1, 0.9, (twos * times, 3)) * [0.0, 1.0, 1.0]
    ways = rng.uniform([0.5, -0.1, -0.1], [1.0, 0.1, 0.1], goals.shape)
    origins, n = goals - ways * rng.uniform(1, 20, (len(goals), 1)), len(goals)
    lower, upper = lower.reshape(-1, 3)[order], upper.reshape(-1, 3)[order]
    return Pairs(origins, ways, np.zeros(n), np.full(n, INF), lower, upper)


@pytest.mark.parametrize("seed", range(110, 113))
def test_certain_hits_that_float64_leaves_undecided_are_ordered(seed):
    """A plane of the box is too far for float64, but it is not the one by which rays enter."""
    pairs, counts = endless(seed), Counter()
    found = list(exact.along(*pairs))
    assert run_query("nearest", pairs) == truth("nearest", found)
    is_long = pairs.upper[:, 0] == 2.0**501
    for row in found:
        counts[tuple(is_long[[f.index for f in row]].tolist())] += 1
    assert min(counts[True, False], counts[False, True]) > 10, counts


def at_range_start(seed) -> Pairs:
    """Return rays that begin in boxes, or less than a rounding error before them, in twos and threes."""
    rng, n = np.random.default_rng(seed), 200
    begin = rng.choice([-1.0, 0.0, *np.ldexp(1.0, [-60, -58, -57])], 30)
    lower = np.column_stack([begin, np.repeat(np.arange(10.0), 3), np.zeros(30)])
    order = rng.permutation(30)
    origins = np.column_stack([np.full(n, -1000.0), rng.uniform(0.1, 9.9, n), rng.uniform(0.1, 0.9, n)])
    sizes = np.array([3.0, 1.0, 1.0])
    t_min = rng.choice([1000.0, 1000.0, 999.0], n)
    ways = np.tile([1.0, 0.0, 0.0], (n, 1))
    return Pairs(origins, ways, t_min, np.full(n, INF), lower[order], (lower + sizes)[order])


@pytest.mark.parametrize("query", ["nearest", "first", "all"])
@pytest.mark.parametrize("seed", range(120, 123))
def test_first_contacts_that_round_to_the_start_of_the_range_are_in_exact_order(query, seed):
    pairs, counts = at_range_start(seed), Counter()
    found = list(exact.along(*pairs))
    assert run_query(query, pairs) == truth(query, found)
    for row, t_min in zip(found, pairs.t_min.tolist(), strict=True):
        starts = [f for f in row if f.plain[1] == t_min]
        counts["later"] += any(f.t > t_min for f in starts)
        counts["tied"] += sum(f.t == t_min for f in starts) > 1
        counts["unlike their indices"] += [f.index for f in starts] != sorted(f.index for f in starts)
    assert min(counts.values()) > 10, counts
    assert len(counts) == 3, counts
