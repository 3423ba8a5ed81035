"""Sums over scenes in parts: in fixed point those of the whole scene, bit for bit."""

import numpy as np
import pytest

import raybox as rb
from grids import random_grid, random_rays
from raybox.queries import deposit
from raybox.queries.path_sums import fixed_point
from raybox.queries.path_sums.fixed_point import TermLimits
from scenes import as_rays, random_scene

COUNT = 400


def boxes():
    pairs = random_scene(3, COUNT, 3000, size=0.5)
    return rb.Boxes(*pairs[4:]), as_rays(pairs)


def grid():
    rng = np.random.default_rng(4)
    made = random_grid("random", rng, (8, 5, 10), share=0.7)
    return made, random_rays(rng, made, 3000)


CASES = {"boxes": boxes, "grid": grid}


def flat_weights(rays, rng, channels):
    return rng.normal(size=(len(rays), *channels)) * 10.0 ** rng.integers(-3, 4, (len(rays), *channels))


@pytest.mark.core
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("channels", [None, (), (2,)])
@pytest.mark.parametrize("per", ["length", "hit"])
def test_deposit_in_fixed_point_is_that_of_the_whole(case, channels, per):
    geometry, rays = CASES[case]()
    rng = np.random.default_rng(7)
    weights = None if channels is None else flat_weights(rays, rng, channels)
    whole = rb.Scene(geometry)
    for parts in (1, 3, 8):
        split = rb.SplitScene(geometry, parts=parts)
        for where in (None, rng.random(COUNT) < 0.6):
            how = {"per": per, "reproducible": True, "where": where}
            wanted = whole.deposit(rays, weights, **how)
            assert np.count_nonzero(wanted) > COUNT // 3
            np.testing.assert_array_equal(split.deposit(rays, weights, workers=1, **how), wanted)
            order = rng.permutation(len(rays))
            turned = None if weights is None else weights[order]
            np.testing.assert_array_equal(split.deposit(rays[order], turned, workers=2, **how), wanted)


def test_parts_are_closed_between_the_rounds_of_a_sum():
    geometry, rays = boxes()
    bytes_each = rb.SplitScene(geometry, parts=8)._open_parts.bytes
    split = rb.SplitScene(geometry, parts=8, memory=2 * max(bytes_each))
    wanted = rb.Scene(geometry).deposit(rays, reproducible=True)
    np.testing.assert_array_equal(split.deposit(rays, reproducible=True), wanted)
    assert split._open_parts.opened > 8


def test_ranges_of_all_rays_limit_the_terms():
    """Boxes without end have terms that only the rays' ranges limit: those of all rays, not of a part's."""
    lower, upper = np.zeros((6, 2)), np.ones((6, 2))
    lower[:, 0], upper[:, 0] = np.arange(6), np.arange(6) + 0.5
    upper[5, 0] = np.inf
    geometry = rb.Boxes(lower, upper)
    rays = rb.Rays([[-1, 0.5], [2, 0.5], [4, 0.5]], [1, 0], t_max=[3, 1e9, 1e-3])
    whole, split = rb.Scene(geometry), rb.SplitScene(geometry, parts=3)
    wanted = whole.deposit(rays, reproducible=True)
    assert wanted[5] > 9e8
    np.testing.assert_array_equal(split.deposit(rays, reproducible=True), wanted)
    endless = rb.Rays([[2, 0.5]], [1, 0])
    for scene in (whole, split):
        with pytest.raises(rb.InvalidInput, match=r"boxes break this, first box 5\."):
            scene.deposit(endless, reproducible=True)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("channels", [None, (), (2,)])
def test_integrals_depend_neither_on_threads_nor_on_the_order_of_rays(case, channels):
    geometry, rays = CASES[case]()
    rng = np.random.default_rng(9)
    values = None if channels is None else rng.normal(size=(COUNT, *channels))
    whole, split = rb.Scene(geometry), rb.SplitScene(geometry, parts=5)
    found = split.integrate(rays, values, reproducible=True, workers=1)
    np.testing.assert_allclose(found, whole.integrate(rays, values), rtol=1e-12, atol=1e-12)
    order = rng.permutation(len(rays))
    again = split.integrate(rays[order], values, reproducible=True, workers=2)
    np.testing.assert_array_equal(again, found[order])
    halves = [split.integrate(some, values, reproducible=True) for some in (rays[:1000], rays[1000:])]
    np.testing.assert_array_equal(np.concatenate(halves), found)
    assert np.count_nonzero(found) > 1000


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("make", [rb.Scene, lambda geometry: rb.SplitScene(geometry, parts=4)])
def test_groups_of_rays_add_up_in_any_order(case, make):
    """Partial sums within the limits of all rays are added to the bits of one call."""
    geometry, rays = CASES[case]()
    weights = flat_weights(rays, np.random.default_rng(2), (2,))
    weights.flags.writeable = False
    scene = make(geometry)
    groups = [slice(0, 10), slice(10, 1500), slice(1500, None)]
    limits = TermLimits.joined(
        fixed_point.limits_of(rays[some]._rows(), weights[some], per_hit=False) for some in groups
    )
    whole = fixed_point.limits_of(rays._rows(), weights, per_hit=False)
    assert limits == whole
    wanted = scene.deposit(rays, weights, reproducible=True)
    for order in ([0, 1, 2], [2, 0, 1]):
        first, *others = (
            deposit.partial_sums(scene, rays[groups[k]], weights[groups[k]], limits=limits) for k in order
        )
        for other in others:
            first = first.plus(other)
        np.testing.assert_array_equal(first.to_floats(), wanted)


def test_the_sums_of_no_rays():
    geometry, rays = boxes()
    split = rb.SplitScene(geometry, parts=3)
    away = rb.Rays([[50, 50, 50]], [1, 0, 0])
    for some in (rays[:0], away):
        found = split.deposit(some, reproducible=True)
        assert found.shape == (COUNT,)
        assert not found.any()
