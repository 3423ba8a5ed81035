"""The oracle itself: hand-worked cases, formulations that share no code, contents of the families."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

import exact
import exact_surfaces
import families
import strategies
from aim import INF, Pairs
from worked_cases import BY_HAND, RAY, TINY

NAN = math.nan


def as_rows(case) -> Pairs:
    o, d, span, (lower, upper), _ = case
    return Pairs(*(np.array([x], dtype=np.float64) for x in (o, d, span[0], span[1], lower, upper)))


def contact(pairs) -> exact.Met | None:
    (c,) = exact.met_rows(*pairs)
    if c is None:
        return None
    return exact.Met(*(Fraction(n, d) if d else n * INF for n, d in c[:3]), c.axis, c.touch)


@pytest.mark.parametrize("name", BY_HAND)
def test_by_hand(name):
    *_, want = case = BY_HAND[name]
    o, d, span, (lower, upper), _ = case
    assert exact.by_slabs(o, d, *span, lower, upper) == want
    assert contact(as_rows(case)) == want
    member = exact.by_membership(o, d, *span, lower, upper)
    assert (member and member[:3]) == (want and want[:3])


@pytest.mark.parametrize("name", families.FAMILIES)
def test_formulations_agree_on_families(name):
    pairs = families.make(name, 11, 250)
    for row, found in zip(
        zip(*(x.tolist() for x in pairs), strict=True), exact.met_rows(*pairs), strict=True
    ):
        slabs, member = exact.by_slabs(*row), exact.by_membership(*row)
        fast = found and (*(exact._value(x) for x in found[:3]), found.axis, found.touch)
        assert fast == slabs, row
        assert (member and member[:3]) == (slabs and slabs[:3]), row


@given(strategies.pairs())
def test_formulations_agree(pairs):
    row = [x[0].tolist() for x in pairs]
    slabs, member = exact.by_slabs(*row), exact.by_membership(*row)
    assert contact(pairs) == slabs
    assert (member and member[:3]) == (slabs and slabs[:3])


@given(strategies.pairs())
def test_the_first_contact_is_in_the_box_and_nothing_before_it(pairs):
    o, d, low, high, lower, upper = [x[0].tolist() for x in pairs]
    met = contact(pairs)
    if met is None or isinstance(met.t, float):
        return

    def inside(t):
        points = [Fraction(p) + t * Fraction(q) for p, q in zip(o, d, strict=True)]
        return all(a <= x <= b for a, x, b in zip(lower, points, upper, strict=True))

    assert low <= met.t <= high
    assert inside(met.t)
    for bit in (1, Fraction(1, 10**9), Fraction(1, 10**700)):
        assert not (low <= met.t - bit and inside(met.t - bit))


@given(strategies.scenes(max_boxes=8))
def test_a_scene_is_sorted_and_complete(scene):
    for row, found in enumerate(exact.along(*scene)):
        ray = [x[row].tolist() for x in scene[:4]]
        met = [
            exact.by_slabs(*ray, *box) for box in zip(scene.lower.tolist(), scene.upper.tolist(), strict=True)
        ]
        want = sorted((m.t, i) for i, m in enumerate(met) if m is not None)
        assert [(f.t, f.index) for f in found] == want
        assert exact.ties(found) == sum(t == want[0][0] for t, _ in want[1:])


@given(strategies.triangles())
def test_triangles_agree(case):
    o, d, span, (corners,) = case
    by_signs = exact_surfaces.triangle_by_signs(o, d, span, *corners)
    found = exact_surfaces.triangle(o, d, span, *corners)
    assert (found and found[0]) == by_signs
    if found:
        met, u, v = found
        a, b, c = ([Fraction(x) for x in p] for p in corners)
        at = [p + u * (q - p) + v * (r - p) for p, q, r in zip(a, b, c, strict=True)]
        assert at == [Fraction(x) + met.t * Fraction(y) for x, y in zip(o, d, strict=True)]
        assert min(u, v, 1 - u - v) >= 0


TRIANGLE = ((0.0, 0.0, 0.0), (4.0, 0.0, 0.0), (0.0, 4.0, 0.0))


@pytest.mark.parametrize(
    ("o", "d", "want"),
    [
        ((1.0, 1.0, -3.0), (0.0, 0.0, 1.0), (3, 0.25, 0.25)),
        ((1.0, 1.0, 3.0), (0.0, 0.0, -2.0), (1.5, 0.25, 0.25)),
        ((2.0, 2.0, 3.0), (0.0, 0.0, -1.0), (3, 0.5, 0.5)),  # on the long edge
        ((4.0, 0.0, 3.0), (0.0, 0.0, -1.0), (3, 1, 0)),  # on a vertex
        ((2.0, math.nextafter(2.0, 3.0), 3.0), (0.0, 0.0, -1.0), None),
        ((-TINY, 1.0, 3.0), (0.0, 0.0, -1.0), None),
        ((-1.0, 1.0, 0.0), (1.0, 0.0, 0.0), None),  # in the plane
        ((1.0, 1.0, 3.0), (0.0, 0.0, 1.0), None),  # behind
        ((1.0, 1.0, 3.0), (0.0, 0.0, 0.0), None),
    ],
)
def test_triangles_by_hand(o, d, want):
    found = exact_surfaces.triangle(o, d, RAY, *TRIANGLE)
    assert (found and (found[0].t, *found[1:])) == want


@pytest.mark.parametrize(
    ("o", "d", "cull", "want"),
    [
        ((0.0, 0.0, 0.0), (0.0, 0.0, 3.0), False, Fraction(2, 3)),
        ((0.0, 0.0, 0.0), (0.0, 0.0, 3.0), True, None),  # from behind
        ((0.0, 0.0, 5.0), (0.0, 0.0, -1.5), True, 2),
        ((0.0, 0.0, 2.0), (1.0, 0.0, 0.0), False, None),  # in the plane
        ((0.0, 0.0, 2.0), (1.0, 0.0, 1.0), False, 0),  # starts on it
        ((0.0, 0.0, 5.0), (0.0, 0.0, 1.0), False, None),
    ],
)
def test_planes_by_hand(o, d, cull, want):
    met = exact_surfaces.plane(o, d, RAY, (0.0, 0.0, 2.0), 4.0, cull_back=cull)
    assert (met and met.t) == want


def test_quotients_are_rounded_to_nearest():
    rng = np.random.default_rng(5)
    for _ in range(3000):
        n, d = (int(rng.integers(1, 2**62)) << int(rng.integers(0, 500)) for _ in "nd")
        got = exact.quotient(-n, d)
        error = abs(Fraction(got) - Fraction(-n, d))
        assert error <= min(abs(Fraction(math.nextafter(got, end)) + Fraction(n, d)) for end in (-INF, INF))
    assert exact.quotient(2**1024 - 2**970 - 1, 1) == 1.7976931348623157e308
    assert exact.quotient(2**1024 - 2**970, 1) == INF  # halfway goes to the even one, which is 2**1024
    assert exact.quotient(-(2**1024), 1) == exact.quotient(-1, 0) == -INF
    assert exact.quotient(3, 2**1075) == 1e-323  # halfway between 1 and 2 steps of 2**-1074: to even
    assert exact.quotient(1, 2**1075) == 0.0


def test_ulps():
    got = np.array([1.0, 1.0, 0.0, INF, NAN, NAN, -TINY, 2.0])
    want = np.array([1.0, math.nextafter(1.0, 2), -0.0, INF, NAN, 1.0, TINY, math.nextafter(2.0, 0.0)])
    assert exact.ulps(got, want).tolist() == [0, 1, 0, 0, 0, INF, 2, 1]


def naive(p: Pairs) -> np.ndarray:
    """Return hits by the textbook slab test in floats, wrong only where it rounds."""
    still = p.directions == 0
    with np.errstate(all="ignore"):
        times = np.sort([(p.lower - p.origins) / p.directions, (p.upper - p.origins) / p.directions], axis=0)
    enter = np.where(still, -INF, times[0]).max(axis=1)
    leave = np.where(still, INF, times[1]).min(axis=1)
    off = still & ((p.origins < p.lower) | (p.origins > p.upper))
    return (np.maximum(enter, p.t_min) <= np.minimum(leave, p.t_max)) & ~off.any(axis=1)


GENTLE = {"generic", "signed_zeros"}  # nothing to round there, or nothing near enough


@pytest.mark.parametrize("name", families.FAMILIES)
def test_families_contain_hits_misses_and_touches(name):
    pairs = families.make(name, 3, 4000)
    again = families.make(name, 3, 4000)
    assert all(np.array_equal(x, y) for x, y in zip(pairs, again, strict=True))
    assert np.isfinite(pairs.origins).all()
    assert np.isfinite(pairs.directions).all()
    assert (pairs.lower <= pairs.upper).all()
    assert (pairs.t_min <= pairs.t_max).all()
    results = exact.box_rows(*pairs)
    assert results.hit.mean() > 0.05
    assert results.hit.mean() < 0.97
    assert results.touch.mean() > 0.1 or name == "generic"
    assert (naive(pairs) != results.hit).any() or name in GENTLE


@pytest.mark.parametrize("name", families.FAMILIES)
def test_scenes_of_families_contain_ties(name):
    scene = families.scene(name, 3)
    found = list(exact.along(*scene))
    assert (scene.lower <= scene.upper).all()
    assert sum(map(bool, found)) > 10
    assert sum(exact.ties(f) > 0 for f in found if f) >= 3
