"""Order and length of distances against Fractions: ties, middles of two floats, overflow, denormals."""

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np

from box_truth import root, whole
from loops import loop
from raybox.exact import squares
from test_predicate import INF, MAX, TINY, anywhere, sign

UNIT = 2**1074  # of the least float
TOP = np.nextafter(MAX, 0)


@loop
def distances(x, out):
    for k in range(out.size):
        out[k] = squares.distance(squares.Gaps((x[k, 0], x[k, 1], x[k, 2]), (x[k, 3], x[k, 4], x[k, 5])))


@loop
def orders(x, y, out):
    for k in range(out.size):
        one = squares.Gaps((x[k, 0], x[k, 1], x[k, 2]), (x[k, 3], x[k, 4], x[k, 5]))
        other = squares.Gaps((y[k, 0], y[k, 1], y[k, 2]), (y[k, 3], y[k, 4], y[k, 5]))
        out[k] = squares.order(one, other)


def middles(rng):
    """Return gaps whose distance is a middle of two floats, 54 bits long, and some a little off.

    A gap alone: 2^53 less a float; and the legs of triangles of 3, 4 and 5.
    """
    rows = []
    for _ in range(300):
        unit = 2.0 ** int(rng.integers(-900, 900))
        high, low = 2.0**53 * unit, -float(2 * rng.integers(2**51, 2**52) + 1) * unit
        off, leg = np.nextafter(high, rng.choice([0.0, INF])), float(rng.integers(2**50, 2**51) | 1) * unit
        rows += [[high, 0, 0, low, 0, 0], [off, 0, 0, low, 0, 0]]
        rows += [[high, tail * unit, 0, low, 0, 0] for tail in (2.0**-20, 1.0)]
        rows += [[0, 3 * leg, 2 * leg, 0, 0, -2 * leg]]
    edge = np.ldexp(np.sqrt(2.0) * (1 + np.arange(-40, 40) * 2.0**-46), 997)  # the sum is MAX and half a step
    return np.concatenate([np.array(rows), [[MAX, y, 0, 0, 0, 0] for y in edge]])


def gaps(rng):
    """Return gaps of every size, of denormals, to overflow, and their neighbours and permutations."""
    numbers = [
        anywhere(rng, (2000, 6)),
        anywhere(rng, (1000, 6), -1074, -1040),
        anywhere(rng, (1000, 6), -10, 10),
        rng.integers(-4, 5, (2000, 6)).astype(float),
        rng.uniform(4e5, 4e5 + 1, (1000, 6)),
        1 + rng.integers(-3, 4, (1000, 6)) * 2.0**-52,
        anywhere(rng, (500, 6), 965, 970),
        np.array([*product((0.0, TINY, 3 * TINY), repeat=6)]),
        np.array([*product((MAX, TOP, 1.0), (0.0, MAX), [0.0], (-MAX, 0.0, TOP), (0.0, -TINY), [0.0])]),
        np.ldexp(1.0, rng.integers(-1074, 1023, (1000, 6))),
    ]
    rows = np.concatenate(numbers)
    rows[rng.random(rows.shape) < 0.1] = 0.0
    one, other = rows[:, :3], rows[:, 3:]
    alone = rng.random(one.shape) < 0.2
    high, low = np.maximum(one, other), np.minimum(one, other)
    return np.concatenate([np.where(alone, 0.0, high), np.where(alone, 0.0, low)], axis=1)


def sums(x):
    """Return squared distances in squares of 1 / UNIT."""
    return ((whole(x[:, :3], UNIT) - whole(x[:, 3:], UNIT)) ** 2).sum(axis=1).tolist()


def test_a_distance_is_rounded_once():
    rng = np.random.default_rng(71)
    cases = np.concatenate([gaps(rng), middles(rng)])
    out = np.empty(len(cases))
    distances(cases, out)
    exact = sums(cases)
    np.testing.assert_array_equal(out, [root(square, UNIT) for square in exact])
    counts = Counter(np.where(out == 0, "zero", np.where(out == INF, "infinite", "else")).tolist())
    counts["denormal"] = int(((out > 0) & (out < 2.0**-1022)).sum())
    finite = np.isfinite(out) & (out < MAX)
    for value, square in zip(out[finite].tolist(), np.array(exact, object)[finite], strict=True):
        for other in (np.nextafter(value, 0.0), np.nextafter(value, INF)):
            middle = (Fraction(value) + Fraction(other)) / 2 * UNIT
            counts["middle"] += middle * middle == square
    assert min(counts.values()) > 20, counts


def test_order_is_exact():
    rng = np.random.default_rng(72)
    one = np.concatenate([gaps(rng), middles(rng)])
    two = one[rng.permutation(len(one))]
    axes = rng.permuted(np.tile(np.arange(3), (len(one), 1)), axis=1)
    same = np.take_along_axis(one, np.concatenate([axes, axes + 3], axis=1), axis=1)  # on other axes
    beside = same.copy()
    with np.errstate(over="ignore"):
        beside[:, 0] = np.minimum(np.nextafter(beside[:, 0], INF), MAX)
    moved = np.concatenate([-one[:, 3:], -one[:, :3]], axis=1)  # mirrored
    counts = Counter()
    for other in (two, same, beside, moved):
        out = np.empty(len(one), np.int64)
        orders(one, other, out)
        want = [sign(a - b) for a, b in zip(sums(one), sums(other), strict=True)]
        np.testing.assert_array_equal(out, want)
        counts.update(want)
    assert min(counts.values()) > 2000, counts
    assert counts[0] > 2000, counts
