"""Rays that come in packets: who they are, and the loop that answers for them.

Neighbours that go nearly the same way, as in pictures and sweeps, are walked sixteen at a time
(`raybox.traversal.packet`); the others, and the few that were left over, get the keys by which
`raybox.traversal.ray_groups` sorts them.
"""

from typing import Any

import numpy as np

from raybox.compiler.decorators import device, dispatch, entry, whole
from raybox.compiler.intrinsics import larger, smaller
from raybox.primitives.box_simd import make_pairs
from raybox.queries.all_hits_segments import conclude_collect
from raybox.queries.recorders import DEEP, CollectOf, CountOf, NearestOf, OccludedOf, PacketsOf
from raybox.queries.results import settle_nearest
from raybox.traversal.packet import ANSWERS, COLUMNS, LEFT, NONE, UNFIT, aim_packet
from raybox.traversal.packet_undecided import decide_held
from raybox.traversal.ray_keys import LOST, sort_keys
from raybox.traversal.ray_order import Order
from raybox.traversal.ray_setup import LANES, MISS
from raybox.traversal.stream import walk_group
from raybox.traversal.workspace import LINES, Desk, make_desk, room_for

# boxes that a packet may be wide (measured at 10^3, 10^5, 10^6 boxes: level with streams at 6 to 8)
GRAINS = 5.0
_SAMPLES = 32


@device
def _look(rays: Any, numbers: Any, at: int) -> bool:
    """Tell whether the sixteen rays from `at` on seem to belong together, by four of them.

    That is: they run into one octant, and where they are in the midst of the scene, they are no farther apart
    than a few boxes are long. numbers: those of the frame.
    """
    o, d = rays.origins, rays.directions
    size = larger(larger(abs(d[at, 0]), abs(d[at, 1])), abs(d[at, 2]))
    away = 0.0
    for axis in range(3):
        away += abs(o[at, axis] - numbers[axis])
    same = size > 0.0
    for k in (5, 10, 15):
        for axis in range(3):
            one, other = d[at, axis], d[at + k, axis]
            apart = abs(o[at, axis] - o[at + k, axis]) + away * abs(one - other) / size
            same = same and (one < 0.0) == (other < 0.0) and apart * numbers[3] <= GRAINS * numbers[16]
    return same


@entry
def seem(rays: Any, numbers: Any, begin: int, end: int) -> bool:
    """Tell whether it may be worth it to look for packets, by a few samples."""
    for k in range(_SAMPLES):
        if _look(rays, numbers, begin + k * (end - begin - LANES) // (_SAMPLES - 1)):
            return True
    return False


def make_packets(rays: int) -> tuple[tuple[Any, ...], Desk]:
    """Make the memory for groups of up to so many rays in packets, and their desk."""
    number = rays // LANES
    words = np.empty((number + LANES, COLUMNS, LANES), np.float32)
    first, octant = np.empty(number, np.int32), np.empty(number, np.int32)
    desk = make_desk(rays, room_for(number))._replace(
        lines=np.empty((number + LANES, LINES), np.float32), pairs=make_pairs(max(rays, 2 * DEEP * LANES))
    )
    item = np.empty(number * DEEP * LANES + LANES, np.int32)
    return (words, words.view(np.int32), first, octant, item, np.empty(number, np.int32)), desk


@entry
def ask_packets(job: Any, span: Any, order: Order, desk: Desk, sink: PacketsOf) -> int:
    """Answer for the packets among some rays; write keys, and return the number of rays left.

    span: (base, begin, end): rays base + k, begin <= k < end, from order.place[0] on. Where that is not `end`
    afterwards, the sink has no room.
    """
    base, _, end = span
    at, left, most = whole(order.place[0]), whole(0), sink.first.size
    while at + LANES <= end and has_room(sink.sink, smaller(end - at, most * LANES)):
        packets, first = whole(0), at
        while at + LANES <= end and packets < most:
            octant = whole(UNFIT)
            if _look(job.rays, job.frame.numbers, base + at):
                octant = aim_packet(job, desk, sink, base + at, packets)
            if octant == UNFIT:
                _write_keys(job, order, base, at)
                left += LANES
            elif octant == NONE:
                order.keys[at : at + LANES] = LOST
            else:
                sink.first[packets], sink.octant[packets], sink.unsure[packets] = at, octant, 0
                packets += 1
            at += LANES
        blank(sink.sink, base + first, base + at)
        _walk_packets(job, desk, sink, packets)
        conclude(sink.sink, sink, job, order, desk, (base, packets))
        left += _leave(job, sink, order, base, packets)
    if end - at < LANES:
        blank(sink.sink, base + at, base + end)
        _write_last_keys(job, order, desk, (base, at, end))
        left, at = left + end - at, end
    order.place[0] = at
    return left


@device
def _write_last_keys(job: Any, order: Order, desk: Desk, span: tuple[int, int, int]) -> None:
    """Write the keys of fewer than sixteen rays: with those of their neighbours."""
    base, begin, end = span
    first = larger(0, end - LANES)
    sort_keys(job.rays, job.frame, base + first, base + first + LANES, desk.arena)
    for k in range(begin, end):
        order.keys[k] = desk.arena[k - first]


@device
def _write_keys(job: Any, order: Order, base: int, at: int) -> None:
    sort_keys(job.rays, job.frame, base + at, base + at + LANES, order.keys[at:])


@device
def _walk_packets(job: Any, desk: Desk, sink: PacketsOf, packets: int) -> None:
    """Walk packets octant by octant."""
    for octant in range(8):
        number = whole(0)
        for p in range(packets):
            if sink.octant[p] == octant:
                desk.arena[number], desk.times[number] = p, 0.0
                number += 1
        if number > 0:
            walk_group(job, sink, desk, octant, number)


@device
def _leave(job: Any, sink: PacketsOf, order: Order, base: int, packets: int) -> int:
    """Write keys of the rays that are left over; return how many."""
    total = 0
    for p in range(packets):
        at, left = whole(sink.first[p]), 0
        for lane in range(LANES):
            left += int(sink.answers[p, ANSWERS, lane] == LEFT)
        if left > 0:
            _write_keys(job, order, base, at)
        for lane in range(LANES):
            if sink.answers[p, ANSWERS, lane] != LEFT:
                order.keys[at + lane] = LOST
        total += left
    return total


@device
def _conclude_nearest(
    sink: NearestOf, packets: PacketsOf, job: Any, order: Any, desk: Any, place: Any
) -> None:
    base, number = place
    pairs, found = desk.pairs, 0
    decide_held(packets, job, order, desk, place)
    for p in range(number):
        for lane in range(LANES):
            i = packets.answers[p, ANSWERS, lane]
            if i >= 0:
                pairs.ray[found], pairs.item[found] = p * LANES + lane, i
                pairs.source[found] = base + packets.first[p] + lane
                found += 1
    settle_nearest(sink, job, order, desk.exact, desk, (base, found))


@device
def _conclude_occluded(
    sink: OccludedOf, packets: PacketsOf, job: Any, order: Any, desk: Any, place: Any
) -> None:
    base, number = place
    decide_held(packets, job, order, desk, place)
    for p in range(number):
        for lane in range(LANES):
            if packets.answers[p, ANSWERS, lane] > MISS:
                sink.met[base + packets.first[p] + lane] = True


@device
def _conclude_count(sink: CountOf, packets: PacketsOf, job: Any, order: Any, desk: Any, place: Any) -> None:
    base, number = place
    decide_held(packets, job, order, desk, place)
    for p in range(number):
        for lane in range(LANES):
            if packets.answers[p, ANSWERS, lane] > MISS:
                sink.number[base + packets.first[p] + lane] = packets.answers[p, ANSWERS, lane] + 1


@device
def _blank_nearest(sink: NearestOf, begin: int, end: int) -> None:
    sink.index[begin:end], sink.t[begin:end] = MISS, np.inf


@device
def _blank_occluded(sink: OccludedOf, begin: int, end: int) -> None:
    sink.met[begin:end] = False


@device
def _blank_count(sink: CountOf, begin: int, end: int) -> None:
    sink.number[begin:end] = 0


@device
def _blank_nothing(_sink: CollectOf, _begin: int, _end: int) -> None:
    pass


@device
def _has_room(sink: CollectOf, rays: int) -> bool:
    return sink.size[1] + rays * DEEP + LANES <= sink.room.index.size


@device
def _always(_sink: Any, _rays: int) -> bool:
    return True


_CONCLUDE = {
    NearestOf: _conclude_nearest,
    OccludedOf: _conclude_occluded,
    CountOf: _conclude_count,
    CollectOf: conclude_collect,
}

_BLANK = {
    NearestOf: _blank_nearest,
    OccludedOf: _blank_occluded,
    CountOf: _blank_count,
    CollectOf: _blank_nothing,
}


def conclude(sink: Any, packets: PacketsOf, job: Any, order: Any, desk: Any, place: Any) -> None:
    """Write the answers of so many packets. place: the span's first ray, and how many; `sink`: theirs."""
    raise NotImplementedError("compiled code only")


def blank(sink: Any, begin: int, end: int) -> None:
    """Write the answers of rays that meet nothing: of a group, while they are in a core's cache."""
    raise NotImplementedError("compiled code only")


def has_room(sink: Any, rays: int) -> bool:
    """Tell whether there is room for the answers of so many rays in packets."""
    raise NotImplementedError("compiled code only")


dispatch(conclude, _CONCLUDE.get)
dispatch(blank, _BLANK.get)
dispatch(has_room, lambda kind: _has_room if kind is CollectOf else _always)
