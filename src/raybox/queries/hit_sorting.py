"""Sort a ray's hits, by time or exactly, then by index: insertion in short runs, then merging."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from raybox.compiler.decorators import declare, device
from raybox.geometry import PrimitiveRows
from raybox.primitives.instance_ray import AnyRay
from raybox.primitives.table import tie
from raybox.validation import Floats, Ints

_RUN = 8  # shorter runs are sorted by insertion


Contact: TypeAlias = tuple[int, float]
"""The index and the time of a hit."""


class HitArrays(NamedTuple):
    """Memory for hits of many rays, and as much again for sorting them."""

    index: Ints  # type: ignore[assignment]  # not the method of tuples
    t: Floats
    spare_index: Ints
    spare_t: Floats


def make_hit_arrays(size: int) -> HitArrays:
    """Make memory for so many hits."""
    return HitArrays(np.empty(size, np.int64), np.empty(size), np.empty(size, np.int64), np.empty(size))


class ByTime(NamedTuple):
    """Order by time, then by number."""

    dummy: int


class Exactly(NamedTuple):
    """Order one ray's hits by exact time, then by index."""

    rows: PrimitiveRows
    ray: AnyRay


@device
def _before_by_time(_how: ByTime, one: Contact, other: Contact) -> bool:
    return one[1] < other[1] or (one[1] == other[1] and one[0] < other[0])


ORDERS: dict[type, object] = {ByTime: _before_by_time}


before: Callable[[ByTime | Exactly, Contact, Contact], bool] = declare("before", ORDERS.get)
"""Return whether one hit comes before another, by the order that the first argument stands for."""


@device
def sort(how: ByTime | Exactly, hits: HitArrays, start: int, stop: int) -> None:
    """Sort the hits start <= k < stop."""
    index, t = hits.index, hits.t
    for begin in range(start, stop, _RUN):
        for k in range(begin + 1, min(begin + _RUN, stop)):
            i, when = index[k], t[k]
            place = k
            while place > begin and before(how, (i, when), (index[place - 1], t[place - 1])):
                index[place] = index[place - 1]
                t[place] = t[place - 1]
                place -= 1
            index[place] = i
            t[place] = when
    width = _RUN
    while width < stop - start:
        for begin in range(start, stop, 2 * width):
            _merge(how, hits, (begin, min(begin + width, stop), min(begin + 2 * width, stop)))
        width *= 2


@device
def _merge(how: ByTime | Exactly, hits: HitArrays, bounds: tuple[int, int, int]) -> None:
    """Merge two neighbouring sorted runs, through the spare memory."""
    index, t = hits.index, hits.t
    begin, middle, end = bounds
    for k in range(begin, end):
        hits.spare_index[k] = index[k]
        hits.spare_t[k] = t[k]
    i, j = begin, middle
    for k in range(begin, end):
        one = (hits.spare_index[min(i, end - 1)], hits.spare_t[min(i, end - 1)])
        other = (hits.spare_index[min(j, end - 1)], hits.spare_t[min(j, end - 1)])
        if j >= end or (i < middle and not before(how, other, one)):
            index[k], t[k] = one
            i += 1
        else:
            index[k], t[k] = other
            j += 1


@device
def is_before(rows: PrimitiveRows, ray: AnyRay, one: Contact, other: Contact) -> bool:
    """Return whether the first of two hits (index, t) comes first: exactly, by index where they tie."""
    i, t_i = one
    j, t_j = other
    if t_i != t_j:
        return t_i < t_j
    order = tie(rows, ray, i, j)
    return order < 0 or (order == 0 and i < j)


@device
def _is_before_exactly(how: Exactly, one: Contact, other: Contact) -> bool:
    return is_before(how.rows, how.ray, one, other)


ORDERS[Exactly] = _is_before_exactly
