"""Cells of rays by computed times: where they are certain, they are those of rational arithmetic."""

from collections import Counter
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings

import exact_grid
import raybox as rb
from exact import rounded
from grids import even_grid, random_grid, random_rays
from raybox.compiler.entry_points import entry
from raybox.primitives.ray import get_ray
from raybox.queries import segments
from raybox.queries.all_hits.run import RowRoom
from raybox.queries.hit_sorting import HitArrays
from raybox.queries.path_sums.cells import CELL_SUM_HOOKS, CellSumRecorder
from raybox.traversal.grid_axes import axes_of
from raybox.traversal.grid_clip import INSIDE, course_of, scale_of
from raybox.traversal.plane_merge import is_certain, make_memory, merge
from raybox.traversal.plane_slabs import FEWEST, Way, pass_cells
from raybox.traversal.protocol import register
from raybox.traversal.slab_segments import PADDING, write_segments
from strategies import even_grids_and_rays
from stretches import Rounded

pytestmark = pytest.mark.jit

UNIT, TINY = Fraction(2) ** -50, Fraction(2) ** -1070
register(CELL_SUM_HOOKS, *segments.QUERY.hooks)
RECORDER = CellSumRecorder(np.empty((0, 1)), np.empty((0, 1)), np.empty(0), False)


class Found(NamedTuple):
    """How many cells there are, and what is known of their order."""

    status: int
    planes: int
    cells: int


@entry
def pass_ray(rows: Any, rays: Any, k: int, recorder: Any, memory: Any, found: Any) -> int:
    """Write the cells of a ray, its status and its planes; return how many cells are certain."""
    scales = scale_of(rows.x_edges), scale_of(rows.y_edges), scale_of(rows.z_edges)
    axes = axes_of(rows, get_ray(rays, k), True)
    course = course_of(recorder, get_ray(rays, k), axes, scales)
    found[0], found[1] = course.status, course.x.crossed + course.y.crossed + course.z.crossed
    if course.status != INSIDE:
        return 0
    return pass_cells(Way(axes, scales, course, memory), recorder.sums).cell_count


@entry
def write_ray(rows: Any, rays: Any, k: int, recorder: Any, memory: Any) -> int:
    """Write the cells of a ray in order from recorder.used[0] on; return how many are certain."""
    scales = scale_of(rows.x_edges), scale_of(rows.y_edges), scale_of(rows.z_edges)
    axes = axes_of(rows, get_ray(rays, k), True)
    course = course_of(recorder, get_ray(rays, k), axes, scales)
    if course.status != INSIDE:
        return 0
    way, hits = Way(axes, scales, course, memory), recorder.hits
    return write_segments(way, hits.index, hits.t, recorder.used[0])


def room_for(count: int) -> RowRoom:
    """Return room for so many cells behind three others, and guard items behind it."""
    index, t = np.full(count + 7, -77), np.full(count + 7, -77.0)
    hits = HitArrays(index[: count + 3], t[: count + 3], index[:0], t[:0])
    return RowRoom(hits, np.array([3]), np.empty(0, np.int64))


def check_order(cells: rb.Grid, rays: rb.Rays, k: int, memory, cut: exact_grid.Cut, number: int) -> bool:
    """Assert the cells of a ray in order, and times, if they are certain; return whether they are.

    number: how many cells a certain ray has. Items before them and behind the padding stay as they are.
    """
    rows = cells._rows(), rays._rows(), k
    assert write_ray(*rows, room_for(number + PADDING - 1), memory) == 0
    room = room_for(number + PADDING)
    count = write_ray(*rows, room, memory)
    for array in (room.hits.index.base, room.hits.t.base):
        assert (array[:3] == -77).all()
        assert (array[-4:] == -77).all()
    if count == 0:
        return False
    shape = (*cells.shape, 1)[:3]
    assert count == number
    assert room.hits.index[3 : 3 + count].tolist() == [
        np.ravel_multi_index((*one.cell, 0)[:3], shape) for one in cut.stretches
    ]
    assert room.hits.t[3 : 3 + count].tolist() == [rounded(one.begin) for one in cut.stretches]
    return True


def slabs_of(cells: rb.Grid, rays: rb.Rays, k: int, memory) -> Found:
    """Return what is found of one ray; guard items behind the memory stay as they are."""
    memory.keys[:], memory.cells[:] = -77, -77
    found = np.zeros(2, np.int64)
    count = pass_ray(cells._rows(), rays._rows(), k, RECORDER, memory, found)
    return Found(*found.tolist(), count)


def check_ray(cells: rb.Grid, rays: rb.Rays, k: int, memory) -> str:
    """Assert the cells of one ray, if they are certain; return what is found."""
    found = slabs_of(cells, rays, k, memory)
    if found.status != INSIDE:
        return "outside"
    if found.planes < FEWEST:
        assert found.cells == 0
        return "short"
    (cut,) = exact_grid.cut_all(cells.edges, rays[k : k + 1])
    ordered = check_order(cells, rays, k, memory, cut, found.planes + 1)
    if found.cells == 0:
        assert not ordered
        return "corner" if cut.corners else "uncertain"
    shape = (*cells.shape, 1)[:3]
    wanted = {np.ravel_multi_index((*one.cell, 0)[:3], shape): one for one in cut.stretches}
    listed = memory.cells[: found.cells].tolist()
    assert sorted(listed) == sorted(wanted)
    assert found.cells == found.planes + 1
    assert (memory.cells[found.cells : found.cells + 3] == listed[-1]).all()
    assert (memory.keys[found.cells : found.cells + 3] == 0).all()
    for cell, duration in zip(listed, memory.keys[: found.cells].view(np.float64).tolist(), strict=True):
        begin, end = wanted[cell].begin, wanted[cell].end
        assert duration > 0.0
        assert abs(Fraction(duration) - (end - begin)) <= UNIT * (abs(begin) + abs(end)) + TINY
    return "certain" if ordered else "unordered"


@pytest.mark.parametrize("seed", range(3))
def test_certain_cells_are_those_of_rational_arithmetic(seed):
    rng, counts = np.random.default_rng([296, seed]), Counter()
    shapes = [(9, 1, 30), (7, 8, 9), (40, 40), (1, 1, 70), (23, 24, 25), (8, 8, 8), (16, 2, 3)]
    for shape in shapes:
        cells = even_grid(rng, shape)
        rays, memory = random_rays(rng, cells, 240), make_memory(cells._rows())
        low, high = (np.broadcast_to(t, 240) for t in (rays.t_min, rays.t_max))
        for k in np.flatnonzero((rays.directions != 0.0).any(axis=1) & (low <= high)):
            counts[check_ray(cells, rays, k, memory), k < 80] += 1  # the first go anywhere
    assert counts["certain", True] > 60, counts
    assert counts["certain", False] > 100, counts
    assert counts["corner", False] > 20, counts
    assert counts["uncertain", True] * 5 < counts["certain", True], counts


def test_every_number_of_slabs_and_of_planes():
    """Rays along each axis, forth and back, that cross any number of planes of it, and few of the others."""
    rng, counts = np.random.default_rng(297), Counter()
    cells = even_grid(rng, (35, 36, 37))
    memory = make_memory(cells._rows())
    for axis in range(3):
        edges = cells.edges[axis]
        for number in range(1, len(edges) - 1):
            for back in (False, True):
                ends = np.array([[one[5] + 0.3 * (one[6] - one[5]) for one in cells.edges]] * 2)
                ends[:, axis] = (edges[:-1] + 0.4 * np.diff(edges))[[0, number]]
                for other in {0, 1, 2} - {axis}:
                    ends[1, other] += rng.choice([0.0, 0.3, 2.4]) * (
                        cells.edges[other][1] - cells.edges[other][0]
                    )
                rays = rb.Rays.segments(*(ends[::-1] if back else ends)[:, None])
                found = check_ray(cells, rays, 0, memory)
                counts[found] += 1
                assert found == "short" or number + 5 >= FEWEST
    assert counts["certain"] > 150, counts
    assert counts["uncertain"] < 20, counts


def test_slabs_with_two_planes_of_another_axis():
    """Planes that are moved a little, and rays that cross those of two axes at nearly the same rate."""
    rng, counts = np.random.default_rng(299), Counter()
    for _ in range(40):
        edges = [np.arange(31) + rng.uniform(-0.01, 0.01, 31) for _ in range(3)]
        cells, memory = rb.Grid(*edges), make_memory(rb.Grid(*edges)._rows())
        for _ in range(10):
            direction = np.array([1.0, 1.0 - rng.choice([0.0, 1e-6, 1e-3]), rng.uniform(0.1, 0.9)])
            direction = rng.permutation(direction) * rng.choice([-1.0, 1.0], 3)
            t = rng.uniform(8.0, 12.0, 2)
            origin = np.full(3, 15.3) + rng.uniform(0.0, 0.01, 3)
            rays = rb.Rays(origin[None], direction, t_min=-t[0], t_max=t[1])
            counts[check_ray(cells, rays, 0, memory)] += 1
    assert min(counts["certain"], counts["uncertain"]) > 30, counts


@pytest.mark.parametrize("steps", [(1, 1, 1), (2, 1, 1), (1, 2, 0), (3, 3, 1), (-1, 1, 2)])
def test_rays_through_edges_and_beside_them(steps):
    """Two planes at one time are never certain; a few ulps beside them, cells are exact or not certain."""
    rng, counts = np.random.default_rng(298), Counter()
    cells = rb.Grid(*[np.arange(33.0)] * 3)
    memory, direction = make_memory(cells._rows()), np.array(steps, float)
    for _ in range(300):
        through = rng.integers(8, 25, 3) + np.where(rng.random(3) < 0.1, 0.5, 0.0)
        origin = through - 40 * direction
        origin += rng.choice([0.0, 0.0, 1.0, 3.0, 2.0**8, 2.0**44]) * rng.normal(size=3) * 2.0**-47
        low, high = 40.0 + rng.uniform(1.0, 7.0, 2) * (-1.0, 1.0)
        rays = rb.Rays(origin[None], direction, t_min=low, t_max=high)
        counts[check_ray(cells, rays, 0, memory)] += 1
    assert min(counts["certain"], counts["corner"], counts["uncertain"]) > 5, counts


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("way", [3.0, -3.0])
def test_times_halfway_between_two_floats(axis, way):
    """No float64 quotient proves their rounding: such rays are cut otherwise."""
    cells, sign = rb.Grid(*[np.arange(-20.0, 20.0)] * 3), np.sign(way)
    for other in (0.7, 7.1):  # the axis crosses most planes, or another one
        for odd in (3, 9, 15):  # the time of a plane is 2 and so many sixths of a unit in the last place
            origin, direction = np.full(3, 0.3137), other * np.array([1.0, 1.13, 0.91])
            origin[axis], direction[axis] = -sign * odd * 2.0**-52, way
            rays = rb.Rays(origin[None], direction, t_min=0.3)
            assert check_ray(cells, rays, 0, make_memory(cells._rows())) == "unordered"
            (cut,) = exact_grid.cut_all(cells.edges, rays)
            times = [rounded(one.begin) for one in cut.stretches]
            assert rb.Scene(cells).segments(rays).t.tolist() == times
            assert {2.0, 2.0 + 2.0**-50, 2.0 + 2.0**-49} & set(times)


@given(even_grids_and_rays())
@settings(max_examples=400, deadline=None)
def test_any_even_grid(drawn):
    edges, rays = drawn
    cells = rb.Grid(*edges)
    if (rays.directions != 0.0).any():
        check_ray(cells, rays, 0, make_memory(cells._rows()))


# Planes merged by computed times


@entry
def is_decided(rows: Any, rays: Any, k: int, recorder: Any, memory: Any) -> int:
    """Return 1 if computed times decide the cells of a ray, in which order or that there are none."""
    scales = scale_of(rows.x_edges), scale_of(rows.y_edges), scale_of(rows.z_edges)
    ray = get_ray(rays, k)
    axes = axes_of(rows, ray, True)
    course = course_of(recorder, ray, axes, scales)
    if course.status != INSIDE:
        return 0
    return 1 if is_certain(merge(recorder, axes, course, memory), course.slack) else 0


@pytest.mark.core
def test_rays_that_go_anywhere_are_certain():
    """A merge that takes planes in a wrong order would leave them to exact arithmetic, which is slow."""
    rng, found = np.random.default_rng(294), Counter()
    cells = random_grid("random", rng, (7, 6, 5))
    rays, memory = random_rays(rng, cells, 600)[:200], make_memory(cells._rows())
    recorder = Rounded(np.empty((0, 2), np.int64), np.empty((0, 2)), np.zeros(1, np.int64))
    for k, cut in enumerate(exact_grid.cut_all(cells.edges, rays)):
        places = np.array([one.cell for one in cut.stretches]).reshape(-1, 3)
        if len(places) > 0 and (np.ptp(places, axis=0) > 1).all():
            found[is_decided(cells._rows(), rays._rows(), k, recorder, memory)] += 1
    assert found[1] > 20, found
    assert found[0] == 0, found


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_more_planes_than_there_is_memory_for(way):
    number = 70_000
    cells = rb.Grid(np.arange(number + 1.0), [0, 1, 2])
    origins = [[0.25 if way > 0.0 else number - 0.25, 0.5]] * 2
    ends = [[number - 0.25 if way > 0.0 else 0.25, 1.6], [0.5 * number, 0.75]]
    rays = rb.Rays.segments(origins, ends)
    assert make_memory(cells._rows()).cells.size < number
    segments = rb.Scene(cells).segments(rays)
    assert np.diff(segments.offsets).tolist() == [number + 1, number // 2]
    for k, row in enumerate(np.split(segments.index, segments.offsets[1:-1])):
        assert (np.diff(row // 2) * way >= 0).all()
        assert np.count_nonzero(np.diff(row % 2)) == (k == 0)
        assert np.unique(row // 2).size == np.diff(segments.offsets)[k] - (k == 0)
    np.testing.assert_allclose(np.add.reduceat(segments.lengths, segments.offsets[:-1]), rays_length(rays))


def rays_length(rays: rb.Rays) -> np.ndarray:
    """Return the lengths of segments."""
    return np.linalg.norm(rays.directions, axis=1)
