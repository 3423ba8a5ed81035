"""Every query on boxes of all sizes and hard families, one by one, in streams and in packets."""

from collections import Counter
from functools import cache

import numpy as np
import pytest

import exact
import families
from aim import INF, Pairs
from ray_cases import BOX_SETS, make_rays_at
from raybox.queries import scheduler
from raybox.traversal.ray_setup import LANES
from scenes import random_scene
from sorting import sort_more_than
from test_many_rays import QUERY_NAMES, run_query, truth


def close(seed):
    """Return boxes, eight of each, moved by shares of its size from 1/8 down to 2^-52."""
    rng = np.random.default_rng(seed)
    lower, upper = (np.repeat(x, 8, axis=0) for x in random_scene(seed, 1, 60, size=0.6)[4:])
    moved = rng.choice([-1, 0, 1], lower.shape) * np.ldexp(1.0, rng.integers(-52, -2, lower.shape))
    return lower + moved, upper + rng.permutation(moved)


SETS = BOX_SETS | {"close": lambda: close(81)}
CASES = [(name, kind) for name in SETS for kind in ("one by one", "streams", "packets")]
CASES += [(name, "streams") for name in families.FAMILIES]


def bundle(rng, lower, upper) -> tuple[np.ndarray, ...]:
    """Return sixteen rays from a box or nearby to points close together; some make no packet."""
    finite = np.flatnonzero(np.isfinite(lower).all(axis=1) & np.isfinite(upper).all(axis=1))
    a, b = rng.choice(finite, 2)
    size = (upper - lower)[finite].max()
    origin = lower[a] + rng.choice([0.1, 3.0, 1e3]) * size * rng.standard_normal(3)
    goals = lower[b] + rng.choice([1e-3, 0.1, 1.0]) * size * rng.random((LANES, 3))
    origins = origin + rng.choice([0.0, 1e-3, 0.5]) * size * rng.random((LANES, 3))
    ways = (goals - origins) * np.ldexp(1.0, rng.integers(-3, 4))
    low, high = np.zeros(LANES), np.full(LANES, INF)
    kind = rng.integers(0, 10)
    if kind == 0:
        ways[:, rng.integers(3)] = 0.0
    if kind == 1:
        ways[rng.integers(LANES), rng.integers(3)] *= -1.0
    if kind == 2:
        high[:] = rng.random(LANES) * 2.0
    if kind == 3:
        low[5:9], high[5:9] = INF, -INF
    return origins, ways, low, high


def bundles(lower, upper) -> Pairs:
    """Return rays, sixteen after sixteen close together."""
    rng = np.random.default_rng(91)
    rows = zip(*(bundle(rng, lower, upper) for _ in range(24)), strict=True)
    return Pairs(*map(np.concatenate, rows), lower, upper)


@cache
def case(name, kind) -> tuple[Pairs, list[list[exact.Found]]]:
    """Return rays and boxes of a set, and the exact hits of each ray."""
    if name in families.FAMILIES:
        pairs = families.scene(name, 83, n_boxes=64, n_rays=240)
    else:
        boxes = SETS[name]()
        pairs = bundles(*boxes) if kind == "packets" else make_rays_at(82, *boxes, n=240)
    return pairs, list(exact.along(*pairs))


@pytest.mark.parametrize("query", QUERY_NAMES)
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_results_are_those_of_fractions(name, kind, query, monkeypatch):
    pairs, found = case(name, kind)
    if kind != "one by one":
        sort_more_than(monkeypatch, 64)
        monkeypatch.setattr(scheduler, "PACKET_WIDTH", 1)
    assert run_query(query, pairs) == truth(query, found)
    counts = Counter("hit" if row else "miss" for row in found)
    counts["touch"] = sum(any(f.plain[5] for f in row) for row in found)
    if name in SETS:  # of families, see test_oracle.py
        assert min(counts["hit"], counts["miss"]) > 10, counts
        assert counts["touch"] > 10 or kind == "packets", counts
