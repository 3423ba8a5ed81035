"""The partition of rays as in `exact_grid`, in integers: all times of a ray are scaled by one number.

Nothing here imports raybox. The definition is that of `exact_grid`: between two neighbouring times at which a
ray crosses planes, its middle point decides in which half-open cell it is. A time (plane - o)/d of floats is
a quotient of integers; multiplied by the product of all directions and a power of two, it is an integer.
"""

import math
from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import NamedTuple

import numpy as np


class Dyadic(NamedTuple):
    """Numbers as integers of one unit, 2^-bits."""

    numbers: list[int]
    bits: int


class Stretch(NamedTuple):
    """A stretch of positive length in one cell, by its number in C order; times are scaled."""

    cell: int
    begin: int
    end: int


class Cut(NamedTuple):
    """The partition of a ray."""

    stretches: list[Stretch]
    scale: int  # integers are times multiplied by it
    inside: int  # the scaled time that the ray is within the bounds of the grid
    corners: int  # times at which it crosses planes of several axes
    ends: int  # ends of its range that are on a plane
    in_planes: int  # axes without movement on which it runs in a plane


class AxisTimes(NamedTuple):
    """One axis of a ray and a grid; `times` is empty if the ray does not move, `place` is -1 if it does."""

    times: list[int]  # at which it crosses planes, increasing
    forward: bool
    cells: int
    place: int

    def place_at(self, time: int) -> int:
        """Return the place of the cell at a time that is not one of `times`; outside: -1, or `cells`."""
        if not self.times:
            return self.place
        if self.forward:
            return bisect_right(self.times, time) - 1
        return len(self.times) - bisect_left(self.times, time) - 1


def dyadic(values) -> Dyadic:
    """Return floats as integers."""
    ratios = [float(x).as_integer_ratio() for x in values]
    bits = max(q.bit_length() for _, q in ratios) - 1
    return Dyadic([p << (bits + 1 - q.bit_length()) for p, q in ratios], bits)


def _ways(edges: Dyadic, origin: float) -> Dyadic:
    """Return the differences of edges and an origin."""
    (o,), own = dyadic([origin])
    bits = max(edges.bits, own)
    up, o = bits - edges.bits, o << bits - own
    return Dyadic([(x << up) - o for x in edges.numbers], bits)


def _standing(ways: list[int]) -> int:
    """Return the place of an origin on one axis, -1 outside: cells are half-open, the last one is closed.

    ways: from the origin to each edge.
    """
    if ways[0] > 0 or ways[-1] < 0:
        return -1
    return min(bisect_right(ways, 0) - 1, len(ways) - 2)


def cut(planes: list[Dyadic], origin, direction, t_min: float, t_max: float) -> Cut:
    """Return the partition of one ray. planes: `dyadic` edges of each axis."""
    ways = [_ways(axis, o) for axis, o in zip(planes, origin, strict=True)]
    in_planes = sum(d == 0 and 0 in way.numbers for way, d in zip(ways, direction, strict=True))
    if not any(direction) or not t_min <= t_max:
        return Cut([], 1, 0, 0, 0, in_planes)
    axes, scale = _axis_times(planes, ways, direction, [t for t in (t_min, t_max) if math.isfinite(t)])
    crossed = [set(axis.times) for axis in axes if axis.times]
    events = set.union(*crossed)
    low = _scaled(t_min, scale) if math.isfinite(t_min) else min(events)
    high = _scaled(t_max, scale) if math.isfinite(t_max) else max(events)
    marks = sorted({low, high, *(t for t in events if low < t < high)}) if low < high else []
    stretches = [
        Stretch(cell, begin, end)
        for begin, end in pairwise(marks)
        if (cell := _cell_at(axes, (begin + end) >> 1)) is not None
    ]
    times = {t for one in stretches for t in (one.begin, one.end)}
    corners = sum(sum(t in axis for axis in crossed) > 1 for t in times) if len(crossed) > 1 else 0
    ends = math.isfinite(t_min) and low in times and low in events
    ends += math.isfinite(t_max) and high in times and high in events
    return Cut(stretches, scale, _inside(axes, low, high), corners, ends, in_planes)


def _axis_times(planes, ways: list[Dyadic], direction, limits: list[float]) -> tuple[list[AxisTimes], int]:
    """Return the times of all planes, and their scale, at which `limits` are even integers, too."""
    speeds = [dyadic([d]) for d in direction]
    product = math.prod(abs(speed.numbers[0]) for speed in speeds if speed.numbers[0])
    moving = [way.bits - speed.bits for way, speed in zip(ways, speeds, strict=True) if speed.numbers[0]]
    bits = 1 + max(0, *moving, *(dyadic([t]).bits for t in limits))  # one more: middles are integers
    axes = []
    for axis, way, speed in zip(planes, ways, speeds, strict=True):
        (d,), cells = speed.numbers, len(axis.numbers) - 1
        factor = (product // d) << bits + speed.bits - way.bits if d else 0
        times = [x * factor for x in way.numbers[:: -1 if d < 0 else 1]] if d else []
        axes.append(AxisTimes(times, d > 0, cells, -1 if d else _standing(way.numbers)))
    return axes, product << bits


def _scaled(t: float, scale: int) -> int:
    p, q = t.as_integer_ratio()
    return p * scale // q


def _cell_at(axes: list[AxisTimes], time: int) -> int | None:
    """Return the number of the cell at a time at which no plane is crossed; None outside."""
    number = 0
    for axis in axes:
        place = axis.place_at(time)
        if not 0 <= place < axis.cells:
            return None
        number = number * axis.cells + place
    return number


def _inside(axes: list[AxisTimes], low: int, high: int) -> int:
    """Return the time that a ray is within the bounds of the grid, which are closed."""
    for axis in axes:
        if axis.times:
            low, high = max(low, axis.times[0]), min(high, axis.times[-1])
        elif axis.place < 0:
            return 0
    return max(0, high - low)


def cut_all(edges, rays) -> list[Cut]:
    """Return the partition of each ray."""
    planes = [dyadic(axis) for axis in edges]
    low, high = (np.broadcast_to(t, len(rays.origins)).tolist() for t in (rays.t_min, rays.t_max))
    each = zip(rays.origins.tolist(), rays.directions.tolist(), low, high, strict=True)
    return [cut(planes, *ray) for ray in each]


def is_off(got: float, cut: Cut, stretches: list[Stretch], direction) -> bool:
    """Return whether a sum of lengths is off by more than 2^-52 (n + 8) S: see `Scene.integrate`."""
    if not stretches:
        return got != 0.0
    speed = dyadic(direction)
    root = math.isqrt(sum(x * x for x in speed.numbers) << 400)  # the length, scaled by 2^(200 + bits)
    scale = cut.scale << 200 + speed.bits
    size = root * sum(abs(one.begin) + abs(one.end) for one in stretches)
    length = root * sum(one.end - one.begin for one in stretches)
    p, q = got.as_integer_ratio()
    return abs(p * scale - length * q) << 52 > (len(stretches) + 8) * size * q
