"""`Rays.segments` with a margin: m = margin / length, rounded once, by whole numbers."""

from fractions import Fraction
from math import inf, nan, nextafter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raybox as rb
from raybox.geometry import segment_margins

LARGEST = 1.7976931348623157e308
DENORMAL = 5e-324
numbers = st.one_of(
    st.floats(-100, 100),
    st.integers(-6, 6).map(float),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([DENORMAL, -DENORMAL, 1e-300, 1e300, 2.0**-1022, LARGEST / 4]),
)
vectors = st.integers(2, 3).flatmap(
    lambda dims: st.tuples(*[st.lists(numbers, min_size=dims, max_size=dims)] * 2)
)


def is_rounded_once(m, margin, square):
    """Return whether m is the float nearest to margin / sqrt(square), ties to even, by squares alone."""
    below, above = nextafter(m, -inf), nextafter(m, inf)
    middles = [(Fraction(m) + Fraction(x)) / 2 for x in (below, above) if abs(x) != inf]
    even = int(np.float64(m).view(np.int64)) % 2 == 0
    ratio = Fraction(margin) ** 2 / square
    if m > 0 and not (middles[0] ** 2 < ratio or (even and middles[0] ** 2 == ratio)):
        return False
    return ratio < middles[1] ** 2 or (even and middles[1] ** 2 == ratio)


def square_of(direction):
    return sum(Fraction(x) ** 2 for x in direction.tolist())


def check_range(rays, margin):
    """Check the range of one segment against its definition; return what it is."""
    square, low, high = square_of(rays.directions), float(rays.t_min), float(rays.t_max)
    if square < 4 * Fraction(margin) ** 2:
        assert (low, high) == (inf, inf)
        return "short"
    if not square:
        assert (low, high) == (0, 1)
        return "point"
    assert is_rounded_once(low, margin, square)
    assert high == 1.0 - low >= low
    return "two margins" if square == 4 * Fraction(margin) ** 2 else "left"


@pytest.mark.core
@settings(max_examples=400, deadline=None)
@given(vectors, st.one_of(numbers.map(abs), st.floats(0, 0.6)), st.booleans())
def test_margins_are_rounded_once(ends, margin, relative):
    start, end = (np.array(one) for one in ends)
    with np.errstate(over="ignore"):
        length = float(np.hypot.reduce(end - start))
    if length == inf:
        return
    if relative and margin < 1:
        margin = margin * length
    check_range(rb.Rays.segments(start, end, margin=margin), margin)


def hard_cases():
    """Yield directions and margins: of whole lengths, ties, near ties, and at the ends of floats."""
    triples = [(3.0, 4.0, 5.0), (5.0, 12.0, 13.0), (8.0, 15.0, 17.0), (1.0, 0.0, 1.0)]
    for x, y, length in triples:
        for scale in (1.0, 2.0**-1060, 2.0**1000, 3.0, 1e-5):
            way = [x * scale, y * scale]
            whole = length * scale
            for share in (0.5, 0.25, 0.1, 1 / 3, 1e-9, 0.0):
                margin = whole * share
                yield from ((way, near) for near in (margin, nextafter(margin, inf), nextafter(margin, 0)))
            yield way, DENORMAL
    # a margin of 54 bits divided by 4 is a tie of denormal quotients
    for margin in (3 * DENORMAL, 5 * DENORMAL, DENORMAL, 2 * DENORMAL):
        for length in (2.0, 4.0, 8.0, 6.0):
            yield [length, 0.0], margin
            yield [0.0, 0.0, -length], margin
    yield [LARGEST, LARGEST, LARGEST], LARGEST / 3
    yield [DENORMAL, DENORMAL, 0.0], DENORMAL
    yield [DENORMAL, 0.0], DENORMAL
    yield [0.0, 0.0], 1.0
    yield [0.0, 0.0], 0.0


@pytest.mark.core
def test_margins_of_hard_cases():
    found, ties = [], 0
    for way, margin in hard_cases():
        rays = rb.Rays.segments(np.zeros(len(way)), way, margin=margin)
        found.append(check_range(rays, margin))
        square, doubled = square_of(rays.directions), Fraction(float(rays.t_min)) if rays.t_min < 1 else 0
        ties += bool(square and doubled and margin < 1e-320 and doubled**2 * square != Fraction(margin) ** 2)
    for kind, least in (("short", 10), ("two margins", 5), ("left", 50), ("point", 1)):
        assert found.count(kind) >= least
    assert ties > 5


def test_many_quotients_are_proven_in_floats_and_all_are_right(monkeypatch):
    rng, exact, slow = np.random.default_rng(3), segment_margins._exact_quotient, []
    monkeypatch.setattr(segment_margins, "_exact_quotient", lambda *one: slow.append(one) or exact(*one))
    monkeypatch.setattr(segment_margins, "_CHUNK", 1000)
    ways = rng.normal(size=(4000, 3)) * 10.0 ** rng.integers(-30, 30, (4000, 1))
    ways[:1000] = np.rint(ways[:1000])
    margins = rng.random(4000) * np.linalg.norm(ways, axis=1) + 1e-3
    found = segment_margins.quotients(margins, ways)
    rows = [k for k in range(4000) if ways[k].any()]
    assert all(is_rounded_once(found[k], margins[k], square_of(ways[k])) for k in rows)
    assert np.isinf(np.delete(found, rows)).all()
    assert len(slow) < 5
    assert [exact(margins[k], ways[k]) for k in rows[::40]] == found[rows[::40]].tolist()


def test_the_default_margin_is_a_share_of_the_length_or_of_the_coordinates():
    shares = {}
    for offset in (0.0, 1.0, 1e3, 1e6, 1e9, -1e12):
        start, end = np.array([offset, 0.0, 1.0]), np.array([offset, 3.0, 5.0])
        rays = rb.Rays.segments(start, end, margin=None)
        margin = 1e-12 * max(abs(offset), 5.0)
        share = margin / 5.0
        shares[offset] = float(rays.t_min)
        assert rays.t_min == (1e-9 if share < 1e-9 else share)
        assert rays.t_max == 1.0 - rays.t_min
    assert len(set(shares.values())) == 4
    ends = [[1e13 - 4, 0], [1e13, 0], [0, 0], [1e13 - 40, 0]]
    short = rb.Rays.segments([[1e13, 0], [1e13, 0], [0, 0], [1e13, 0]], ends, margin=None)
    assert short.t_min.tolist() == [inf, inf, 0, 0.25]
    assert short.t_max.tolist() == [inf, inf, 1, 0.75]


def test_shapes_and_margins_of_each_segment():
    starts, ends = np.zeros((3, 1, 2)), np.array([[4.0, 0], [0, 8]])
    rays = rb.Rays.segments(starts, ends, margin=[1.0, 2.0])
    assert rays.shape == (3, 2)
    assert rays.t_min.tolist() == [[0.25, 0.25]] * 3
    assert rb.Rays.segments(starts, ends, margin=[[0.0], [1.0], [2.0]]).t_max.tolist() == [
        [1, 1],
        [0.75, 0.875],
        [0.5, 0.75],
    ]
    assert rb.Rays.segments([], [], margin=1.0).shape == (0,)
    plain = rb.Rays.segments([0, 0], [1, 1], margin=0)
    assert plain.equals(rb.Rays.segments([0, 0], [1, 1]))
    missed = rb.Rays.segments([[0, nan], [0, 0]], [4, 0], margin=1.0, invalid="miss")
    assert missed.t_min.tolist() == [inf, 0.25]


@pytest.mark.parametrize(
    ("margin", "words"),
    [
        (-1.0, r"margin must be finite and not negative; got margin = -1.0. Pass a length in space, or 0"),
        (
            [0.0, inf],
            r"margin must be finite and not negative; 1 of 2 break this, first segment 1: margin\[1\] = inf",
        ),
        (
            [1.0, 2.0, 3.0],
            r"margin must be a scalar or one number for each ray, of shape \(2,\); got shape \(3,\)",
        ),
        ("wide", "margin must be real numbers"),
    ],
)
def test_wrong_margins_are_refused(margin, words):
    with pytest.raises(rb.InvalidInput, match=words):
        rb.Rays.segments([[0, 0], [1, 1]], [4, 4], margin=margin)
