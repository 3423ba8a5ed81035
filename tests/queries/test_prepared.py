"""Few rays: prepared calls have the results of the other paths, for every query and geometry."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exact
import exact_instances
import raybox as rb
from raybox.queries import batches, prepared
from raybox.traversal import ray_groups

QUERIES = {"nearest": (), "occluded": (), "count": (), "first": (3,)}
COUNTS = 0, 1, 2, 15, 16, 17, 100, ray_groups.SMALL_BATCH


def boxes(count=300, dimension=3, seed=1):
    rng = np.random.default_rng(seed)
    lower = rng.integers(0, 12, (count, dimension))
    return rb.Boxes(lower, lower + rng.integers(0, 4, lower.shape))


def mesh():
    corners = np.random.default_rng(2).integers(0, 14, (120, 3))
    return rb.Mesh(corners, np.arange(120).reshape(-1, 3))


def instances():
    turned = np.array([np.eye(3, 4), np.eye(3, 4)])
    turned[1, :, :3] += np.random.default_rng(4).integers(-1, 2, (3, 3)) / 3
    return rb.Instances(boxes(40), turned)


GEOMETRIES = {
    "boxes": boxes,
    "flat boxes": lambda: boxes(dimension=2),
    "mesh": mesh,
    "planes": lambda: rb.Planes(np.eye(3), [2, 3, 4]),
    "grid": lambda: rb.Grid.uniform([0, 0, 0], 2, (6, 5, 7)),
    "cells": lambda: rb.Grid.uniform(
        [0, 0, 0], 2, (6, 5, 7), np.random.default_rng(3).random((6, 5, 7)) < 0.4
    ),
    "instances": instances,
}


@cache
def scene_of(name):
    return rb.Scene(GEOMETRIES[name]())


def rays(count, dimension=3, seed=5):
    """Return rays through corners and along faces, some points, some without a range."""
    rng = np.random.default_rng(seed)
    low = rng.integers(-3, 1, count) * rng.integers(0, 2)
    high = low + rng.integers(0, 20, count)
    ranges = {"t_min": low, "t_max": high} if count % 2 else {}
    return rb.Rays(
        rng.integers(-3, 15, (count, dimension)), rng.integers(-3, 4, (count, dimension)), **ranges
    )


def arrays(found):
    return [found] if isinstance(found, np.ndarray) else [found.index, found.t]


def same(one, other):
    pairs = zip(arrays(one), arrays(other), strict=True)
    return all(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)


def otherwise(scene, query, some):
    """Return the results of another path: with a mask of all primitives."""
    everything = np.ones(len(scene), bool)
    return getattr(scene, query)(some, *QUERIES[query], where=everything)


@pytest.mark.core
@pytest.mark.parametrize("name", GEOMETRIES)
@pytest.mark.parametrize("query", QUERIES)
def test_prepared_calls_have_the_results_of_others(name, query, monkeypatch):
    scene, hits = scene_of(name), 0
    runs = []
    for kind in (prepared._Streams, prepared._Exact):
        run = kind.run
        monkeypatch.setattr(kind, "run", lambda self, rays, run=run: runs.append(1) or run(self, rays))
    dimension = scene.bounds.shape[1] if name != "planes" else 3
    for seed, count in enumerate(COUNTS * 2):
        some = rays(count, dimension, seed)
        found = getattr(scene, query)(some, *QUERIES[query])
        assert same(found, otherwise(scene, query, some))
        first = arrays(found)[0]
        hits += np.count_nonzero(first if query != "nearest" and query != "first" else first >= 0)
        if count:  # of a shape of their own
            shaped = some.reshape(1, count, 1)
            again = arrays(getattr(scene, query)(shaped, *QUERIES[query]))
            for values, flat in zip(again, arrays(found), strict=True):
                assert values.shape[:3] == (1, count, 1)
                assert values.tobytes() == flat.tobytes()
    assert len(runs) == 4 * len(COUNTS) - 2
    assert hits > 100


@cache
def exact_hits(name):
    """Return rays of a geometry's dimensions, and (index, t) of their hits, in order."""
    scene = scene_of(name)
    geometry, where = scene.geometry, None
    if isinstance(geometry, rb.Grid):
        geometry, where = geometry.boxes(), [geometry.occupied.ravel()]
    some = rays(121, 3 if name == "planes" else scene.bounds.shape[1], seed=6)
    along = exact_instances.along(some, geometry, where=where)
    assert min(sum(map(bool, along)), sum(not row for row in along)) > 20
    return some, [[(contact.index, exact.rounded(contact.t)) for contact in row] for row in along]


def results_by_definition(query, rows):
    """Return a query's results for hits in order."""
    if query in ("nearest", "first"):
        k = 1 if query == "nearest" else QUERIES["first"][0]
        return [(row + [(-1, np.inf)] * k)[:k] for row in rows]
    return [len(row) if query == "count" else bool(row) for row in rows]


@pytest.mark.core
@pytest.mark.parametrize("name", GEOMETRIES)
@pytest.mark.parametrize("query", QUERIES)
def test_prepared_calls_by_definition(name, query):
    some, rows = exact_hits(name)
    found = getattr(scene_of(name), query)(some, *QUERIES[query])
    if query in ("nearest", "first"):
        index, t = (values.reshape(len(rows), -1).tolist() for values in (found.index, found.t))
        got = [list(zip(*row, strict=True)) for row in zip(index, t, strict=True)]
    else:
        got = found.tolist()
    assert got == results_by_definition(query, rows)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 3, 16, 20]), st.booleans())
def test_small_batches_by_definition(seed, count, fine):
    """Integers, which touch and tie, or full mantissas."""
    scene, some = (fine_scene if fine else scene_of)("boxes"), rays(count, seed=seed)
    if fine:
        rng = np.random.default_rng(seed)
        some = rb.Rays(rng.uniform(-3, 15, (count, 3)), rng.normal(size=(count, 3)))
    lower, upper = scene.geometry.lower, scene.geometry.upper
    ranges = (np.broadcast_to(t, count) for t in (some.t_min, some.t_max))
    along = [*exact.along(some.origins, some.directions, *ranges, lower, upper)]
    first = [(found[0].index, exact.rounded(found[0].t)) if found else (-1, np.inf) for found in along]
    hits = scene.nearest(some)
    assert list(zip(hits.index.tolist(), hits.t.tolist(), strict=True)) == first
    assert scene.count(some).tolist() == [*map(len, along)]
    assert scene.occluded(some).tolist() == [bool(found) for found in along]
    CASES.update(hits=sum(map(bool, along)), misses=sum(not found for found in along))
    CASES.update(ties=sum(map(exact.ties, along)))


CASES = Counter()


@cache
def fine_scene(_name):
    rng = np.random.default_rng(8)
    lower = rng.uniform(0, 12, (200, 3))
    return rb.Scene(rb.Boxes(lower, lower + rng.uniform(0, 3, lower.shape)))


def test_the_definition_met_hits_misses_and_ties():
    test_small_batches_by_definition()
    assert min(CASES[kind] for kind in ("hits", "misses", "ties")) > 20


@pytest.mark.parametrize("name", ["boxes", "planes", "instances"])
def test_results_are_arrays_of_their_own(name):
    scene, some, other = scene_of(name), rays(40, seed=1), rays(40, seed=2)
    for query, options in QUERIES.items():
        method = getattr(scene, query)
        before = [values.copy() for values in arrays(method(some, *options))]
        found = method(some, *options)
        assert not same(method(other, *options), found)
        assert all(map(np.array_equal, arrays(found), before))
        assert same(method(some, *options), found)


def test_threads_share_a_scene():
    scenes = [scene_of(name) for name in ("boxes", "mesh", "grid", "instances")]
    batches_of_rays = [rays(1 + 7 * k, seed=k) for k in range(12)]
    wanted = [[scene.nearest(some) for some in batches_of_rays] for scene in scenes]

    def run(k):
        some, right = batches_of_rays[k % 12], True
        for _ in range(60):
            for scene, known in zip(scenes, wanted, strict=True):
                right &= same(scene.nearest(some), known[k % 12])
        return right

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(24)))


def test_an_updated_scene_has_prepared_calls_of_its_own():
    scene, some = rb.Scene(boxes()), rays(50)
    before = scene.nearest(some)
    moved = rb.Boxes(boxes().lower + 1, boxes().upper + 1)
    scene.update(moved)
    assert same(scene.nearest(some), rb.Scene(moved).nearest(some))
    assert not same(scene.nearest(some), before)


def test_many_hits_a_ray_are_not_prepared():
    scene, some = scene_of("boxes"), rays(5)
    for k in (1, prepared._MOST_NUMBERS, prepared._MOST_NUMBERS + 1, 400):
        found, all_hits = scene.first(some, k), scene.all(some)
        for i in range(5):
            index = all_hits[i].index[:k]
            assert found.index[i].tolist() == [*index, *[-1] * (k - len(index))]


def test_a_query_that_takes_long_ends_as_any(monkeypatch):
    """Traversal stops after some million candidates, so that Python may end the query."""
    count = ray_groups.SMALL_BATCH
    sides = np.array([1.0, 1 + 2.0**-30, 1 + 2.0**-29])  # no float32 can tell from the rays
    scene = rb.Scene(rb.Boxes(np.zeros((5000, 3)), np.repeat(sides[None], 5000, axis=0)))
    o = np.full((count, 3), -1.0)
    o[:, 1:] = 1.0, 1.0
    some = rb.Rays(o, [1.0, 0, 0])
    ends = []
    run = prepared._Streams.run
    monkeypatch.setattr(prepared._Streams, "run", lambda self, rays: ends.append(run(self, rays)) or ends[-1])
    assert (scene.count(some) == 5000).all()
    assert ends == [None]


@pytest.mark.parametrize("bad", ["rays", None, np.zeros((1, 6))])
def test_what_is_no_rays_is_refused(bad):
    for query, options in QUERIES.items():
        with pytest.raises(rb.InvalidInput, match=r"rays must be raybox\.Rays"):
            getattr(scene_of("boxes"), query)(bad, *options)
        with pytest.raises(rb.InvalidInput, match="the scene's dimensions"):
            getattr(scene_of("boxes"), query)(rays(1, 2), *options)
        with pytest.raises(rb.InvalidInput, match="workers"):
            getattr(scene_of("boxes"), query)(rays(1), *options, workers=0)


def test_memory_is_put_back():
    scene, some = rb.Scene(boxes()), rays(3)
    scene.nearest(some)
    before = len(batches.SMALL)
    for _ in range(10):
        scene.nearest(some)
        scene.count(some)
    assert len(batches.SMALL) == before
    assert [len(free) for free in scene._plain.prepared._free.values()] == [1, 1]
