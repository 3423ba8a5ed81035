"""The partition of rays by a grid against rational arithmetic, where planes of two axes nearly tie, too."""

from collections import Counter
from fractions import Fraction
from math import gcd
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exact_grid
import raybox as rb
from exact import rounded
from grids import KINDS, random_grid, random_rays
from raybox.traversal.job import Job
from raybox.traversal.segments import cut_rays
from raybox.traversal.single import RaySpan
from raybox.validation import NO_MASK
from strategies import coordinates, grid, related, spans
from stretches import Rounded

pytestmark = pytest.mark.jit

SHAPES = [(5, 6, 7), (1, 1, 1), (9, 1, 30), (17, 16, 3), (64, 2, 2), (6, 5), (1, 40)]


def check(cells: rb.Grid, rays: rb.Rays, where=None) -> Counter:
    """Assert cells, order and times of the segments of all rays; return what they are."""
    cuts = exact_grid.cut_all(cells.edges, rays)
    allowed = cells.occupied.ravel() if where is None else cells.occupied.ravel() & np.ravel(where)
    numbers = [[np.ravel_multi_index(one.cell, cells.shape) for one in cut.stretches] for cut in cuts]
    stays = [np.array([allowed[number] for number in row], np.bool_) for row in numbers]
    segments = rb.Scene(cells).segments(rays, where=where)
    np.testing.assert_array_equal(segments.offsets, np.cumsum([0, *(row.sum() for row in stays)]))
    picked = np.concatenate([np.empty(0, np.bool_), *stays])
    index = np.array([number for row in numbers for number in row], np.int64)[picked]
    times = np.array(
        [(rounded(one.begin), rounded(one.end)) for cut in cuts for one in cut.stretches], np.float64
    ).reshape(-1, 2)[picked]
    np.testing.assert_array_equal(segments.index, index)
    np.testing.assert_array_equal(segments.t, times[:, 0])
    high = np.broadcast_to(rays.t_max, len(rays))[segments.ray]
    np.testing.assert_array_equal(np.minimum(segments.t_exit, high), times[:, 1])
    check_rounded(cells, rays, segments, times, where)
    return Counter(
        stretches=len(index),
        rays=sum(bool(cut.stretches) for cut in cuts),
        misses=sum(not cut.stretches for cut in cuts),
        corners=sum(cut.corners for cut in cuts),
        ends=sum(cut.ends for cut in cuts),
        in_planes=sum(bool(cut.stretches) and cut.in_planes > 0 for cut in cuts),
    )


def check_rounded(cells: rb.Grid, rays: rb.Rays, segments: rb.AllHits, times, where) -> None:
    """Assert the same cells where times are not rounded once, and their error."""
    count = len(segments.index)
    found = Rounded(np.empty((count + 1, 2), np.int64), np.empty((count + 1, 2)), np.zeros(1, np.int64))
    mask = NO_MASK if where is None else np.ravel(where)
    job = Job(None, cells._rows(), rays._rows(), mask)
    assert cut_rays(job, RaySpan(0, len(rays)), found) == len(rays)
    assert found.used[0] == count
    np.testing.assert_array_equal(found.numbers[:count, 0], segments.ray)
    np.testing.assert_array_equal(found.numbers[:count, 1], segments.index)
    got = found.times[:count]
    with np.errstate(invalid="ignore"):
        assert ((np.abs(got - times) <= 2.0**-50 * np.abs(times) + 5e-324) | (got == times)).all()
    assert (got[:, 0] <= got[:, 1]).all()


@pytest.mark.parametrize("share", [None, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_cells_and_times_are_those_of_rational_arithmetic(kind, share):
    rng, counts = np.random.default_rng([280, KINDS.index(kind), share is None]), Counter()
    for shape in SHAPES:
        cells = random_grid(kind, rng, shape, share)
        where = None if share is None else rng.random(shape) < 0.7
        counts += check(cells, random_rays(rng, cells, 150), where)
    assert min(counts["stretches"], counts["rays"], counts["misses"], counts["ends"]) > 60, counts
    assert min(counts["corners"], counts["in_planes"]) > 20, counts


@pytest.mark.parametrize("kind", ["random", "map"])
def test_ranges_that_begin_and_end_beside_planes(kind):
    rng, counts = np.random.default_rng([292, kind == "map"]), Counter()
    cells = random_grid(kind, rng, (9, 8, 7))
    rays = random_rays(rng, cells, 1200)
    rays = rays[(rays.directions != 0.0).all(axis=1)][:300]
    axis, rows = rng.integers(0, 3, 300), np.arange(300)
    planes = np.array([rng.choice(cells.edges[a][[0, 0, -1, -1, 2, 3, 5]]) for a in axis])
    times = (planes - rays.origins[rows, axis]) / rays.directions[rows, axis]
    times = np.nextafter(times, times + rng.integers(-1, 2, times.shape))
    for span in ({"t_min": times, "t_max": np.inf}, {"t_min": -np.inf, "t_max": times}):
        counts += check(cells, rb.Rays(rays.origins, rays.directions, **span))
    assert min(counts["rays"], counts["misses"]) > 60, counts


@pytest.mark.parametrize("places", [-1060, 0, 1010])
@pytest.mark.parametrize("ways", [-1060, -600, 0, 1010])
def test_very_small_and_very_large_numbers(places, ways):
    rng = np.random.default_rng(281)
    cells = random_grid("integers", rng, (6, 5, 4))
    rays = random_rays(rng, cells, 100)
    cells = rb.Grid(*(one * 2.0**places for one in cells.edges))
    origins, directions = rays.origins * 2.0**places, rays.directions * 2.0**ways
    counts = check(cells, rb.Rays(origins, directions, t_min=rays.t_min, t_max=rays.t_max))
    assert counts["rays"] > 30, counts


@st.composite
def grids_and_rays(draw):
    """Draw a grid and rays over one pool of numbers, whose planes they often meet."""
    dim = draw(st.integers(2, 3))
    pool = st.sampled_from(draw(st.lists(coordinates, min_size=3, max_size=8, unique=True)))
    edges = [np.unique(draw(related((draw(st.integers(2, 6)),), pool)) + 0.0) for _ in range(dim)]
    edges = [one if len(one) > 1 else np.array([one[0], np.nextafter(one[0], np.inf)]) for one in edges]
    count = draw(st.integers(1, 4))
    origins = draw(related((count, dim), pool))
    directions = draw(related((count, dim), st.one_of(pool, grid)))
    ranges = np.array([draw(spans(pool)) for _ in range(count)])
    return edges, rb.Rays(origins, directions, t_min=ranges[:, 0], t_max=ranges[:, 1])


@given(grids_and_rays())
@settings(max_examples=300, deadline=None)
def test_any_small_grid(drawn):
    edges, rays = drawn
    if all(np.isfinite(one).all() for one in edges):
        check(rb.Grid(*edges), rays)


@pytest.mark.core
def test_a_ray_in_a_shared_face_runs_in_the_higher_cell():
    cells = rb.Grid([0, 1, 2], [0, 1, 2], [0, 1])
    rays = rb.Rays(
        [[-1, 1, 0.5], [1, -1, 0.5], [3, 2, 0.5], [0, 0, 0.5]], [[1, 0, 0], [0, 1, 0], [-1, 0, 0], [1, 1, 0]]
    )
    segments = rb.Scene(cells).segments(rays)
    assert segments.index.tolist() == [1, 3, 2, 3, 3, 1, 0, 3]
    assert segments.offsets.tolist() == [0, 2, 4, 6, 8]


# Planes of two axes that a ray crosses so soon after each other that computed times mistake their order


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


def check_tie(tie: NearTie, axes, signs, edges, span=(-np.inf, np.inf)) -> exact_grid.Cut:
    """Assert the cells and times of a ray from 0 through a grid; return the exact ones.

    axes: those of the near tie; on the third one the ray stays in one cell. signs: of the directions.
    edges: on the two axes, as if both directions were positive.
    """
    grid, ways = [[-1.0, 1.0]] * 3, np.zeros(3)
    for axis, sign, way, row in zip(axes, signs, tie.directions, edges, strict=True):
        ways[axis], grid[axis] = sign * way, sorted(sign * x for x in row)
    cells, rays = rb.Grid(*grid), rb.Rays(np.zeros((1, 3)), ways[None], t_min=span[0], t_max=span[1])
    check(cells, rays)
    return exact_grid.cut_all(cells.edges, rays)[0]


@pytest.mark.long
@pytest.mark.parametrize("axes", AXES)
def test_two_planes_between_begin_and_end(axes):
    mistaken = 0
    for k, tie in enumerate(near_ties(axes[0], 300)):
        signs = 1 - 2 * (k & 1), 1 - (k & 2)
        cut = check_tie(tie, axes, signs, [[x - WIDE, x, x + WIDE] for x in tie.planes])
        assert min(tie.exact) in [one.end for one in cut.stretches]
        assert max(tie.exact) in [one.begin for one in cut.stretches]
        mistaken += tie.is_mistaken()
    assert mistaken > LEAST


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("end", [False, True])
def test_two_planes_by_which_a_ray_enters_or_leaves(axes, end):
    rounded_apart = 0
    for k, tie in enumerate(near_ties(3 + axes[0], 100)):
        signs = 1 - 2 * (k & 1), 1 - (k & 2)
        edges = [[x - 2.0 * WIDE, x - WIDE, x] if end else [x, x + WIDE] for x in tie.planes]
        cut = check_tie(tie, axes, signs, edges)
        if end:
            assert cut.stretches[-1].end == min(tie.exact)
        else:
            assert cut.stretches[0].begin == max(tie.exact)
        rounded_apart += rounded(tie.exact[0]) != rounded(tie.exact[1])
    assert rounded_apart > LEAST


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("outer", [False, True])
def test_ranges_that_begin_or_end_beside_a_plane(axes, end, outer):
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
            cut = check_tie(tie, axes, signs, [row, [other - WIDE, other + WIDE]], span)
            assert outer or limit in [x for one in cut.stretches for x in (one.begin, one.end)]
            product = plane * (1.0 / tie.directions[0])
            beside += np.sign(product - limit) != np.sign(time - Fraction(limit))
    assert beside > LEAST


@pytest.mark.parametrize("sign", [1, -1])
def test_ranges_that_begin_and_end_at_planes(sign):
    """Their times are powers of two: computed times are exact."""
    tie = NearTie((2.0, 8.0), (4.0, 16.0))  # both at 1/2
    row = [0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 4.0, 6.0, 8.0, 20.0]
    for begin, end, count in [(0.25, 0.5, 2), (0.5, 1.0, 2), (0.25, 0.75, 3), (0.5, 0.5, 0), (0.0, 1.0, 5)]:
        cut = check_tie(tie, (0, 1), (sign, -sign), row, (begin, end))
        assert len(cut.stretches) == count
