"""Planes merged by computed times: where these prove the order, it is that of rational arithmetic."""

from collections import Counter
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

import exact_grid
import raybox as rb
from grids import KINDS, random_grid, random_rays
from raybox.compiler.decorators import device
from raybox.compiler.entry_points import entry
from raybox.primitives.ray import get_ray
from raybox.traversal.grid_axes import axes_of
from raybox.traversal.grid_clip import INSIDE, OUTSIDE, UNDECIDED, course_of, scale_of
from raybox.traversal.plane_merge import is_certain, make_memory, merge
from raybox.traversal.protocol import SegmentHooks, register
from raybox.traversal.time_keys import get, key_of, time_of

pytestmark = pytest.mark.jit

UNIT, TINY = Fraction(2) ** -50, Fraction(2) ** -1070


class Nothing(NamedTuple):
    """A recorder of nothing."""

    array: Any


@device
def _begin(_recorder: Nothing, k: int) -> int:
    return k


@device
def _record(_recorder: Nothing, k: int, _ray: Any, _cell: int, _t_enter: float, _t_exit: float) -> int:
    return k


@device
def _end(_recorder: Nothing, _state: int, _k: int) -> bool:
    return True


register(SegmentHooks(Nothing, _begin, _record, _end))


@entry
def merge_ray(rows: Any, rays: Any, k: int, recorder: Any, memory: Any, status: Any) -> int:
    """Merge the planes that a ray crosses; return how many cells there are, and whether they are certain."""
    scales = scale_of(rows.x_edges), scale_of(rows.y_edges), scale_of(rows.z_edges)
    ray = get_ray(rays, k)
    axes = axes_of(rows, ray, True)
    course = course_of(recorder, ray, axes, scales)
    status[0], status[1] = course.status, 0
    if course.status != INSIDE:
        return 0
    stretches = merge(recorder, axes, course, memory)
    status[1] = is_certain(stretches, course.slack)
    return stretches.cell_count


@entry
def write_times(keys: Any, times: Any) -> None:
    """Write the times of keys."""
    for k in range(times.size):
        times[k] = time_of(get(keys, k))


@entry
def write_keys(times: Any, keys: Any) -> None:
    """Write the keys of times."""
    for k in range(times.size):
        keys[k] = key_of(times[k])


def check_ray(cells: rb.Grid, rays: rb.Rays, k: int, memory) -> str:
    """Assert the cells of one ray, if they are certain; return what is found."""
    (cut,) = exact_grid.cut_all(cells.edges, rays[k : k + 1])
    status = np.zeros(2, np.int64)
    count = merge_ray(cells._rows(), rays._rows(), k, Nothing(np.empty(0)), memory, status)
    if status[0] == OUTSIDE:
        assert not cut.stretches
        return "outside"
    if status[0] == UNDECIDED or not status[1]:
        return "undecided"
    wanted = [np.ravel_multi_index(one.cell, cells.shape) for one in cut.stretches]
    assert memory.cells[:count].tolist() == wanted
    assert (memory.cells[count : count + 3] == wanted[-1]).all()
    times = np.empty(count + 4)
    write_times(memory.keys[: count + 4], times)
    assert (times[count:] == times[count]).all()
    for time, exact in zip(
        times, [*(one.begin for one in cut.stretches), cut.stretches[-1].end], strict=False
    ):
        assert abs(Fraction(float(time)) - exact) <= UNIT * abs(exact) + TINY
    return "certain"


@pytest.mark.parametrize("kind", KINDS)
def test_certain_cells_are_those_of_rational_arithmetic(kind):
    rng, counts = np.random.default_rng([290, KINDS.index(kind)]), Counter()
    for shape in [(5, 6, 7), (1, 1, 1), (9, 1, 30), (64, 2, 2), (6, 5)]:
        cells = random_grid(kind, rng, shape)
        rays, memory = random_rays(rng, cells, 120), make_memory(cells._rows())
        low, high = (np.broadcast_to(t, 120) for t in (rays.t_min, rays.t_max))
        moves = (rays.directions != 0.0).any(axis=1) & (low <= high)
        for k in np.flatnonzero(moves):
            generic = k < 40  # goes anywhere: see `random_rays`
            counts[check_ray(cells, rays, k, memory), generic] += 1
    assert min(counts[name, any_way] for name in ("certain", "outside") for any_way in (True, False)) > 9, (
        counts
    )
    assert counts["undecided", False] > 30, counts
    assert counts["undecided", True] < counts["certain", True], counts


@pytest.mark.parametrize("kind", ["random", "map"])
def test_ranges_that_begin_and_end_beside_planes(kind):
    rng, found = np.random.default_rng([292, kind == "map"]), Counter()
    cells = random_grid(kind, rng, (9, 8, 7))
    rays, memory = random_rays(rng, cells, 1200), make_memory(cells._rows())
    rays = rays[(rays.directions != 0.0).all(axis=1)][:300]
    axis, rows = rng.integers(0, 3, (2, 300)), np.arange(300)
    planes = [[rng.choice(cells.edges[a][[0, 0, -1, -1, 2, 3, 5]]) for a in row] for row in axis]
    times = (planes - rays.origins[rows, axis]) / rays.directions[rows, axis]
    for _ in range(2):
        times = np.nextafter(times, times + rng.integers(-1, 2, times.shape))
    for k in range(2):  # at the begin, and at the end
        t_min, t_max = (times[0], np.inf) if k == 0 else (-np.inf, times[0])
        beside = rb.Rays(rays.origins, rays.directions, t_min=t_min, t_max=t_max)
        found.update(check_ray(cells, beside, r, memory) for r in range(300))
    assert min(found["certain"], found["undecided"], found["outside"]) > 20, found


@pytest.mark.core
def test_rays_that_go_anywhere_are_certain():
    """A merge that takes planes in a wrong order would leave them to exact arithmetic, which is slow."""
    rng, found = np.random.default_rng(294), Counter()
    cells = random_grid("random", rng, (7, 6, 5))
    rays, memory = random_rays(rng, cells, 600)[:200], make_memory(cells._rows())
    for k, cut in enumerate(exact_grid.cut_all(cells.edges, rays)):
        places = np.array([one.cell for one in cut.stretches]).reshape(-1, 3)
        long = len(places) > 0 and (np.ptp(places, axis=0) > 1).all()
        found[check_ray(cells, rays, k, memory), bool(long)] += 1
    assert found["certain", True] > 20, found
    assert found["undecided", True] == 0, found


def test_keys_order_like_times():
    rng = np.random.default_rng(291)
    times = np.concatenate(
        [rng.normal(size=500) * 10.0 ** rng.integers(-300, 300, 500), [-5e-324, 0.0, 5e-324]]
    )
    times = np.sort(np.concatenate([times, [-np.inf, np.inf]]))
    keys, back = np.empty(times.size, np.int64), np.empty(times.size)
    write_keys(times, keys)
    assert (keys[1:] > keys[:-1]).all()
    write_times(keys, back)
    np.testing.assert_array_equal(back.view(np.int64), times.view(np.int64))


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
