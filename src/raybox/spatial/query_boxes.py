"""What scenes are searched with: boxes or points, their distances, and the order in which they are taken."""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from raybox.bvh.frame import FramedBoxes, choose_frame, frozen
from raybox.bvh.hilbert_curve import BITS, find_places, make_curve_workspace, make_grid
from raybox.compiler.decorators import inlined
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import prefetch
from raybox.compiler.struct_ref import struct
from raybox.exact.double_double import Vector3
from raybox.geometry.rows import NO_STARTS
from raybox.validation import Floats, Ints, Ints32, freeze

NO_DISTANCES, NO_ORDER, NO_NUMBERS = np.empty(0), np.empty(0, np.int32), np.empty(0, np.int64)
freeze(NO_DISTANCES, NO_ORDER, NO_NUMBERS)
SORTED_FROM = 1 << 11  # queries: fewer are searched in the order given
_MOST_BITS = 15  # of a place on the curve: its buckets are in a core's second cache
_AHEAD = 8
_IN_BUCKET = 4  # queries, as a power of two


@struct
class QueryBoxes(NamedTuple):
    """Boxes to compare with those of a scene; points are boxes without thickness."""

    lower: Floats
    """(N, 3)"""
    upper: Floats
    """(N, 3)"""
    distances: Floats = NO_DISTANCES
    """(1,) or (N,): boxes at most so far away are found; (0,): those that overlap"""
    starts: Ints32 = NO_STARTS
    """(1,) or (N,): the row of `Tree.starts` of the group of each, or `ALL_GROUPS`; (0,): without groups"""
    order: Ints32 = NO_ORDER
    """(N,): in which they are searched; (0,): in their own"""
    numbers: Ints = NO_NUMBERS
    """(N,): among the rows that are searched, of which each finds those after it; (0,): they are others"""


N = TypeVar("N", bound=np.generic)


class Corners(NamedTuple):
    """A box in registers."""

    lower: Vector3
    upper: Vector3


@inlined
def corners_of(lower: Floats, upper: Floats, i: int) -> Corners:
    """Return row i of boxes."""
    return Corners((lower[i, 0], lower[i, 1], lower[i, 2]), (upper[i, 0], upper[i, 1], upper[i, 2]))


@inlined
def distance_of(queries: QueryBoxes, q: int) -> float:
    """Return how far from query q boxes may be."""
    return float(queries.distances[q if queries.distances.size > 1 else 0])


@inlined
def is_before(queries: QueryBoxes, q: int, number: int) -> bool:
    """Return whether query q comes before a row of the same scene, or is of another."""
    return queries.numbers.size == 0 or bool(queries.numbers[q] < number)


@inlined
def next_query(queries: QueryBoxes, k: int) -> int:
    """Return the number of the query that is searched k-th, and prefetch a later one."""
    order = queries.order
    if order.size == 0:
        return k
    later = 3 * int(order[min(k + _AHEAD, order.size - 1)])
    prefetch(queries.lower, later)
    prefetch(queries.upper, later)
    return int(order[k])


@entry
def _write_order(places: Ints, shift: int, ends: Ints, order: Ints32) -> None:
    """Write numbers in the order of the buckets of their places; `ends`: where each bucket begins."""
    for q in range(places.size):
        bucket = places[q] >> shift
        order[ends[bucket]] = q
        ends[bucket] += 1


def curve_order(lower: Floats, upper: Floats) -> Ints32:
    """Return the order of boxes along a Hilbert curve, about; empty for few, which stay as they are."""
    count = len(lower)
    if count < SORTED_FROM:
        return NO_ORDER
    center, exponent, reach = choose_frame(lower, upper)
    boxes = FramedBoxes(frozen(lower), frozen(upper), center, 2.0**exponent)
    bits = min(_MOST_BITS, max(0, count.bit_length() - _IN_BUCKET))
    places, counts = np.empty(count, np.int64), np.zeros(1 << bits, np.int64)
    workspace = make_curve_workspace(make_grid(boxes, reach))
    find_places(boxes, (0, count), workspace, BITS - bits, places, counts)
    order = np.empty(count, np.int32)
    _write_order(places, BITS - bits, np.cumsum(counts) - counts, order)
    freeze(order)
    return order


def batch_of(queries: QueryBoxes, begin: int, end: int) -> QueryBoxes:
    """Return the queries begin <= k < end, with the order in which they are searched."""
    some = select_queries(queries, slice(begin, end))
    return some._replace(order=curve_order(some.lower, some.upper))


def select_queries(queries: QueryBoxes, some: "slice[int, int, None] | Ints") -> QueryBoxes:
    """Return some queries, frozen, in their own order."""
    lower, upper = frozen(queries.lower[some]), frozen(queries.upper[some])
    distances, starts = _some(queries.distances, some), _some(queries.starts, some)
    numbers = _some(queries.numbers, some)
    freeze(distances, starts, numbers)
    return QueryBoxes(lower, upper, distances, starts, NO_ORDER, numbers)


def _some(values: NDArray[N], some: "slice[int, int, None] | Ints") -> NDArray[N]:
    """Return the values of some queries; one for all is for these, too, as is none."""
    return values[some] if values.size > 1 else values
