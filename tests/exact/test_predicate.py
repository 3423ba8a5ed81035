"""The exact predicate against Fractions, function by function, on hard cases."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import exact as truth
import exact_surfaces as surfaces
import raybox as rb
from compare import assert_hits, assert_normals
from loops import loop
from raybox.exact import bigint, double_double, predicate
from raybox.primitives.plane import ratio

INF, TINY, MAX, ULP, DOT = math.inf, 5e-324, 1.7976931348623157e308, 2.0**-52, 2.0**-560
ENDS = (2.0**969, 2.0**970, np.nextafter(2.0**970, 0), 2.0**971)  # half a step past the largest float


def nearest(x: Fraction) -> float:
    """Return x rounded once, ties to even; infinite past the largest; zero without a sign."""
    try:
        return float(x) + 0.0
    except OverflowError:
        return INF if x > 0 else -INF


def split(x: Fraction) -> tuple[float, float]:
    """Return head and tail, the sum of two floats nearest to x."""
    return float(x), float(x - Fraction(float(x)))


def sign(x) -> int:
    return (x > 0) - (x < 0)


def same(got: float, want: float) -> bool:
    return got == want and math.copysign(1, got) == math.copysign(1, want)


def mantissas(rng, n) -> np.ndarray:
    """Return random odd integers of 53 bits, of all lengths, and of all ones (every carry propagates)."""
    full = rng.integers(2**52, 2**53, n) | 1
    kinds = [full, full >> rng.integers(0, 53, n) | 1, 2**53 - 1 - 2 * rng.integers(0, 3, n)]
    return np.choose(rng.integers(0, 3, n), kinds).astype(float) * rng.choice([-1.0, 1.0], n)


def anywhere(rng, n, low=-1074, high=970) -> np.ndarray:
    return mantissas(rng, n) * np.ldexp(1.0, rng.integers(low, high, n))


# Ratios of whole numbers


@loop
def ratios(x, out):
    """Round (a + b) c / (d e)."""
    for k in range(out.size):
        ab = bigint.add(bigint.from_float(x[k, 0]), bigint.from_float(x[k, 1]))
        de = bigint.mul(bigint.from_float(x[k, 3]), bigint.from_float(x[k, 4]))
        out[k] = ratio(bigint.mul(ab, bigint.from_float(x[k, 2])), de)


def ratio_cases(rng):
    """Yield middles between two floats (to even, up and down), and their closest neighbours."""
    for size in (1.0, 2.0**-1000, 2.0**900, 3.0, 2.0**53 - 1):
        for m in (rng.integers(2**52, 2**53, 60) * rng.choice([-1.0, 1.0], 60) * size).tolist():
            half = math.ulp(m) / 2
            for tail in (half, -half, half * (1 - ULP), half * (1 + ULP), TINY, 0.0):
                d = rng.choice([1.0, 3.0, -7.0, 2.0**-40, 1 + ULP])
                yield from ((m, tail, d, d, 1.0), (m, tail, d, 3.0, d))
    for k in range(40):  # denormal answers, their middles, and what falls to zero
        yield from product([k * TINY], [0.0], (1.0, -1.0), (2.0, 4.0, 8.0, 3.0, 1e300), [1.0])
        yield from product([(2 * k + 1) * 2.0**-500], (-DOT, DOT), [2.0**-500], [2.0**75], [1.0])
    for s in (1.0, -1.0):
        yield from product([s * MAX], [s * x for x in ENDS], [1.0], [1.0], [1.0])
        yield from product([s * 2.0**1023], (2.0**970, s * 3 * 2.0**970, s * 2.0**1022), [1.0], [1.0], [1.0])
        yield from product([s * MAX, s * TINY], [0.0], (MAX, TINY, 3.0), (MAX, TINY, 2.0), [1.0])
        yield from product([s * 2.0**-1022], [-s * TINY], (0.5, 3.0), (1.0, 2.0), (1.0, 1.5))
    yield 0.0, 0.0, -1.0, 3.0, 1.0


def test_a_ratio_is_rounded_once():
    cases = list(ratio_cases(np.random.default_rng(4)))
    out = np.empty(len(cases))
    ratios(np.array(cases), out)
    for case, got in zip(cases, out.tolist(), strict=True):
        a, b, c, d, e = map(Fraction, case)
        assert same(got, nearest((a + b) * c / (d * e))), case


# Crossing times


@loop
def times(x, out):
    for k in range(out.size):
        out[k] = predicate.time(x[k, 0], x[k, 1], x[k, 2])


@loop
def orders(x, out):
    for k in range(out.size):
        out[k] = predicate.order(x[k, 0], x[k, 1], x[k, 2], x[k, 3], x[k, 4], x[k, 5])


def time_cases(rng):
    for a, b, _, d, _ in ratio_cases(rng):
        yield a, -b, d
    for _ in range(3000):  # (p - o)/d as near the middle of two floats as p and o can bring it
        d = float(rng.integers(2**51, 2**53) | 1)
        p, o = split(int(rng.integers(2**53, 2**54) | 1) * rng.choice([-1, 1]) * Fraction(d))
        scale = 2.0 ** int(rng.integers(-250, 250))
        yield p * scale, -o * scale, math.ldexp(d, int(rng.integers(-250, 200)))
        yield p * scale, -o * scale * (1 + 4 * ULP), -d
    for p, o, d in anywhere(rng, (500, 3)).tolist():
        yield from ((p, o, d), (p, math.nextafter(p, INF), d))
    yield from ((0.0, 0.0, -1.0), (1.0, 1.0, -2.0), (-0.0, 0.0, 3.0), (TINY, 0.0, -MAX), (1.0, TINY, -1.0))
    yield from product([MAX, 1.0, -1.0, 3 * TINY], [0.0, -MAX], [2.0, 4.0, TINY])


def test_a_time_is_rounded_once():
    cases = [c for c in time_cases(np.random.default_rng(5)) if c[2] != 0 and abs(c[1]) < INF]
    out = np.empty(len(cases))
    times(np.array(cases), out)
    for case, got in zip(cases, out.tolist(), strict=True):
        p, o, d = map(Fraction, case)
        assert same(got, nearest((p - o) / d)), case
    times(np.array([*product((INF, -INF), [1.0], (2.0, -TINY))]), out[:4])
    assert out[:4].tolist() == [INF, -INF, -INF, INF]


def order_cases(rng):
    """Yield times equal to the last bit, and one float beside that, at every magnitude."""
    for _ in range(1500):
        a, b, c, d = ((rng.integers(1, 2**26, 4) | 1) * rng.choice([-1, 1], 4)).tolist()
        o1, o2 = rng.choice([0.0, 0.0, 1.0, 2.0**26, 2.0**70], 2)
        scales = rng.choice([0, 0, -300, 300, -520, 490], 2)
        case = np.ldexp([a * b + o1, o1, c * b, a * d + o2, o2, c * d], scales[[0, 0, 1, 0, 0, 1]]).tolist()
        k = int(rng.integers(0, 6))
        yield from (case, [*case[:k], math.nextafter(case[k], rng.choice([INF, -INF])), *case[k + 1 :]])
    for _ in range(500):  # differences are no floats, and their products with d longer than two floats
        d, e = ((rng.integers(2**51, 2**53, 2) | 1) * rng.choice([-1, 1], 2)).tolist()
        k = int(rng.integers(2**30, 2**40) | 1)
        (p, o), (q, r) = split(Fraction(k * d)), split(Fraction(k * e))
        yield from ([p, -o, d, q, -r, e], [p, -o, d, q, math.nextafter(-r, INF), e])
    for p, q, o, r, d, e in anywhere(rng, (500, 6)).tolist():
        yield from ([p, o, d, q, o, d], [p, o, d, p, o, e], [p, o, d, q, r, e], [p, p, d, q, q, e])
    tails = (0.0, 2.0**-60, 2.0**-61, TINY, 1e-310, -(2.0**-60), -TINY)  # o beyond the last bit of p
    yield from product([1.0], tails, (3.0, -3.0), (1.0, 2.0), tails, (3.0, 6.0))
    small = (TINY, 2 * TINY, 3 * TINY)
    yield from product(small, [0.0], (TINY, -1.0), small, [0.0], (2 * TINY, 2.0))
    yield from ([MAX, -MAX, s, x, -x, s] for s in (1.0, -1.0) for x in (MAX, math.nextafter(MAX, 0), 1.0))
    yield from product([2.0**-600], [0.0], [1.0], (2.0**-600, 3 * 2.0**-600), [0.0], (1.0, 1 + ULP, 3.0))


def test_order_is_exact():
    cases = [c for c in order_cases(np.random.default_rng(6)) if c[2] and c[5] and all(map(math.isfinite, c))]
    cases += [[*c[3:], *c[:3]] for c in cases]
    out = np.empty(len(cases), np.int64)
    orders(np.array(cases), out)
    for case, got in zip(cases, out.tolist(), strict=True):
        p1, o1, d1, p2, o2, d2 = map(Fraction, case)
        assert got == sign((p1 - o1) / d1 - (p2 - o2) / d2), case
    assert min(np.bincount(out + 1)) > 500


# Sums in double-double


@loop
def dd_given(x, out):
    """Write rounded values, quotients, products and sums of double-doubles with slack."""
    for k in range(x.shape[0]):
        v = x[k]
        one, other = double_double.DD(v[0], v[1], v[2]), double_double.DD(v[3], v[4], v[5])
        product, total = double_double.mul(one, other), double_double.add(one, other)
        out[k, 0], out[k, 1], out[k, 2] = (
            double_double.certain(one),
            double_double.rounded(one),
            double_double.divide(one, other),
        )
        out[k, 3], out[k, 4], out[k, 5] = product.head, product.tail, product.slack
        out[k, 6], out[k, 7], out[k, 8] = total.head, total.tail, total.slack


def given_cases(rng):
    """Return values with the middle of two floats, or 0, within their slack, at its end or just outside."""
    for head, den in mantissas(rng, (1500, 2)).tolist():
        half = math.ulp(head) / 2 * rng.choice([-1.0, 1.0])
        tail = half * (1 - rng.choice([0.0, 2.0**-20, 2.0**-40, 2.0**-44, 0.5]))
        slack = abs(half - tail) * rng.choice([0.0, 0.5, 0.99, 1.0, 1.01, 2.0, 2.0**30])
        yield from product([head], [tail], [slack], (1.0, 2.0, -0.5), [0.0], [0.0])
        yield from product([head], [0.0], [0.0], [den], [0.0], [abs(den) * rng.choice([0.4, 0.6, 1.0])])
        yield head, tail / 2, abs(head) * rng.choice([0.3, 0.51, 0.7, 1.0, 1.5]), 1.0, 0.0, 0.0
        loose = abs(head) * rng.choice([0.0, 2.0**-101, 2.0**-90])
        den_tail = math.ulp(den) * rng.choice([0.0, 0.25, -0.4])
        den_loose = abs(den) * rng.choice([0, 2.0**-98])
        middle = (Fraction(head) + Fraction(half)) * (Fraction(den) + Fraction(den_tail))
        for beside in (0.0, 2.0**-100, 2.0**-75):
            yield *split(middle * (1 + Fraction(beside))), loose * abs(den), den, den_tail, den_loose
    yield from product((0.0, -0.0, 1.0), [0.0], (0.0, 1.0), (1.0, -1.0, 0.0), [0.0], (0.0, 1.0))


def test_the_slack_of_a_double_double_bounds_the_error():
    cases = np.array(list(given_cases(np.random.default_rng(8))))
    out = np.empty((len(cases), 9))
    dd_given(cases, out)
    for case, (certain, rounded, divided, *sums) in zip(cases.tolist(), out.tolist(), strict=True):
        head, tail, slack, den, den_tail, den_slack = map(Fraction, case)
        ends = head + tail - slack, head + tail + slack
        dens = den + den_tail - den_slack, den + den_tail + den_slack
        assert not certain or ends[0] * ends[1] > 0
        assert math.isnan(rounded) or all(same(rounded, nearest(x)) for x in ends)
        if not math.isnan(divided):
            assert dens[0] * dens[1] > 0
            assert all(same(divided, nearest(x / y)) for x in ends for y in dens)
        products, totals = [x * y for x in ends for y in dens], [x + y for x in ends for y in dens]
        for (high, low, loose), exactly in zip((sums[:3], sums[3:]), (products, totals), strict=True):
            assert all(abs(Fraction(high) + Fraction(low) - x) <= loose for x in exactly)
    assert np.isfinite(out[:, 2]).sum() > 2500


# Boxes, planes and triangles where floats end


POOLS = {
    "huge": [MAX, MAX / 2, 0.75 * MAX, 1e300, 1e308, 1.0, 3.0, 0.0],
    "steep": [MAX, MAX / 3, 1e300, 1.0, 1e-10, 7e-300, 0.0, 2.0**-1000],
    "tiny": [TINY, 3 * TINY, 2.0**-1022, 1e-310, 2.0, 1.0, 0.0, 4.0],
}


def drawn(rng, pool, shape):
    return rng.choice(POOLS[pool], shape) * rng.choice([-1.0, 1.0], shape)


@pytest.mark.parametrize("pool", POOLS)
def test_boxes_at_the_limits_of_float64(pool):
    """Random pairs over a few extreme numbers."""
    rng = np.random.default_rng(10)
    n = 8000
    corners = np.sort(drawn(rng, pool, (2, n, 3)), axis=0)
    low, high = np.sort(np.where(rng.random((2, n)) < 0.5, [[0.0], [INF]], drawn(rng, pool, (2, n))), axis=0)
    pairs = drawn(rng, pool, (n, 3)), drawn(rng, pool, (n, 3)), low, high, *corners
    hits = rb.intersect(rb.Rays(*pairs[:2], t_min=low, t_max=high), rb.Boxes(*corners))
    want = truth.box_rows(*pairs)
    assert_hits(hits, want, np.arange(n))
    assert_normals(hits, want, pairs[1])
    assert 500 < want.hit.sum() < n - 500


@pytest.mark.parametrize("late", [0.0, 2.0**-50])
def test_denormal_times_that_round_apart(late):
    # both differences are rounded, one down to the middle of two denormals, the other up and past it
    k, unit, tail = 2.0**20 + 0.5, 2.0**-74, 0.45 * 2.0**-32
    origin = np.array([-1.25 * tail * unit, -tail * unit, 0.0]) * [1 + late, 1, 1]
    lower, upper = np.array([[1.25 * k * unit, -1.0, -1.0], [1.0, k * unit, 1.0]])
    rows = [np.tile(x, (300, 1)) for x in (origin, np.array([1.25, 1.0, 0.0]) * 2.0**1000, lower, upper)]
    hits = rb.intersect(rb.Rays(*rows[:2]), rb.Boxes(*rows[2:]))
    assert hits.hit.all() == (late == 0)
    assert (hits.t == (INF if late else (k + 0.5) * TINY)).all()


def test_a_denormal_time_of_a_plane_is_rounded_once():
    rays = rb.Rays(np.zeros((300, 3)), np.tile([2.0, 2.0**-60, 0.0], (300, 1)))
    hits = rb.intersect(rays, rb.Planes(np.tile([1.0, 1.0, 0.0], (300, 1)), np.full(300, 3 * TINY)))
    assert set(hits.t.tolist()) == {TINY}  # 3/2 of the least float less a little


@pytest.mark.parametrize(("low", "slow"), [(-520, -400), (-330, -400), (0, -1000), (0, -1060), (-535, 1450)])
def test_planes_and_triangles_at_the_limits_of_float64(low, slow):
    rng = np.random.default_rng(11)
    o, d, n, a, b, c = anywhere(rng, (6, 400, 3), low - 53, low - 40)
    corners = o + d + a, o + d - b, o + d + b - a + 0.01 * c
    d = np.ldexp(d, rng.choice([0, slow], (400, 1)))
    mesh = rb.Mesh(np.stack(corners, axis=1).reshape(-1, 3), np.arange(1200).reshape(-1, 3))
    planes = rb.Planes(n, np.zeros(400)), (n, np.zeros(400)), surfaces.plane
    for surface, rows, oracle in (planes, (mesh, corners, surfaces.triangle_by_signs)):
        hits = rb.intersect(rb.Rays(o, d, t_min=-INF), surface)
        each = zip(*(x.tolist() for x in (o, d, *rows)), strict=True)
        want = [oracle(*x[:2], (-INF, INF), *x[2:]) for x in each]
        np.testing.assert_array_equal(hits.t, [INF if x is None else nearest(x.t) for x in want])
        np.testing.assert_array_equal(hits.hit, [x is not None for x in want])
        np.testing.assert_allclose((hits.normals[hits.hit] ** 2).sum(axis=1), 1, rtol=1e-14)
        assert hits.hit.sum() > 100
