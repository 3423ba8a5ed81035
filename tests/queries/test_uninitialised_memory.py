"""No query depends on memory that it has not written: fresh memory is filled with a pattern first."""

from collections import Counter
from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest

import exact
import raybox as rb
from aim import INF, Pairs
from raybox.compiler import huge_pages
from raybox.compiler.buffer_pool import BufferPool
from raybox.queries import batches, one_by_one
from raybox.queries.all_hits import run as all_run
from sorting import sort_more_than
from test_many_rays import QUERY_NAMES, many_rays, run_query, ties, truth
from test_private_query import cells, cube_rays, cubes
from test_scene_mesh import CUBE

PATTERNS = {"large numbers": 0x5A, "NaN and -1": 0xFF}


def filled(allocate, byte, calls):
    """Return a function that allocates memory like the given one, all of one byte."""

    def allocate_filled(*shape, **kind):
        memory = allocate(*shape, **kind)
        memory.reshape(-1).view(np.uint8)[:] = byte
        calls[allocate.__module__] += 1
        return memory

    return allocate_filled


@contextmanager
def fresh_memory(byte):
    """Fill all fresh memory with a byte, and reuse none; sort even a few rays. Yield how often that was."""
    calls = Counter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "empty", filled(np.empty, byte, calls))
        patch.setattr(huge_pages, "empty", filled(huge_pages.empty, byte, calls))
        for name in ("_WORKSPACES", "_PACKETS", "_PLACES", "_ORDERS"):
            patch.setattr(batches, name, type(getattr(batches, name))(getattr(batches, name)._make, 0))
        patch.setattr(one_by_one, "MEMORY", BufferPool(one_by_one._make_memory, 0))
        patch.setattr(all_run, "_PAIRS", BufferPool(lambda: None, 0))
        patch.setattr(all_run, "_MOST", -1)
        patch.setattr(huge_pages, "_MIN_POOLED_BYTES", 1 << 12)
        patch.setattr(huge_pages, "_acquire", lambda size: huge_pages.empty((size,), np.uint8))
        patch.setattr(huge_pages, "_release", lambda memory: None)
        sort_more_than(patch, 64)
        yield calls


def picture(rng, count) -> tuple[np.ndarray, ...]:
    """Return rows of pixels that make packets, among them rays without a range, with NaN, and any ray."""
    k = np.arange(count)
    goals = np.stack([k % 40 / 20 - 1.0, k // 40 / 20 - 0.5, np.zeros(count)], axis=1)
    origins = np.tile(rng.choice([-2.0, -1.75, 0.3], 3) * [1, 1, 4], (count, 1))
    directions = goals - origins
    low, high = np.zeros(count), np.full(count, INF)
    lost, cut, alone = (rng.random((3, count)) < np.array([[0.05], [0.1], [0.02]])) & (k > 48)
    directions[lost, k[lost] % 3] = np.nan
    high[cut] = rng.random(np.count_nonzero(cut))
    directions[alone] *= -1.0
    return origins, directions, low, high


def aside(rays) -> tuple[np.ndarray, ...]:
    """Return the same rays far from all boxes: each misses the scene."""
    return rays[0] + 900.0, rays[1], *rays[2:]


@cache
def boxes_case(kind, boxes, count, seed=0) -> tuple[Pairs, list]:
    """Return rays and boxes, and the exact hits of each ray; a ray with NaN hits nothing."""
    rng = np.random.default_rng([seed, count])
    rays = many_rays(seed, count) if kind == "any" else picture(rng, count)
    if kind == "aside":
        rays = aside(rays)
    lower, upper = ties(seed)
    if boxes == 1:
        lower, upper = np.array([[-0.5, -0.5, -0.25]]), np.array([[0.5, 0.25, 0.5]])
    real = np.isfinite(rays[1]).all(axis=1)
    found = iter(exact.along(*(x[real] for x in rays), lower, upper))
    return Pairs(*rays, lower, upper), [next(found) if some else [] for some in real]


@pytest.mark.parametrize("byte", PATTERNS.values(), ids=PATTERNS)
@pytest.mark.parametrize("query", QUERY_NAMES)
@pytest.mark.parametrize("boxes", [1, "many"])
@pytest.mark.parametrize("kind", ["any", "picture", "aside"])
def test_boxes(query, kind, boxes, byte):
    for count in (1, 65, 131, 401):
        pairs, found = boxes_case(kind, boxes, count)
        with fresh_memory(byte) as calls:
            assert run_query(query, pairs) == truth(query, found), count
        assert min(calls["numpy"], calls[huge_pages.__name__]) > 5, calls
    assert any(found) == (kind != "aside")
    assert not all(found)


def in_full(query, scene, rays) -> list[np.ndarray]:
    """Return the results of a query on a scene of any geometry."""
    got = getattr(scene, query)(rays, **({"k": 3} if query == "first" else {}))
    return [got] if isinstance(got, np.ndarray) else [got.index, got.t]


@pytest.mark.parametrize("query", QUERY_NAMES)
@pytest.mark.parametrize("kind", ["mesh", "instances", "several"])
def test_any_geometry(query, kind):
    """Results are the same for both patterns, and without."""
    geometry = {"mesh": rb.Mesh(*CUBE), "instances": cubes(), "several": [cells(11), rb.Mesh(*CUBE), cubes()]}
    rays, results = cube_rays(21, 131), []
    for byte in (None, *PATTERNS.values()):
        if byte is None:
            results.append(in_full(query, rb.Scene(geometry[kind]), rays))
        else:
            with fresh_memory(byte):
                results.append(in_full(query, rb.Scene(geometry[kind]), rays))
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
