"""Rays at the triangles of nodes, in lists and one by one: results are those of Fractions."""

from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import exact_surfaces
import raybox as rb
from aim import INF
from raybox.compiler.buffer_pool import SizedPool
from raybox.queries import batches, scheduler
from raybox.traversal.workspace import make_workspace, work_counts
from sorting import sort_more_than
from test_packet_triangles import KINDS, QUERIES, compare_soups, points, run, truth
from triangle_bundles import Bundle, sphere

WAYS = ["lists", "one by one"]


@pytest.fixture
def go(monkeypatch):
    """Return what lets rays go in lists, or one by one; and counts pairs that go to float64."""
    call = scheduler._recording
    monkeypatch.setattr(scheduler, "_recording", lambda *args: call(*args)._replace(packet_recorder=None))
    monkeypatch.setattr(batches, "_WORKSPACES", SizedPool(make_workspace))

    def way(name: str) -> None:
        sort_more_than(monkeypatch, 16 if name == "lists" else 1 << 20)

    return way


def float64_pairs() -> int:
    """Return how many pairs of rays in lists went to float64."""
    free = batches._WORKSPACES._free.values()
    return sum(int(work_counts(workspace).candidates) for some in free for workspace in some)


def hits_of(corners, bundle) -> list[list[int]]:
    """Return the triangles that each ray hits, in order."""
    scene = rb.Scene(rb.Mesh(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3)))
    found = scene.all(rb.Rays(*bundle[:2], t_min=bundle[2], t_max=bundle[3]), workers=1)
    return [found[k].index.tolist() for k in range(len(bundle.origins))]


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_triangles_of_nodes_give_the_results_of_fractions(kind, way, go):
    def compare_all(corners, bundle, found) -> None:
        assert hits_of(corners, bundle) == [[hit.index for hit in row] for row in found]

    go(way)
    compare_soups(405, kind, compare_all)


@cache
def layers(seed: int) -> tuple[np.ndarray, Bundle, list]:
    """Return triangles in layers, some nearly as high as others, and rays from three heights, with hits."""
    rng = np.random.default_rng([406, seed])
    near = [1.0 + 2.0**-40, 1.0 - 2.0**-40] * 4
    heights = np.concatenate([[1.0] * 24, near, rng.uniform(0.5, 1.5, 12)])
    heights = heights[:, None] + rng.choice([0.0, 2.0**-45], (44, 3)) * (np.arange(44) > 20)[:, None]
    rng.shuffle(heights)
    flat = np.array([[-1.0, -1.0], [1.5, -1.0], [-1.0, 1.5]])  # of which a ray misses half or so
    corners = np.stack([np.c_[flat + rng.uniform(-0.9, 0.9, 2), height] for height in heights])
    some = corners[rng.integers(44, size=200), :2, :2]  # half of the rays run through edges: float64 decides
    on_edge = some[:, 0] + rng.random((200, 1)) * (some[:, 1] - some[:, 0])
    ends = np.where(rng.random((200, 1)) < 0.5, on_edge, rng.uniform(-0.5, 0.5, (200, 2)))
    origins = np.c_[rng.uniform(-0.5, 0.5, (200, 2)), rng.choice([0.0, 2.0, 1.0], 200)]
    ways = np.c_[ends - origins[:, :2], np.where(origins[:, 2] > 1.0, -1.0, 1.0)]
    low = np.where(rng.random(200) < 0.2, 1.0, 0.0)
    high = np.where(rng.random(200) < 0.3, rng.choice([1.0, 0.5, 1.0 + 2.0**-40], 200), INF)
    bundle = Bundle(origins, ways, low, np.maximum(low, high))
    return corners, bundle, exact_surfaces.triangles_along(bundle, corners)


@pytest.mark.core
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("query", QUERIES)
def test_layers_of_triangles_close_to_each_other(query, way, go):
    """Times that float32 cannot tell apart, with those that it can, before and after: each order of both."""
    go(way)
    counts = Counter()
    for seed in range(30):
        corners, bundle, found = layers(seed)
        assert run(query, corners, bundle) == truth(query, found), seed
        for row in found:
            counts["hit" if row else "miss"] += 1
            near = [f for f in row[1:] if f.plain[1] - row[0].plain[1] < 1e-9 and row[0].plain[1] > 0.0]
            counts["tie"] += any(f.t == row[0].t for f in near)
            counts["close"] += any(f.t != row[0].t for f in near)
    assert min(counts["hit"], counts["miss"], counts["tie"], counts["close"]) > 100, counts


@pytest.mark.parametrize("way", WAYS)
def test_ranges_that_end_near_hits_of_rays_from_far_away(way, go):
    """There packed times are less precise than the times of triangles."""
    go(way)
    rng, n, counts = np.random.default_rng(408), 96, Counter()
    corners = rng.uniform(-1.0, 1.0, (1, 3, 3))
    for power in (6, 12, 20, 30):
        goals = (rng.dirichlet([3, 3, 3], (n, 1)) @ corners)[:, 0]
        ways = np.tile(rng.standard_normal(3), (n, 1)) + 2.0**-30 * rng.standard_normal((n, 3))
        origins = goals - 2.0**power * ways
        ends = 2.0**power * (1.0 + rng.choice([-1.0, 1.0], n) * np.ldexp(1.0, -rng.integers(17, 34, n)))
        late = np.arange(n) % 2 == 0
        bundle = Bundle(origins, ways, np.where(late, ends, 0.0), np.where(late, INF, ends))
        found = exact_surfaces.triangles_along(bundle, corners)
        for query in QUERIES:
            assert run(query, corners, bundle) == truth(query, found), power
        counts.update("hit" if row else "miss" for row in found)
    assert min(counts.values()) > 100, counts


@pytest.mark.parametrize("way", WAYS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.lists(points, min_size=3, max_size=8),
    st.lists(st.tuples(*[st.integers(0, 7)] * 3), min_size=1, max_size=10),
    st.lists(st.tuples(points, points), min_size=8, max_size=24),
    st.sampled_from([(0.0, INF), (0.0, 1.0), (-INF, INF), (1.0, 2.0), (-0.0, 0.5)]),
)
def test_any_triangles(way, go, vertices, faces, sights, span):
    go(way)
    corners = np.array(vertices)[np.array(faces) % len(vertices)]
    eyes, goals = (np.array(column) for column in zip(*sights, strict=True))
    n = len(sights)
    bundle = Bundle(eyes, goals - eyes, np.full(n, span[0]), np.full(n, span[1]))
    found = exact_surfaces.triangles_along(bundle, corners)
    for query in QUERIES:
        assert run(query, corners, bundle) == truth(query, found)


def from_within(count=4096) -> Bundle:
    """Return rays from inside of the sphere, in any direction."""
    rng = np.random.default_rng(407)
    return Bundle(
        rng.uniform(-0.5, 0.5, (count, 3)),
        rng.standard_normal((count, 3)),
        np.zeros(count),
        np.full(count, INF),
    )


FLOAT64 = {"nearest": 2, "occluded": 2, "count": 2}


@pytest.mark.parametrize("query", FLOAT64)
def test_pairs_of_lists_and_triangles_that_go_to_float64(query, go):
    """Golden: how many pairs float32 leaves to float64, of 4,096 rays from within. Lower is better."""
    go("lists")
    found = run(query, sphere(), from_within())
    assert float64_pairs() == FLOAT64[query]
    go("one by one")
    assert run(query, sphere(), from_within()) == found
    hit = [index >= 0 for index, _ in found] if query == "nearest" else found
    assert np.count_nonzero(hit) > 4000
