"""raybox.explain: the whole text for one ray, and the truth of every line for many."""

import itertools
import random
import subprocess
import sys
from math import inf, nan
from types import SimpleNamespace

import numpy as np
import pytest

import raybox as rb
from raybox import InvalidInput
from raybox.exact import definition
from raybox.exact.definition import Crossing, Ray1
from raybox.textbook.explain import examine

BOX = rb.Boxes([1, 1, 0], [2, 3, 4])

PAGE = """\
                x    y  z
ray  origin     0    0  2
     direction  2  1.5  0
     t           from 0 to inf
box  lower      1    1  0
     upper      2    3  4

SLABS: where the line is between the two planes of each axis, in float64
  axis          t at lower  t at upper                near  far         near so far  far so far
     x                 0.5           1                 0.5    1                 0.5           1
     y  0.6666666666666666           2  0.6666666666666666    2  0.6666666666666666           1
     z                   -           -                -inf  inf  0.6666666666666666           1
  The line runs parallel to the planes of z, between them.
  The slabs share t = 0.6666666666666666 to 1: the line hits the box.

CANDIDATE FACES: of each pair the one crossed first; the last of them is the way in, if there is one
  x = 1  crossed at t = 0.5
  y = 1  crossed at t = 0.6666666666666666  <- the last

VERDICTS: the textbook algorithms in float64, each by its own convention
  slab              hit  t = 0.6666666666666666       t in 0 to t_max; inside: t = 0
  cyrus_beck        hit  t = 0.6666666666666666       t >= 0; miss: -1; inside: the exit
  candidate_planes  hit  through y = 1                t in 0 to length; inside: at once
  near_far          hit  distance 0.6666666666666666  far >= 0; miss: inf; inside: < 0
  bounded_plane     hit  y = 1 at 0.166667            one plane, its front; t in 0 to 1
  moller_trumbore   hit  t = 0.6666666666666666       t >= 0; 12 triangles, both sides
  bounded_plane needs a length; it is given 4.

EXACT: hit at t = 0.6666666666666666
  line   in the box for t = 0.6666666666666666 to 1
  point  (1.3333333333333333, 1, 2)
  face   y = 1, outward normal (0, -1, 0)

Every verdict agrees with the exact one.
"""


def text(origin, direction, box=BOX, **span):
    return str(examine(rb.Rays(origin, direction, **span), box))


def test_one_whole_page(capsys):
    found = rb.explain(rb.Rays([0, 0, 2], [2, 1.5, 0]), BOX)
    assert capsys.readouterr().out == PAGE
    assert str(found) + "\n" == PAGE
    assert repr(found) == "<Explanation: hit at t = 0.6666666666666666>"
    assert found.hit
    assert found.exact == Crossing(2 / 3, 2 / 3, 1.0, 1)


def test_two_dimensions():
    page = text([0, 0], [1, 0], rb.Boxes([2, -1], [3, 1]), t_max=2)
    assert "origin     0   0\n" in page
    assert "moller_trumbore   -    triangles are for 3D" in page
    assert "through x = 2" in page
    assert "Those with t >= 0 or far >= 0 do not see that this ray ends at t = 2." in page
    assert "EXACT: hit at t = 2\n" in page
    assert "face   x = 2, outward normal (-1, 0)" in page


def test_kinds_of_misses():
    assert "EXACT: miss\n  the whole line misses the box" in text([0, 0, 9], [1, 1, 0])
    assert "The line runs parallel to the planes of z, not between them.\n  The slabs share no t" in text(
        [0, 0, 9], [1, 1, 0]
    )
    behind = text([5, 2, 2], [1, 0, 0])
    assert "the line is in the box for t = -4 to -3,\n  and none of it is in the ray's range" in behind
    assert "candidate_planes  miss  moves away from x = 2" in behind
    assert "candidate_planes  miss  passes by x = 1" in text([0, 0, 2], [1, 9, 0])
    short = text([0, 2, 2], [1, 0, 0], t_max=0.5)
    assert "candidate_planes  miss  ends before x = 1" in short
    assert "bounded_plane     miss  x = 1 is not ahead" in short
    assert "slab              miss  " in short
    assert "cyrus_beck        hit   t = 1" in short
    assert "Every verdict agrees" in short


def test_starting_inside():
    page = text([1.5, 2, 2], [0, 1, 0])
    assert "slab              hit   t = 0 " in page
    assert "cyrus_beck        hit   t = 1 " in page
    assert "near_far          hit   distance -1 " in page
    assert "candidate_planes  hit   the origin is inside" in page
    assert "moller_trumbore   hit   t = 1 " in page
    assert "face   none: the ray starts inside" in page


def test_other_ranges():
    line = text([5, 2, 2], [1, 0, 0], t_min=-inf)
    assert "All of them begin at t = 0; this ray begins at t = -inf." in line
    assert "EXACT: hit at t = -4\n" in line
    past = text([1.5, 2, 2], [1, 0, 0], t_min=-9, t_max=-0.25)
    assert past.count("the ray ends before t = 0") == 3
    assert "EXACT: hit at t = -0.5\n" in past
    assert "differ" not in line + past


def test_a_zero_direction_and_an_endless_box():
    point = text([1.5, 2, 2], [0, 0, 0])
    assert "The line runs parallel to the planes of x and y and z, between them." in point
    assert "none: the line runs parallel to every plane, or the box has no end on this side" in point
    assert "bounded_plane     -     there is no face to try" in point
    assert "line   in the box for t = -inf to inf\n  point  (1.5, 2, 2)\n" in point
    endless = text([0, 2, 2], [1, 0, 0], rb.Boxes([1, -inf, -inf], [inf] * 3))
    assert "moller_trumbore   -    an endless box has no triangles" in endless
    assert "bounded_plane needs a length; it is given 2." in endless
    assert "EXACT: hit at t = 1\n  line   in the box for t = 1 to inf\n" in endless
    everywhere = text([0, 2, 2], [1, 0, 0], rb.Boxes([-inf] * 3, [inf] * 3), t_min=-inf)
    assert "EXACT: hit at t = -inf\n" in everywhere
    assert "point  at infinity" in everywhere


def test_ray_or_box_without_a_point():
    bad = rb.Rays([nan, 0, 0], [1, 0, 0], invalid="miss")
    found = examine(bad, BOX)
    assert not found
    assert str(found).endswith("EXACT: miss\n  the ray holds no point: no t lies in inf to -inf")
    no_box = text([0, 0, 0], [1, 0, 0], rb.Boxes([inf, 0, 0], [inf, 1, 1]))
    assert no_box.endswith("EXACT: miss\n  the box holds no point: on x both its bounds are inf")


def test_the_page_states_where_float64_is_wrong():
    """Rays through a corner that float64 misses or invents are stated on the page."""
    rng = random.Random(8)
    wrongs = dict.fromkeys(itertools.product(["slab", "candidate_planes", "near_far"], ["hit", "miss"]), 0)
    for _ in range(400):
        lower = [rng.uniform(0.1, 1) for _ in range(3)]
        steps = [rng.uniform(0.1, 1) for _ in range(3)]
        origin = [a - 3 * b for a, b in zip(lower, steps, strict=True)]
        box = rb.Boxes(lower, [a if k == 2 else 9.0 for k, a in enumerate(lower)])
        found = examine(rb.Rays(origin, steps), box)
        page = str(found)
        for verdict in found.verdicts:
            wrong = verdict.hit is not verdict.exact
            words = {True: "hit", False: "miss"}
            sentence = f"{verdict.name}: {words[verdict.hit]}; exact:"
            assert (sentence in page) == wrong == verdict.differs
            if wrong and (verdict.name, words[verdict.hit]) in wrongs:
                wrongs[verdict.name, words[verdict.hit]] += 1
        assert ("Every verdict agrees" in page) != any(v.differs for v in found.verdicts)
    assert min(wrongs.values()) > 5, wrongs


def test_every_page_is_ascii_narrow_and_exact():
    rng = random.Random(9)
    wild = [0.0, 1.0, -1.0, 1 / 3, -1e308 / 3, 1e308 / 3, 1e-310, 5e-324, -7.1e-200, 123456.789]
    hits = 0
    for _ in range(400):
        size = rng.choice([2, 3])
        o, d, a, b = (tuple(rng.choice([*wild, rng.uniform(-9, 9)]) for _ in range(size)) for _ in "odab")
        ends = [(0.0, inf), (-inf, inf), (-1e308 / 3, 1e308 / 3), (-2 / 3, -1 / 3)]
        t_min, t_max = rng.choice(ends)
        lower, upper = tuple(map(min, a, b)), tuple(map(max, a, b))
        found = examine(rb.Rays(o, d, t_min=t_min, t_max=t_max), rb.Boxes([lower], [upper]))
        page = str(found)
        assert page.isascii()
        assert max(map(len, page.splitlines())) <= 100
        assert not any(line != line.rstrip() for line in page.splitlines())
        assert found.exact == definition.box(Ray1(o, d, t_min, t_max), lower, upper)
        assert ("EXACT: hit" in page) == bool(found)
        assert [v.name for v in found.verdicts] == [
            "slab", "cyrus_beck", "candidate_planes", "near_far", "bounded_plane", "moller_trumbore"
        ]  # fmt: skip
        hits += found.hit
    assert hits > 50


def test_the_twelve_triangles_are_the_surface():
    """From inside, a ray in any direction leaves through the surface."""
    rng = random.Random(10)
    for _ in range(200):
        direction = [rng.uniform(-1, 1) for _ in range(3)]
        found = examine(rb.Rays([1.5, 2, 2], direction), BOX)
        triangles, clipped = found.verdicts[5], found.verdicts[1]
        assert triangles.hit
        assert triangles.exact
        t = [float(verdict.says.removeprefix("t = ")) for verdict in (triangles, clipped)]
        assert t[0] == pytest.approx(t[1])


def test_shapes_of_one():
    one = rb.Rays([[0, 0, 2]], [[2, 1.5, 0]])
    assert str(examine(one, BOX)) + "\n" == PAGE
    loose = SimpleNamespace(
        origins=one.origins, directions=one.directions, t_min=np.array(0.0), t_max=np.array(inf)
    )
    assert str(examine(loose, BOX)) + "\n" == PAGE


@pytest.mark.parametrize(
    ("rays", "boxes", "words"),
    [
        (rb.Rays(np.zeros((3, 3)), [1, 0, 0]), BOX, "explain takes one ray; got 3. Pick one with rays[i]."),
        (rb.Rays(np.zeros((0, 3)), [1, 0, 0]), BOX, "explain takes one ray; got 0."),
        (
            rb.Rays([0, 0, 0], [1, 0, 0]),
            rb.Boxes(np.zeros((2, 3)), np.ones((2, 3))),
            "one box; got 2. Pick one with",
        ),
        (rb.Rays([0, 0], [1, 0]), BOX, "must have the same dimension; got 2D and 3D"),
    ],
)
def test_more_than_one_or_none(rays, boxes, words):
    with pytest.raises(InvalidInput) as caught:
        rb.explain(rays, boxes)
    assert words in str(caught.value)


def test_numba_is_not_loaded():
    code = (
        "import sys, raybox as rb; rb.explain(rb.Rays([0, 0, 0], [1, 1, 1]), rb.Boxes([1, 1, 1], [2, 2, 2]));"
        "print('numba' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()[-1] == "False"
