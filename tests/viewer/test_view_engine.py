"""The picks of a saved page equal those of `Scene.all`: hits, order, and every bit of t."""

from collections import Counter
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

import families
import page_scenes
import raybox as rb
from page_engine import Answers, answers, assert_same, expected, explanations
from pair_truth import pair_truth
from raybox.viewer.stage import make_stage
from scenes import as_rays

SEEDS = 1, 2
"""A geometry and a row of each kind."""


def check(geometries, rays: rb.Rays) -> Counter:
    """Assert that page and engine answer alike; count the kinds of hits."""
    stage = make_stage(geometries)
    want = expected(stage, rays)
    assert_same(answers(stage, rays), want)
    return kinds(want, len(rays.origins))


def kinds(found: Answers, rays: int) -> Counter:
    """Count hits, misses, touches of one point, and hits at the time of the one before."""
    same_ray = found.ray[1:] == found.ray[:-1]
    return Counter(
        hits=len(found.t),
        misses=rays - len(np.unique(found.ray)),
        touches=int((found.t_enter == found.t_exit).sum()),
        ties=int((same_ray & (found.t[1:] == found.t[:-1])).sum()),
    )


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(set(families.FAMILIES) - {"planar"}))
def test_boxes_of_adversarial_families(name):
    counts = Counter()
    for seed in SEEDS:
        pairs = families.scene(name, seed, 200, 300)
        counts += check([rb.Boxes(pairs.lower, pairs.upper)], as_rays(pairs))
    assert counts["hits"] > 100


def test_families_have_all_kinds_of_hits():
    counts = Counter()
    for name in ("touching_edges", "exact_ties", "flat_boxes"):
        pairs = families.scene(name, 3, 200, 300)
        counts += check([rb.Boxes(pairs.lower, pairs.upper)], as_rays(pairs))
    assert min(counts[kind] for kind in ("hits", "misses", "touches", "ties")) > 100


@pytest.mark.long
@pytest.mark.parametrize("name", page_scenes.SCENES)
def test_scenes(name):
    counts = Counter()
    for seed in SEEDS:
        counts += check(*page_scenes.make(name, seed))
    assert counts["hits"] > 50
    assert counts["misses"] > 20 or "grid" in name or "rounded" in name
    if name in ("boxes_with_ties", "terrain_of_whole_numbers", "coincident_geometries", "sheared_boxes"):
        assert min(counts["touches"], counts["ties"]) > 100


def test_only_pickable_objects_are_hit():
    geometries, rays = page_scenes.make("coincident_geometries", 5)
    stage = make_stage(geometries)
    pickable = np.random.default_rng(5).random(len(stage.visible)) < 0.5
    want = expected(stage, rays, pickable)
    assert 100 < len(want.t) < len(expected(stage, rays).t)
    assert_same(answers(stage, rays, pickable), want)


def test_large_scenes():
    """10^5 boxes, 10^5 triangles and 10^8 cells, which margins must not lose."""
    rng = np.random.default_rng(8)
    lower = rng.uniform(0, 100, (100_000, 3))
    boxes = rb.Boxes(lower, lower + rng.uniform(0, 1, lower.shape))
    corners = (rng.uniform(0, 100, (100_000, 1, 3)) + rng.uniform(-1, 1, (100_000, 3, 3))).reshape(-1, 3)
    mesh = rb.Mesh(corners, np.arange(300_000).reshape(-1, 3))
    rays = page_scenes.rays_through(rng, lower, 200)
    assert check([boxes, mesh], rays)["hits"] > 200


def test_empty_geometries_and_ranges():
    none = np.zeros((0, 3))
    geometries = [rb.Boxes(none, none), rb.Boxes([0, 0, 0], [1, 1, 1])]
    t_min, t_max = [0, 2, np.inf, -np.inf], [np.inf, 1, np.inf, -np.inf]
    rays = rb.Rays([[0.5, 0.5, 0.5]] * 4, [0, 0, 0], t_min=t_min, t_max=t_max, invalid="miss")
    assert check(geometries, rays)["hits"] == 1


class Pair(NamedTuple):
    """A ray, and a primitive that it may hit; inner: of a copy, the row of what is copied."""

    ray: int
    geometry: int
    index: int
    inner: int


def pairs_of(found: Answers, rays: int) -> list[Pair]:
    """Return each ray with what it hits first; box, copy or triangle 1 for the others."""
    pairs = {ray: Pair(ray, 0, 1, 0) for ray in range(rays)}
    columns = (values.tolist() for values in (found.ray, found.geometry, found.index, found.primitive))
    for row in reversed(list(zip(*columns, strict=True))):
        pairs[row[0]] = Pair(*row)
    return list(pairs.values())


@pytest.mark.parametrize("name", ["coincident_geometries", "boxes_of_a_map", "triangles", "sheared_meshes"])
def test_explanations_are_true(name):
    """Of hits and misses: slabs, the verdict, and the exact t as a fraction."""
    geometries, rays = page_scenes.make(name, 6)
    assert (
        check_explanations(
            geometries, rays[:150], pairs_of(expected(make_stage(geometries), rays[:150]), 150)
        )
        > 30
    )


def check_explanations(geometries, rays, pairs) -> int:
    """Assert that the page explains each ray and its pair as it is; count the hits."""
    numbers = ([getattr(pair, k) for pair in pairs] for k in ("geometry", "index"))
    hits = 0
    for pair, one in zip(pairs, explanations(make_stage(geometries), rays, *numbers), strict=True):
        want = pair_truth(rays[pair.ray], geometries[pair.geometry], pair.index, pair.inner)
        hits += want.t is not None
        assert one["verdict"] == "miss" if want.t is None else float(one["verdict"].split(" = ")[1]) == want.t
        fraction, _, decimal = one["t"].rpartition(" = ")
        assert (float(decimal) if decimal else None) == want.t
        assert not fraction or Fraction(fraction) == want.fraction
        assert [tuple(map(float, list(axis.values())[1:])) for axis in one["axes"]] == want.axes
    return hits
