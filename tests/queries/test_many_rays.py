"""Every query on a scene full of ties, for any grouping of the rays."""

import threading
import time
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import exact
import raybox as rb
from aim import INF, Pairs
from raybox.bench import data
from raybox.bvh.build import build
from raybox.compiler.buffer_pool import BufferPool, SizedPool
from raybox.geometry.ray_rows import NO_ROWS
from raybox.queries import batches, one_by_one, scheduler
from raybox.queries.all_hits import run as all_run
from raybox.queries.every import QUERIES
from raybox.queries.first import FirstOptions
from raybox.queries.per_ray import select_rays
from raybox.threads import chunks
from raybox.traversal import ray_groups
from raybox.traversal.job import Job
from raybox.traversal.ray_setup import frame_of
from raybox.traversal.workspace import make_workspace, work_counts
from scenes import random_scene
from sorting import sort_more_than

QUERY_NAMES = ("nearest", "occluded", "count", "first", "all")
SIZES = (1, 15, 16, 17, 63, 64, 65, 4096, 4097, 10_000)


def ties(seed) -> tuple[np.ndarray, np.ndarray]:
    """Return grid cells, half of them twice, nested boxes, plates and scattered boxes."""
    rng = np.random.default_rng(seed)
    cell = np.stack(np.meshgrid(*[np.arange(-2.0, 2.0)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    nested = np.arange(1.0, 13.0)[:, None] * [0.25, 0.25, 0.25]
    plates = rng.integers(-2, 3, (20, 3)) * 1.0
    loose = rng.uniform(-4, 4, (100, 3))
    lower = np.concatenate([cell, cell[::2], -nested, plates, loose])
    upper = np.concatenate([cell + 1, cell[::2] + 1, nested, plates + np.array([1.0, 0.0, 1.0]), loose + 0.7])
    order = rng.permutation(len(lower))
    return lower[order], upper[order]


def many_rays(seed, n) -> tuple[np.ndarray, ...]:
    """Return rays from inside and outside, some along faces and diagonals of the grid."""
    rng = np.random.default_rng(seed)
    origins, goals = rng.uniform(-5, 5, (n, 3)), rng.uniform(-3, 3, (n, 3))
    inside = rng.random((n, 1)) < 0.3
    origins = np.where(inside, goals * 0.5, origins)
    directions = goals - origins
    grid = rng.random((n, 1)) < 0.15
    origins = np.where(grid, rng.integers(-6, 7, (n, 3)) * 0.5, origins)
    directions = np.where(grid, rng.integers(-1, 2, (n, 3)) * 1.0, directions)
    kind = rng.integers(0, 8, n)
    low = np.select([kind == 0, kind == 1, kind == 2], [-INF, 0.4, -1.0], 0.0)
    high = np.select([kind == 2, kind == 3], [1.0, 0.6], INF)
    lost = rng.random(n) < 0.02
    return origins, directions, np.where(lost, INF, low), np.where(lost, -INF, high)


@cache
def tied_scene() -> tuple[Pairs, list[list[exact.Found]]]:
    """Return a scene with 499 rays, and the exact hits of each."""
    pairs = Pairs(*many_rays(72, 499), *ties(71))
    return pairs, list(exact.along(*pairs))


def run_query(query, pairs, k=3, where=None, workers=1):
    """Return the results of a query for all rays in one span, as lists."""
    boxes = rb.Boxes(*pairs[4:])
    tree = build(*boxes._rows())
    allowed = np.zeros(0, np.bool_) if where is None else where.copy()
    allowed.flags.writeable = False
    rays = rb.Rays(*pairs[:2], t_min=pairs[2], t_max=pairs[3], invalid="miss")._rows()
    job = Job(tree, boxes._rows(), NO_ROWS, allowed, frame_of(tree))
    options = FirstOptions(k) if query == "first" else None
    got = [x.tolist() for x in QUERIES[query].run(job, rays, options, workers, False)]
    if query == "all":
        offsets, index, t = got
        return [list(zip(index[a:b], t[a:b], strict=True)) for a, b in pairwise(offsets)]
    return got if len(got) > 1 else got[0]


def truth(query, found, k=3):
    """Return the same from the exact hits."""
    flat = [[(f.index, f.plain[1]) for f in row] for row in found]
    if query == "all":
        return flat
    if query in ("count", "occluded"):
        return [len(row) if query == "count" else bool(row) for row in flat]
    k = 1 if query == "nearest" else k
    full = [(row + [(-1, INF)] * k)[:k] for row in flat]
    index, t = [[i for i, _ in row] for row in full], [[t for _, t in row] for row in full]
    return [[x for (x,) in rows] for rows in (index, t)] if query == "nearest" else [index, t]


def check(query, pairs):
    """Assert the results of a query; return the exact hits of each ray."""
    found = list(exact.along(*pairs))
    assert run_query(query, pairs) == truth(query, found)
    return found


@pytest.fixture
def single_chunk(monkeypatch):
    """Run each step as one chunk, sort even so few rays, and reuse no memory."""
    for runner in (scheduler, all_run):
        monkeypatch.setattr(runner, "chunk_runner", at_once)
    sort_more_than(monkeypatch, 64)
    monkeypatch.setattr(batches, "_WORKSPACES", SizedPool(make_workspace))
    monkeypatch.setattr(one_by_one, "MEMORY", BufferPool(one_by_one._make_memory))
    monkeypatch.setattr(all_run, "_PAIRS", BufferPool(lambda: None))
    return monkeypatch


@contextmanager
def at_once(_total, **_):
    """Yield a runner that does any work as one chunk."""
    yield chunks.InlineRun()


def repeated(pairs, found, order):
    return Pairs(*(x[order] for x in pairs[:4]), *pairs[4:]), [found[k] for k in order]


@pytest.mark.parametrize("query", QUERY_NAMES)
def test_any_number_of_rays_in_a_span(query, single_chunk):
    pairs, found = tied_scene()
    for n in SIZES:
        rays, want = repeated(pairs, found, np.arange(n) % len(found))
        assert run_query(query, rays) == truth(query, want), n
    counts = {"many": sum(len(f) > 8 for f in found), "tied": sum(exact.ties(f) > 0 for f in found if f)}
    counts["miss"] = sum(not f for f in found)
    assert min(counts.values()) > 15, counts


@pytest.mark.parametrize("query", QUERY_NAMES)
def test_a_thousand_rays_are_not_sorted(query, monkeypatch):
    """They are traversed one by one; their memory is reused for fewer."""
    pairs, found = tied_scene()
    monkeypatch.setattr(batches, "_sort", None)
    for n in (1, 65, 499, one_by_one.PIECE, 7):
        rays, want = repeated(pairs, found, np.arange(n) % len(found))
        assert run_query(query, rays) == truth(query, want), n


@pytest.mark.parametrize("query", QUERY_NAMES)
@pytest.mark.parametrize(("first", "batch"), [(64, 1000), (7, 1000), (100, 180), (1, 65)])
def test_threads_share_sorting_and_traversal(query, first, batch, monkeypatch):
    """Small chunks of all lengths, from several batches, on three threads."""
    pairs, found = tied_scene()
    sort_more_than(monkeypatch, 64)
    monkeypatch.setattr(chunks, "_FIRST", first)
    monkeypatch.setattr(chunks, "_SMALLEST", first)
    monkeypatch.setattr(batches, "BATCH", batch)
    monkeypatch.setattr(batches, "GROUP", 48)
    monkeypatch.setattr(batches, "_NARROW", 12)
    monkeypatch.setattr(batches, "_AT_ONCE", 70)
    monkeypatch.setattr(batches, "_WORKSPACES", SizedPool(make_workspace))
    calls, key, scatter_threads, scatter = set(), batches._key, set(), ray_groups.scatter

    def key_slowly(job, span, *rest):
        calls.add((threading.get_ident(), span.end - span.begin))
        time.sleep(1e-4)
        return key(job, span, *rest)

    def scatter_slowly(*of):
        scatter_threads.add(threading.get_ident())
        time.sleep(1e-4)
        scatter(*of)

    monkeypatch.setattr(batches, "_key", key_slowly)
    monkeypatch.setattr(ray_groups, "scatter", scatter_slowly)
    for n in (499, 451, 66):
        rays, want = repeated(pairs, found, np.arange(n))
        for _ in range(4):
            assert run_query(query, rays, workers=3) == truth(query, want), n
    threads, sizes = (set(some) for some in zip(*calls, strict=True))
    assert len(threads) > 1
    assert len(sizes) > 1
    assert len(scatter_threads) > 1


@pytest.mark.parametrize("query", QUERY_NAMES)
def test_results_are_in_the_order_of_rays(query, single_chunk):
    pairs, found = tied_scene()
    shuffled = np.random.default_rng(73).permutation(len(found))
    along = np.lexsort(pairs.origins.T)
    for order in (shuffled, along, along[::-1], np.full(200, 5), np.tile([5, 99], 100)):
        rays, want = repeated(pairs, found, order)
        assert run_query(query, rays) == truth(query, want)


@pytest.mark.parametrize("query", QUERY_NAMES)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.9])
def test_where(query, share, single_chunk):
    pairs, found = tied_scene()
    where = np.random.default_rng(74).random(len(pairs.lower)) < share
    allowed_hits = [[f for f in row if where[f.index]] for row in found]
    assert run_query(query, pairs, where=where) == truth(query, allowed_hits)
    some_rays, part = repeated(pairs, allowed_hits, np.arange(60))
    assert run_query(query, some_rays, where=where) == truth(query, part)


@pytest.mark.parametrize("k", [1, 2, 8, 9, 400])
def test_any_k(k, single_chunk):
    pairs, found = tied_scene()
    assert run_query("first", pairs, k) == truth("first", found, k)
    assert max(map(len, found)) < 400


@pytest.mark.parametrize("query", QUERY_NAMES)
@pytest.mark.parametrize(("size", "arena"), [(65, None), (96, 1), (499, 200), (160, 2000)])
def test_groups_and_memory_of_any_size(query, size, arena, single_chunk):
    """Groups smaller than the batch; little memory for lists, which makes rays traverse singly."""
    pairs, found = tied_scene()
    single_chunk.setattr(batches, "GROUP", size)
    pool = SizedPool(lambda rays: make_workspace(rays, arena and rays + 32 + arena))
    single_chunk.setattr(batches, "_WORKSPACES", pool)
    assert run_query(query, pairs) == truth(query, found)


@pytest.mark.parametrize(
    ("wide", "rays", "threads", "times"),
    [(8, 1000, 1, 8), (1, 1000, 1, 1), (8, 1 << 20, 2, 8), (8, 1 << 17, 2, 4), (8, 100_000, 2, 2),
     (4, 1 << 20, 16, 4), (4, 1 << 17, 16, 1), (4, 100_000, 16, 1 / 2), (1, 1 << 20, 2, 1),
     (1, 1 << 14, 2, 1), (1, (1 << 14) - 1, 2, 1 / 2), (4, 6000, 2, 1 / 4), (8, 0, 2, 1 / 8)],
)  # fmt: skip
def test_group_width_by_number_of_rays_and_threads(wide, rays, threads, times):
    for keys, apart in ((2000, False), (2000, True), (3, False)):
        starts = np.linspace(0, rays, keys + 1).astype(np.int64)
        assert batches._group_size(wide_recording(wide, apart), starts, threads) == times * batches.GROUP


@pytest.mark.parametrize(("keys", "times"), [(97, 1), (98, 8)])
def test_groups_of_coherent_rays_are_not_wide(keys, times):
    starts = np.append(np.linspace(0, 100_000, keys + 1).astype(np.int64), [100_000] * 50)  # without rays
    assert batches._group_size(wide_recording(8, True), starts, 1) == times * batches.GROUP


def wide_recording(wide, scattered):
    return batches.Recording(lambda _: None, lambda _begin, _end: None, wide, scattered=scattered)


@pytest.mark.parametrize("workers", [1, 2])
def test_wide_groups_of_a_large_tree(workers, single_chunk):
    pairs, found = tied_scene()
    single_chunk.setattr(scheduler, "_TREE_SIZES", (0, 0, 0))
    single_chunk.setattr(batches, "GROUP", 16)
    single_chunk.setattr(scheduler, "chunk_runner", chunks.chunk_runner)
    assert run_query("occluded", pairs, workers=workers) == [bool(contacts) for contacts in found]
    assert set(batches._WORKSPACES._free) == {(16 * 16,)}


@pytest.mark.parametrize(("size", "place"), [(0, 0), (99, 0), (100, 1), (399, 2), (400, 3), (10**9, 3)])
def test_group_width_by_tree_size(size, place, monkeypatch):
    monkeypatch.setattr(scheduler, "_TREE_SIZES", (100, 300, 400))
    tree = SimpleNamespace(nodes=SimpleNamespace(nbytes=size))
    assert scheduler.group_width(SimpleNamespace(frame=True, tree=tree), (1, 2, 3, 4)) == 1 + place
    assert scheduler.group_width(SimpleNamespace(frame=None), (1, 2, 3, 4)) == 1


@pytest.mark.parametrize("room", [1, 24, 300])
@pytest.mark.parametrize("n", [40, 499])
def test_all_grows_its_arrays(room, n, single_chunk):
    """Arrays of pairs and of hits start small: both grow, and keep their contents."""
    pairs, found = tied_scene()
    single_chunk.setattr(
        all_run,
        "make_hit_arrays",
        lambda size, make=all_run.make_hit_arrays: make(room if size in ROOMS else size),
    )
    make_pairs = all_run.make_pairs
    single_chunk.setattr(all_run, "make_pairs", lambda size: make_pairs(room if size in PAIRS else size))
    single_chunk.setattr(all_run, "_PAIRS", BufferPool(lambda: None))
    single_chunk.setattr(batches, "GROUP", 65)
    rays, want = repeated(pairs, found, np.arange(n))
    assert run_query("all", rays) == truth("all", want)


ROOMS, PAIRS = (16 * 64, 16 * 65), (8 * 64, 8 * 65)


@pytest.mark.parametrize("query", QUERY_NAMES)
def test_hardly_any_rays_need_the_exact_fallback(query, single_chunk):
    """Exact arithmetic decides where float64 cannot, and only there."""
    pairs, found = tied_scene()
    sent = []
    for runner in (scheduler, all_run):
        single_chunk.setattr(
            runner, "select_rays", lambda job, rows: sent.append(rows) or select_rays(job, rows)
        )
    assert run_query(query, pairs) == truth(query, found)
    fallback_rays = max(len(rows) if isinstance(rows, np.ndarray) else 0 for rows in sent)
    assert fallback_rays == FALLBACK_RAYS[query]
    plain = random_scene(75, 300, 500, size=0.5)
    sent.clear()
    run_query(query, plain)
    assert not [rows for rows in sent if isinstance(rows, np.ndarray)]


FALLBACK_RAYS = {"nearest": 37, "occluded": 5, "count": 62, "first": 50, "all": 73}
"""Of 499 rays, many of them tied."""


# Golden counters: the work of tree and traversal


def camera(seed):
    """Return rays from one point through the pixels of a picture, row by row."""
    pairs = random_scene(seed, 10_000, 1, size=0.05)
    x, y = np.meshgrid(np.linspace(-0.7, 0.7, 100), np.linspace(-0.7, 0.7, 100))
    ways = np.stack([x.ravel(), y.ravel(), np.ones(10_000)], axis=1)
    origins = np.tile([0.013, 0.027, -3.0], (10_000, 1))
    return Pairs(origins, ways, np.zeros(10_000), np.full(10_000, INF), *pairs[4:])


def sparse():
    """Return boxes of which a ray passes many before a hit: the order of children matters."""
    boxes = data.boxes("uniform", 30_000)
    origins, ways = data.rays("inside", 10_000, boxes)
    return Pairs(origins, ways, np.zeros(len(ways)), np.full(len(ways), INF), boxes.lower, boxes.upper)


SCALES = [
    (-480, 0),
    (-390, 0),
    (390, 0),
    (480, 0),
    (390, -300),
    (-390, 300),
    (200, 700),
    (-200, -700),
    (0, -900),
]


@pytest.mark.parametrize(("places", "ways"), SCALES)
def test_scenes_and_directions_of_every_size_give_the_same_hits(places, ways):
    """Scales are powers of two, which round nothing: SIMD code covers up to 2^400, and 2^500."""
    lower, upper = ties(131)
    o, d, low, high = many_rays(132, 2000)
    plain = rb.Scene(rb.Boxes(lower, upper)).all(rb.Rays(o, d, t_min=low, t_max=high, invalid="miss"))
    o, lower, upper = (np.ldexp(x, places) for x in (o, lower, upper))
    d, low, high = np.ldexp(d, ways), np.ldexp(low, places - ways), np.ldexp(high, places - ways)
    got = rb.Scene(rb.Boxes(lower, upper)).all(rb.Rays(o, d, t_min=low, t_max=high, invalid="miss"))
    np.testing.assert_array_equal(got.offsets, plain.offsets)
    np.testing.assert_array_equal(got.index, plain.index)
    np.testing.assert_array_equal(got.t, np.ldexp(plain.t, places - ways))
    assert len(got.index) > 2000


CAST = {
    "crowd": lambda: random_scene(76, 10_000, 10_000, size=0.05),
    "camera": lambda: camera(77),
    "sparse": sparse,
}
WORK = {
    ("nearest", "crowd"): (132_708, 5395, 5),
    ("occluded", "crowd"): (131_009, 5594, 5),
    ("count", "crowd"): (292_713, 1775, 14),
    ("first", "crowd"): (250_717, 2295, 18_772),
    ("all", "crowd"): (292_713, 1775, 44),
    ("nearest", "camera"): (6_224, 254, 0),  # most of these rays form packets
    ("occluded", "camera"): (47_323, 471, 1),
    ("count", "camera"): (74_807, 56, 1),
    ("first", "camera"): (70_970, 85, 5053),
    ("all", "camera"): (74_807, 56, 1),
    ("nearest", "sparse"): (69_332, 23_837, 18),
    ("occluded", "sparse"): (72_062, 11_642, 4),
    ("count", "sparse"): (234_249, 21_036, 20),
    ("first", "sparse"): (127_437, 27_926, 23_724),
    ("all", "sparse"): (234_249, 21_036, 1018),
}


@pytest.mark.parametrize("name", CAST)
@pytest.mark.parametrize("query", QUERY_NAMES)
def test_nodes_and_boxes_tested(query, name, single_chunk):
    """Golden: rays times nodes tested in lists, nodes for single rays, boxes classified. Lower is better."""
    single_chunk.setattr(batches, "_WORKSPACES", SizedPool(make_workspace))
    run_query(query, CAST[name]())
    ((workspace,),) = batches._WORKSPACES._free.values()
    assert work_counts(workspace)[:3] == WORK[query, name]
