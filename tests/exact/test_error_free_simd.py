"""Error-free products and remainders of vectors against Fractions, fused and by products of halves."""

from collections import Counter
from fractions import Fraction
from functools import cache
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ray_cases import loop
from raybox.compiler import simd
from raybox.compiler.intrinsics import vector_code, void
from raybox.exact import error_free_simd
from raybox.exact.error_free_simd import product_error, remainder

WAYS = {"fused": True, "by halves": False}
ROWS = np.zeros(8), np.ones(8), np.zeros(8), np.zeros(8)


@cache
def compiled(way):
    """Return the compiled function of one form: (x, y, error of x * y, remainder of x / y)."""

    @vector_code(void)
    def write(b, x, y, error, left):
        one, other = x.load(0, 8), y.load(0, 8)
        error.store(product_error(one, other, one * other), 0)
        left.store(remainder(one, one / other, other), 0)

    @loop
    def compute(x, y, error, left):
        write(x, y, error, left)

    with (
        mock.patch.object(simd, "has", return_value=WAYS[way]),
        mock.patch.object(error_free_simd, "has", return_value=WAYS[way]),
    ):
        compute(*ROWS)
    return compute


def check(way, x, y) -> Counter:
    """Check eight pairs of numbers; y is not 0."""
    error, left = np.zeros(8), np.zeros(8)
    compiled(way)(x, y, error, left)
    counts = Counter()
    for a, b, lost, rest in zip(x.tolist(), y.tolist(), error.tolist(), left.tolist(), strict=True):
        assert Fraction(lost) == Fraction(a) * Fraction(b) - Fraction(a * b), (a, b)
        assert Fraction(rest) == Fraction(a) - Fraction(a / b) * Fraction(b), (a, b)
        counts["exact product" if lost == 0 else "rounded product"] += 1
        counts["exact quotient" if rest == 0 else "rounded quotient"] += 1
    return counts


@pytest.mark.parametrize("way", WAYS)
def test_numbers_that_are_hard_to_split(way):
    """All ones, one bit beyond a half, powers of two and their neighbours, and zeros."""
    ones = [2.0 - 2.0**-52, 1.0 + 2.0**-52, 1.0 + 2.0**-26, 1.0 + 2.0**-27, 2.0 - 2.0**-26, 2.0 - 2.0**-27]
    ones += [1.0, 1.5, 1.0 + 2.0**-26 + 2.0**-52, 1.0 + 2.0**-27 - 2.0**-52, 4.0 / 3.0]
    numbers = [sign * each * 2.0**n for each in ones for n in (-299, 0, 298) for sign in (-1, 1)]
    every = np.array([(a, b) for a in [*numbers, 0.0, -0.0] for b in numbers])
    every = np.concatenate([every, every[: -len(every) % 8]])
    counts = sum((check(way, *eight.T.copy()) for eight in every.reshape(-1, 8, 2)), Counter())
    assert min(counts.values()) > 500, counts


TAME = st.floats(2.0**-300, 2.0**300) | st.floats(-(2.0**300), -(2.0**-300))


@pytest.mark.parametrize("way", WAYS)
@given(x=st.lists(TAME | st.just(0.0), min_size=8, max_size=8), y=st.lists(TAME, min_size=8, max_size=8))
def test_any_tame_numbers(way, x, y):
    check(way, np.array(x), np.array(y))


@pytest.mark.parametrize("way", WAYS)
def test_little_is_lost_by_underflow(way):
    rng = np.random.default_rng(152)
    for low in range(-1074, -400, 30):
        x, y = (np.ldexp(rng.uniform(1, 2, 8), low + rng.integers(0, 20, 8)) for _ in range(2))
        error, left = np.zeros(8), np.zeros(8)
        compiled(way)(x, y, error, left)
        for a, b, lost in zip(x.tolist(), y.tolist(), error.tolist(), strict=True):
            off = Fraction(a) * Fraction(b) - Fraction(a * b) - Fraction(lost)
            assert abs(off) < Fraction(2) ** -1071, (a, b)
