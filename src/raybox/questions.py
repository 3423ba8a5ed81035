"""A scene's questions, from what is asked to arrays of answers.

Rays go through `raybox.bvh.groups` in spans, a desk for each thread; the few for which floats cannot
tell go through `raybox.careful`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from raybox import careful
from raybox.bvh import coherent, groups, notes, pages
from raybox.bvh.aim import LANES
from raybox.bvh.answers import Order, arrange
from raybox.bvh.desk import Desk, make_desk
from raybox.bvh.keys import LOST
from raybox.bvh.sorting import Contacts, make_contacts
from raybox.bvh.traverse import Job
from raybox.kernels.box_lanes import make_pairs
from raybox.parallel import run_chunks
from raybox.validate import Bools, Floats, Ints

GROUP = 4096  # rays walked together: what is known of them then stays in a core's own cache
WIDE = 4  # times as many where no ray ends early: longer lists are worth more then (a sixth faster)
_DESKS: dict[int, list[Desk]] = {}
_ORDERS: dict[bool, list[Order]] = {True: [], False: []}  # for few rays, for many
_PACKETS: list[tuple[Any, Desk]] = []
_BEFORE = np.array([-1, 0, 0])
_NONE = np.empty(0, np.int64)
_KEPT = 4  # of each, for the next question


def _take_desk(size: int) -> Desk:
    """Return a desk for groups of so many rays."""
    shelf = _DESKS.setdefault(size, [])
    try:
        return shelf.pop()
    except IndexError:
        return make_desk(size)


def _take_order(rays: int) -> Order:
    """Return the memory for sorting the rays of a span."""
    shelf = _ORDERS[rays <= groups.FEW]
    try:
        order = shelf.pop()
    except IndexError:
        order = _make_order(groups.FEW)
    if order.keys.size < rays + LANES:
        order = _make_order(rays)
    order.place[:] = _BEFORE
    return order


def _make_order(rays: int) -> Order:
    keys, places, doubts = (pages.empty((rays + LANES,), np.int32) for _ in range(3))
    starts = np.empty(LOST + 2 if rays > groups.FEW else 0, np.int64)
    return Order(keys, places, doubts, starts, np.zeros(3, np.int64))


def ask(
    job: Job,
    span: tuple[int, int],
    make: Callable[[int], Any],
    grow: Any = None,
    group: int | None = None,
    packets: bool = False,
) -> tuple[Any, Ints]:
    """Ask for a span of rays; return the sink, and the numbers of rays in doubt.

    packets: whether the question knows what to do with them, should there be any.
    """
    begin, end = span
    size = groups.FEW if end - begin <= groups.FEW else group or GROUP
    order, desk = _take_order(end - begin), _take_desk(size)
    sink = make(size)
    left = end - begin
    if packets and left > groups.FEW and coherent.seem(job.rays, job.frame.numbers, span):
        left = _ask_packets(job, span, order, sink)
    while left and not groups.ask(job, span, order, desk, sink, size):
        sink = grow(sink)
    number = order.place[2]
    doubts = begin + order.doubts[:number].astype(np.int64) if number else _NONE
    _put_back(_ORDERS[size == groups.FEW], order)
    _put_back(_DESKS[size], desk)
    return sink, doubts


def _ask_packets(job: Job, span: tuple[int, int], order: Order, sink: Any) -> int:
    """Answer for the rays that come in packets; write keys, and return the number of the others."""
    try:
        memory, desk = _PACKETS.pop()
    except IndexError:
        memory, desk = coherent.make_packets(GROUP)
    left: int = coherent.ask_packets(job, span, order, desk, notes.PacketsOf(sink, *memory))
    order.place[0] = groups.KEYED
    _put_back(_PACKETS, (memory, desk))
    return left


def _put_back(shelf: list[Any], lent: Any) -> None:
    """Keep what was lent for the next question."""
    if len(shelf) < _KEPT:
        shelf.append(lent)


def nearest(job: Job, **how: Any) -> tuple[Ints, Floats]:
    """Return index and time of each ray's first contact."""
    total = len(job.rays.origins)
    index, t = np.empty(total, np.int64), np.empty(total)

    def work(begin: int, end: int) -> None:
        index[begin:end], t[begin:end] = -1, np.inf
        _, doubts = ask(
            job, (begin, end), lambda size: notes.NearestOf(np.empty((size, 2)), index, t), packets=True
        )
        if doubts.size:
            index[doubts], t[doubts] = careful.nearest(careful.some(job, doubts))

    run_chunks(work if job.frame else _carefully(job, careful.nearest, index, t), total, **how)
    return index, t


def occluded(job: Job, **how: Any) -> Bools:
    """Return whether each ray meets anything."""
    met = np.zeros(len(job.rays.origins), np.bool_)

    def work(begin: int, end: int) -> None:
        _, doubts = ask(job, (begin, end), lambda _: notes.OccludedOf(met), packets=True)
        if doubts.size:
            met[doubts] = careful.occluded(careful.some(job, doubts))

    run_chunks(work if job.frame else _carefully(job, careful.occluded, met), met.size, **how)
    return met


def count(job: Job, **how: Any) -> Ints:
    """Return how many each ray meets."""
    number = np.zeros(len(job.rays.origins), np.int64)

    def work(begin: int, end: int) -> None:
        _, doubts = ask(job, (begin, end), lambda _: notes.CountOf(number), group=WIDE * GROUP, packets=True)
        if doubts.size:
            number[doubts] = careful.count(careful.some(job, doubts))

    run_chunks(work if job.frame else _carefully(job, careful.count, number), number.size, **how)
    return number


def first(job: Job, k: int, **how: Any) -> tuple[Ints, Floats]:
    """Return index and time of each ray's k nearest contacts, rows padded with misses."""
    total = len(job.rays.origins)
    index, t = np.full((total, k), -1, np.int64), np.full((total, k), np.inf)

    def make(size: int) -> notes.FirstOf:
        low, high = np.empty((size, k)), np.empty((size, k))
        return notes.FirstOf(np.empty((size, k), np.int32), low, high, index, t)

    def work(begin: int, end: int) -> None:
        _, doubts = ask(job, (begin, end), make)
        if doubts.size:
            index[doubts], t[doubts] = careful.first(careful.some(job, doubts), k)

    run_chunks(
        work if job.frame else _carefully(job, lambda part: careful.first(part, k), index, t), total, **how
    )
    return index, t


def _carefully(job: Job, question: Callable[[Job], Any], *out: Any) -> Callable[[int, int], None]:
    """Return work that asks ray by ray, and writes to arrays of answers."""

    def work(begin: int, end: int) -> None:
        answers = question(careful.some(job, slice(begin, end)))
        for array, part in zip(out, answers if len(out) > 1 else [answers], strict=True):
            array[begin:end] = part

    return work


def everything(job: Job, **how: Any) -> tuple[Ints, Ints, Floats]:
    """Return offsets, index and time of every contact, sorted ray by ray."""
    total = len(job.rays.origins)
    collect = _collect if job.frame else _collect_carefully
    parts = run_chunks(lambda begin, end: collect(job, begin, end), total, **how)
    offsets = np.zeros(total + 1, np.int64)
    np.cumsum(np.concatenate([np.empty(0, np.int64), *(part[0] for part in parts)]), out=offsets[1:])
    index = np.concatenate([np.empty(0, np.int64), *(part[1] for part in parts)])
    return offsets, index, np.concatenate([np.empty(0), *(part[2] for part in parts)])


def _collect_carefully(job: Job, begin: int, end: int) -> tuple[Ints, Ints, Floats]:
    return careful.everything(careful.some(job, slice(begin, end)))


def _collect(job: Job, begin: int, end: int) -> tuple[Ints, Ints, Floats]:
    """Return counts, index and time of every contact of a span of rays, sorted ray by ray."""
    number = end - begin
    where, counts = np.zeros(number, np.int64), np.zeros(number, np.int64)

    def make(size: int) -> notes.CollectOf:
        contacts, starts = make_pairs(8 * size), np.empty(size + 2, np.int64)
        return notes.CollectOf(
            contacts, np.zeros(2, np.int64), starts, make_contacts(16 * size), where, counts
        )

    sink, doubts = ask(
        job._replace(rays=careful.some(job, slice(begin, end)).rays), (0, number), make, _grown, WIDE * GROUP
    )
    room = sink.room
    if doubts.size:
        counts[doubts], index, t = careful.everything(careful.some(job, begin + doubts))
        where[doubts] = sink.size[1] + np.cumsum(counts[doubts]) - counts[doubts]
        index, t = (
            np.concatenate([old[: sink.size[1]], new]) for old, new in ((room.index, index), (room.t, t))
        )
        room = Contacts(index, t, index, t)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    index, t = np.empty(offsets[-1], np.int64), np.empty(offsets[-1])
    arrange(where, offsets, room, index, t)
    return counts, index, t


def _grown(sink: notes.CollectOf) -> notes.CollectOf:
    """Give a sink room for what its last group needs."""
    needed, done = sink.size
    sink.size[0] = 0
    contacts = sink.contacts
    if needed + LANES > contacts.ray.size:
        contacts = make_pairs(2 * needed + LANES)
    room = sink.room
    if done + needed > room.index.size:
        larger = make_contacts(2 * (done + needed))
        larger.index[:done], larger.t[:done] = room.index[:done], room.t[:done]
        room = larger
    return sink._replace(contacts=contacts, room=room)
