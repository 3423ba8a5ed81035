"""The partition of rays by a grid against rational arithmetic."""

from collections import Counter

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


def test_lengths_add_up_to_the_length_inside_the_grid():
    rng = np.random.default_rng(282)
    for kind in KINDS:
        cells = random_grid(kind, rng, (20, 9, 14))
        rays = random_rays(rng, cells, 400)
        segments = rb.Scene(cells).segments(rays)
        total = np.zeros(400)
        np.add.at(total, segments.ray, segments.lengths)
        whole = rb.Scene(rb.Boxes(*cells.bounds)).all(rays)
        inside = np.zeros(400)
        moves = (rays.directions != 0.0).any(axis=1)
        inside[whole.ray] = whole.lengths
        outer = np.zeros(400)  # rays in the planes of the first and last edges are inside, too
        outer[whole.ray] = np.maximum(np.abs(whole.t_enter), np.abs(whole.t_exit))
        reach = np.linalg.norm(rays.directions, axis=1) * np.where(moves, outer, 0.0)
        assert (np.abs(total - inside)[moves] <= 2.0**-45 * reach[moves]).all()
        assert (inside > 0).sum() > 100


@pytest.mark.core
def test_a_ray_in_a_shared_face_runs_in_the_higher_cell():
    cells = rb.Grid([0, 1, 2], [0, 1, 2], [0, 1])
    rays = rb.Rays(
        [[-1, 1, 0.5], [1, -1, 0.5], [3, 2, 0.5], [0, 0, 0.5]], [[1, 0, 0], [0, 1, 0], [-1, 0, 0], [1, 1, 0]]
    )
    segments = rb.Scene(cells).segments(rays)
    assert segments.index.tolist() == [1, 3, 2, 3, 3, 1, 0, 3]
    assert segments.offsets.tolist() == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("geometry", [rb.Boxes([0, 0, 0], [1, 1, 1]), [rb.Grid([0, 1], [0, 1], [0, 1])] * 2])
def test_segments_need_a_scene_of_one_grid(geometry):
    with pytest.raises(rb.InvalidInput, match="segments needs a Scene of one Grid"):
        rb.Scene(geometry).segments(rb.Rays([0, 0, 0], [1, 0, 0]))
