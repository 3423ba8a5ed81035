"""Packets that enter boxes by shared planes, nearly shared ones, and flat boxes, against Fractions."""

from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import exact
from aim import INF, Pairs
from core_marks import with_core
from raybox.queries import batches
from raybox.traversal.ray_setup import LANES
from raybox.traversal.workspace import work_counts
from test_many_rays import check, run_query, truth
from test_packet import last_workspace, packet_calls, plates, stack  # noqa: F401  # a fixture
from triangle_bundles import sphere

PACKETS = 24
QUERIES = ["nearest", "occluded", "count", "all"]


def shared(rng, number=90) -> tuple[np.ndarray, np.ndarray]:
    """Return boxes whose planes are few numbers, or moved from them by up to 2^-20; a third is flat."""
    lower = rng.integers(-4, 5, (number, 3)) * 0.25
    size = rng.choice([0.0, 0.25, 0.5, 1.0], (number, 3), p=[0.12, 0.3, 0.3, 0.28])
    noise = rng.choice([0.0, 1.0, -1.0], (2, number, 3), p=[0.6, 0.2, 0.2])
    noise *= np.ldexp(1.0, rng.integers(-54, -20, (2, number, 3)))
    lower, upper = lower + noise[0], lower + size + np.where(size > 0.0, noise[1], noise[0])
    lower[number // 2 : number // 2 + 9], upper[number // 2 : number // 2 + 9] = lower[:9], upper[:9]
    lower[-1], upper[-2] = [-1e3, -0.25, -0.25], [0.25, 1e3, 0.25]
    lower[lower == 0.0] *= rng.choice([1.0, -1.0], np.count_nonzero(lower == 0.0))
    return np.minimum(lower, upper), np.maximum(lower, upper)


def packets_at(rng, lower, upper, count=PACKETS) -> tuple[np.ndarray, ...]:
    """Return packets from outside, inside and on faces, to points of boxes and their edges."""
    rows = []
    finite = np.flatnonzero(np.isfinite(lower).all(axis=1) & np.isfinite(upper).all(axis=1))
    for k in range(count):
        a, b = rng.choice(finite, 2)
        goal = lower[b] + rng.choice([0.0, 0.5, 1.0, rng.random()], 3) * (upper[b] - lower[b])
        eye = goal + rng.uniform(1.0, 6.0) * rng.standard_normal(3)
        if k % 4 == 1:
            eye = lower[a] + rng.choice([0.0, 0.5], 3) * (upper[a] - lower[a])
        spread = (
            np.linspace(0.0, 1.0, LANES)[:, None] * rng.uniform(-0.2, 0.2, 3) * rng.choice([0.0, 1e-6, 1.0])
        )
        ways = goal - eye + spread
        origins = np.tile(eye, (LANES, 1)) + (spread if k % 3 == 0 else 0.0)
        if k % 5 == 2:
            ways[:, rng.integers(3)] = rng.choice([0.0, -0.0])
        low, high = [(0.0, INF), (0.0, 1.0), (1.0, INF), (-INF, INF), (0.0, 0.999), (-1.0, 1.0)][k % 6]
        rows.append((origins, ways, np.full(LANES, low), np.full(LANES, high)))
    return tuple(np.concatenate(column) for column in zip(*rows, strict=True))


def counted(pairs, found, counts) -> None:
    """Count hits, misses, touches, ties, and first hits that differ from another in float64 alone."""
    for ray, row in enumerate(found):
        counts["hit" if row else "miss"] += 1
        counts["touch"] += any(f.plain[5] for f in row)
        first = [f for f in row if f.t == row[0].t] if row else []
        counts["tie"] += len(first) > 1
        counts["inside"] += len(first) > 1 and row[0].t == pairs.t_min[ray]
        close = [f for f in row if row[0].t < f.t <= row[0].t + abs(row[0].t) * 2.0**-22] if row else []
        counts["close"] += bool(close)
        counts["close, higher index first"] += bool(close) and row[0].index > close[0].index
        flat = pairs.lower[[f.index for f in row]] == pairs.upper[[f.index for f in row]]
        counts["flat"] += bool(row) and bool(flat.any(axis=1)[0])


@cache
def shared_case(seed) -> tuple[Pairs, list[list[exact.Found]]]:
    """Return packets at such boxes, and the exact hits of each ray."""
    rng = np.random.default_rng([301, seed])
    lower, upper = shared(rng)
    pairs = Pairs(*packets_at(rng, lower, upper), lower, upper)
    return pairs, list(exact.along(*pairs))


@pytest.mark.parametrize("query", with_core(QUERIES, "nearest"))
def test_shared_and_nearly_shared_planes(query, packet_calls):  # noqa: F811
    counts = Counter()
    for seed in range(12):
        pairs, found = shared_case(seed)
        assert run_query(query, pairs) == truth(query, found), seed
        counted(pairs, found, counts)
    left, number = np.sum(packet_calls, axis=0)
    assert left < number * (0.9 if query == "all" else 0.6)
    assert min(counts.values()) > 25, counts


def crossed(rng, count) -> Pairs:
    """Return three boxes that many rays enter nearly at once: two by one plane of x, one by a plane of y."""
    late = np.ldexp(rng.random() + 0.5, rng.integers(-22, -18))  # about a margin
    lower = np.array([[late, -1.0, -1.0], [0.0, -1.0, -1.0], [-1.0, 0.0, -1.0]])
    upper = lower + np.array([[1.0, 2.0, 2.0], [1.0, 2.0, 2.0], [2.0, 1.0, 2.0]])
    order, ways = rng.permutation(3), rng.uniform([0.2, 0.2, -0.1], [1.0, 1.0, 0.1], (count, 3))
    apart = np.ldexp(rng.uniform(-1.0, 1.0, (count, 3)), rng.integers(-27, -20, (count, 1)))
    origins = ways * apart - ways * rng.uniform(0.5, 3.0, (count, 1))
    return Pairs(origins, ways, np.zeros(count), np.full(count, INF), lower[order], upper[order])


def test_three_boxes_at_once(packet_calls):  # noqa: F811
    """A box that replaces another by the same plane is the one that later boxes must come before."""
    counts = Counter()
    for seed in range(20):
        pairs = crossed(np.random.default_rng([305, seed]), 300)
        found = check("nearest", pairs)
        singles = Pairs(*(column[:60] for column in pairs[:4]), *pairs[4:])  # so few go one by one
        assert run_query("nearest", singles) == truth("nearest", found[:60]), seed
        counts.update(row[0].index for row in found if len(row) == 3)
    assert min(counts[k] for k in range(3)) > 250, counts
    assert all(left == number for left, number in packet_calls)


numbers = st.builds(
    lambda whole, power, sign: whole * 0.25 + sign * 2.0**-power * abs(whole),
    st.integers(-4, 4),
    st.integers(20, 54),
    st.sampled_from([0, 0, 1, -1]),
) | st.floats(-4.0, 4.0, allow_subnormal=False)
planes = st.tuples(*[numbers] * 3)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.lists(st.tuples(planes, planes), min_size=2, max_size=12),
    planes,
    planes,
    st.sampled_from([0.0, 2.0**-30, 2.0**-12]),
    st.sampled_from([(0.0, INF), (0.0, 1.0), (-INF, INF), (1.0, 2.0)]),
)
def test_any_planes(packet_calls, boxes, eye, goal, step, span):  # noqa: F811
    corners = np.array(boxes)
    lower, upper = np.repeat([corners.min(axis=1), corners.max(axis=1)], 2, axis=1)
    ways = np.array(goal) - np.array(eye) + np.arange(5 * LANES)[:, None] * step * np.array([1.0, 0.5, 0.25])
    n = len(ways)
    pairs = Pairs(np.tile(eye, (n, 1)), ways, np.full(n, span[0]), np.full(n, span[1]), lower, upper)
    found = list(exact.along(*pairs))
    for query in ("nearest", "count"):
        assert run_query(query, pairs) == truth(query, found)


@pytest.mark.core
@pytest.mark.parametrize("moved", [0.0, 2.0**-52, 2.0**-40])
def test_more_ties_than_there_is_room_for(moved, packet_calls, monkeypatch):  # noqa: F811
    """Boxes that are one in float32, in any order: each tie is listed, and decided by its planes."""
    monkeypatch.setattr(batches, "GROUP", 48)
    pairs = plates(100, flat=False)
    order = np.random.default_rng(302).permutation(100)
    pairs.lower[:100, 2] += moved * order
    pairs.directions[:, :2] *= 32.0  # the slower, the wider are margins
    found = check("nearest", pairs)
    first = Counter(row[0].index for row in found if row)
    assert first[int(np.argmin(order)) if moved else 0] > 100
    (left, _), (_, workspace) = packet_calls[0], last_workspace()
    assert left == 0
    assert workspace.pairs.ray.size < 100 * LANES * 3
    assert work_counts(workspace).candidates < 100  # of rays at edges


@pytest.mark.core
def test_a_box_by_another_plane_ends_a_tie(packet_calls):  # noqa: F811
    """What ties with a former result is after the present one, also if its index is lower."""
    pairs = stack()
    low = np.array([[-9.0, -9.0, 2.0], [-9.0, -9.0, 2.0], [-9.0, 0.25, -9.0]])
    up = np.array([[9.0, 9.0, 3.0], [9.0, 9.0, 4.0], [9.0, 9.0, 9.0]])
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        ways = np.tile([2.0**-12, 2.0**-13, 1.0], (256, 1)) + np.arange(256)[:, None] * [0.0, 2.0**-12, 0.0]
        same = Pairs(pairs.origins, ways, *pairs[2:4], low[order], up[order])
        found = check("nearest", same)
        firsts = Counter(row[0].index for row in found if row)
        assert len(firsts) > 1, firsts


FLOAT64 = {"nearest": 0, "occluded": 0, "count": 61}


@pytest.mark.parametrize("query", FLOAT64)
def test_pairs_of_packets_that_go_to_float64(query, packet_calls):  # noqa: F811
    """Golden: how many pairs float32 leaves to float64, of 16,384 rays. Lower is better."""
    x, y = (a.ravel() for a in np.meshgrid(np.linspace(-0.5, 0.5, 512), np.linspace(-0.1, 0.1, 32)))
    ways = np.stack([x, y, np.ones(len(x))], axis=1)
    eye = np.tile([0.013, 0.027, -3.0], (len(x), 1))
    triangles = sphere()
    boxes = triangles.min(axis=1), triangles.max(axis=1)  # neighbours share planes
    pairs = Pairs(eye, ways, np.zeros(len(x)), np.full(len(x), INF), *boxes)
    assert sum(number > 0 for number in run_query("count", pairs)) > 10_000
    batches._PACKETS._free.clear()
    run_query(query, pairs)
    assert work_counts(last_workspace()[1]).candidates == FLOAT64[query]
