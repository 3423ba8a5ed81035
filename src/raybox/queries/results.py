"""From a group's notes to answers in the rays' own order: one function for each question.

``answer(sink, job, order, desk, place)`` writes the answers of the group that `place` names (the span's
first ray, and where in the order the group begins and ends), lists rays in doubt, and tells whether
there was room.
"""

from typing import Any

from raybox.compiler.decorators import device, dispatch, entry, whole
from raybox.compiler.intrinsics import prefetch_to_write, smaller
from raybox.primitives.table import enter, settle
from raybox.queries.all_hits_segments import answer_collect
from raybox.queries.recorders import CollectOf, CountOf, FirstOf, NearestOf, OccludedOf
from raybox.traversal.entry_plane import BY
from raybox.traversal.ray_order import PACKED, Order, doubt
from raybox.traversal.ray_setup import ANSWER, DOUBT, MISS, TIMED

_AHEAD = 16  # answers go all over the arrays: their places are asked for so many before (3 % of `nearest`)
_TOGETHER = 1024  # contacts settled at a time: eight are one vector, and a call has 200 words to hand over


@device
def settle_nearest(
    sink: NearestOf, job: Any, order: Order, exact: Any, desk: Any, place: tuple[int, int]
) -> None:
    """Write answers of rays that surely meet something. place: the span's first ray, how many pairs."""
    settle(job.rows, exact, desk.pairs, place[1])
    _put_nearest(sink, order, desk, place)


@device
def _put_nearest(sink: NearestOf, order: Order, desk: Any, place: tuple[int, int]) -> None:
    """Write answers of pairs whose times are known, and list the other rays."""
    base, found = place
    pairs = desk.pairs
    for p in range(found):
        ahead = pairs.source[smaller(p + _AHEAD, found - 1)]
        prefetch_to_write(sink.index, ahead)
        prefetch_to_write(sink.t, ahead)
        k = pairs.source[p]
        if pairs.verdict[p] == 0:
            doubt(order, k - base)
        else:
            sink.index[k] = pairs.item[p]
            sink.t[k] = pairs.low[p]


@device
def _answer_nearest(sink: NearestOf, job: Any, order: Order, desk: Any, place: Any) -> bool:
    base, begin, end = place
    pairs, answers, where = desk.pairs, desk.answers, order.where[begin:]
    found, others = whole(0), whole(0)
    for r in range(end - begin):
        i = answers[r, ANSWER]
        if i >= 0 and answers[r, TIMED] <= BY:
            pairs.ray[found], pairs.item[found], pairs.verdict[found] = where[r], i, BY - answers[r, TIMED]
            pairs.source[found] = base + order.order[begin + r]
            found += 1
        elif i >= 0:
            desk.arena[others] = r
            others += 1
        elif i == DOUBT:
            doubt(order, whole(order.order[begin + r]))
    enter(job.rows, order.rows, pairs, found)
    _put_nearest(sink, order, desk, (base, found))
    for k in range(others):
        r = desk.arena[k]
        pairs.ray[k], pairs.item[k] = where[r], answers[r, ANSWER]
        pairs.source[k] = base + order.order[begin + r]
    settle_nearest(sink, job, order, order.rows, desk, (base, others))
    return True


@device
def _answer_occluded(sink: OccludedOf, job: Any, order: Order, desk: Any, place: Any) -> bool:
    base, begin, end = place
    for r in range(end - begin):
        prefetch_to_write(sink.met, base + order.order[smaller(begin + r + _AHEAD, end - 1)])
        said = desk.answers[r, ANSWER]
        if said == DOUBT:
            doubt(order, whole(order.order[begin + r]))
        elif said != MISS:
            sink.met[base + order.order[begin + r]] = True
    return True


@device
def _answer_count(sink: CountOf, job: Any, order: Order, desk: Any, place: Any) -> bool:
    base, begin, end = place
    for r in range(end - begin):
        prefetch_to_write(sink.number, base + order.order[smaller(begin + r + _AHEAD, end - 1)])
        said = desk.answers[r, ANSWER]
        if said == DOUBT:
            doubt(order, whole(order.order[begin + r]))
        else:
            sink.number[base + order.order[begin + r]] = said + 1
    return True


@device
def _settle_first(sink: FirstOf, job: Any, desk: Any, found: int) -> None:
    """Write so many contacts to their places, each a number in all of them; mark rays in doubt."""
    pairs, width = desk.pairs, sink.index.shape[1]
    settle(job.rows, desk.exact, pairs, found)
    for p in range(found):
        k, slot = divmod(pairs.source[p], width)
        sink.index[k, slot] = pairs.item[p]
        sink.t[k, slot] = pairs.low[p]
        if pairs.verdict[p] == 0:
            desk.answers[pairs.ray[p], ANSWER] = DOUBT


@device
def _answer_first(sink: FirstOf, job: Any, order: Order, desk: Any, place: Any) -> bool:
    base, begin, end = place
    pairs, answers = desk.pairs, desk.answers
    found = whole(0)
    for r in range(end - begin):
        first = (base + order.order[begin + r]) * sink.index.shape[1]
        for slot in range(answers[r, ANSWER] + 1):
            pairs.ray[found], pairs.item[found], pairs.source[found] = r, sink.item[r, slot], first + slot
            found += 1
            if found == _TOGETHER:
                _settle_first(sink, job, desk, found)
                found = whole(0)
    _settle_first(sink, job, desk, found)
    for r in range(end - begin):
        if answers[r, ANSWER] == DOUBT:
            doubt(order, whole(order.order[begin + r]))
    return True


TABLE = {
    NearestOf: _answer_nearest,
    OccludedOf: _answer_occluded,
    CountOf: _answer_count,
    FirstOf: _answer_first,
    CollectOf: answer_collect,
}


def answer(sink: Any, job: Any, order: Order, desk: Any, place: Any) -> bool:
    """Write a group's answers; see the module's head."""
    raise NotImplementedError("compiled code only")


dispatch(answer, TABLE.get)


@entry
def arrange_packed(span: Any, rays: Any, room: Any, index: Any, t: Any) -> None:
    """Copy the runs of contacts of rays in packets, begin <= k < end, to where they belong; see `arrange`."""
    where, offsets = rays
    k = span[0]
    while k < span[1]:
        at, first = PACKED - where[k], k
        k += 1
        if at < 0:
            continue
        # neighbours' runs are mostly neighbours too: copied as one
        while k < span[1] and PACKED - where[k] == at + offsets[k] - offsets[first]:
            k += 1
        to = offsets[first]
        for c in range(offsets[k] - to):
            index[to + c], t[to + c] = room.index[at + c], room.t[at + c]


@entry
def arrange(span: Any, rays: Any, room: Any, index: Any, t: Any) -> None:
    """Copy the runs of contacts of rays order[p], begin <= p < end, to where they belong.

    rays: their order; where each one's run is in the room, or -1 if it is not there; and where it belongs.
    """
    order, where, offsets = rays
    for p in range(span[0], span[1]):
        k = order[p]
        at = where[k]
        if at < 0:
            continue
        for to in range(offsets[k], offsets[k + 1]):
            index[to], t[to] = room.index[at], room.t[at]
            at += 1
