"""From a group's notes to answers in the rays' own order: one function for each question.

``answer(sink, job, order, desk, place)`` writes the answers of the group that `place` names (the span's
first ray, and where in the order the group begins and ends), lists rays in doubt, and tells whether
there was room.
"""

from typing import Any, NamedTuple

from raybox.bvh.aim import ANSWER, DOUBT, LANES, MISS
from raybox.bvh.notes import CollectOf, CountOf, FirstOf, NearestOf, OccludedOf
from raybox.bvh.sorting import ByTime, sort
from raybox.kernels.jit import device, dispatch, entry, inlined, whole
from raybox.kernels.lanes import prefetch_to_write
from raybox.kernels.primitives import settle, together

_AHEAD = 16  # answers go all over the arrays: their places are asked for so many before (3 % of `nearest`)
_TOGETHER = 1024  # contacts settled at a time: eight are one vector, and a call has 200 words to hand over


class Order(NamedTuple):
    """Rays from a base on by key: that of ray base + order[k] has starts[key] <= k < starts[key + 1]."""

    keys: Any  # int32 (rays + 16,): of those that are not lost, as threads list them
    kept: Any  # int32 (rays + 16,): which rays these are, from the base on
    rows: Any  # float64 (rays + 16, 8): their origins, directions, t_min and t_max
    order: Any  # int32 (rays + 16,)
    where: Any  # int32 (rays + 16,): in which row ray base + order[k] is
    starts: Any  # int64 (LOST + 1,); none for few rays, which are in no order
    doubts: Any  # int32: numbers from the base of rays in doubt; room for all that are asked for
    place: Any  # int64 (2,): where the next group begins, and how many doubts


@device
def doubt(order: Order, k: int) -> None:
    """List a ray as one for which floats could not tell."""
    order.doubts[order.place[1]] = k
    order.place[1] += 1


@device
def settle_nearest(sink: NearestOf, job: Any, order: Order, desk: Any, place: tuple[int, int]) -> None:
    """Write answers of rays that surely meet something. place: the span's first ray, how many pairs."""
    base, found = place
    pairs = desk.pairs
    settle(job.rows, desk.exact, pairs, found)
    for p in range(found):
        ahead = pairs.source[min(p + _AHEAD, found - 1)]
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
    pairs, answers = desk.pairs, desk.answers
    found = whole(0)
    for r in range(end - begin):
        i = answers[r, ANSWER]
        if i >= 0:
            pairs.ray[found], pairs.item[found] = r, i
            pairs.source[found] = base + order.order[begin + r]
            found += 1
        elif i == DOUBT:
            doubt(order, whole(order.order[begin + r]))
    settle_nearest(sink, job, order, desk, (base, found))
    return True


@device
def _answer_occluded(sink: OccludedOf, job: Any, order: Order, desk: Any, place: Any) -> bool:
    base, begin, end = place
    for r in range(end - begin):
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


@device
def _answer_collect(sink: CollectOf, job: Any, order: Order, desk: Any, place: Any) -> bool:
    base, begin, end = place
    contacts, room, starts, answers = sink.contacts, sink.room, sink.starts, desk.answers
    number, done = sink.size[0], sink.size[1]
    if number + LANES > contacts.ray.size or done + number > room.index.size:
        return False
    for c in range(number):
        contacts.source[c] = base + order.order[begin + contacts.ray[c]]
    settle(job.rows, desk.exact, contacts, number)

    # Count each ray's contacts; those of rays in doubt are void.
    starts[: end - begin + 2] = 0
    for c in range(number):
        r = contacts.ray[c]
        begins = contacts.low[c] == desk.exact[r, 6]
        if contacts.verdict[c] == 0 or (begins and contacts.high[c] != contacts.low[c]):
            answers[r, ANSWER] = DOUBT
        starts[r + 2] += 1
    for r in range(end - begin):
        starts[r + 2] += starts[r + 1]

    # Put each ray's contacts together, and in order.
    for c in range(number):
        r = contacts.ray[c]
        at = done + starts[r + 1]
        starts[r + 1] += 1
        room.index[at], room.t[at] = contacts.item[c], contacts.low[c]
    for r in range(end - begin):
        first, stop = done + starts[r], done + starts[r + 1]
        if answers[r, ANSWER] != DOUBT and stop - first > 1:
            sort(ByTime(0), room, first, stop)
        if answers[r, ANSWER] == DOUBT or _tied(job.rows, room, first, stop, (desk.exact, r)):
            doubt(order, whole(order.order[begin + r]))
            stop = first
        sink.where[base + order.order[begin + r]] = first
        sink.counts[base + order.order[begin + r]] = stop - first
    sink.size[0] = 0
    sink.size[1] = done + number
    return True


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


TABLE = {
    NearestOf: _answer_nearest,
    OccludedOf: _answer_occluded,
    CountOf: _answer_count,
    FirstOf: _answer_first,
    CollectOf: _answer_collect,
}


def answer(sink: Any, job: Any, order: Order, desk: Any, place: Any) -> bool:
    """Write a group's answers; see the module's head."""
    raise NotImplementedError("compiled code only")


dispatch(answer, TABLE.get)


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
