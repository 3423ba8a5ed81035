"""The independent truth of partitions: rays cut by the cells of a grid in rational arithmetic.

Nothing here imports raybox. Between two neighbouring times at which a ray crosses planes of the grid, its
middle point decides in which cell it is: cells are half-open, ``lower <= p < upper`` on every axis, and the
last cell of an axis is closed.
"""

import math
from bisect import bisect_right
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np


class Stretch(NamedTuple):
    """A stretch of positive length in one cell, by its place on each axis."""

    cell: tuple[int, ...]
    begin: Fraction
    end: Fraction


class Cut(NamedTuple):
    """The stretches of a ray; how many planes it crosses along with others; how many it begins or ends on."""

    stretches: list[Stretch]
    corners: int
    ends: int
    in_planes: int  # axes without movement on which it runs in a plane


def cut(edges, origin, direction, t_min: float, t_max: float) -> Cut:
    """Return the partition of one ray."""
    planes = [[Fraction(float(x)) for x in axis] for axis in edges]
    o, d = ([Fraction(float(x)) for x in vector] for vector in (origin, direction))
    crossed = [{(x - p) / q for x in axis} for axis, p, q in zip(planes, o, d, strict=True) if q != 0]
    in_planes = sum(q == 0 and p in axis for axis, p, q in zip(planes, o, d, strict=True))
    if not crossed or not t_min <= t_max:
        return Cut([], 0, 0, in_planes)
    events = set.union(*crossed)
    low = min(events) if math.isinf(t_min) else Fraction(t_min)
    high = max(events) if math.isinf(t_max) else Fraction(t_max)
    marks = sorted({low, high, *(t for t in events if low < t < high)}) if low < high else []
    found: list[Stretch] = []
    for begin, end in pairwise(marks):
        middle = (begin + end) / 2
        cell = _cell_of(planes, [p + middle * q for p, q in zip(o, d, strict=True)])
        if cell is None:
            continue
        if found and found[-1].cell == cell and found[-1].end == begin:
            begin = found.pop().begin  # noqa: PLW2901  # planes that another axis crosses outside of the grid
        found.append(Stretch(cell, begin, end))
    times = [t for one in found for t in (one.begin, one.end)]
    corners = sum(sum(t in axis for axis in crossed) > 1 for t in set(times))
    return Cut(found, corners, sum(t in events and t in (t_min, t_max) for t in set(times)), in_planes)


def _cell_of(planes, point) -> tuple[int, ...] | None:
    """Return the place of the half-open cell that contains a point; None outside."""
    places = []
    for axis, x in zip(planes, point, strict=True):
        if not axis[0] <= x <= axis[-1]:
            return None
        places.append(min(bisect_right(axis, x) - 1, len(axis) - 2))
    return tuple(places)


def cut_all(edges, rays) -> list[Cut]:
    """Return the partition of each ray."""
    low, high = (np.broadcast_to(t, len(rays.origins)) for t in (rays.t_min, rays.t_max))
    return [cut(edges, *ray) for ray in zip(rays.origins, rays.directions, low, high, strict=True)]
