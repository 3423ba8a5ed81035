"""Where the bulk of boxes is, the limits of costs, and frames: compared with NumPy and exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from raybox.bvh.build import build
from raybox.bvh.frame import SAMPLE, choose_frame, frozen
from raybox.bvh.refit import bulk_limits, copy_nodes, cost_of, refit_into
from test_build import FAMILIES, clustered, uniform

INF = np.inf


def bulk_by_sorting(lower, upper):
    """Return the (center, reach) of the bulk of boxes, from sorted numbers."""
    step = max(1, len(lower) // SAMPLE)
    center, reach = np.zeros(3), 0.0
    for axis in range(3):
        numbers = np.concatenate([lower[::step, axis], upper[::step, axis]])
        numbers = np.sort(numbers[np.isfinite(numbers)])
        if numbers.size:
            center[axis] = numbers[numbers.size // 2]
            with np.errstate(over="ignore"):
                reach = max(reach, np.sort(np.abs(numbers - center[axis]))[numbers.size * 9 // 10])
    if reach == 0.0:
        return center, np.abs(center).max()
    return center, min(reach, 1e308)


def columns(*numbers):
    return np.stack(np.broadcast_arrays(*numbers), axis=1).astype(float)


RANKS = np.arange(3000)
ORDERS = {
    "rising": columns(RANKS, -RANKS, RANKS % 2),
    "few values": columns(RANKS % 3, RANKS // 1000, 7),
    "pipes": columns(np.abs(RANKS - 1500), RANKS * 1009 % 3000, RANKS**2 % 64),
    "half unbounded": columns(np.where(RANKS % 2, -INF, RANKS), -INF, np.where(RANKS > 0, INF, 5)),
    "at the ends": columns((-1.0) ** RANKS * 1.5e308, RANKS * 1e-320, 0),
    "one place": columns(np.full(3000, -3.0), 2, 1),
    "unbounded": np.full((5, 3), INF),
    "none": np.zeros((0, 3)),
}


@pytest.mark.core
@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 900, 2047, 2048, 3000])
def test_the_bulk_is_that_of_sorted_numbers(name, count):
    lower = np.ascontiguousarray(ORDERS[name][:count])
    for upper in (lower, lower + np.random.default_rng(3).random(lower.shape)):
        frame = choose_frame(lower, upper)
        center, reach = bulk_by_sorting(lower, upper)
        np.testing.assert_array_equal(frame.center, center)
        assert frame.reach == reach


@pytest.mark.parametrize("name", FAMILIES)
def test_the_bulk_of_any_boxes_is_that_of_sorted_numbers(name):
    lower, upper = FAMILIES[name](2500)
    frame = choose_frame(lower, upper)
    center, reach = bulk_by_sorting(lower, upper)
    np.testing.assert_array_equal(frame.center, center)
    assert frame.reach == reach


def exact_cost(below, root, limits):
    """Return a cost from its definition: areas of bounds within limits, clamped to 2^20."""

    def clamped(x):
        return Fraction(max(-(2.0**20), min(2.0**20, float(x))))

    lows = [clamped(max(root[0, k], -limits[0, k])) for k in range(3)]
    ups = [clamped(min(root[1, k], limits[0, 4 + k])) for k in range(3)]
    x, y, z = (max(up - low, Fraction(0)) for low, up in zip(lows, ups, strict=True))
    return 1 + Fraction(below) / max(x * y + y * z + z * x, Fraction(1e-37))


@pytest.mark.parametrize("name", FAMILIES)
def test_costs_and_limits_are_those_of_exact_arithmetic(name):
    tree = build(*uniform(1500))
    lower, upper = FAMILIES[name](1500)
    moved, cost = refit_into(copy_nodes(tree.nodes), tree, lower, upper)
    limits = bulk_limits(tree, frozen(lower), frozen(upper))
    center, reach = bulk_by_sorting(lower, upper)
    middle = [Fraction(x - c) * Fraction(tree.scale) for x, c in zip(center, tree.center, strict=True)]
    half = 2 * Fraction(reach) * Fraction(tree.scale)
    if max(map(abs, middle)) > min(2**16 * half, np.finfo(float).max):
        assert np.isnan(limits).all()
        assert cost == INF
        return
    ends = [float(max(-Fraction(1e30), min(Fraction(1e30), x + s * half))) for s in (-1, 1) for x in middle]
    np.testing.assert_allclose(limits[0, [0, 1, 2, 4, 5, 6]], [*-np.array(ends[:3]), *ends[3:]], rtol=1e-6)
    for below in (0.0, 0.25, 1e9):
        assert cost_of(below, moved.root, limits) == pytest.approx(
            float(exact_cost(below, moved.root, limits)), rel=1e-14
        )


def test_boxes_far_from_the_center_of_their_tree_have_no_limits():
    lower, upper = clustered(1000)
    tree = build(lower, upper)
    assert not np.isnan(bulk_limits(tree, lower, upper)).any()
    far = frozen(lower + 1e12), frozen(upper + 1e12)
    limits = bulk_limits(tree, *far)
    assert np.isnan(limits).all()
    assert cost_of(1.0, tree.root, limits) == INF
