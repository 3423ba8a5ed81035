"""Whether linear inequalities have a common solution, against the corners of what they bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybox.exact.feasibility import is_feasible
from region_truth import shared

pytestmark = pytest.mark.core

INF = float("inf")


def has_corner(inequalities, dim):
    return shared(inequalities, [-INF] * dim, [INF] * dim).found


@pytest.mark.parametrize("dim", [2, 3])
def test_random_inequalities(dim):
    feasible, count = 0, 300
    for seed in range(count):
        rng = np.random.default_rng(seed)
        numbers = rng.integers(-3, 4, (rng.integers(1, 9), dim + 1))
        numbers[~numbers[:, :dim].any(axis=1), 0] = 1
        inequalities = [tuple(row) for row in numbers.tolist()]
        want = has_corner(inequalities, dim)
        assert is_feasible(inequalities, dim) == want
        feasible += want
    assert 50 < feasible < count - 50


def test_points_and_gaps():
    """A single point, or none: the last passes the corner of the others, or is beyond it by 1e-30."""
    corner = [(-3, 0, 0, -1), (0, -3, 0, -1), (0, 0, -7, -2), (3, 3, 7, 4)]
    assert is_feasible(corner, 3)
    unit = 10**30
    assert not is_feasible([*corner[:3], tuple(unit * x - (k == 3) for k, x in enumerate(corner[3]))], 3)
    assert is_feasible([], 3)
    assert is_feasible([(0, 0, 0, 0)], 3)
    assert not is_feasible([(0, 0, 0, -1)], 3)


@pytest.mark.parametrize("dim", [2, 3])
def test_planes_through_one_point(dim):
    """All have that point in common, often no other; less than that has none or more."""
    alone = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        normals, point = rng.integers(-3, 4, (rng.integers(3, 9), dim)), rng.integers(-5, 6, dim)
        normals[~normals.any(axis=1), 0] = 1
        inequalities = [tuple(row) for row in np.column_stack([normals, normals @ point]).tolist()]
        assert is_feasible(inequalities, dim)
        smaller = [(*row, bound - 1) for *row, bound in inequalities]
        assert is_feasible(smaller, dim) == has_corner(smaller, dim)
        alone += not is_feasible(smaller, dim)
    assert 20 < alone < 180


@given(st.lists(st.tuples(*[st.integers(-9, 9)] * 4).filter(lambda one: any(one[:3])), max_size=8))
def test_any_inequalities(inequalities):
    assert is_feasible(inequalities, 3) == has_corner(inequalities, 3)
