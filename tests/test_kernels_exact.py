"""The arithmetic under every decision against Fractions, function by function: cases made to be hard."""

import math
from fractions import Fraction
from itertools import product

import numba
import numpy as np

from raybox.kernels import bigint, dd, eft, exact, powers
from raybox.kernels.jit import FLAGS
from raybox.kernels.plane import ratio

loop = numba.njit(**(FLAGS | {"_nrt": True}))
INF, TINY, MAX, ULP, DOT = math.inf, 5e-324, 1.7976931348623157e308, 2.0**-52, 2.0**-560
ENDS = (2.0**969, 2.0**970, np.nextafter(2.0**970, 0), 2.0**971)  # half a step past the largest float


def nearest(x: Fraction) -> float:
    """Round once, ties to even; past the largest: infinite; zero has no sign."""
    try:
        return float(x) + 0.0
    except OverflowError:
        return INF if x > 0 else -INF


def split(x: Fraction) -> tuple[float, float]:
    """Give head and tail, as close to x as two floats come."""
    return float(x), float(x - Fraction(float(x)))


def sign(x) -> int:
    return (x > 0) - (x < 0)


def same(got: float, want: float) -> bool:
    return got == want and math.copysign(1, got) == math.copysign(1, want)


def mantissas(rng, n) -> np.ndarray:
    """Draw odd whole numbers of 53 bits, of all lengths, and of all ones (every carry runs)."""
    full = rng.integers(2**52, 2**53, n) | 1
    kinds = [full, full >> rng.integers(0, 53, n) | 1, 2**53 - 1 - 2 * rng.integers(0, 3, n)]
    return np.choose(rng.integers(0, 3, n), kinds).astype(float) * rng.choice([-1.0, 1.0], n)


def anywhere(rng, n, low=-1074, high=970) -> np.ndarray:
    return mantissas(rng, n) * np.ldexp(1.0, rng.integers(low, high, n))


# Sums and products of two, powers of two


@loop
def steps(a, b, e, out):
    for k in range(a.size):
        out[k, 0], out[k, 1] = eft.two_sum(a[k], b[k])
        out[k, 2], out[k, 3] = eft.two_prod(a[k], b[k])
        out[k, 4], out[k, 5] = eft.tame(a[k]), powers.exponent_of(abs(a[k]))
        out[k, 6] = powers.scaled(a[k], e[k])


def test_sums_and_products_lose_nothing():
    rng = np.random.default_rng(1)
    a, b = anywhere(rng, (2, 4000), -80, 80)
    out = np.empty((4000, 7))
    steps(a, b, np.zeros(4000, int), out)
    for x, y, (s, e, p, f, *_) in zip(map(Fraction, a), map(Fraction, b), out.tolist(), strict=True):
        assert (s, Fraction(s) + Fraction(e)) == (float(x + y), x + y)
        assert (p, Fraction(p) + Fraction(f)) == (float(x * y), x * y)


def test_powers_of_two_are_those_of_the_library_and_tame_is_what_a_product_can_bear():
    rng = np.random.default_rng(2)
    x, out = anywhere(rng, 3000, -1127, 971), np.empty((3000, 7))
    tame, wild = [0.0, -0.0, 1.0, -3.0, 2.0**299, -(2.0**-299)], [2.0**300, 2.0**-300, MAX, TINY, 2.0**-1022]
    x[:11] = tame + wild
    edge = [-2100, -1075, -1074, -1023, -1022, -1001, -1000, -999, 0, 999, 1000, 1001, 1023, 1024, 2100]
    e = np.where(rng.random(3000) < 0.5, rng.choice(edge, 3000), rng.integers(-1100, 1100, 3000))
    steps(x, x, e, out)
    assert out[:11, 4].tolist() == [1] * 6 + [0] * 5
    np.testing.assert_array_equal(out[:, 5], np.frexp(x)[1])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out[:, 6], np.ldexp(x, e))


# Whole numbers, and their ratio rounded once


@loop
def big_value(x, limbs):
    """Write a*b + c*d - e and its leading part."""
    ab = bigint.mul(bigint.from_float(x[0]), bigint.from_float(x[1]))
    cd = bigint.mul(bigint.from_float(x[2]), bigint.from_float(x[3]))
    big = bigint.sub(bigint.add(ab, cd), bigint.from_float(x[4]))
    top, exponent = bigint.leading(big)
    for k in range(big.limbs.size):
        limbs[k] = big.limbs[k]
    return big.sign, big.limbs.size, big.exponent, top, exponent


def big_cases(rng):
    for spread in (1, 3, 33, 60, 200, 900):
        yield from anywhere(rng, (250, 5), -spread - 52, spread - 52).tolist()
    ones, limb = float(2**53 - 1), float(2**32)
    yield from product([ones], [ones], (1.0, -1.0, 0.0), (ones, limb, 1.0), (0.0, 1.0, -ones))
    yield from product((2.0**32, 2.0**64, 2.0**900), [1.0], [-1.0], (TINY, 1.0, 2.0**31, limb), [TINY])
    yield from product((limb, -limb), [limb], (1.0, -1.0), (limb, 2 * limb), (0.0, 1.0))
    yield from ([3.0, 5.0, -15.0, 1.0, 0.0], [MAX, MAX, -MAX, MAX, 0.0], [TINY, TINY, MAX, -MAX, 1.0])


def test_whole_numbers_are_whole():
    limbs = np.zeros(200, np.uint64)
    for case in big_cases(np.random.default_rng(3)):
        got, size, exponent, top, top_exponent = big_value(np.array(case), limbs)
        a, b, c, d, e = map(Fraction, case)
        want = a * b + c * d - e
        assert (limbs[:size] < 2**32).all()
        value = sum(int(w) << (32 * k) for k, w in enumerate(limbs[:size]))
        assert got == sign(want)
        assert got == 0 or got * value * Fraction(2) ** exponent == want
        assert abs(Fraction(top) * Fraction(2) ** top_exponent - want) <= abs(want) / 2**50
        assert got == 0 or 2.0**30 <= abs(top) < 2.0**97


@loop
def ratios(x, out):
    """Round (a + b) c / (d e)."""
    for k in range(out.size):
        ab = bigint.add(bigint.from_float(x[k, 0]), bigint.from_float(x[k, 1]))
        de = bigint.mul(bigint.from_float(x[k, 3]), bigint.from_float(x[k, 4]))
        out[k] = ratio(bigint.mul(ab, bigint.from_float(x[k, 2])), de)


def ratio_cases(rng):
    """Middles between two floats (to even, up and down), and as near beside them as two floats can be."""
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
        out[k] = exact.time(x[k, 0], x[k, 1], x[k, 2])


@loop
def orders(x, out):
    for k in range(out.size):
        out[k] = exact.order(x[k, 0], x[k, 1], x[k, 2], x[k, 3], x[k, 4], x[k, 5])


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
    """Times equal to the last bit, and one step of one number beside that, at every magnitude."""
    for _ in range(1500):
        a, b, c, d = ((rng.integers(1, 2**26, 4) | 1) * rng.choice([-1, 1], 4)).tolist()
        o1, o2 = rng.choice([0.0, 0.0, 1.0, 2.0**26, 2.0**70], 2)
        scales = rng.choice([0, 0, -300, 300, -520, 490], 2)
        case = np.ldexp([a * b + o1, o1, c * b, a * d + o2, o2, c * d], scales[[0, 0, 1, 0, 0, 1]]).tolist()
        k = int(rng.integers(0, 6))
        yield from (case, [*case[:k], math.nextafter(case[k], rng.choice([INF, -INF])), *case[k + 1 :]])
    for p, q, o, r, d, e in anywhere(rng, (500, 6)).tolist():
        yield from ([p, o, d, q, o, d], [p, o, d, p, o, e], [p, o, d, q, r, e], [p, p, d, q, q, e])
    tails = (0.0, 2.0**-60, 2.0**-61, TINY, 1e-310, -(2.0**-60), -TINY)  # o beyond the last bit of p
    yield from product([1.0], tails, (3.0, -3.0), (1.0, 2.0), tails, (3.0, 6.0))
    few = (TINY, 2 * TINY, 3 * TINY)
    yield from product(few, [0.0], (TINY, -1.0), few, [0.0], (2 * TINY, 2.0))
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


def test_order_of_infinite_planes():
    s, out = 3.0, np.empty(12, np.int64)
    up, down = [INF, 1.0, s], [-INF, 1.0, s]
    others = ([5.0, 1.0, 2.0], [INF, 2.0, 3.0], [-INF, 2.0, 1.0], [INF, 2.0, -1.0], up, [MAX, -MAX, TINY])
    orders(np.array([up + x for x in others] + [down + x for x in others]), out)
    assert out.tolist() == [1, 0, 1, 1, 0, 1, -1, -1, 0, 0, -1, -1]
    orders(np.array([[*x, *y[:2], -y[2]] for x, y in product(others, (up, down))]), out)
    assert out.tolist() == [1, -1, 1, 0, 0, -1, 0, -1, 1, 0, 1, -1]


# Sums in double-double


@loop
def dd_chains(x, out):
    """Compute (a.b) (c.d) - e.f of six vectors; round it, and its ratio to c.d."""
    for k in range(x.shape[0]):
        v = x[k]
        ab = dd.dot((v[0], v[1], v[2]), (v[3], v[4], v[5]))
        cd = dd.dot((v[6], v[7], v[8]), (v[9], v[10], v[11]))
        value = dd.sub(dd.mul(ab, cd), dd.dot((v[12], v[13], v[14]), (v[15], v[16], v[17])))
        out[k, 0], out[k, 1], out[k, 2], out[k, 3] = value.head, value.tail, value.slack, dd.certain(value)
        out[k, 4], out[k, 5] = dd.rounded(value), dd.divide(value, cd)


@loop
def dd_given(x, out):
    """Round, and divide, double-doubles that are given with their slack; scale the heads to a unit vector."""
    for k in range(x.shape[0]):
        v = x[k]
        one, other = dd.DD(v[0], v[1], v[2]), dd.DD(v[3], v[4], v[5])
        out[k, 0], out[k, 1], out[k, 2] = dd.certain(one), dd.rounded(one), dd.divide(one, other)
        out[k, 3], out[k, 4], out[k, 5] = dd.unit((v[0], v[3], v[3]))


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def test_the_slack_of_sums_holds_what_they_lost():
    rng = np.random.default_rng(7)
    x = anywhere(rng, (2500, 18), -60, 8)
    x[:500, 12:] = x[:500, :6]  # with c.d = 1 all cancels, but for a last bit
    x[:500, 6:12] = [1.0, 0, 0, 1.0, 0, 0]
    x[:250, 17] = np.nextafter(x[:250, 17], INF)
    x[500:1000, 3:6] = np.stack([x[500:1000, 1], -x[500:1000, 0], x[500:1000, 5] * 2.0**-60], axis=1)
    out, most = np.empty((2500, 6)), 0
    dd_chains(x, out)
    for row, (head, tail, slack, certain, rounded, divided) in zip(x.tolist(), out.tolist(), strict=True):
        a, b, c, d, e, f = np.array([*map(Fraction, row)]).reshape(6, 3)
        want, size = a @ b * (c @ d) - e @ f, abs(a) @ abs(b) * (abs(c) @ abs(d)) + abs(e) @ abs(f)
        error = abs(Fraction(head) + Fraction(tail) - want)
        most = max(most, error / size)
        assert error <= slack <= size / 2**95
        assert not certain or sign(head) == sign(want)
        assert math.isnan(rounded) or rounded == nearest(want)
        assert math.isnan(divided) or divided == nearest(want / (c @ d))
    assert np.isfinite(out).all(axis=1).sum() > 1500
    assert most > 2.0**-108


def given_cases(rng):
    """Values with the middle of two floats, or zero, inside of their slack, at its end, or just outside."""
    for head, den in mantissas(rng, (1500, 2)).tolist():
        half = math.ulp(head) / 2 * rng.choice([-1.0, 1.0])
        tail = half * (1 - rng.choice([0.0, 2.0**-20, 2.0**-40, 2.0**-44, 0.5]))
        slack = abs(half - tail) * rng.choice([0.0, 0.5, 0.99, 1.0, 1.01, 2.0, 2.0**30])
        yield from product([head], [tail], [slack], (1.0, 2.0, -0.5), [0.0], [0.0])
        yield from product([head], [0.0], [0.0], [den], [0.0], [abs(den) * rng.choice([0.4, 0.6, 1.0])])
        yield head, tail / 2, abs(head) * rng.choice([0.3, 0.51, 0.7, 1.0, 1.5]), 1.0, 0.0, 0.0
        loose = abs(head) * rng.choice([0.0, 2.0**-101, 2.0**-90])
        den_tail, den_loose = (
            math.ulp(den) * rng.choice([0.0, 0.25, -0.4]),
            abs(den) * rng.choice([0, 2.0**-98]),
        )
        middle = (Fraction(head) + Fraction(half)) * (Fraction(den) + Fraction(den_tail))
        for beside in (0.0, 2.0**-100, 2.0**-75):
            yield *split(middle * (1 + Fraction(beside))), loose * abs(den), den, den_tail, den_loose
    yield from product((0.0, -0.0, 1.0), [0.0], (0.0, 1.0), (1.0, -1.0, 0.0), [0.0], (0.0, 1.0))


def test_a_double_double_is_rounded_only_where_its_slack_allows():
    cases = np.array(list(given_cases(np.random.default_rng(8))))
    out = np.empty((len(cases), 6))
    dd_given(cases, out)
    for case, (certain, rounded, divided, *_) in zip(cases.tolist(), out.tolist(), strict=True):
        head, tail, slack, den, den_tail, den_slack = map(Fraction, case)
        ends = head + tail - slack, head + tail + slack
        dens = den + den_tail - den_slack, den + den_tail + den_slack
        assert not certain or ends[0] * ends[1] > 0
        assert math.isnan(rounded) or all(same(rounded, nearest(x)) for x in ends)
        if not math.isnan(divided):
            assert dens[0] * dens[1] > 0
            assert all(same(divided, nearest(x / y)) for x in ends for y in dens)
    assert np.isfinite(out[:, 2]).sum() > 2500


def test_unit_vectors_have_length_one_at_every_magnitude():
    x = np.zeros((500, 6))
    x[:, [0, 3]] = anywhere(np.random.default_rng(9), (500, 1), -1074, 960) * [1.0, -0.75]
    x[:4, [0, 3]] = [[MAX, -MAX], [TINY, TINY], [3.0, 0.0], [0.0, 0.0]]
    out = np.empty((500, 6))
    dd_given(x, out)
    np.testing.assert_allclose((out[:, 3:] ** 2).sum(axis=1), np.arange(500) != 3, rtol=1e-15)
    np.testing.assert_allclose(
        out[4:, 3:] * math.sqrt(2.125), np.sign(x[4:, :1]) * [1, -0.75, -0.75], rtol=1e-9
    )
