"""Planes of two axes that a ray crosses so soon after each other that computed times mistake their order."""

from fractions import Fraction
from math import gcd
from typing import NamedTuple

import numpy as np
import pytest

import exact_grid
import raybox as rb
from exact import rounded
from raybox.traversal.job import Job
from raybox.traversal.segments import cut_rays
from raybox.traversal.single import RaySpan
from raybox.validation import NO_MASK
from stretches import Rounded, RoundedOnce

pytestmark = pytest.mark.jit

WIDE = 2.0**26  # a cell; crossings that are not near ties are that far apart
AXES = [(0, 1), (1, 2), (2, 0)]  # that have the near tie
LEAST = 10  # rays of the kind that a test is about


class NearTie(NamedTuple):
    """Planes at a and b, and directions c and d: the times a/c and b/d differ by 1/(c d)."""

    planes: tuple[float, float]
    directions: tuple[float, float]

    @property
    def exact(self) -> tuple[Fraction, Fraction]:
        """The times of both planes, of a ray from 0."""
        (a, b), (c, d) = self
        return Fraction(a) / Fraction(c), Fraction(b) / Fraction(d)

    def is_mistaken(self) -> bool:
        """Return whether products with 1/direction are in the other order, and differ."""
        (a, b), (c, d) = self
        one, other = a * (1.0 / c), b * (1.0 / d)
        first, second = self.exact
        return one != other and (one < other) != (first < second)


def near_ties(seed: int, count: int) -> list[NearTie]:
    """Return near ties of times between 1/4 and 1."""
    rng, found = np.random.default_rng([293, seed]), list[NearTie]()
    while len(found) < count:
        c, d = (int(x) for x in rng.integers(1 << 27, 1 << 28, 2))
        if gcd(c, d) != 1:
            continue
        way = int(rng.choice([-1, 1]))
        a = pow(d, -1, c) * way % c
        if 4 * a > c:
            found.append(NearTie((float(a), float((a * d - way) // c)), (float(c), float(d))))
    return found


def check(recorder: type, tie: NearTie, axes, signs, edges, span=(-np.inf, np.inf)) -> exact_grid.Cut:
    """Assert the cells and times of a ray from 0 through a grid; return the exact ones.

    axes: those of the near tie; on the third one the ray stays in one cell. signs: of the directions.
    edges: on the two axes, as if both directions were positive.
    """
    grid, ways = [[-1.0, 1.0]] * 3, np.zeros(3)
    for axis, sign, way, row in zip(axes, signs, tie.directions, edges, strict=True):
        ways[axis], grid[axis] = sign * way, sorted(sign * x for x in row)
    cells, rays = rb.Grid(*grid), rb.Rays(np.zeros((1, 3)), ways[None], t_min=span[0], t_max=span[1])
    found = recorder(np.empty((9, 2), np.int64), np.empty((9, 2)), np.zeros(1, np.int64))
    assert cut_rays(Job(None, cells._rows(), rays._rows(), NO_MASK), RaySpan(0, 1), found) == 1
    (cut,) = exact_grid.cut_all(cells.edges, rays)
    count = len(cut.stretches)
    assert found.used[0] == count
    assert found.numbers[:count, 1].tolist() == [
        np.ravel_multi_index(one.cell, cells.shape) for one in cut.stretches
    ]
    for got, one in zip(found.times[:count].tolist(), cut.stretches, strict=True):
        for mine, true in zip(got, (one.begin, one.end), strict=True):
            if recorder is RoundedOnce:
                assert mine == rounded(true)
            else:
                assert abs(Fraction(mine) - true) <= abs(true) / 2**50
    return cut


@pytest.mark.long
@pytest.mark.parametrize("recorder", [Rounded, RoundedOnce])
@pytest.mark.parametrize("axes", AXES)
def test_two_planes_between_begin_and_end(recorder, axes):
    mistaken = 0
    for k, tie in enumerate(near_ties(axes[0], 300)):
        signs = 1 - 2 * (k & 1), 1 - (k & 2)
        cut = check(recorder, tie, axes, signs, [[x - WIDE, x, x + WIDE] for x in tie.planes])
        assert min(tie.exact) in [one.end for one in cut.stretches]
        assert max(tie.exact) in [one.begin for one in cut.stretches]
        mistaken += tie.is_mistaken()
    assert mistaken > LEAST


@pytest.mark.parametrize("recorder", [Rounded, RoundedOnce])
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("end", [False, True])
def test_two_planes_by_which_a_ray_enters_or_leaves(recorder, axes, end):
    rounded_apart = 0
    for k, tie in enumerate(near_ties(3 + axes[0], 100)):
        signs = 1 - 2 * (k & 1), 1 - (k & 2)
        edges = [[x - 2.0 * WIDE, x - WIDE, x] if end else [x, x + WIDE] for x in tie.planes]
        cut = check(recorder, tie, axes, signs, edges)
        if end:
            assert cut.stretches[-1].end == min(tie.exact)
        else:
            assert cut.stretches[0].begin == max(tie.exact)
        rounded_apart += rounded(tie.exact[0]) != rounded(tie.exact[1])
    assert rounded_apart > LEAST


@pytest.mark.parametrize("recorder", [Rounded, RoundedOnce])
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("outer", [False, True])
def test_ranges_that_begin_or_end_beside_a_plane(recorder, axes, end, outer):
    """They are the float next to the exact time of a plane, and its two neighbours."""
    beside = 0
    for k, tie in enumerate(near_ties(6 + axes[0], 40)):
        signs = 1 - 2 * (k & 1), 1 - (k & 2)
        time = tie.exact[0]
        (plane, other), near = tie.planes, rounded(time)
        row = [plane, plane + WIDE] if not end else [plane - WIDE, plane]
        if not outer:
            row = [plane - WIDE, plane, plane + WIDE]
        for limit in (np.nextafter(near, 0.0), near, np.nextafter(near, 1.0)):
            span = (-np.inf, limit) if end else (limit, np.inf)
            cut = check(recorder, tie, axes, signs, [row, [other - WIDE, other + WIDE]], span)
            assert outer or limit in [x for one in cut.stretches for x in (one.begin, one.end)]
            product = plane * (1.0 / tie.directions[0])
            beside += np.sign(product - limit) != np.sign(time - Fraction(limit))
    assert beside > LEAST


@pytest.mark.parametrize("recorder", [Rounded, RoundedOnce])
@pytest.mark.parametrize("sign", [1, -1])
def test_ranges_that_begin_and_end_at_planes(recorder, sign):
    """Their times are powers of two: computed times are exact."""
    tie = NearTie((2.0, 8.0), (4.0, 16.0))  # both at 1/2
    row = [0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 4.0, 6.0, 8.0, 20.0]
    for begin, end, count in [(0.25, 0.5, 2), (0.5, 1.0, 2), (0.25, 0.75, 3), (0.5, 0.5, 0), (0.0, 1.0, 5)]:
        cut = check(recorder, tie, (0, 1), (sign, -sign), row, (begin, end))
        assert len(cut.stretches) == count
