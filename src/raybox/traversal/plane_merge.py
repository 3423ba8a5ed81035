"""The planes that a ray crosses in a grid, merged by time without branches.

The crossing times of each axis are sorted already. Which axis comes next is random for most rays: a branch
would be predicted wrongly at every other plane. Two merges run in one loop, from the first time onwards and
from the last one backwards, each for half of the planes: while one waits for its loads, the other goes on.
Times are compared as integers (`raybox.traversal.time_keys`), which takes fewer cycles than floats.

Where times are equal, or were rounded out of order, the cells are wrong: `is_certain` finds that out.
"""

from typing import NamedTuple

import numpy as np

from raybox.compiler.decorators import inlined
from raybox.compiler.intrinsics import Fields, int64, larger, smaller, vector_code
from raybox.compiler.simd import I64, Builder, Lanes, Scalar
from raybox.compiler.simd_arrays import Memory
from raybox.geometry import GridRows
from raybox.traversal.grid_axes import (
    GridAxes,
    GridAxis,
    exact_time,
    exact_times,
    product_time,
    product_times,
)
from raybox.traversal.grid_clip import AxisCourse, Course
from raybox.traversal.job import Recorder
from raybox.traversal.protocol import has_exact_times, prefetch_cell
from raybox.traversal.time_keys import HIGHEST, LOWEST, PADDING, Stretches, get, key_of, keys_of, put, time_of
from raybox.validation import Ints

_LANES = 4
_MOST = 1 << 16  # planes of a ray: others go one by one


class MergeMemory(NamedTuple):
    """Memory for the planes that one ray crosses."""

    planes: Ints  # keys of the times of each axis in turn, between keys beyond all others
    keys: Ints  # see `Stretches`
    cells: Ints


def make_memory(rows: GridRows) -> MergeMemory:
    """Return memory for rays through a grid."""
    most = min(sum(edges.size for edges in (rows.x_edges, rows.y_edges, rows.z_edges)), _MOST)
    planes, keys, cells = (np.empty(most + 4 * _LANES, np.int64) for _ in range(3))
    return MergeMemory(planes, keys, cells)


@inlined
def has_room(memory: MergeMemory, course: Course) -> bool:
    """Return whether there is memory for all planes that a ray crosses."""
    return course.x.crossed + course.y.crossed + course.z.crossed + 4 * _LANES <= memory.planes.size


@vector_code(int64)
def _put_four(
    b: Builder, keys: Memory, place: Scalar, axis: Fields, lowest: Scalar, is_exact: Scalar
) -> Scalar:
    """Store the keys of four planes, lowest and the next three, in the order in which a ray crosses them.

    is_exact: whether their times are rounded once. Return 0 if the rounding of one is undecided.
    """
    planes = axis.edges.load(lowest, _LANES)
    known, exact = exact_times(b, axis, planes)
    found = keys_of(Lanes(b, b.select(is_exact, exact.value, product_times(b, axis, planes).value)))
    back = found.permuted([3, 2, 1, 0])
    keys.store(Lanes(b, b.select(b.icmp_signed("==", axis.ahead, I64(1)), found.value, back.value)), place)
    return b.zext(b.or_(b.not_(is_exact), b.not_((~known).any())), I64)


@inlined
def _write_planes(recorder: Recorder, axis: GridAxis, course: AxisCourse, planes: Ints, begin: int) -> int:
    """Write the keys of the times at which a ray crosses planes of one axis; return where they end."""
    count, plane, is_exact = course.crossed, course.first + axis.ahead, has_exact_times(recorder)
    back = 0 if axis.ahead == 1 else _LANES - 1
    for block in range(0, count, _LANES):
        s = smaller(block, count - _LANES)  # so that no edge past the last one is read
        if s < 0 or _put_four(planes, begin + s, axis, plane + s * axis.step - back, is_exact) == 0:
            for r in range(larger(s, 0), smaller(block + _LANES, count)):
                number = plane + r * axis.step
                time = exact_time(axis, number) if is_exact else product_time(axis, number)
                put(planes, begin + r, key_of(time))
    put(planes, begin - 1, LOWEST)
    put(planes, begin + count, HIGHEST)
    return begin + count


@inlined
def merge(recorder: Recorder, axes: GridAxes, course: Course, memory: MergeMemory) -> Stretches:
    """Write and return the stretches of a ray, by the computed order of all planes."""
    x, y, z = axes
    planes, keys, cells = memory
    # The keys of x, y and z, with a key beyond all others on both sides of each.
    begin_x = 1
    end_x = _write_planes(recorder, x, course.x, planes, begin_x)
    begin_y = end_x + 2
    end_y = _write_planes(recorder, y, course.y, planes, begin_y)
    begin_z = end_y + 2
    end_z = _write_planes(recorder, z, course.z, planes, begin_z)

    count = course.x.crossed + course.y.crossed + course.z.crossed
    in_x, in_z = x.stride - y.stride, z.stride - y.stride
    first = course.x.first * abs(x.stride) + course.y.first * abs(y.stride) + course.z.first
    last = first + course.x.crossed * x.stride + course.y.crossed * y.stride + course.z.crossed * z.stride
    put(keys, 0, key_of(course.begin))
    put(cells, 0, first)
    for s in range(count, count + PADDING + 1):
        put(cells, s, last)
        put(keys, s + 1, key_of(course.end))

    # Forwards, the next plane of x is i, that of z is k; backwards, p and q.
    i, k, p, q = begin_x, begin_z, end_x - 1, end_z - 1
    forth, back = begin_y + i + k, end_y - 1 + p + q
    first -= i * in_x + k * in_z
    last -= p * in_x + q * in_z
    half = count >> 1
    for s in range(half):
        one, two, three = get(planes, i), get(planes, forth + s - i - k), get(planes, k)
        put(keys, 1 + s, smaller(smaller(one, two), three))
        before_y, before_z, y_before_z = one < two, one < three, two < three
        i += before_y & before_z
        k += 1 - (before_z | y_before_z)
        first += y.stride
        cell = first + i * in_x + k * in_z
        prefetch_cell(recorder, cell)
        put(cells, 1 + s, cell)

        one, two, three = get(planes, p), get(planes, back - s - p - q), get(planes, q)
        put(keys, count - s, larger(larger(one, two), three))
        after_y, after_z, y_after_z = one > two, one > three, two > three
        p -= after_y & after_z
        q -= 1 - (after_z | y_after_z)
        last -= y.stride
        cell = last + p * in_x + q * in_z
        prefetch_cell(recorder, cell)
        put(cells, count - s - 1, cell)
    if count & 1:
        one, two, three = get(planes, i), get(planes, forth + half - i - k), get(planes, k)
        put(keys, 1 + half, smaller(smaller(one, two), three))
    return Stretches(keys, cells, count + 1)


@inlined
def is_certain(found: Stretches, slack: float) -> bool:
    """Return whether each time is later than the one before by more than the slack."""
    close = 0
    for s in range(found.cell_count):
        gap = time_of(get(found.keys, s + 1)) - time_of(get(found.keys, s))
        close += 1 - (gap > slack)
    return close == 0
