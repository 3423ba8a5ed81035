"""rb.sweep against its definition in Fractions."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raybox as rb
from sweeping import INF, check_sweep, corners, small


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("grid", [True, False])
def test_sweeps_equal_their_definition(dim, grid):
    rng = np.random.default_rng([dim, grid])
    lower, upper = small(*corners(rng, 40, dim, grid), 0.25)
    low, high = small(*corners(rng, 400, dim, grid), 0.125)
    way = rng.integers(-5, 6, (400, dim)) / 2 if grid else rng.uniform(-3, 3, (400, dim))
    way[rng.random(way.shape) < 0.1] = 0.0
    counts = check_sweep(low, high, way, lower, upper)
    assert min(counts["hit"], counts["miss"], counts["overlaps"]) > 40, counts
    if grid:
        assert min(counts["tied"], counts["at an end"]) > 5, counts
        assert counts["touches"] >= 2, counts
    check_sweep(low, high, way, lower, upper, where=rng.random(40) < 0.5, workers=2)
    check_sweep(low, high, way[0], lower, upper)


@pytest.mark.parametrize("power", [-1074, -1060, -500, -100, 100, 500, 1015])
def test_sweeps_of_any_size(power):
    """Everything is scaled, or displacements alone, or positions alone."""
    rng = np.random.default_rng(3)
    lower, upper = small(*corners(rng, 20, 3, True), 0.25)
    low, high = small(*corners(rng, 60, 3, False), 0.125)
    way, much = rng.uniform(-8, 8, (60, 3)), 2.0**power
    counts = check_sweep(low * much, high * much, way * much, lower * much, upper * much)
    counts += check_sweep(low, high, way * much, lower, upper)
    counts += check_sweep(low * much, high * much, way, lower * much, upper * much)
    assert counts["hit"] > 20


def test_gaps_and_overlaps_below_float64_resolution():
    """A moving corner minus a wall is no float: one ulp decides, and the sum would round."""
    wall = 2.0**53 + 2.0
    low, high = np.array([[-1.0], [-1.0], [-1.0]]) * [1, 1, 1], np.array([[0.3, 1, 1]] * 3)
    high[1, 0], high[2, 0] = np.nextafter(0.3, 1), np.nextafter(0.3, 0)
    lower, upper = np.array([[wall, -9, -9]]), np.array([[wall + 2, 9, 9]])
    counts = check_sweep(low, high, np.array([wall, 0, 0]), lower, upper)
    assert counts == {"hit": 3, "tied": 0, "nearly tied": 0, "overlaps": 0, "touches": 0, "at an end": 0}
    short = np.array([[0.1 + 0.2, 0, 0]])
    for unit in (0.1, np.nextafter(0.1, 0), np.nextafter(0.1, 1)):
        box = np.array([[0.0, 0, 0]]), np.array([[unit, 1, 1]])
        check_sweep(*box, short, np.array([[0.4, 0, 0]]), np.array([[1.0, 1, 1]]))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("slow", [1.0, 1e-300])
def test_gaps_on_an_axis_without_motion(axis, slow):
    """The gap is one ulp on an axis without motion; another axis has times beyond float64's range."""
    side = np.nextafter([0.3, 0.3, 0.3], [0, 0.3, 1])
    low, high = np.array([[0.0, -0.3, 0.0]] * 3), np.array([[1, 0.3, 1.0]] * 3)
    low[:, 1], high[:, 1] = -side, side
    way = np.array([slow, 0.0, 1.0])
    above, below = [-1e10, 0.3, 1.5], [-1e10, -9.0, 1.5]
    for lower, upper in ((above, [1e10, 9.0, 2.0]), (below, [1e10, -0.3, 2.0])):
        many = [[-1e10, -9.0, 8.0]], [[1e10, 9.0, 9.0]]
        rows = [np.roll(x, axis, 1) for x in (low, high, [lower, *many[0]], [upper, *many[1]])]
        counts = check_sweep(rows[0], rows[1], np.roll(way, axis), *rows[2:])
        assert counts["hit"] == 2, counts
        assert counts["miss"] == 1, counts


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_boxes_left_just_before_the_start(axis, sign):
    """A box left at t = 0 is touched; one that is the least float away is not."""
    unit, least, way = 2.0**-1044, 5e-324, np.zeros(3)
    way[axis] = sign
    for gap, touched in ((0.0, True), (least, False), (2 * least, False), (-least, True)):
        lower, upper = np.full((1, 3), -unit), np.full((1, 3), unit)
        (upper if sign > 0 else lower)[0, axis] = -sign * gap
        low, high = np.full((1, 3), -unit), np.full((1, 3), unit)
        (low if sign > 0 else high)[0, axis] = 0.0
        counts = check_sweep(low, high, way, lower, upper)
        assert counts["hit"] == touched, gap


@pytest.mark.parametrize("power", [50, 58, 61, 64, 80, 900])
def test_axes_far_apart_in_speed(power):
    """Boxes that are fast, and long, on one axis reach others by another axis, on which they hardly move."""
    rng, counts = np.random.default_rng(7), Counter()
    for axis in range(3):
        lower, upper = small(*corners(rng, 30, 3, False), 0.25)
        low, high = small(*corners(rng, 40, 3, False), 0.125)
        way = rng.uniform(-3, 3, (40, 3))
        way[:, axis] = 2.0**power * rng.choice([-1, 1], 40)
        begin, end = np.sort(rng.uniform(-1, 1.5, (2, 40)), axis=0)
        ends = np.sort([begin * way[:, axis], end * way[:, axis]], axis=0)
        low[:, axis], high[:, axis] = -ends[1], -ends[0]
        counts += check_sweep(low, high, way, lower, upper)
    assert min(counts["hit"], counts["miss"], counts["overlaps"]) > 10, counts
    assert counts["hit"] > counts["overlaps"] + 10, counts


def test_unbounded_scenes_and_flat_boxes():
    rng = np.random.default_rng(4)
    lower, upper = small(*corners(rng, 30, 3, True), 0.25)
    lower[rng.random(lower.shape) < 0.1], upper[rng.random(upper.shape) < 0.1] = -INF, INF
    low, _ = corners(rng, 80, 3, True)
    flat = np.where(rng.random(low.shape) < 0.7, 0.0, 0.5)
    counts = check_sweep(low, low + flat, rng.integers(-4, 5, (80, 3)) * 1.0, lower, upper)
    assert counts["hit"] > 20


def nudged(rng, x, share=0.5):
    """Return numbers, some replaced by the next float or the one before."""
    return np.nextafter(x, np.where(rng.random(x.shape) < share, rng.choice([-INF, INF], x.shape), x))


def boxes_reached_at(rng, mover, when, n):
    """Return n boxes that the moving box reaches, or leaves, at about this time on each axis, or overlaps."""
    low, high, way = mover
    reach = 1 + np.abs(way) * 2 + high - low
    kind = rng.choice([0, 1, -1], (n, way.size), p=[0.2, 0.4, 0.4])
    kind[np.arange(n), rng.integers(0, np.count_nonzero(way), n)] = 1  # zeros are last
    by_lower, by_upper = kind * np.where(way >= 0, 1, -1) == [[[1]], [[-1]]]
    # A lower plane is crossed by the moving box's upper one, entering or leaving.
    lower = np.where(by_lower, high + when * way, low - reach)
    upper = np.where(by_upper, low + when * way, high + reach)
    return lower, upper


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("when", [0.0, 1 / 3, 0.7, 1.0])
def test_contacts_that_nearly_tie(when, dim):
    """All boxes are reached, or left, at one time, to within the last bits of all numbers."""
    rng, counts = np.random.default_rng([5, dim]), Counter()
    for n in (16,) * 3 + (1,) * 30:
        low, high = (x[0] for x in small(*corners(rng, 1, dim, False), 0.5))
        way = rng.uniform(-3, 3, dim)
        lower, upper = (nudged(rng, x) for x in boxes_reached_at(rng, (low, high, way), when, n))
        movers = (nudged(rng, np.tile(x, (30, 1)), 0.2) for x in (low, high, way))
        counts += check_sweep(*movers, lower, upper)
    assert min(counts["hit"], counts["nearly tied"]) > 20, counts
    assert counts["miss"] > 10 or when < 1, counts


@pytest.mark.core
@pytest.mark.parametrize("dim", [2, 3])
def test_contacts_that_tie(dim):
    """All boxes are reached, or left, at 0, 1/3, 1/2, 2/3 or 1; numbers are integers or halves."""
    rng, counts = np.random.default_rng([6, dim]), Counter()
    for when in (0, 1 / 3, 0.5, 2 / 3, 1) * 20:
        low, high = (x[0] for x in small(*corners(rng, 1, dim, True), 0.5))
        low, high = np.floor(low), np.floor(high)
        way = rng.choice([-6.0, -3.0, 3.0, 6.0], dim) * (np.arange(dim) < rng.integers(1, dim + 1))
        boxes = (np.round(x * 2) / 2 for x in boxes_reached_at(rng, (low, high, way), when, 12))
        counts += check_sweep(low[None], high[None], way[None], *boxes)
    assert min(counts[x] for x in ("hit", "tied", "touches", "at an end")) > 15, counts


numbers = st.one_of(st.integers(-4, 4).map(float), st.floats(-1e300, 1e300))


@given(st.lists(st.tuples(*[numbers] * 15), min_size=1, max_size=3))
@settings(max_examples=60)
def test_any_sweep(rows):
    x = np.array(rows).reshape(-1, 5, 3)
    low, high = np.minimum(x[:, 0], x[:, 1]), np.maximum(x[:, 0], x[:, 1])
    lower, upper = np.minimum(x[:, 3], x[:, 4]), np.maximum(x[:, 3], x[:, 4])
    check_sweep(low, high, x[:, 2], lower, upper)


def test_empty_inputs():
    none, scene = rb.Boxes(np.empty((0, 3)), np.empty((0, 3))), rb.Scene(rb.Boxes([0] * 3, [1] * 3))
    assert rb.sweep(none, [1, 0, 0], scene).index.shape == (0,)
    assert rb.sweep(rb.Boxes([0] * 3, [1] * 3), [1, 0, 0], rb.Scene(none)).index.tolist() == [-1]


@pytest.mark.parametrize("dim", [2, 3])
def test_hits_do_not_change_with_the_input_array(dim):
    """Normals, points and times are computed on access, from the displacements as given."""
    way, scene = np.zeros((1, dim)), rb.Scene(rb.Boxes([3.0] + [0.0] * (dim - 1), [4.0] + [1.0] * (dim - 1)))
    way[0, 0] = 4.0
    hits = rb.sweep(rb.Boxes([0.0] * dim, [1.0] * dim), way, scene)
    way[:] = -7.0
    assert hits.normals[0].tolist() == [-1.0] + [0.0] * (dim - 1)
    assert hits.points[0].tolist() == [2.5] + [0.5] * (dim - 1)
    assert (hits.t_enter[0], hits.t_exit[0]) == (0.5, 1.0)
