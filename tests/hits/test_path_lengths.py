"""Lengths of paths: near the exact product over the whole range of floats, the same from both forms."""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest

import raybox as rb
from loops import loop
from raybox.geometry import RayRows
from raybox.hits.path_kernel import _write_usual_lengths, write_lengths
from raybox.hits.path_length import path_length
from raybox.hits.path_lengths import path_lengths

# Exponents: moderate, any, denormal, at both ends of float64, and around the limits of the scaling
EXPONENTS = [(-3, 3), (-1074, 1023), (-1074, -1000), (1000, 1023), (-402, -398), (498, 502), (-600, 600)]
PATHS = 3000


@loop
def write_usual(rays, ray_of, near, far, lengths):
    """Write the lengths that need no scale, NaN for others."""
    _write_usual_lengths(rays, ray_of, (near, far), lengths, lengths.size)


def floats(random, size):
    """Floats with full mantissas and exponents of one of the ranges for each row; a tenth are zero."""
    low, high = np.array(EXPONENTS)[random.integers(len(EXPONENTS), size=size[0])].T.reshape(2, -1, 1)
    values = np.ldexp(1.0 + random.random(size), random.integers(low, high, size, endpoint=True))
    values *= random.choice([-1.0, 1.0], size)
    return np.where(random.random(size) < 0.1, 0.0, values)


@pytest.fixture(scope="module")
def paths():
    random = np.random.default_rng(29)
    directions, times = floats(random, (PATHS, 3)), floats(random, (PATHS, 2))
    near, far = times.min(axis=1), times.max(axis=1)
    close = random.random(PATHS) < 0.3
    far[close] = near[close] + np.abs(near[close]) * (2.0**-52 * random.integers(0, 50, close.sum()))
    return near, np.minimum(far, sys.float_info.max), directions


def exact_length(near, far, direction):
    """The length with a relative error below 2^-400, as a fraction."""
    square = sum(Fraction(x) ** 2 for x in direction)
    bits = 408 + max(0, square.denominator.bit_length() - square.numerator.bit_length())
    root = Fraction(math.isqrt((square.numerator << 2 * bits) // square.denominator), 1 << bits)
    return (Fraction(far) - Fraction(near)) * root


def test_lengths_are_within_the_bound_of_the_exact_product(paths):
    for near, far, direction in zip(*(array.tolist() for array in paths), strict=True):
        length, exact = path_length(near, far, direction), exact_length(near, far, direction)
        if exact >= Fraction(sys.float_info.max):
            assert length in (sys.float_info.max, math.inf)
            continue
        bound = 0.51 if exact >= Fraction(sys.float_info.min) else 1
        assert abs(Fraction(length) - exact) <= Fraction(bound) * Fraction(math.ulp(float(exact)))


@pytest.mark.parametrize("limited", [False, True])
def test_compiled_code_and_python_return_the_same_bits(paths, limited):
    near, far, directions = paths
    lengths, ray_of = np.empty(PATHS), np.arange(PATHS)
    endless, middle = np.array([-math.inf]), near / 2 + far / 2
    t_min, t_max = (middle, far) if limited else (endless, -endless)
    rays = RayRows(np.zeros((PATHS, 3)), directions, t_min, t_max)
    write_lengths(rays, ray_of, near, far, lengths)
    at_once = path_lengths(rays, ray_of, near, far).lengths
    np.testing.assert_array_equal(lengths.view(np.int64), at_once.view(np.int64))
    begin = np.maximum(near, middle) if limited else near
    wanted = [
        path_length(*path) for path in zip(*(x.tolist() for x in (begin, far, directions)), strict=True)
    ]
    np.testing.assert_array_equal(lengths, wanted)
    one_by_one = [path_lengths(rays, ray_of[[k]], near[[k]], far[[k]]).lengths[0] for k in range(PATHS)]
    np.testing.assert_array_equal(lengths.view(np.int64), np.array(one_by_one).view(np.int64))


def test_most_ordinary_lengths_are_computed_eight_at_a_time(paths):
    near, far, directions = paths
    usual, lengths = np.empty(PATHS), np.empty(PATHS)
    rays = RayRows(np.zeros((PATHS, 3)), directions, np.array([-math.inf]), np.array([math.inf]))
    write_usual(rays, np.arange(PATHS), near, far, usual)
    write_lengths(rays, np.arange(PATHS), near, far, lengths)
    known = ~np.isnan(usual)
    assert PATHS / 20 < known.sum() < PATHS
    np.testing.assert_array_equal(usual[known], lengths[known])


@pytest.mark.parametrize(
    ("near", "far", "direction", "length"),
    [
        (0.0, 5.0, (0.0, 0.0, 0.0), 0.0),
        (0.0, math.inf, (0.0, 0.0, 0.0), 0.0),
        (2.0, 1.0, (1.0, 0.0, 0.0), 0.0),
        (0.0, math.inf, (1.0, 0.0, 0.0), math.inf),
        (-math.inf, math.inf, (1.0, 0.0, 0.0), math.inf),
        (0.0, 1.0, (3 * 2.0**700, 4 * 2.0**700, 0.0), 5 * 2.0**700),
        (0.0, 1.0, (3 * 5e-324, 4 * 5e-324, 0.0), 5 * 5e-324),
        (-(2.0**1023), 2.0**1023, (3 * 2.0**-40, 4 * 2.0**-40, 0.0), 5 * 2.0**984),
        (0.0, 2.0**-1074, (2.0**1000, 0.0, 0.0), 2.0**-74),
    ],
)
def test_special_paths(near, far, direction, length):
    assert path_length(near, far, direction) == length


def test_lengths_of_many_hits_are_those_of_one_at_a_time():
    random = np.random.default_rng(3)
    lower = random.random((200, 3))
    scene = rb.Scene(rb.Boxes(lower, lower + 0.3))
    rays = rb.Rays(random.random((100, 3)) - 1.0, random.random((100, 3)) / 3, t_min=2.5, t_max=6)
    found = scene.all(rays)
    assert len(found.index) > 500
    for k in range(100):
        alone = scene.all(rays[k])
        np.testing.assert_array_equal(found[k].lengths.view(np.int64), alone.lengths.view(np.int64))
