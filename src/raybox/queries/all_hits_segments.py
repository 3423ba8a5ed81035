"""Runs: what each ray meets, side by side in a room, in order along the ray; of single rays, and of packets.

Times differ, nearly always. So a contact's place in a short run is how many times are less: eight compares
at once, and no branch goes wrong (insertion took a quarter of the loop, measured).
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils

from raybox.compiler.decorators import device, inlined, whole
from raybox.compiler.intrinsics import vector_code
from raybox.compiler.simd import F64, I32, I64, constant, splat, steps
from raybox.compiler.simd_loops import Register, loop
from raybox.primitives.table import settle, together
from raybox.queries.hit_sorting import ByTime, Contacts, sort
from raybox.queries.recorders import DEEP, CollectOf, PacketsOf
from raybox.traversal.packet import ANSWERS, COLUMNS
from raybox.traversal.ray_order import PACKED, Order, doubt
from raybox.traversal.ray_setup import ANSWER, DOUBT, LANES
from raybox.traversal.workspace import Desk

_EIGHT = 8
_SHORT = 64  # contacts: longer runs are sorted


@vector_code(types.int64)
def _rank(b: Any, pairs: Any, room: Contacts, run: Any, to: Any) -> Any:
    """Copy the contacts run[0] <= c < run[1] to where they belong in a room; return how many tie."""
    begin, end = run
    number, ties = b.sub(end, begin), Register(b, I64(0))
    with cgutils.for_range(b, number, intp=I64) as each:
        c = b.add(begin, each.index)
        t, place = pairs.low.get(c), Register(b, to)
        with loop(b, number, _EIGHT) as at:
            others = pairs.low.load(b.add(begin, at), _EIGHT)
            there = steps(b, at, _EIGHT) < splat(b, number, _EIGHT)
            mine = splat(b, t, _EIGHT)
            place.value = b.add(place.value, b.ctpop(((others < mine) & there).mask()))
            ties.value = b.add(ties.value, b.ctpop((others.equals(mine) & there).mask()))
        room.t.put(t, place.value)
        room.index.put(b.sext(pairs.item.get(c), I64), place.value)
    return b.sub(ties.value, number)


@device
def put_run(sink: CollectOf, job: Any, desk: Desk, pairs: Any, run: tuple[int, int, int]) -> bool:
    """Put settled contacts begin <= c < end of ray r to the room, in order; tell whether floats could tell.

    Of contacts where the range begins, `high` says whether that is sure: they tie.
    """
    r, begin, end = run
    first, known = sink.size[1] + begin, True
    for c in range(begin, end):
        begins = pairs.low[c] == desk.exact[r, 6]
        known = known and pairs.verdict[c] != 0 and not (begins and pairs.high[c] == 0.0)
    if not known:
        return False
    if end - begin <= _SHORT and _rank(pairs, sink.room, (begin, end), first) == 0:
        return True
    for c in range(begin, end):
        sink.room.index[first + c - begin], sink.room.t[first + c - begin] = pairs.item[c], pairs.low[c]
    sort(ByTime(0), sink.room, first, first + end - begin)
    return not _tied(job.rows, sink.room, first, first + end - begin, (desk.exact, r))


@inlined
def _tied(rows: Any, room: Any, first: int, stop: int, ray: Any) -> bool:
    """Tell whether two sorted contacts may have the same time but for rounding, and are no tie for sure."""
    exact, r = ray
    for c in range(first + 1, stop):
        i, j = whole(room.index[c]), whole(room.index[c - 1])
        equal = room.t[c] == room.t[c - 1] and room.t[c] != exact[r, 6]
        if equal and not together(rows, exact, whole(r), i, j):
            return True
    return False


@device
def answer_collect(sink: CollectOf, job: Any, order: Order, desk: Desk, place: Any) -> bool:
    """Put the contacts of a group of rays to the room; False: there is none. place: as for `answer`."""
    base, begin, end = place
    contacts, starts = sink.contacts, sink.starts
    number, done = sink.size[0], sink.size[1]
    if number + LANES > contacts.ray.size or done + number > sink.room.index.size:
        return False
    _gather(sink, desk, end - begin)
    settle(job.rows, desk.exact, contacts, number)
    for r in range(end - begin):
        first, stop, k = starts[r], starts[r + 1], order.order[begin + r]
        known = desk.answers[r, ANSWER] != DOUBT and put_run(sink, job, desk, contacts, (r, first, stop))
        if not known:
            doubt(order, whole(k))
            stop = first
        sink.where[base + k], sink.counts[base + k] = done + first, stop - first
    sink.size[0] = 0
    sink.size[1] = done + number
    return True


@device
def _gather(sink: CollectOf, desk: Desk, rays: int) -> None:
    """Put each ray's contacts together: starts[r] is where those of ray r begin.

    `high` says from then on whether a contact is known to be where the range begins: 1 or 0.
    """
    contacts, starts, number = sink.contacts, sink.starts, sink.size[0]
    starts[: rays + 2] = 0
    for c in range(number):
        starts[contacts.ray[c] + 2] += 1
    for r in range(rays):
        starts[r + 2] += starts[r + 1]
    for c in range(number):
        r, i = whole(contacts.ray[c]), whole(contacts.item[c])
        begins = contacts.high[c] == desk.exact[r, 6]
        contacts.source[starts[r + 1]] = r << 33 | i << 1 | int(begins)
        starts[r + 1] += 1
    for c in range(number):
        code = contacts.source[c]
        contacts.ray[c], contacts.item[c], contacts.high[c] = code >> 33, code >> 1 & 0x7FFFFFFF, code & 1


@device
def conclude_collect(
    sink: CollectOf, packets: PacketsOf, job: Any, order: Order, desk: Desk, place: Any
) -> None:
    """Put the contacts of so many packets to the room. place: the span's first ray, and how many."""
    base, number = place
    begin = found = whole(0)
    for p in range(number):
        found = _list(packets, desk, p, found)
        if found + (DEEP + 1) * LANES > desk.pairs.ray.size or p == number - 1:
            settle(job.rows, desk.exact, desk.pairs, found)
            _put_packets(sink, packets, job, order, desk, (base, begin, p + 1))
            begin, found = p + 1, whole(0)


@vector_code(types.int64)
def _list(b: Any, packets: PacketsOf, desk: Any, packet: Any, found: Any) -> Any:
    """Make pairs of what a packet's rays meet, ray by ray, from `found` on; return how many there are now."""
    end = Register(b, found)
    first = b.mul(packet, I64(LANES))
    answers = b.mul(b.add(b.mul(packet, I64(COLUMNS)), I64(ANSWERS)), I64(LANES))
    for lane in range(LANES):
        ray = b.add(first, I64(lane))
        answer = packets.answers.get(b.add(answers, I64(lane)))
        number = b.add(b.sext(answer, I64), I64(1))
        with loop(b, number, LANES) as at:
            to = b.add(end.value, at)
            items = packets.item.load(b.add(b.mul(ray, I64(DEEP)), at), LANES)
            desk.pairs.item.store(items, to)
            desk.pairs.ray.store(splat(b, b.trunc(ray, I32), LANES), to)
            desk.pairs.high.store(constant(b, F64, LANES, 0.0), to)  # see `put_run`: none begins the range
        end.value = b.add(end.value, b.select(b.icmp_signed(">", number, I64(0)), number, I64(0)))
    return end.value


@device
def _put_packets(
    sink: CollectOf, packets: PacketsOf, job: Any, order: Order, desk: Desk, place: tuple[int, int, int]
) -> None:
    """Put settled contacts of packets begin <= p < end to the room. place: (first ray, begin, end)."""
    base, begin, end = place
    at = whole(0)
    for p in range(begin, end):
        for lane in range(LANES):
            number, k = packets.answers[p, ANSWERS, lane] + 1, packets.first[p] + lane
            if number < 0:
                continue
            sink.where[base + k], sink.counts[base + k] = PACKED - (sink.size[1] + at), number
            if not put_run(sink, job, desk, desk.pairs, (p * LANES + lane, at, at + number)):
                doubt(order, whole(k))
            at += number
    sink.size[1] += at
