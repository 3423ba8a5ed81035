"""How long a ray is in each cell of a grid, plane by plane in any order: no planes are merged.

Behind plane i of axis x, crossed at the time t, a ray is in a cell by its numbers of crossed planes: i + 1 of
x, j of y, k of z. It leaves this cell at the earliest time of plane i + 1 of x, j of y, k of z, and the end.
j and k are guessed, as if the planes of an axis were crossed at equal intervals: eight planes of x are
computed at a time.

**Why guesses are right.** Let n planes be crossed. Two things are tested:

    u - t > slack    for each plane, where u is the time at which the cell behind it is left
    the sum of all i + 1 + j + k is n (n + 1) / 2

By the first, the times of each axis ascend, and no more than i + 1 + j + k planes have times up to t. These
numbers of planes add up to at least 1 + 2 + ... + n, and to more if two times are equal. So by the second,
all are equal: j and k are right. The plane that follows in the order of time is then the one crossed at u:
times differ by more than the slack, and their computed order is exact (`raybox.traversal.segments`). The
begin is tested alike. These are the conditions of `raybox.traversal.plane_merge.is_certain`, and cells and
times are those of `merge`, bit for bit.

Where an axis has no plane left, plane j is that by which the ray leaves its last cell on this axis: its
computed time is no earlier than the end (`raybox.traversal.grid_clip`).
"""

from typing import NamedTuple

import numpy as np

from raybox.compiler.decorators import device, inlined
from raybox.compiler.intrinsics import Fields, int64, smaller, vector_code, void
from raybox.compiler.simd import (
    F64,
    I32,
    I64,
    Builder,
    Lanes,
    Scalar,
    constant,
    greater,
    lesser,
    splat,
    steps,
)
from raybox.compiler.simd_arrays import Memory, Register, loop
from raybox.traversal.grid_axes import GridAxes, GridAxis
from raybox.traversal.grid_clip import AxisCourse, AxisScales, Course
from raybox.traversal.plane_merge import MergeMemory
from raybox.traversal.time_keys import PADDING, Passages, Stretches, put, times_of
from raybox.validation import Floats

_LANES = 8
FEWEST = 8  # planes: fewer are merged in less time
_EVEN = 2.0**-6  # of a cell


class Crossings(NamedTuple):
    """The planes of one axis that a ray crosses."""

    edges: Floats
    origin: float
    inverse: float  # NaN if there are none: then all times are the end
    first: int  # number of the first plane
    step: int
    crossed: int
    stride: int
    rate: float  # planes in a unit of time, on average


class Passage(NamedTuple):
    """What is the same for all planes of a ray."""

    begin: float
    end: float
    slack: float
    cell: int  # the first


def _times(b: Builder, axis: Fields, planes: Lanes, end: Scalar) -> Lanes:
    """Return the computed times of planes, but no later than the end."""
    ways = planes - splat(b, axis.origin, _LANES)
    return lesser(ways * splat(b, axis.inverse, _LANES), splat(b, end, _LANES))


def _planes_from(b: Builder, axis: Fields, place: Scalar, is_plane: Lanes) -> Lanes:
    """Return planes from a place on, in the order of travel; only those of a mask are loaded."""
    first = b.add(axis.first, b.mul(axis.step, place))
    backwards = list(range(_LANES))[::-1]
    up = b.icmp_signed(">", axis.step, I64(0))
    mask = Lanes(b, b.select(up, is_plane.value, is_plane.permuted(backwards).value))
    found = axis.edges.load_some(b.select(up, first, b.sub(first, I64(_LANES - 1))), mask)
    return Lanes(b, b.select(up, found.value, found.permuted(backwards).value))


def _planes_at(b: Builder, axis: Fields, places: Lanes) -> Lanes:
    """Return planes by their places in the order of travel."""
    down = splat(b, b.ashr(axis.step, I64(63)), _LANES)
    return axis.edges.pick((places ^ down) - down + splat(b, axis.first, _LANES))


@vector_code(int64)
def _cross(b: Builder, memory: Fields, axis: Fields, others: list[Fields], ray: Fields, at: Scalar) -> Scalar:
    """Write the cells behind the planes of one axis, and how long the ray is in each, from `at` on.

    Return the sum of their ranks; one that is too large if times are not certain.
    """
    ranks, most = Register(b, constant(b, I64, _LANES, 0).value), splat(b, axis.crossed, _LANES)
    slack = splat(b, ray.slack, _LANES)
    ahead = steps(b, I64(0), _LANES) * splat(b, axis.stride, _LANES)
    with loop(b, axis.crossed, _LANES) as s:
        numbers = steps(b, s, _LANES)
        is_plane = numbers < most
        t = _times(b, axis, _planes_from(b, axis, s, is_plane), ray.end)
        until = _times(b, axis, _planes_from(b, axis, b.add(s, I64(1)), is_plane), ray.end)
        rank = numbers + 1
        cells = ahead + splat(b, b.add(ray.cell, b.mul(b.add(s, I64(1)), axis.stride)), _LANES)
        for other in others:
            count = splat(b, b.sitofp(other.crossed, F64), _LANES)
            start = b.fmul(b.fsub(other.edges.get(other.first), other.origin), other.inverse)
            guess = (t - splat(b, start, _LANES)) * splat(b, other.rate, _LANES) + 1.0
            crossed = lesser(greater(guess, 0.0), count).to(I32).to(I64)
            until = lesser(_times(b, other, _planes_at(b, other, crossed), ray.end), until)
            rank += crossed
            cells += crossed * splat(b, b.trunc(other.stride, I32), _LANES).to(I64)
        certain = until - t > slack
        rank = certain.choose(rank, constant(b, I64, _LANES, 1 << 40))
        ranks.value = (ranks.lanes + is_plane.choose(rank, constant(b, I64, _LANES, 0))).value
        memory.keys.store((until - t).bits(I64), b.add(at, s))
        memory.cells.store(cells, b.add(at, s))
    four = ranks.lanes
    while four.count > 1:
        low, high = four.halves()
        four = low + high
    return four.lane(0)


@inlined
def _crossings(axis: GridAxis, course: AxisCourse, density: float) -> Crossings:
    first, rate = course.first + axis.ahead, abs(axis.direction) * density
    inverse = axis.inverse if course.crossed > 0 else np.nan
    return Crossings(axis.edges, axis.origin, inverse, first, axis.step, course.crossed, axis.stride, rate)


@inlined
def _first_time(axis: Crossings, end: float) -> float:
    """Return the time of the first plane; the end if there is none."""
    return (axis.edges[axis.first] - axis.origin) * axis.inverse if axis.crossed > 0 else end


@inlined
def pass_cells(axes: GridAxes, scales: AxisScales, course: Course, memory: MergeMemory) -> Passages:
    """Write and return the cells of a ray, and how long it is in each; none, if that is not certain."""
    x = _crossings(axes[0], course.x, scales[0].density)
    y = _crossings(axes[1], course.y, scales[1].density)
    z = _crossings(axes[2], course.z, scales[2].density)
    first = course.x.first * abs(x.stride) + course.y.first * abs(y.stride) + course.z.first
    ray = Passage(course.begin, course.end, course.slack, first)
    ranks = _cross(memory, x, (y, z), ray, 0)
    ranks += _cross(memory, y, (x, z), ray, x.crossed)
    ranks += _cross(memory, z, (x, y), ray, x.crossed + y.crossed)
    count = x.crossed + y.crossed + z.crossed
    until = smaller(smaller(_first_time(x, ray.end), _first_time(y, ray.end)), _first_time(z, ray.end))
    certain = ranks == count * (count + 1) >> 1 and until - ray.begin > ray.slack
    put_duration(memory.keys, count, until - ray.begin)
    for s in range(count, count + PADDING + 1):
        put(memory.cells, s, first)
    for s in range(count + 1, count + PADDING + 1):
        put(memory.keys, s, 0)
    return Passages(memory.keys, memory.cells, count + 1 if certain else 0)


@device
def are_even(edges: Floats) -> bool:
    """Return whether planes are so nearly at equal distances that most guesses are right."""
    cells = edges.size - 1
    pitch, off = (edges[cells] - edges[0]) / cells, 0.0
    for k in range(cells + 1):
        off = max(off, abs(edges[k] - edges[0] - k * pitch))
    return off <= _EVEN * pitch


@inlined
def passages_of(stretches: Stretches) -> Passages:
    """Return stretches by how long they are, in the same memory."""
    _put_durations(stretches.keys, stretches.cell_count)
    return Passages(stretches.keys, stretches.cells, stretches.cell_count)


@vector_code(void)
def _put_durations(b: Builder, keys: Memory, count: Scalar) -> None:
    with loop(b, count, PADDING + 1) as s:
        begin, end = (times_of(keys.load(b.add(s, I64(k)), PADDING + 1)) for k in (0, 1))
        keys.store((end - begin).bits(I64), s)


@vector_code(void)
def put_duration(b: Builder, durations: Memory, place: Scalar, duration: Scalar) -> None:
    """Store the bits of a time."""
    durations.put(b.bitcast(duration, I64), place)
