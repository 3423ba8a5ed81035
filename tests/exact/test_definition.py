"""raybox.exact.definition against the definitions in exact.py, on random input and case by case."""

import random
import subprocess
import sys
from fractions import Fraction
from math import inf, isfinite, isnan, nan, nextafter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exact_surfaces
from exact import by_membership, rounded
from raybox.exact import definition, paths
from raybox.exact.definition import Crossing, Ray1
from worked_cases import BY_HAND

pytestmark = pytest.mark.core

TINY = 5e-324
POOL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, 0.1, 1 / 3, nextafter(1.0, 2.0), 1e-9, TINY, -TINY, 1e-310]
HUGE = [1e300, -1e300, 1.7976931348623157e308, -1.7976931348623157e308, 1e-300]

# ---------------------------------------------------------------- what the definition says


def span(ray):
    return ray.t_min, ray.t_max


def define_box(ray, lower, upper):
    """Return the hit by membership of points; the entry face is the lowest at the entry point."""
    met = by_membership(*ray, lower, upper)
    if met is None:
        return None
    faces = [low if d > 0 else high for d, low, high in zip(ray.direction, lower, upper, strict=True)]
    entered = abs(met.t_enter) < inf and met.t_enter >= ray.t_min
    on = [
        entered and d != 0 and Fraction(o) + met.t_enter * Fraction(d) == face
        for o, d, face in zip(ray.origin, ray.direction, faces, strict=True)
    ]
    return Crossing(
        rounded(met.t), rounded(met.t_enter), rounded(met.t_exit), on.index(True) if entered else -1
    )


def define_plane(ray, normal, offset, cull_back):
    met = exact_surfaces.plane(ray.origin, ray.direction, span(ray), normal, offset, cull_back=cull_back)
    return met and Crossing(*map(rounded, met[:3]), -1)


def define_triangle(ray, a, b, c):
    """Return the hit by the signs at the edges, and the weights by Cramer's rule."""
    met = exact_surfaces.triangle_by_signs(ray.origin, ray.direction, span(ray), a, b, c)
    solved = exact_surfaces.triangle(ray.origin, ray.direction, span(ray), a, b, c)
    assert (met is None) == (solved is None)
    return met and (Crossing(*map(rounded, met[:3]), -1), rounded(solved[1]), rounded(solved[2]))


def facing(ray, a, b, c):
    """Return whether the ray comes from the side of the normal, (b - a) x (c - a)."""
    normal = exact_surfaces.normal(*([Fraction(x) for x in corner] for corner in (a, b, c)))
    return exact_surfaces.dot(normal, map(Fraction, ray.direction)) < 0


def same(a, b):
    """Return whether two hits are equal bit for bit, signs of zero included."""
    return repr(a) == repr(b)


# ---------------------------------------------------------------- random input

numbers = st.one_of(
    st.sampled_from(POOL), st.sampled_from(POOL + HUGE), st.floats(allow_nan=False, allow_infinity=False)
)
bounds = st.one_of(numbers, numbers, numbers, st.sampled_from([inf, -inf]))


@st.composite
def rays(draw, sizes=(2, 3)):
    size = draw(st.sampled_from(sizes))
    vector = st.tuples(*[numbers] * size)
    t_min, t_max = sorted([draw(bounds), draw(bounds)])
    if draw(st.booleans()):
        t_min, t_max = 0.0, inf
    return Ray1(draw(vector), draw(vector), t_min, t_max)


@st.composite
def boxes(draw, ray):
    """Draw a box, mostly near the ray: bounds may be coordinates of points on the ray."""
    lower, upper = [], []
    for o, d in zip(ray.origin, ray.direction, strict=True):
        near = st.sampled_from([o, o + d, o + 2 * d, o - d])
        coordinate = st.one_of(bounds, near).filter(lambda x: not isnan(x))
        low, high = sorted([draw(coordinate), draw(coordinate)])
        lower.append(low)
        upper.append(high)
    return tuple(lower), tuple(upper)


@settings(max_examples=600, deadline=None)
@given(st.data())
def test_box_is_its_definition(data):
    ray = data.draw(rays())
    lower, upper = data.draw(boxes(ray))
    assert same(definition.box(ray, lower, upper), define_box(ray, lower, upper))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_plane_is_its_definition(data):
    ray = data.draw(rays())
    normal = data.draw(st.tuples(*[numbers] * len(ray.origin)))
    start = sum(n * o for n, o in zip(normal, ray.origin, strict=True))
    offset = data.draw(st.one_of(numbers, st.just(start if isfinite(start) else 0.0)))
    cull = data.draw(st.booleans())
    assert same(definition.plane(ray, normal, offset, cull), define_plane(ray, normal, offset, cull))


@settings(max_examples=300, deadline=None)
@given(rays((3,)), st.tuples(*[st.tuples(*[numbers] * 3)] * 3))
def test_triangle_is_its_definition(ray, corners):
    met = define_triangle(ray, *corners)
    met = met and definition.TriangleHit(*met)
    assert same(definition.triangle(ray, *corners), met)
    assert definition.triangle(ray, *corners, cull_back=True) == (met if facing(ray, *corners) else None)


def test_many_small_numbers_contain_every_kind_of_case():
    """Whole numbers from -2 to 2 make touches and ties common; the counts prove that they occur."""
    rng = random.Random(5)
    counts = dict.fromkeys(["hit", "miss", "inside", "touch", "tie", "flat", "parallel", "end"], 0)
    for _ in range(8000):
        size = rng.choice([2, 3])
        o, d = ([float(rng.randint(-2, 2)) for _ in range(size)] for _ in "od")
        t_min, t_max = rng.choice([(0.0, inf), (0.0, 1.0), (-inf, inf), (-1.0, 0.5), (0.5, 2.0)])
        ray = Ray1(tuple(o), tuple(d), t_min, t_max)
        spans = [sorted([float(rng.randint(-2, 2)), float(rng.randint(-2, 2))]) for _ in range(size)]
        lower, upper = zip(*spans, strict=True)
        got, expected = definition.box(ray, lower, upper), define_box(ray, lower, upper)
        assert same(got, expected), (ray, lower, upper)
        counts["hit" if got else "miss"] += 1
        if got:
            counts["inside"] += got.t > got.t_enter
            counts["touch"] += got.t_enter == got.t_exit
            counts["end"] += got.t in (t_max, got.t_exit)
            counts["flat"] += lower[0] == upper[0]
            counts["parallel"] += 0.0 in d
            at = [a + got.t * b for a, b in zip(o, d, strict=True)]
            counts["tie"] += sum(x in (a, b) for x, a, b in zip(at, lower, upper, strict=True)) > 1
    assert min(counts.values()) > 200, counts


def test_random_triangles_are_hit_and_missed():
    rng = random.Random(6)
    hits = edges = 0
    for _ in range(2000):
        o, d, a, b, c = (tuple(float(rng.randint(-3, 3)) for _ in range(3)) for _ in "odabc")
        ray = Ray1(o, d, -inf, inf)
        got = definition.triangle(ray, a, b, c)
        want = define_triangle(ray, a, b, c)
        assert same(got, want and definition.TriangleHit(*want)), (ray, a, b, c)
        hits += got is not None
        edges += got is not None and (got[1] == 0 or got[2] == 0 or got[1] + got[2] == 1)
    assert hits > 100
    assert edges > 20


# Case by case


@pytest.mark.parametrize("name", BY_HAND)
def test_one_case(name):
    """Cases worked by hand; a ray whose range is empty may hold anything."""
    origin, direction, limits, box, want = BY_HAND[name]
    want = want and Crossing(*(rounded(Fraction(t) if isinstance(t, int) else t) for t in want[:3]), want[3])
    assert same(definition.box(Ray1(origin, direction, *limits), *box), want)


def test_the_exact_time_decides_where_rounded_times_tie():
    """1/3 and its nearest float64 are the same number once rounded, and not the same time."""
    third = 1 / 3
    ray = Ray1((0.0,), (3.0,), third, inf)
    assert definition.box(ray, (1.0,), (2.0,)) == Crossing(third, third, 2 / 3, 0)
    assert definition.box(ray._replace(t_min=nextafter(third, 1)), (1.0,), (2.0,)).axis == -1
    assert definition.box(ray._replace(t_min=0.0, t_max=third), (1.0,), (2.0,)) is None


def test_order_is_decided_before_rounding():
    ray = Ray1((0.0, 0.0), (3.0, 1.0))
    by_x, by_y = ((1.0, -9.0), (9.0, 9.0)), ((-9.0, 1 / 3), (9.0, 9.0))
    assert definition.box(ray, *by_x).t == definition.box(ray, *by_y).t
    assert definition.box_order(ray, by_x, by_y) == 1
    assert definition.box_order(ray, by_y, by_x) == -1


def test_order_of_ties_and_misses():
    ray = Ray1((0.0, 0.0), (1.0, 0.0), -inf, inf)
    met, same_face, behind = ((1.0, 0.0), (2.0, 1.0)), ((1.0, -3.0), (9.0, 3.0)), ((-2.0, 0.0), (-1.0, 0.0))
    missed, endless = ((1.0, 5.0), (2.0, 6.0)), ((-inf, -1.0), (0.0, 1.0))
    order = definition.box_order
    assert order(ray, met, same_face) == 0
    assert order(ray, behind, met) == -1
    assert order(ray, met, missed) == -1
    assert order(ray, missed, met) == 1
    assert order(ray, missed, missed) == 0
    assert order(ray, endless, behind) == -1
    assert order(ray, missed, endless) == 1
    assert order(ray, endless, ((-inf, -inf), (inf, inf))) == 0
    inside_both = ray._replace(t_min=1.5)
    assert order(inside_both, met, same_face) == 0
    assert order(inside_both, behind, met) == 1
    assert order(inside_both, met, ((0.5, 0.0), (2.0, 1.0))) == 0, "both hold the start"


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_order_is_antisymmetric_and_agrees_with_rounded_times(data):
    ray = data.draw(rays())
    first, second = data.draw(boxes(ray)), data.draw(boxes(ray))
    order = definition.box_order(ray, first, second)
    assert definition.box_order(ray, second, first) == -order
    a, b = definition.box(ray, *first), definition.box(ray, *second)
    if a and b and a.t != b.t:
        assert order == (1 if a.t > b.t else -1)
    if bool(a) != bool(b):
        assert order == (-1 if a else 1)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_contact_is_the_point_at_the_exact_time(data):
    ray = data.draw(rays())
    lower, upper = data.draw(boxes(ray))
    met = by_membership(*ray, lower, upper)
    if met is None or (abs(met.t) == inf and any(ray.direction)):
        expected = None
    else:
        t = 0 if abs(met.t) == inf else Fraction(met.t)
        line = zip(ray.origin, ray.direction, strict=True)
        expected = tuple(rounded(Fraction(o) + t * Fraction(d)) for o, d in line)
    assert paths.contact(ray, lower, upper) == expected


def test_contact_at_infinity():
    everywhere = (-inf, -inf), (inf, inf)
    assert paths.contact(Ray1((1.0, 2.0), (0.0, 0.0), -inf), *everywhere) == (1.0, 2.0)
    assert paths.contact(Ray1((1.0, 2.0), (0.0, 1.0), -inf), *everywhere) is None
    assert paths.contact(Ray1((1.0, 2.0), (0.0, 1.0)), (5.0, 5.0), (6.0, 6.0)) is None


def test_contact_lies_on_the_face_where_o_plus_t_d_does_not():
    ray, lower, upper = Ray1((0.1, 0.2), (0.7, 0.0), -inf), (-1 / 3, 0.0), (1.0, 1.0)
    assert paths.contact(ray, lower, upper) == (-1 / 3, 0.2)
    assert ray.origin[0] + definition.box(ray, lower, upper).t * ray.direction[0] != -1 / 3


def test_planes_along_and_from_behind():
    up = (0.0, 0.0, 1.0)
    down_ray, up_ray = (Ray1((0.0, 0.0, z), (0.0, 0.0, -z)) for z in (1.0, -1.0))
    assert (
        definition.plane(down_ray, up, 0.0)
        == definition.plane(up_ray, up, 0.0)
        == Crossing(1.0, 1.0, 1.0, -1)
    )
    assert definition.plane(down_ray, up, 0.0, cull_back=True) == Crossing(1.0, 1.0, 1.0, -1)
    assert definition.plane(up_ray, up, 0.0, cull_back=True) is None
    assert definition.plane(Ray1((0.0, 0.0, 0.0), (1.0, 0.0, 0.0)), up, 0.0) is None
    assert definition.plane(Ray1((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)), up, 0.0) is None
    assert definition.plane(down_ray, (0.0, 0.0, 0.0), 0.0) is None
    assert definition.plane(down_ray._replace(t_max=nextafter(1.0, 0.0)), up, 0.0) is None
    assert definition.plane(Ray1((nan,) * 3, (nan,) * 3, inf, -inf), up, 0.0) is None


def test_triangles_at_their_edges():
    a, b, c = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)

    def weights(x, y):
        found = definition.triangle(Ray1((x, y, 1.0), (0.0, 0.0, -1.0)), a, b, c)
        return found and found[1:]

    assert weights(0.0, 0.0) == (0.0, 0.0)
    assert weights(1.0, 0.0) == (1.0, 0.0)
    assert weights(0.5, 0.5) == (0.5, 0.5)
    assert weights(-TINY, 0.5) is None
    assert weights(0.5, nextafter(0.5, 1.0)) is None
    along = Ray1((-1.0, 0.25, 0.0), (1.0, 0.0, 0.0))
    assert definition.triangle(along, a, b, c) is None
    assert definition.triangle(Ray1((0.5, 0.0, 1.0), (0.0, 0.0, -1.0)), a, b, (2.0, 0.0, 0.0)) is None
    assert definition.triangle(Ray1((nan,) * 3, (nan,) * 3, inf, -inf), a, b, c) is None
    behind = Ray1((0.2, 0.2, -1.0), (0.0, 0.0, -1.0))
    assert definition.triangle(behind, a, b, c) is None
    assert definition.triangle(behind._replace(t_min=-inf), a, b, c)[0].t == -1.0


def test_neither_numpy_nor_numba_is_needed():
    code = "import sys, raybox.exact.definition; print([m for m in ('numpy', 'numba') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
