"""Rays that go one by one have the results of sorted ones, for every query and geometry, in any shape."""

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
from raybox.queries import one_by_one, scheduler
from raybox.threads import chunks
from sorting import sort_more_than

QUERIES = {"nearest": (), "occluded": (), "count": (), "first": (3,)}
OTHERS = ("all", "integrate", "deposit", "segments")
COUNTS = 0, 1, 2, 15, 16, 17, 100, one_by_one.PIECE, one_by_one.PIECE + 1, one_by_one.MOST_RAYS
SHAPES = (), (0,), (1,), (2,), (0, 3), (1, 1), (2, 3, 2)


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
    "list": lambda: [boxes(), mesh(), rb.Planes(np.eye(3), [2, 3, 4])],
    "flat list": lambda: [boxes(dimension=2), boxes(dimension=2, seed=7)],
    "boxes and cells": lambda: [boxes(), rb.Grid.uniform([0, 0, 0], 2, (6, 5, 7))],
}
HAS_LENGTHS = "boxes", "flat boxes", "grid", "cells", "instances", "flat list", "boxes and cells"
CASES_OF_QUERIES = [
    (name, query)
    for name in GEOMETRIES
    for query in (*QUERIES, *OTHERS)
    if query in QUERIES
    or query == "all"
    or (query == "segments" and name in ("grid", "cells"))
    or (query in ("integrate", "deposit") and name in HAS_LENGTHS)
]


@pytest.fixture(autouse=True)
def thousands_are_sorted():
    """Replace the fixture of all tests: rays go one by one as those of users."""


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


def dimension_of(name):
    return 2 if name.startswith("flat") else 3


def results_of(name, query, some):
    """Return the arrays of a query's results, those of each ray first."""
    how = {"reproducible": True} if query in ("integrate", "deposit") else {}
    scene = scene_of(name)
    if query == "deposit":
        how["weights"] = np.arange(float(np.prod(some.shape))).reshape(some.shape)
    found = getattr(scene, query)(some, *QUERIES.get(query, ()), **how)
    if isinstance(found, np.ndarray):
        return [found]
    if isinstance(found, list):
        return found
    ids = [found.geometry, found.index, found.primitive, found.t]
    return [*ids, found.offsets] if query in ("all", "segments") else ids


def same(one, other):
    return all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("name", ["boxes", "mesh"])
def test_more_rays_go_one_by_one_at_boxes_in_far_memory(name, monkeypatch):
    """At triangles of large trees 6,000 rays, and 8,192, are sorted in less time."""
    job, most = rb.Scene(GEOMETRIES[name]())._view(None, None).jobs[0], one_by_one.MOST_RAYS
    for cached, more in ((1 << 30, most), (0, 2 * most if name == "boxes" else most)):
        monkeypatch.setattr(scheduler, "_CACHED", cached)
        for count in (1, most, most + 1, 2 * most, 2 * most + 1):
            rays = rb.Rays([0, 0, 0], np.ones((count, 3)))._rows()
            assert scheduler.goes_one_by_one(job, rays) == (count <= more), (count, cached)


@pytest.mark.core
@pytest.mark.parametrize(("name", "query"), CASES_OF_QUERIES)
def test_results_are_those_of_sorted_rays(name, query, monkeypatch):
    hits = 0
    for seed, count in enumerate(COUNTS):
        some = rays(count, dimension_of(name), seed)
        found = results_of(name, query, some)
        with monkeypatch.context() as patch:
            sort_more_than(patch, 15)  # fewer are never sorted
            assert same(found, results_of(name, query, some)), count
        hits += np.count_nonzero(found[-1] > 0 if query != "nearest" else found[1] >= 0)
    assert hits > (10 if query == "deposit" else 100)


@pytest.mark.core
@pytest.mark.parametrize(("name", "query"), CASES_OF_QUERIES)
def test_rays_of_any_shape(name, query):
    """Rays that touch have the results of the same rays among others, whatever their shape."""
    for seed, shape in enumerate(SHAPES):
        many = rays(100, dimension_of(name), seed)
        count = int(np.prod(shape))
        found = results_of(name, query, many[:count].reshape(shape))
        if query in ("all", "segments"):
            wanted = results_of(name, query, many)
            ends = wanted.pop()[: count + 1]
            wanted = [*(values[: ends[-1]] for values in wanted), ends]
        elif query == "deposit":
            wanted = results_of(name, query, many[:count])
        else:
            wanted = [
                values[:count].reshape(shape + values.shape[1:]) for values in results_of(name, query, many)
            ]
        assert same(found, wanted)


@cache
def exact_hits(name):
    """Return rays of a geometry's dimensions, and (index, t) of their hits, in order."""
    scene = scene_of(name)
    geometry, where = scene.geometry, None
    if isinstance(geometry, rb.Grid):
        geometry, where = geometry.boxes(), [geometry.occupied.ravel()]
    some = rays(121, dimension_of(name), seed=6)
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
@pytest.mark.parametrize("name", [name for name in GEOMETRIES if "list" not in name and "and" not in name])
@pytest.mark.parametrize("query", QUERIES)
def test_results_by_definition_of_touching_rays(name, query):
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
def test_integers_and_full_mantissas_by_definition(seed, count, fine):
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
    test_integers_and_full_mantissas_by_definition()
    assert min(CASES[kind] for kind in ("hits", "misses", "ties")) > 20


@pytest.mark.parametrize("name", ["boxes", "planes", "instances"])
def test_results_are_arrays_of_their_own(name):
    some, other = rays(40, seed=1), rays(40, seed=2)
    for query in (*QUERIES, "all"):
        before = [values.copy() for values in results_of(name, query, some)]
        found = results_of(name, query, some)
        assert not same(results_of(name, query, other), found)
        assert same(found, before)
        assert same(results_of(name, query, some), found)


def test_threads_share_a_scene():
    names = "boxes", "mesh", "grid", "instances", "list"
    batches = [rays(1 + 7 * k, seed=k) for k in range(12)]
    wanted = {name: [results_of(name, "nearest", some) for some in batches] for name in names}

    def run(k):
        return all(
            same(results_of(name, "nearest", batches[k % 12]), wanted[name][k % 12])
            for _ in range(60)
            for name in names
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(24)))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_pieces_on_threads_have_the_results_of_one(count, monkeypatch):
    """Each thread continues with the numbers, and the undecided rays, of its own pieces."""
    some = rays(5 * one_by_one.PIECE + 11, seed=9)
    wanted = {
        (name, query): results_of(name, query, some)
        for name, query in CASES_OF_QUERIES
        if name == "instances"
    }
    wanted |= {("boxes", query): results_of("boxes", query, some) for query in (*QUERIES, "all")}
    monkeypatch.setattr(chunks, "cores", lambda: count)
    for (name, query), found in wanted.items():
        assert same(results_of(name, query, some), found)


def test_a_query_that_takes_long_ends_early_and_goes_on(monkeypatch):
    """Traversal returns after some million candidates, so that Python may end the query."""
    count = one_by_one.PIECE
    sides = np.array([1.0, 1 + 2.0**-30, 1 + 2.0**-29])  # no float32 can tell from the rays
    scene = rb.Scene(rb.Boxes(np.zeros((5000, 3)), np.repeat(sides[None], 5000, axis=0)))
    o = np.full((count, 3), -1.0)
    o[:, 1:] = 1.0, 1.0
    calls, traverse = [], one_by_one.traverse_groups
    monkeypatch.setattr(one_by_one, "traverse_groups", lambda *args: calls.append(1) or traverse(*args))
    assert (scene.count(rb.Rays(o, [1.0, 0, 0])) == 5000).all()
    assert len(calls) == 2


def test_memory_is_put_back():
    scene, some = rb.Scene(boxes()), rays(3)
    scene.nearest(some)
    before = len(one_by_one.MEMORY)
    for _ in range(10):
        scene.nearest(some)
        scene.count(some)
        scene.all(some)
    assert len(one_by_one.MEMORY) == before
