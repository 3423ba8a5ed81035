"""The loops behind a question of many rays: they are sorted, walked in groups, answered in their own order.

Threads share in each step: `mark` copies those of some rays that may meet anything, lists and counts them by
their keys, `spread` puts them where those with their key belong, and `ask` answers for a part of all that are
then in order.
"""

from typing import Any

from raybox.compiler.decorators import device, entry, whole
from raybox.compiler.intrinsics import larger, prefetch_to_write, smaller
from raybox.queries.recorders import waits
from raybox.queries.results import answer
from raybox.traversal.packed_rays import aim
from raybox.traversal.ray_keys import copy_rays, keep_keys, sort_keys
from raybox.traversal.ray_order import Order
from raybox.traversal.ray_setup import CELLS, LANES, octant_of
from raybox.traversal.stream import is_spared, judge_rest, walk_group
from raybox.traversal.workspace import FIRST, Desk

FEW = 1024  # so many rays are not worth sorting: that costs as much as walking some 500 of them
AT_HAND = 1024  # rays that a core's first cache holds
_OCTANT = CELLS**3
_AHEAD = 16  # places are asked for so many rays before: halves the time of spreading, on two threads, too


@device
def _aim(job: Any, desk: Desk, order: Order, place: tuple[Any, Any, bool]) -> None:
    """Write the probes of a group: emitted once, called twice."""
    desk.work[FIRST] = place[0]
    aim(job.frame, desk, order.rows, order.where, place)


@device
def _walk(job: Any, sink: Any, desk: Desk, octant: int, number: int) -> None:
    """Walk the desk's first list: emitted once, called twice."""
    walk_group(job, sink, desk, octant, number)


@device
def _answer(sink: Any, job: Any, order: Order, desk: Desk, place: tuple[int, int, int]) -> bool:
    """Write a group's answers: compiled once, for an entry and for a device function."""
    judge_rest(job, sink, desk)
    return answer(sink, job, order, desk, place)


@device
def _line_up(desk: Desk, number: int) -> None:
    """Make all rays of the desk the first list."""
    for r in range(number):
        desk.arena[r], desk.times[r] = r, 0.0


@entry
def mark(job: Any, span: Any, order: Order, counts: Any, keys: Any, past: bool) -> int:
    """List by what the rays base + k, begin <= k < end, are sorted, less the lost; count each key.

    Return how many there are: their keys, numbers and rows begin at `begin`. span: (base, begin, end).
    keys: room for those of AT_HAND rays and 16 more; without any, rays are marked. There are 16 rays from
    base on, at least: fewer are keyed with their neighbours. past: whether rows go past the caches, which
    then keep what walks look up (1 to 7 % off questions of 2^17 rays and more; of a million, rows are 64 MB).
    """
    base, row, end = span
    for begin in range(span[1], end, AT_HAND):
        stop = smaller(begin + AT_HAND, end)
        if keys.size > 0:
            first = smaller(begin, larger(0, stop - LANES))
            sort_keys(job.rays, job.frame, base + first, base + larger(stop, first + LANES), keys)
            marks = keys[begin - first :]
        else:
            marks = order.keys[begin:]
        last, row = row, keep_keys(marks, (begin, stop), row, order.keys, order.kept)
        copy_rays(job.rays, base, order.kept, (last, row, past), order.rows)
    counts[:] = 0
    for k in range(span[1], row):
        counts[order.keys[k]] += 1
    return whole(row - span[1])


@entry
def spread(span: Any, order: Order, places: Any) -> None:
    """Put the rays begin <= row < end of the list in order; places: where the next ray of each key goes."""
    for row in range(span[0], span[1]):
        soon = places[order.keys[smaller(row + _AHEAD, span[1] - 1)]]
        prefetch_to_write(order.order, soon)
        prefetch_to_write(order.where, soon)
        key = order.keys[row]
        place = places[key]
        order.order[place], order.where[place] = order.kept[row], row
        places[key] += 1


@entry
def ask(job: Any, span: Any, order: Order, desk: Desk, sink: Any, size: int) -> bool:
    """Answer for rays of a span that are in order, from order.place[0] on; False: the sink has no room.

    span: (base, begin, end): rays base + order[k], begin <= k < end. They go by groups of up to so many.
    """
    base, begin, end = span
    if order.starts.size == 0:
        return _ask_few(job, span, order, desk, sink)
    while order.place[0] < end:
        begin, octant = whole(order.place[0]), whole(0)
        while order.starts[(octant + 1) * _OCTANT] <= begin:
            octant += 1
        stop = smaller(smaller(end, begin + size), order.starts[(octant + 1) * _OCTANT])
        if not waits(sink):
            _aim(job, desk, order, (begin, stop, is_spared(job, sink)))
            _line_up(desk, stop - begin)
            _walk(job, sink, desk, octant, stop - begin)
        if not _answer(sink, job, order, desk, (base, begin, stop)):
            return False
        order.place[0] = stop
    return True


@device
def _ask_few(job: Any, span: Any, order: Order, desk: Desk, sink: Any) -> bool:
    """Answer for a few rays, one by one."""
    base, begin, end = span
    if waits(sink):
        return _answer(sink, job, order, desk, span)
    order.place[1] = 0
    for k in range(begin, end):
        order.order[k], order.where[k] = k, k
    copy_rays(job.rays, base, order.order, (begin, end), order.rows)
    _aim(job, desk, order, (begin, end, is_spared(job, sink)))
    for r in range(end - begin):
        desk.arena[0], desk.times[0] = r, 0.0
        _walk(job, sink, desk, octant_of(desk.probes, r), whole(1))
    return _answer(sink, job, order, desk, span)
