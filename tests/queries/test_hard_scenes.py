"""Scenes full of ties and touches: exact, by few candidates, and seldom by integers of any length."""

import ast
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import exact_surfaces
import hard_families
import raybox as rb
from aim import Pairs
from compare import assert_scene
from raybox.compiler.buffer_pool import SizedPool
from raybox.queries import batches
from raybox.traversal.workspace import make_workspace, work_counts
from scenes import as_rays, build, truth
from streaming import run

RAYS, BOXES = 1100, 30  # more rays than are traversed unsorted
MESHES = [name for name in hard_families.FAMILIES if "triangles" in name]
BOX_FAMILIES = [
    name for name in hard_families.FAMILIES if {"boxes", "face", "faces", "corners"} & set(name.split())
]


def turned(name, seed, rays=RAYS, boxes=BOXES) -> Pairs:
    """Return a family of boxes with its axes in another order, mirrored, and ranges that end at its faces."""
    rng = np.random.default_rng(seed)
    cast, geometry = hard_families.FAMILIES[name](rng, rays, boxes)
    order, sign = rng.permutation(3), rng.choice([-1.0, 1.0], 3)
    origins, directions, lower, upper = (
        x[:, order] * sign for x in (cast.origins, cast.directions, geometry.lower, geometry.upper)
    )
    pairs = Pairs(
        origins, directions, cast.t_min, cast.t_max, np.minimum(lower, upper), np.maximum(lower, upper)
    )
    return pairs._replace(**ranges(rng, pairs))


def ranges(rng, pairs):
    """Return t_min and t_max: for a third of the rays one of them is the time of a plane, or nearly."""
    rays, which = len(pairs.origins), rng.integers(0, 6, len(pairs.origins))
    box, axis = rng.integers(0, len(pairs.lower), rays), rng.integers(0, 3, rays)
    row = np.arange(rays)
    planes = np.where(rng.random(rays) < 0.5, pairs.lower[box, axis], pairs.upper[box, axis])
    t = (planes - pairs.origins[row, axis]) / pairs.directions[row, axis]
    t = np.abs(t) * (1 + rng.integers(-1, 2, rays) * 2.0**-52)
    return {"t_min": np.where(which == 0, t, 0.0), "t_max": np.where(which == 1, t, np.inf)}


def count_kinds(pairs, found) -> Counter:
    """Count hits, misses, touches, ties and near ties."""
    counts = Counter(hits=sum(map(len, found)))
    counts["misses"] = len(pairs.origins) * len(pairs.lower) - counts["hits"]
    for row in found:
        counts["touches"] += sum(f.plain[5] for f in row)
        counts["ties"] += sum(one.t == other.t for one, other in pairwise(row))
        counts["near ties"] += sum(
            one.t != other.t and abs(other.t - one.t) < one.t * 2.0**-40 for one, other in pairwise(row)
        )
    return counts


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", BOX_FAMILIES)
def test_boxes_are_exact(name, seed):
    pairs = turned(name, seed)
    found = truth(pairs)
    assert_scene(build(*pairs[4:]), as_rays(pairs), found)
    counts = count_kinds(pairs, found)
    assert min(counts["hits"], counts["misses"]) > 500, counts
    if "corner" in name:
        assert counts["touches"] > 20, counts
    elif "outside" not in name:
        assert counts["near ties" if name == "near equal faces" else "ties"] > 3000, counts


@pytest.mark.parametrize("name", MESHES)
def test_triangles_are_exact(name):
    rays, mesh = hard_families.FAMILIES[name](np.random.default_rng(5), RAYS, 12)
    found = exact_surfaces.triangles_along(rays, mesh.vertices[mesh.faces])
    tied = sum(one.t == other.t for row in found for one, other in pairwise(row))
    assert_scene(rb.Scene(mesh), rays, found)
    assert (tied > 5000) == ("near" not in name)
    assert sum(map(len, found)) > 5000


# Counters before clocks

CANDIDATES_OF_NEAREST = {
    "identical boxes": 1400,
    "one entering face": 1400,
    "near equal faces": 1400,
    "nested boxes": 0,
    "nested boxes from outside": 0,
    "lower corners on ray": 6600,
    "upper corners on ray": 6600,
    "corners beside ray": 6600,
}


def candidates(name) -> int:
    """Return how many pairs of rays and boxes `nearest` resolves in float64."""
    rays, boxes = hard_families.FAMILIES[name](np.random.default_rng(1), RAYS, 200)
    rb.Scene(boxes).nearest(rays, workers=1)
    ((workspace,),) = batches._WORKSPACES._free.values()
    return int(work_counts(workspace).candidates)


@pytest.mark.parametrize("name", BOX_FAMILIES)
def test_candidates_of_nearest(name, monkeypatch):
    """Golden, of 220,000 pairs. Lower is better."""
    monkeypatch.setattr(batches, "_WORKSPACES", SizedPool(make_workspace))
    assert candidates(name) == CANDIDATES_OF_NEAREST[name]


INTEGERS = {("corners beside ray", "all"): (0, 1661)}
COUNT_INTEGERS = """
    import ctypes, sys
    import llvmlite.binding
    import numpy as np
    import hard_families
    import raybox as rb
    from raybox.compiler.jit.compile import load_all_apart
    from raybox.exact import bigint  # noqa: F401
    from raybox.queries import scheduler
    from raybox.queries.all_hits import run as all_run
    from raybox.threads import chunks

    # One chunk: a ray whose hits find no room in a chunk is decided once more in the next one.
    chunks._FIRST = scheduler.EXACT_CHUNK = all_run.EXACT_CHUNK = 1 << 30
    load_all_apart()
    calls, kept = {}, []
    for name, arguments, result in (("big_order", 6, ctypes.c_int64), ("big_time", 3, ctypes.c_double)):
        symbol = f"raybox.exact.bigint.{name}"
        kind = ctypes.CFUNCTYPE(result, *[ctypes.c_double] * arguments)
        original = kind(llvmlite.binding.address_of_symbol(symbol))

        def counted(*numbers, name=name, original=original):
            calls[name] = calls.get(name, 0) + 1
            return original(*numbers)

        kept.append(kind(counted))
        llvmlite.binding.add_symbol(symbol, ctypes.cast(kept[-1], ctypes.c_void_p).value)
    found = {}
    for name in sys.argv[1:]:
        rays, boxes = hard_families.FAMILIES[name](np.random.default_rng(1), 1100, 40)
        scene = rb.Scene(boxes)
        for query in ("count", "occluded", "nearest", "all"):
            calls.clear()
            getattr(scene, query)(rays, workers=1)
            found[name, query] = calls.get("big_order", 0), calls.get("big_time", 0)
    print(found)
"""


@pytest.mark.jit
def test_pairs_that_take_integers_of_any_length():
    """Golden, of 44,000 pairs: orders and times in integers. Lower is better."""
    found = ast.literal_eval(run(COUNT_INTEGERS, *BOX_FAMILIES))
    assert len(found) == 4 * len(BOX_FAMILIES)
    assert {case: calls for case, calls in found.items() if calls != (0, 0)} == INTEGERS
