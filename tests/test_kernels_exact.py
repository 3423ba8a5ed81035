"""The arithmetic under every decision, function by function, against Fractions: cases made by hand to be hard."""

import math
from fractions import Fraction

import numba
import numpy as np
import pytest

from raybox.kernels import bigint, dd, eft, exact, powers
from raybox.kernels.jit import FLAGS
from raybox.kernels.plane import ratio

loop = numba.njit(**(FLAGS | {"_nrt": True}))
INF, TINY, MAX = math.inf, 5e-324, 1.7976931348623157e308
ULP = 2.0**-52


def nearest(x: Fraction) -> float:
    """Round once, ties to even; past the largest: infinite; zero has no sign."""
    try:
        return float(x) + 0.0
    except OverflowError:
        return INF if x > 0 else -INF


def split(x: Fraction) -> tuple[float, float]:
    """Give head and tail, as close to x as two floats come."""
    head = float(x)
    return head, float(x - Fraction(head))


def mantissas(rng, n) -> np.ndarray:
    """Draw odd whole numbers of 53 bits, of all lengths, and of all ones (every carry runs)."""
    full = rng.integers(2**52, 2**53, n) | 1
    kinds = [full, full >> rng.integers(0, 53, n) | 1, 2**53 - 1 - 2 * rng.integers(0, 3, n)]
    return np.choose(rng.integers(0, 3, n), kinds).astype(float) * rng.choice([-1.0, 1.0], n)


def columns(rows) -> list[np.ndarray]:
    return [np.array(column) for column in zip(*rows, strict=True)]


# Sums and products of two


@loop
def both(a, b, out):
    for k in range(a.size):
        out[k, 0], out[k, 1] = eft.two_sum(a[k], b[k])
        out[k, 2], out[k, 3] = eft.two_prod(a[k], b[k])
        out[k, 4] = eft.tame(a[k])


def test_sums_and_products_lose_nothing():
    rng = np.random.default_rng(1)
    a, b = (mantissas(rng, 4000) * np.ldexp(1.0, rng.integers(-80, 80, 4000)) for _ in "ab")
    out = np.empty((4000, 5))
    both(a, b, out)
    for x, y, (s, e, p, f, _) in zip(map(Fraction, a), map(Fraction, b), out.tolist(), strict=True):
        assert (s, Fraction(s) + Fraction(e)) == (float(x + y), x + y)
        assert (p, Fraction(p) + Fraction(f)) == (float(x * y), x * y)


def test_tame_is_what_a_product_can_bear():
    a = np.array([0.0, -0.0, 1.0, -3.0, 2.0**299, -(2.0**-299), 2.0**300, 2.0**-300, MAX, TINY, INF, -INF])
    out = np.empty((a.size, 5))
    with np.errstate(all="ignore"):
        both(a, a, out)
    assert out[:, 4].tolist() == [1] * 6 + [0] * 6


# Powers of two


@loop
def powers_of(x, e, out, exponents):
    for k in range(x.size):
        exponents[k] = powers.exponent_of(x[k])
        out[k] = powers.scaled(x[k], e[k])


def test_powers_of_two_are_those_of_the_library():
    rng = np.random.default_rng(2)
    edge = [-2100, -1075, -1074, -1023, -1022, -1001, -1000, -999, 0, 999, 1000, 1001, 1023, 1024, 2100]
    x = np.abs(mantissas(rng, 3000)) * np.ldexp(1.0, rng.integers(-1127, 971, 3000))
    x[:4] = 0.0, TINY, 2.0**-1022, MAX
    e = np.where(rng.random(3000) < 0.5, rng.choice(edge, 3000), rng.integers(-1100, 1100, 3000))
    out, exponents = np.empty(3000), np.empty(3000, np.int64)
    powers_of(x, e, out, exponents)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, np.ldexp(x, e))
    np.testing.assert_array_equal(exponents, np.frexp(x)[1])
    powers_of(-x, e, out, exponents)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, np.ldexp(-x, e))


# Whole numbers


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
    for spread in (0, 3, 33, 60, 200, 900):
        for _ in range(250):
            yield (mantissas(rng, 5) * np.ldexp(1.0, rng.integers(-spread, spread + 1, 5) - 52)).tolist()
    ones, limb = float(2**53 - 1), float(2**32)
    yield from (
        [ones, ones, s, u, v] for s in (1.0, -1.0, 0.0) for u in (ones, limb, 1.0) for v in (0.0, 1.0, -ones)
    )
    yield from ([2.0**k, 1.0, -1.0, 2.0**j, TINY] for k in (32, 64, 96, 900) for j in (-1074, 0, 31, 32, 33))
    yield [3.0, 5.0, -15.0, 1.0, 0.0]
    yield [MAX, MAX, -MAX, MAX, 0.0]
    yield [TINY, TINY, MAX, -MAX, 1.0]
    yield from (
        [a * limb, limb, b, c * limb, d]
        for a in (1.0, -1.0)
        for b in (1.0, -1.0)
        for c in (1.0, 2.0)
        for d in (0.0, 1.0)
    )


def test_whole_numbers_are_whole():
    limbs = np.zeros(200, np.uint64)
    for case in big_cases(np.random.default_rng(3)):
        sign, size, exponent, top, top_exponent = big_value(np.array(case), limbs)
        a, b, c, d, e = map(Fraction, case)
        want = a * b + c * d - e
        assert (limbs[:size] < 2**32).all()
        value = sum(int(w) << (32 * k) for k, w in enumerate(limbs[:size]))
        assert sign == (want > 0) - (want < 0)
        assert sign == 0 or sign * value * Fraction(2) ** exponent == want
        lead = Fraction(top) * Fraction(2) ** top_exponent
        assert abs(lead - want) <= abs(want) / 2**50
        assert sign == 0 or 2.0**30 <= abs(top) < 2.0**97


# A ratio, rounded once


@loop
def ratios(a, b, c, d, e, out):
    """Round (a + b) c / (d e)."""
    for k in range(a.size):
        num = bigint.mul(
            bigint.add(bigint.from_float(a[k]), bigint.from_float(b[k])), bigint.from_float(c[k])
        )
        out[k] = ratio(num, bigint.mul(bigint.from_float(d[k]), bigint.from_float(e[k])))


def ratio_cases(rng):
    """Middles between two floats (to even, up and down), and as near beside them as two floats can be."""
    for size in (1.0, 2.0**-1000, 2.0**900, 3.0, 2.0**53 - 1):
        for _ in range(60):
            m = float(rng.integers(2**52, 2**53)) * rng.choice([-1.0, 1.0]) * size
            half = math.ulp(m) / 2
            for tail in (half, -half, half * (1 - ULP), half * (1 + ULP), TINY, 0.0):
                d = rng.choice([1.0, 3.0, -7.0, 2.0**-40, 1 + ULP])
                yield m, tail, d, d, 1.0
                yield m, tail, d, 3.0, d
    for k in range(40):  # denormal answers, their middles, and what falls to zero
        yield from ((k * TINY, 0.0, s, q, 1.0) for s in (1.0, -1.0) for q in (2.0, 4.0, 8.0, 3.0, 1e300))
        yield (2 * k + 1) * 2.0**-500, 2.0**-560, 2.0**-500, 2.0**75, 1.0
        yield (2 * k + 1) * 2.0**-500, -(2.0**-560), 2.0**-500, 2.0**75, 1.0
    for s in (1.0, -1.0):  # the end of the range: half a step past the largest is infinite
        yield from (
            (s * MAX, s * t, 1.0, 1.0, 1.0) for t in (2.0**969, 2.0**970, np.nextafter(2.0**970, 0), 2.0**971)
        )
        yield from ((s * 2.0**1023, s * m, 1.0, 1.0, 1.0) for m in (2.0**970, 3 * 2.0**970, 2.0**969))
        yield from (
            (s * MAX, 0.0, MAX, TINY, 1.0),
            (s * TINY, 0.0, TINY, MAX, 1.0),
            (s * MAX, 0.0, 3.0, 2.0, 1.0),
        )
        yield s * 2.0**-1022, -s * TINY / 1, 0.5, 1.0, 1.0
        yield s * 2.0**-1022, -s * TINY, 3.0, 2.0, 1.5
    yield 0.0, 0.0, -1.0, 3.0, 1.0


def test_a_ratio_is_rounded_once():
    cases = list(ratio_cases(np.random.default_rng(4)))
    out = np.empty(len(cases))
    ratios(*columns(cases), out)
    for case, got in zip(cases, out.tolist(), strict=True):
        a, b, c, d, e = map(Fraction, case)
        want = nearest((a + b) * c / (d * e))
        assert (got, math.copysign(1, got)) == (want, math.copysign(1, want)), case


# Crossing times


@loop
def times(p, o, d, out):
    for k in range(p.size):
        out[k] = exact.time(p[k], o[k], d[k])


@loop
def orders(x, out):
    for k in range(x.shape[0]):
        out[k] = exact.order(x[k, 0], x[k, 1], x[k, 2], x[k, 3], x[k, 4], x[k, 5])


def time_cases(rng):
    for a, b, _, d, _ in ratio_cases(rng):
        yield a, -b, d
    for _ in range(
        3000
    ):  # (p - o)/d as near a middle of two floats as p and o can bring it, or a tenth of that
        d = float(rng.integers(2**51, 2**53) | 1)
        middle = Fraction(int(rng.integers(2**53, 2**54) | 1)) * int(rng.choice([-1, 1]))
        p, o = split(middle * Fraction(d))
        shift = int(rng.integers(-250, 250))
        yield math.ldexp(p, shift), math.ldexp(-o, shift), math.ldexp(d, int(rng.integers(-250, 200)))
        yield math.ldexp(p, shift), -math.ldexp(o, shift) * (1 + 4 * ULP), -d
    for _ in range(500):
        p, o, d = (mantissas(rng, 3) * np.ldexp(1.0, rng.integers(-1074, 971, 3))).tolist()
        yield p, o, d
        yield p, math.nextafter(p, INF), d
    yield from ((0.0, 0.0, -1.0), (1.0, 1.0, -2.0), (-0.0, 0.0, 3.0), (TINY, 0.0, -MAX), (1.0, TINY, -1.0))
    yield from ((MAX, -MAX, 2.0), (MAX, -MAX, 4.0), (1.0, 0.0, TINY), (-1.0, 0.0, TINY), (3 * TINY, 0.0, 2.0))


def test_a_time_is_rounded_once():
    cases = [
        c for c in time_cases(np.random.default_rng(5)) if c[2] != 0 and math.isfinite(sum(map(abs, c[1:])))
    ]
    out = np.empty(len(cases))
    times(*columns(cases), out)
    for case, got in zip(cases, out.tolist(), strict=True):
        p, o, d = map(Fraction, case)
        want = nearest((p - o) / d)
        assert (got, math.copysign(1, got)) == (want, math.copysign(1, want)), case
    infinite = [(s * INF, 1.0, d) for s in (1, -1) for d in (2.0, -TINY)]
    out = np.empty(4)
    times(*columns(infinite), out)
    assert out.tolist() == [INF, -INF, -INF, INF]


def order_cases(rng):
    """Times equal to the last bit, and one step of one number beside that, at every magnitude."""
    for _ in range(1500):
        a, b, c, d = (float(rng.integers(1, 2**26) | 1) * int(rng.choice([-1, 1])) for _ in "abcd")
        o1, o2 = (float(rng.choice([0.0, 0.0, 1.0, 2.0**26, 2.0**70])) for _ in "12")
        scales = rng.choice([0, 0, -300, 300, -520, 490], 3)
        case = [a * b + o1, o1, c * b, a * d + o2, o2, c * d]
        case = [math.ldexp(x, int(scales[k])) for x, k in zip(case, (0, 0, 2, 1, 1, 2), strict=True)]
        if scales[0] == scales[1] or rng.random() < 0.2:
            yield case
            k = int(rng.integers(0, 6))
            yield [*case[:k], math.nextafter(case[k], rng.choice([INF, -INF])), *case[k + 1 :]]
    for _ in range(500):
        p, q, o, r = (mantissas(rng, 4) * np.ldexp(1.0, rng.integers(-1074, 970, 4))).tolist()
        d, e = (mantissas(rng, 2) * np.ldexp(1.0, rng.integers(-1074, 970, 2))).tolist()
        yield from ([p, o, d, q, o, d], [p, o, d, p, o, e], [p, o, d, q, r, e], [p, p, d, q, q, e])
    for s in (1.0, -1.0):  # o beyond the last bit of p: the difference has a tail
        yield from (
            [1.0, s * t, 3.0, 1.0, s * u, 3.0 * w]
            for t in (0.0, 2.0**-60, TINY)
            for u in (0.0, 2.0**-61)
            for w in (1, 2)
        )
        yield from (
            [1.0, s * t, 3.0, 2.0, s * 2 * u, 6.0]
            for t in (2.0**-60, TINY, 1e-310)
            for u in (2.0**-60, TINY, 2.0**-59)
        )
        yield from ([TINY, 0.0, s, k * TINY, 0.0, s * 2] for k in (1, 2, 3))
        yield from ([TINY, 0.0, s * TINY, 2 * TINY, 0.0, s * k * TINY] for k in (1, 2, 3))
        yield from ([MAX, -MAX, s, x, -x, s] for x in (MAX, math.nextafter(MAX, 0), 1.0))
        yield from (
            [2.0**-600 * a, 0.0, s, 2.0**-600 * b, 0.0, s * c]
            for a in (1, 3)
            for b in (1, 3)
            for c in (1 + ULP, 3.0)
        )


def test_order_is_exact():
    cases = [c for c in order_cases(np.random.default_rng(6)) if c[2] and c[5] and all(map(math.isfinite, c))]
    cases += [[*c[3:], *c[:3]] for c in cases]
    out = np.empty(len(cases), np.int64)
    orders(np.array(cases), out)
    seen = [0, 0, 0]
    for case, got in zip(cases, out.tolist(), strict=True):
        p1, o1, d1, p2, o2, d2 = map(Fraction, case)
        one, two = (p1 - o1) / d1, (p2 - o2) / d2
        assert got == (one > two) - (one < two), case
        seen[got] += 1
    assert min(seen) > 500, seen


@pytest.mark.parametrize("s", [1.0, -1.0])
def test_order_of_infinite_planes(s):
    cases = [
        [INF, 1.0, s, 5.0, 1.0, 2.0],
        [INF, 1.0, s, INF, 2.0, 3 * s],
        [INF, 1.0, s, -INF, 2.0, s],
        [INF, 1.0, s, INF, 2.0, -s],
    ]
    cases += [
        [-INF, 1.0, s, MAX, -MAX, TINY],
        [INF, 1.0, s, INF, 1.0, s],
        [-INF, 1.0, s, 3.0, 1.0, s],
        [5.0, 1.0, 2.0, INF, 1.0, s],
    ]
    out = np.empty(8, np.int64)
    orders(np.array(cases), out)
    assert out.tolist() == [s, 0, s, s, -s, 0, -s, -s]


# Sums in double-double


@loop
def dd_chains(x, out):
    for k in range(x.shape[0]):
        v = x[k]
        ab = dd.dot((v[0], v[1], v[2]), (v[3], v[4], v[5]))
        cd = dd.dot((v[6], v[7], v[8]), (v[9], v[10], v[11]))
        ef = dd.dot((v[12], v[13], v[14]), (v[15], v[16], v[17]))
        value = dd.sub(dd.mul(ab, cd), ef)
        out[k, 0], out[k, 1], out[k, 2], out[k, 3] = value.head, value.tail, value.slack, dd.certain(value)
        out[k, 4] = dd.rounded(value)
        out[k, 5] = dd.divide(value, cd)


@loop
def dd_given(x, out):
    """Round, and divide, double-doubles that are given with their slack."""
    for k in range(x.shape[0]):
        v = x[k]
        one, other = dd.DD(v[0], v[1], v[2]), dd.DD(v[3], v[4], v[5])
        out[k, 0], out[k, 1], out[k, 2] = dd.certain(one), dd.rounded(one), dd.divide(one, other)


def fractions_of(row):
    return [Fraction(v) for v in row]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def test_the_slack_of_sums_holds_what_they_lost():
    rng = np.random.default_rng(7)
    x = mantissas(rng, (2500, 18)) * np.ldexp(1.0, rng.integers(-60, 8, (2500, 18)))
    x[:500, 12:15], x[:500, 15:] = x[:500, :3], x[:500, 3:6]  # with c.d = 1: all cancels but for a last bit
    x[:500, 6:12] = [1.0, 0, 0, 1.0, 0, 0]
    x[:250, 17] = np.nextafter(x[:250, 17], INF)
    x[500:1000, 3:6] = np.stack([x[500:1000, 1], -x[500:1000, 0], x[500:1000, 5] * 2.0**-60], axis=1)
    out = np.empty((2500, 6))
    dd_chains(x, out)
    sure = lost = 0
    for row, (head, tail, slack, certain, rounded, divided) in zip(
        map(fractions_of, x.tolist()), out.tolist(), strict=True
    ):
        a, b, c, d, e, f = (row[k : k + 3] for k in range(0, 18, 3))
        want = dot(a, b) * dot(c, d) - dot(e, f)
        error = abs(Fraction(head) + Fraction(tail) - want)
        size = dot(map(abs, a), map(abs, b)) * dot(map(abs, c), map(abs, d)) + dot(map(abs, e), map(abs, f))
        assert error <= slack
        assert slack <= size / 2**95
        lost = max(lost, error / size)
        assert not certain or (head > 0) - (head < 0) == (want > 0) - (want < 0)
        assert math.isnan(rounded) or rounded == nearest(want)
        assert math.isnan(divided) or divided == nearest(want / dot(c, d))
        sure += not (math.isnan(rounded) or math.isnan(divided))
    assert sure > 1500
    assert lost > 2.0**-108


def given_cases(rng):
    """Values with the middle of two floats, or zero, just inside of their slack, at its end, or just outside."""
    for _ in range(1500):
        head = float(mantissas(rng, ()))
        half = math.ulp(head) / 2 * rng.choice([-1.0, 1.0])
        tail = half * (1 - rng.choice([0.0, 2.0**-20, 2.0**-40, 2.0**-52, 0.5]))
        room = abs(half - tail)
        slack = room * rng.choice([0.0, 0.5, 0.99, 1.0, 1.01, 2.0, 2.0**30])
        yield head, tail, slack, 1.0, 0.0, 0.0
        yield head, tail, slack, rng.choice([2.0, -0.5]), 0.0, 0.0
        yield head, tail * 0.5, abs(head) * rng.choice([0.3, 0.51, 0.7, 1.0, 1.5]), 1.0, 0.0, 0.0
        den = float(mantissas(rng, ()))
        middle = Fraction(head) + Fraction(half)
        for beside in (0.0, 2.0**-100, 2.0**-75):
            num, num_tail = split(middle * Fraction(den) * (1 + Fraction(beside)))
            loose = abs(num) * rng.choice([0.0, 2.0**-101, 2.0**-90])
            d_tail = math.ulp(den) * rng.choice([0.0, 0.25, -0.4])
            yield num, num_tail, loose, den, 0.0, 0.0
            yield (
                *split(middle * (Fraction(den) + Fraction(d_tail))),
                loose,
                den,
                d_tail,
                abs(den) * rng.choice([0.0, 2.0**-98]),
            )
        yield head, 0.0, 0.0, den, 0.0, abs(den) * rng.choice([0.4, 0.6, 1.0])
    yield from ((0.0, 0.0, s, 1.0, 0.0, 0.0) for s in (0.0, 1.0))
    yield from ((1.0, 0.0, 0.0, 0.0, 0.0, s) for s in (0.0, 1.0))
    yield from ((-0.0, 0.0, 0.0, d, 0.0, 0.0) for d in (1.0, -1.0))


def test_a_double_double_is_rounded_only_where_its_slack_allows():
    cases = np.array(list(given_cases(np.random.default_rng(8))))
    out = np.empty((len(cases), 3))
    dd_given(cases, out)
    sure = 0
    for case, (certain, rounded, divided) in zip(cases.tolist(), out.tolist(), strict=True):
        head, tail, slack, den, den_tail, den_slack = map(Fraction, case)
        low, up = head + tail - slack, head + tail + slack
        assert not certain or low * up > 0
        if not math.isnan(rounded):
            assert rounded == nearest(low) == nearest(up)
            assert rounded != 0 or math.copysign(1, rounded) == 1
        ends = [den + den_tail - den_slack, den + den_tail + den_slack]
        if not math.isnan(divided):
            assert ends[0] * ends[1] > 0
            assert {divided} == {nearest(x / y) for x in (low, up) for y in ends}
            assert divided != 0 or math.copysign(1, divided) == 1
            sure += 1
    assert sure > 3000


@loop
def units(x, out):
    for k in range(x.shape[0]):
        out[k, 0], out[k, 1], out[k, 2] = dd.unit((x[k, 0], x[k, 1], x[k, 2]))


def test_unit_vectors_have_length_one_at_every_magnitude():
    rng = np.random.default_rng(9)
    x = rng.uniform(-1, 1, (500, 3)) * np.ldexp(1.0, rng.integers(-1000, 1023, (500, 1)))
    x[0], x[1], x[2] = [MAX, -MAX, MAX], [TINY, 0, -TINY], [0.0, 0, 3]
    out = np.empty((500, 3))
    units(x, out)
    np.testing.assert_allclose((out * out).sum(axis=1), 1, rtol=1e-15)
    big = x / np.abs(x).max(axis=1, keepdims=True)
    np.testing.assert_allclose(out, big / np.linalg.norm(big, axis=1, keepdims=True), rtol=1e-15)
