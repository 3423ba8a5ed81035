"""Packets at triangles: results are those of Fractions, and few pairs go to float64."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import exact_surfaces
import raybox as rb
from aim import INF
from raybox.queries import batches, scheduler
from raybox.traversal.ray_setup import LANES
from raybox.traversal.workspace import (
    work_counts,
)
from test_packet import last_workspace, packet_calls  # noqa: F401  # a fixture
from triangle_bundles import Bundle, bundles, soup, sphere

QUERIES = ["nearest", "occluded", "count"]
KINDS = ["any", "grid", "strip", "slivers", "plane", "map", "tiny"]


# Results


def run(query, corners, bundle, **how):
    """Return the results of a query of a scene of triangles."""
    scene = rb.Scene(rb.Mesh(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3)))
    rays = rb.Rays(*bundle[:2], t_min=bundle[2], t_max=bundle[3])
    found = getattr(scene, query)(rays, workers=1, **how)
    return (
        list(zip(found.index.tolist(), found.t.tolist(), strict=True))
        if query == "nearest"
        else found.tolist()
    )


def truth(query, found):
    """Return the same of the exact hits."""
    if query == "nearest":
        return [(row[0].index, row[0].plain[1]) if row else (-1, INF) for row in found]
    return [len(row) if query == "count" else bool(row) for row in found]


@pytest.fixture
def wide_packets(packet_calls, monkeypatch):  # noqa: F811
    """Record as `packet_calls` does, where rays form packets however far apart they are."""
    call = scheduler._recording
    monkeypatch.setattr(scheduler, "_recording", lambda *args: call(*args)._replace(grains=1e30))
    return packet_calls


def tally(counts, bundle, corners, found) -> None:
    """Count hits, misses, touches of edges and of the ends of ranges, and ties."""
    for ray, row in enumerate(found):
        counts["hit" if row else "miss"] += 1
        counts["tie"] += len(row) > 1 and row[0].t == row[1].t
        counts["end"] += any(f.t in (bundle.t_min[ray], bundle.t_max[ray]) for f in row)
        for f in row[:1]:
            o, d = bundle.origins[ray].tolist(), bundle.directions[ray].tolist()
            _, u, v = exact_surfaces.triangle(o, d, (-INF, INF), *corners[f.index].tolist())
            counts["edge"] += 0 in (u, v, 1 - u - v)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_packets_of_triangles_give_the_results_of_fractions(kind, wide_packets):
    compare_soups(402, kind)
    left, number = np.sum(wide_packets, axis=0)
    assert left < number * 0.7


def compare_soups(seed: int, kind: str, more=lambda corners, bundle, found: None) -> None:
    """Compare queries of six sets of triangles with Fractions; call `more` with each and its exact hits."""
    counts = Counter()
    for k in range(6):
        rng = np.random.default_rng([seed, KINDS.index(kind), k])
        corners = soup(rng, KINDS.index(kind), 40)
        bundle = bundles(rng, corners, 24)
        found = exact_surfaces.triangles_along(bundle, corners)
        front = exact_surfaces.triangles_along(bundle, corners, cull_back=True)
        for query in QUERIES:
            assert run(query, corners, bundle) == truth(query, found), (query, k)
            assert run(query, corners, bundle, cull="back") == truth(query, front), (query, k)
        more(corners, bundle, found)
        tally(counts, bundle, corners, found)
    assert min(counts["hit"] * (10 if kind == "slivers" else 1), counts["miss"]) > 150, counts
    assert min(counts["edge"], counts["end"], counts["tie"]) > 10 or kind not in ("grid", "plane"), counts


def walls(rng, axis: int, kind: str) -> np.ndarray:
    """Return sixteen walls of two triangles each, in two planes across an axis."""
    low, room, where = rng.uniform(-1.0, 0.0, (16, 3)), rng.uniform(0.4, 1.0, (16, 3)), rng.uniform(-1, 1, 2)
    if kind == "grid":
        low, room, where = np.round(low * 8) / 8, np.round(room * 8) / 8, np.array([-0.5, 0.25])
    corner = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
    corners = low[:, None] + np.roll(corner, axis + 1, axis=1) * room[:, None]
    planes = where[rng.integers(2, size=16)]
    if kind == "apart":
        planes = planes + rng.choice([-1, 0, 0, 0, 1], 16) * np.spacing(planes)
    corners[:, :, axis] = planes[:, None]
    if kind == "tilted":
        corners[:, 2:, axis] += (rng.choice([0, 0, -1, 1], 16) * np.spacing(planes))[:, None]
    return rng.permutation(corners[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3, 3))


def picture_along(rng, axis: int, kind: str) -> Bundle:
    """Return the rays of a camera in front of walls; of a grid, many pass through its lines, or nearly so."""
    x, y = (a.ravel() for a in np.meshgrid(np.arange(-16, 16) / 16, np.arange(-8, 8) / 8))
    near = np.ldexp(rng.choice([-1.0, 0.0, 0.0, 1.0], (x.size, 2)), -22)
    eye = np.array([0.25, -0.125, -4.0]) + (rng.uniform(-0.1, 0.1, 3) if kind != "grid" else 0.0)
    ways = np.column_stack([np.stack([x, y], axis=1) + near, np.full(x.size, 0.25)]) - eye
    order = np.roll(np.arange(3), axis - 2)
    n = x.size
    return Bundle(np.tile(eye, (n, 1))[:, order], ways[:, order], np.zeros(n), np.full(n, INF))


@pytest.mark.core
@pytest.mark.parametrize("kind", ["level", "apart", "tilted", "grid"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_walls_face_to_face(axis, kind, wide_packets):
    """The lowest index of those in one plane is first; a float apart, or where they slope, the nearer one."""
    counts, candidates = Counter(), 0
    for k in range(3):
        rng = np.random.default_rng([404, axis, len(kind), k])
        corners, bundle = walls(rng, axis, kind), picture_along(rng, axis, kind)
        found = exact_surfaces.triangles_along(bundle, corners)
        batches._PACKETS._free.clear()
        assert run("nearest", corners, bundle) == truth("nearest", found)
        candidates += work_counts(last_workspace()[1]).candidates
        for query in QUERIES[1:]:
            assert run(query, corners, bundle) == truth(query, found)
        front = exact_surfaces.triangles_along(bundle, corners, cull_back=True)
        assert run("nearest", corners, bundle, cull="back") == truth("nearest", front)
        tally(counts, bundle, corners, found)
    assert min(counts["tie"], counts["miss"]) > 50, counts
    assert candidates < 0.05 * counts["tie"] or kind != "level", (candidates, counts)
    assert counts["edge"] > 50 or kind != "grid", counts
    left, number = np.sum(wide_packets, axis=0)
    assert left < number / 2


@pytest.mark.parametrize("far", [1e5, 5e7, 1e8])
def test_tiny_triangles_from_far_away(far, wide_packets):
    """Roundings of float64 exceed those of float32, and the volumes themselves."""
    rng, rows = np.random.default_rng(403), []
    corners = soup(rng, KINDS.index("tiny"), 8)
    for _ in range(60):
        one = corners[rng.integers(8)]
        goals = rng.dirichlet([1, 1, 1], LANES) @ one + 2.0**-12 * rng.uniform(-1.0, 1.0, (LANES, 3))
        eye = one[0] + far * rng.choice([1.0, -1.0], 3) * rng.uniform(0.5, 1.0, 3)
        rows.append((np.tile(eye, (LANES, 1)), goals - eye))
    origins, ways = (np.concatenate(column) for column in zip(*rows, strict=True))
    bundle = Bundle(origins, ways, np.zeros(len(ways)), np.full(len(ways), INF))
    found = exact_surfaces.triangles_along(bundle, corners)
    for query in QUERIES:
        assert run(query, corners, bundle) == truth(query, found)
    assert min(sum(map(bool, found)), sum(not row for row in found)) > 40
    assert wide_packets


@pytest.mark.core
@pytest.mark.parametrize("query", QUERIES)
def test_rays_through_shared_edges_and_corners(query, wide_packets):
    """A fan of triangles around an axis, seen along it: no ray passes between them, and ties are exact."""
    around = [(4, 1), (2, 4), (-1, 4), (-4, 2), (-4, -1), (-2, -4), (1, -4), (4, -2), (4, 1)]
    rim = np.array([(x, y, k % 3) for k, (x, y) in enumerate(around[:-1])] + [(4, 1, 0)]) * 0.25
    corners = np.stack([np.zeros((8, 3)), rim[:-1], rim[1:]], axis=1)
    steps = np.concatenate([np.arange(10) * 0.125, np.ldexp(1.0, [-40, -30, -20, -10, -5]), [1.25]])
    goals = np.repeat(rim[:-1], LANES, axis=0) * np.tile(steps, 8)[:, None]
    for eye in ([-2.0, -2.5, -3.0], [-4.0, -3.0, -2.0], [-(2.0**10), -(2.0**9), -(2.0**20)]):
        ways = goals - np.array(eye)
        n = len(ways)
        bundle = Bundle(np.tile(eye, (n, 1)), ways, np.zeros(n), np.full(n, INF))
        found = exact_surfaces.triangles_along(bundle, corners)
        assert run(query, corners, bundle) == truth(query, found)
        assert sum(len(row) > 1 for row in found) > 80
        assert sum(not row for row in found) > 7
    assert np.sum(wide_packets, axis=0)[0] < 2 * n


numbers = st.integers(-4, 4).map(lambda x: x * 0.25) | st.floats(-4.0, 4.0, allow_subnormal=False)
points = st.tuples(*[numbers] * 3)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80)
@given(
    st.lists(points, min_size=3, max_size=8),
    st.lists(st.tuples(*[st.integers(0, 7)] * 3), min_size=1, max_size=10),
    points,
    points,
    st.tuples(st.sampled_from([0.0, 2.0**-40, 2.0**-12]), st.booleans()),
    st.sampled_from([(0.0, INF), (0.0, 1.0), (-INF, INF), (1.0, 2.0), (-0.0, 0.5)]),
)
def test_any_triangles(wide_packets, vertices, faces, eye, goal, step, span):
    corners = np.array(vertices)[np.array(faces) % len(vertices)]
    moved = np.arange(5 * LANES)[:, None] * step[0] * np.array([1.0, 0.5, 0.25])
    ways, n = np.array(goal) - np.array(eye) + moved, 5 * LANES
    origins = np.tile(eye, (n, 1)) + (moved if step[1] else 0.0)
    bundle = Bundle(origins, ways, np.full(n, span[0]), np.full(n, span[1]))
    found = exact_surfaces.triangles_along(bundle, corners)
    for query in QUERIES:
        assert run(query, corners, bundle) == truth(query, found)


def picture(width=512, height=32) -> Bundle:
    """Return the rays of a camera in front of the sphere."""
    x, y = (a.ravel() for a in np.meshgrid(np.linspace(-0.5, 0.5, width), np.linspace(-0.1, 0.1, height)))
    ways, n = np.stack([x, y, np.ones(len(x))], axis=1), len(x)
    return Bundle(np.tile([0.013, 0.027, -3.0], (n, 1)), ways, np.zeros(n), np.full(n, INF))


@pytest.mark.core
@pytest.mark.parametrize("query", QUERIES)
def test_pictures_equal_those_of_streams(query, packet_calls, monkeypatch):  # noqa: F811
    found = run(query, sphere(), picture())
    left, number = packet_calls[0]
    assert left < number // 10
    packet_calls.clear()
    call = scheduler._recording
    monkeypatch.setattr(scheduler, "_recording", lambda *args: call(*args)._replace(packet_recorder=None))
    assert run(query, sphere(), picture()) == found
    assert not packet_calls


FLOAT64 = {"nearest": 34, "occluded": 0, "count": 94}


@pytest.mark.parametrize("query", FLOAT64)
def test_pairs_of_packets_and_triangles_that_go_to_float64(query, packet_calls):  # noqa: F811
    """Golden: how many pairs float32 leaves to float64, of 16,384 rays. Lower is better."""
    batches._PACKETS._free.clear()
    run(query, sphere(), picture())
    assert work_counts(last_workspace()[1]).candidates == FLOAT64[query]
