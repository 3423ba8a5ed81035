"""`integrate` and `deposit` against Fractions, within the bounds that their docstrings state."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import families
import path_truth
import raybox as rb
import strategies
from exact import INF
from path_truth import assert_sums, count_cases, deposits, integrals, paths
from raybox.queries.path_sums import copies
from raybox.traversal import ray_groups
from scenes import as_rays, random_scene

MIXED = [0.0, 1.0, -1.0, 3.5, -0.1]


def fixed(bound):
    """Return the bound of sums in fixed point. bound: `deposit`'s N^3 2^-120 X."""
    return lambda _count: Fraction(1, 1 << 49)


def fixed_slack(rays, size, boxes, largest) -> list[Fraction]:
    """Return N^3 2^-120 X of each box."""
    count = size * len(rays)
    corners = zip(boxes.lower.tolist(), boxes.upper.tolist(), strict=True)
    longest = [
        path_truth.root(sum((Fraction(b) - Fraction(a)) ** 2 for a, b in zip(low, up, strict=True)))
        for low, up in corners
    ]
    return [Fraction(count**3, 1 << 120) * x * Fraction(largest) for x in longest]


@pytest.fixture(params=["one by one", "sorted"])
def batches(request, monkeypatch):
    """Traverse few rays one by one, or in sorted groups as many rays are."""
    if request.param == "sorted":
        monkeypatch.setattr(ray_groups, "SMALL_BATCH", 16)


def numbers(rng, shape):
    """Return numbers of full mantissas, and some special ones."""
    return np.where(rng.random(shape) < 0.3, rng.choice(MIXED, shape), rng.normal(size=shape))


def check(rays, boxes, seed=0, where=None, counts=None) -> Counter:
    """Compare both queries, with and without factors, with Fractions."""
    counts = Counter() if counts is None else counts
    rng, scene, size = np.random.default_rng(seed), rb.Scene(boxes), len(boxes)
    rows = paths(rays, boxes, where=None if where is None else [where])
    count_cases(rows, counts)
    values, weights = numbers(rng, size), numbers(rng, rays.shape)
    for reproducible in (False, True):
        how = {"where": where, "reproducible": reproducible}
        assert_sums(scene.integrate(rays, **how), integrals(rows, [None]), counts)
        assert_sums(scene.integrate(rays, values, **how), integrals(rows, [values]), counts)
    how = {"where": where}
    assert_sums(scene.deposit(rays, **how), deposits(rows, np.ones(len(rows)), [size])[0], counts)
    (want,) = deposits(rows, weights.reshape(-1), [size])
    assert_sums(scene.deposit(rays, weights, **how), want, counts)
    (want,) = deposits(rows, weights.reshape(-1), [size], per_hit=True)
    for reproducible in (False, True):
        assert_sums(scene.deposit(rays, weights, per="hit", reproducible=reproducible, **how), want, counts)
    return counts


@pytest.mark.parametrize("name", families.FAMILIES)
def test_families(name, batches):
    pairs = families.scene(name, 7, 48, 48)
    counts = check(as_rays(pairs), rb.Boxes(*pairs[4:]))
    assert counts["hit"] > 10, counts


def test_families_have_every_case():
    counts = Counter()
    for name in families.FAMILIES:
        pairs = families.scene(name, 8, 24, 24)
        check(as_rays(pairs), rb.Boxes(*pairs[4:]), counts=counts)
    cases = ("hit", "miss", "touch", "zero", "inside", "tie", "inf", "endless", "exact", "near")
    assert min(counts[case] for case in cases) > 50, counts


@given(strategies.scenes())
def test_any_scene(pairs):
    check(as_rays(pairs), rb.Boxes(*pairs[4:]))


@pytest.mark.parametrize("dim", [2, 3])
def test_full_mantissas(dim, batches):
    pairs = random_scene(3, 120, 150, dim, size=0.8)
    where = np.random.default_rng(4).random(120) < 0.7
    counts = check(as_rays(pairs), rb.Boxes(*pairs[4:]), where=where)
    assert counts["hit"] > 100, counts
    assert counts["near"] > 500, counts
