"""raybox.exact.definition: the contract, case by case."""

import subprocess
import sys
from fractions import Fraction
from math import inf, nan, nextafter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact import by_membership, rounded
from raybox.exact import definition, paths
from raybox.exact.definition import Crossing, Ray1
from test_definition import TINY, boxes, rays, same
from test_oracle import BY_HAND


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
