"""Path sums in the stream traversal: the hits of a group are pairs, whose lengths are added in the end.

Sort the pairs of a group by ray, then by primitive: a radix sort, as a ray may hit any number of them.
"""

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from raybox.compiler import huge_pages
from raybox.compiler.buffer_pool import SizedPool
from raybox.compiler.decorators import device, no, whole, yes
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import prefetch, smaller
from raybox.compiler.struct_ref import struct
from raybox.geometry import BoxRows, PrimitiveRows
from raybox.primitives.box_lengths import CROSSING_WORDS, CrossingRays, PairSpan, write_crossing
from raybox.primitives.box_simd import fill_up
from raybox.primitives.status import UNDECIDED_INDEX
from raybox.primitives.table import write_lengths
from raybox.queries import hit_pairs
from raybox.queries.hit_pairs import CertainPairs, HitPairs, add_certain, make_hit_pairs, room_for
from raybox.queries.path_sums.sums import (
    PathSums,
    add_length,
    finish_ray,
    prefetch_item,
    prefetch_ray,
    start_ray,
)
from raybox.traversal.job import Job
from raybox.traversal.protocol import StreamHooks
from raybox.traversal.ray_setup import LANES, NUMBERS, RESULT
from raybox.traversal.workspace import LeafSlot, Order, Span, Workspace, list_undecided
from raybox.validation import Floats, Ints, Ints32

_BITS = 10  # of a digit
_DIGITS = 1 << _BITS


class PairOrder(NamedTuple):
    """Memory for sorting pairs."""

    codes: Any  # int64 (pairs,): ray and primitive in one number
    spare: Any
    counters: Any  # int64: of digits


def make_pair_order(pairs: int) -> PairOrder:
    """Return memory for sorting so many pairs."""
    return PairOrder(*(np.empty(size, np.int64) for size in (pairs, pairs, _DIGITS)))


@device
def _bits_of(numbers: Any, count: int) -> int:
    """Return how many bits the largest of so many numbers has."""
    most, bits = whole(0), whole(0)
    for p in range(count):
        most = max(most, whole(numbers[p]))
    while most >> bits > 0:
        bits += 1
    return bits


@device
def _sort_by_digit(codes: Any, sorted_codes: Any, counters: Any, count: int, shift: int) -> None:
    """Copy codes in the order of one digit; codes with the same digit stay in their order."""
    counters[:] = 0
    for p in range(count):
        counters[codes[p] >> shift & _DIGITS - 1] += 1
    begin = whole(0)
    for digit in range(_DIGITS):
        number = counters[digit]
        counters[digit] = begin
        begin += number
    for p in range(count):
        digit = codes[p] >> shift & _DIGITS - 1
        sorted_codes[counters[digit]] = codes[p]
        counters[digit] += 1


@device
def sort_pairs(pairs: HitPairs, order: PairOrder, count: int) -> None:
    """Sort so many pairs by ray, then by primitive."""
    item_bits = _bits_of(pairs.item, count)
    bits = item_bits + _bits_of(pairs.ray, count)
    codes, spare = order.codes, order.spare
    for p in range(count):
        codes[p] = whole(pairs.ray[p]) << item_bits | whole(pairs.item[p])
    for shift in range(0, bits, _BITS):
        _sort_by_digit(codes, spare, order.counters, count, shift)
        codes, spare = spare, codes
    for p in range(count):
        pairs.ray[p], pairs.item[p] = codes[p] >> item_bits, codes[p] & (1 << item_bits) - 1


S = TypeVar("S")
BLOCK = 512  # lengths computed by one call: they stay in a core's first cache
_EIGHT = 8
_AHEAD = 24  # what pairs and rays read and write is prefetched so many before
_MOST = 1 << 21  # pairs: memory for more is not reused
_MAX_FREE = 4  # of one size
PATH_COLUMNS = 10  # of packets: crossing rows, speeds, and sums so far
_HITS_EACH = 128  # boxes that each packet hits, on average, for which there is room


class PathMemory(NamedTuple):
    """Memory for the hits of a group of rays."""

    pairs: HitPairs
    pair_count: Ints  # (1,)
    packet_hit_count: Ints  # (1,): how many hits of packets are listed
    crossings: Floats  # (rays, 8): see `raybox.primitives.box_lengths`
    speeds: Floats  # (rays,)
    lengths: Floats  # (BLOCK + 8,)
    packets: Floats  # (rays / 16 + 1, 10, 16): see `raybox.queries.path_sums.packet`
    packet_hits: Ints32  # (_, 3): likewise


@struct
class PathRecorder(NamedTuple, Generic[S]):
    """The hits of a group, and what their lengths are added to."""

    pairs: HitPairs
    pair_count: Ints
    packet_hit_count: Ints
    memory: PathMemory
    order: PairOrder  # with room for all pairs, if those of a ray are added in the order of their primitives
    sums: S


def make_recorder(rays: int, sums: S, ordered: bool) -> PathRecorder[S]:
    """Return the recorder of groups of up to `rays` rays.

    ordered: whether the lengths of each ray are added in the order of the primitives' numbers.
    """
    memory = _MEMORY.take(rays)
    order = make_pair_order(memory.pairs.ray.size if ordered else 0)
    return PathRecorder(*memory[:3], memory, order, sums)


def _make_memory(rays: int) -> PathMemory:
    """Return memory for groups of up to `rays` rays."""
    counts = huge_pages.zeros((1,), np.int64), huge_pages.zeros((1,), np.int64)
    crossings, speeds = (huge_pages.empty(shape, np.float64) for shape in ((rays, CROSSING_WORDS), (rays,)))
    lengths = huge_pages.empty((BLOCK + _EIGHT,), np.float64)
    count = rays // LANES + 1  # memory that no packet writes to takes no room
    packets = huge_pages.empty((count, PATH_COLUMNS, LANES), np.float64)
    packet_hits = huge_pages.empty((_HITS_EACH * count, 3), np.int32)
    return PathMemory(make_hit_pairs(8 * rays), *counts, crossings, speeds, lengths, packets, packet_hits)


_MEMORY = SizedPool(_make_memory, _MAX_FREE)  # by the size of a group


def grown(recorder: PathRecorder[S], _factor: float) -> PathRecorder[S]:
    """Return a recorder with room for the pairs of its last group."""
    pairs = make_hit_pairs(room_for(recorder.pair_count[0]))
    recorder.pair_count[0] = 0
    order = make_pair_order(pairs.ray.size if recorder.order.codes.size else 0)
    return recorder._replace(pairs=pairs, memory=recorder.memory._replace(pairs=pairs), order=order)


def released(recorder: PathRecorder[S]) -> PathRecorder[S]:
    """Store the memory for the hits of a group for the next query."""
    if recorder.pairs.ray.size <= _MOST:
        _MEMORY.put_back(recorder.memory, len(recorder.memory.speeds))
    return recorder


@device
def _record_certain(
    recorder: PathRecorder[PathSums], job: Job, _workspace: Workspace, slot: LeafSlot, r: int
) -> bool:
    add_certain(recorder, job, slot, r, np.inf)
    return True


@device
def _start_rays(recorder: PathRecorder[PathSums], order: Order, workspace: Workspace, group: Span) -> None:
    """Begin the sums of a group's rays; list and mark those whose lengths are computed elsewhere."""
    base, begin, end = group
    for r in range(end - begin):
        soon = smaller(begin + r + _AHEAD, end - 1)
        prefetch(order.rows, NUMBERS * whole(order.where[soon]))
        prefetch_ray(recorder.sums, whole(base + order.order[soon]))
        k = whole(order.order[begin + r])
        row = whole(order.where[begin + r])
        in_range = write_crossing(order.rows, row, recorder.memory.crossings, recorder.memory.speeds, r)
        counts = in_range and workspace.state[r, RESULT] != UNDECIDED_INDEX
        if not counts:
            workspace.state[r, RESULT] = UNDECIDED_INDEX
            list_undecided(order, k)
        start_ray(recorder.sums, whole(r), whole(base + k), counts)


@device
def _add_pairs(recorder: PathRecorder[PathSums], rows: PrimitiveRows, count: int) -> None:
    """Add the lengths of so many pairs."""
    pairs, lengths = recorder.pairs, recorder.memory.lengths
    rays = CrossingRays(recorder.memory.crossings, recorder.memory.speeds)
    fill_up(pairs, count)
    for begin in range(0, count, BLOCK):
        end = smaller(begin + BLOCK, count)
        write_lengths(rows, rays, pairs, PairSpan(whole(begin), end, count), lengths)
        for p in range(begin, end):
            prefetch_item(recorder.sums, whole(pairs.item[smaller(p + _AHEAD, count - 1)]))
            add_length(recorder.sums, whole(pairs.ray[p]), whole(pairs.item[p]), lengths[p - begin])


@device
def _write_results(
    recorder: PathRecorder[PathSums], job: Job, order: Order, workspace: Workspace, group: Span
) -> bool:
    base, begin, end = group
    count = recorder.pair_count[0]
    if count + LANES > recorder.pairs.ray.size:
        return False
    _start_rays(recorder, order, workspace, group)
    if recorder.order.codes.size > 0:
        sort_pairs(recorder.pairs, recorder.order, count)
    _add_pairs(recorder, job.rows, count)
    for r in range(end - begin):
        prefetch_ray(recorder.sums, whole(base + order.order[smaller(begin + r + _AHEAD, end - 1)]))
        if workspace.state[r, RESULT] != UNDECIDED_INDEX:
            finish_ray(recorder.sums, whole(r), whole(base + order.order[begin + r]))
    recorder.pair_count[0] = 0
    return True


HOOKS = StreamHooks(
    PathRecorder,
    record=hit_pairs.record,
    write_results=_write_results,
    certain_hits=CertainPairs,
    record_certain=_record_certain,
    ends_rays=no,
    defers_float64=yes,
    has_unwritten=hit_pairs.has_unwritten,
)


@entry
def write_listed_lengths(
    rows: BoxRows, numbers: Floats, pairs: HitPairs, rays: CrossingRays, lengths: Floats
) -> None:
    """Write the lengths of listed pairs; NaN where the numbers of the ray are out of range.

    numbers: (rays, 8), origin, direction, t_min and t_max; rays: memory.
    """
    count = lengths.size - _EIGHT
    fill_up(pairs, count)
    for r in range(numbers.shape[0]):
        if not write_crossing(numbers, whole(r), rays.rows, rays.speeds, r):
            rays.speeds[r] = np.nan
    write_lengths(rows, rays, pairs, PairSpan(whole(0), whole(count), whole(count)), lengths)
    for p in range(count):
        if np.isnan(rays.speeds[pairs.ray[p]]):
            lengths[p] = np.nan


@entry
def add_listed(sums: PathSums, rays: Ints, counts: Ints, items: Ints | Ints32, lengths: Floats) -> None:
    """Add the lengths of listed hits, ray after ray. counts: how many hits each of these rays has."""
    begin = 0
    for r in range(counts.size):
        k = whole(rays[r])
        start_ray(sums, k, k, True)
        for p in range(begin, begin + counts[r]):
            add_length(sums, k, whole(items[p]), lengths[p])
        begin += counts[r]
        finish_ray(sums, k, k)
