"""Many rays asked at once, up to a million: put in order, then answered for by all threads.

Rays that enter the scene at one place and go one way are walked together, and the more there are to choose
from, the more of those there are: so threads sort all of a batch, not each its own part of it (`inside`, 10^5
boxes, two threads: a tenth faster; sixteen threads would have lists as short as a sixteenth of the rays
makes: half as fast). The few rays for which floats cannot tell are left to `raybox.queries.exact_traversal`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np

from raybox.compiler import huge_pages
from raybox.primitives.table import fills
from raybox.queries import recorders
from raybox.threads.affinity import cores
from raybox.threads.chunks import Run, uncounted
from raybox.traversal import packet_batches, ray_groups
from raybox.traversal.ray_keys import CAREFUL, LOST
from raybox.traversal.ray_order import Order
from raybox.traversal.ray_setup import LANES, NUMBERS
from raybox.traversal.single import Job
from raybox.traversal.workspace import Desk, make_desk
from raybox.validation import Ints

T = TypeVar("T")

BATCH = 1 << 20
_LEAST = 64  # rays that sinks have room for
GROUP = 4096  # rays walked together, or a multiple of it (`raybox.queries.scheduler`)
_EACH = 4  # groups for each thread, at least, where groups are wide
_AT_ONCE = 1 << 15  # rays that one thread spreads before another is there
_SHARED = 2  # groups for each thread, at least, where rays are few
_NARROW = 512  # rays: but no group is of fewer
_PIECE = 1 << 13  # rays that a thread answers for in packets at a time, at least
_FAR = 1 << 17  # rays whose rows go past the caches
_ALIKE = 1024  # rays of a key: of pictures there are thousands, of rays that start anywhere some hundreds
_DESKS: dict[int, list[Desk]] = {}
_ORDERS: list[Order] = []
_FEW: list[tuple[Order, Desk]] = []
_PACKETS: dict[int, list[tuple[Any, Desk]]] = {}
_PLACES: list[Any] = []
_NONE = np.empty(0, np.int64)
_MARKED = np.empty(0, np.int32)
_KEPT = max(4, cores())  # of each, for the next question


class Question(NamedTuple):
    """What is asked of the rays of a batch."""

    make: Callable[[int], Any]  # a sink for groups of so many rays
    blank: Callable[[int, int], None]  # writes the answers of rays begin <= k < end that meet nothing
    wide: int = 1  # in groups of up to so many times as many rays, a power of two
    grow: Any = None  # gives a sink more room: for so many times what it has to hold by now
    finish: Any = None  # takes back from a sink what it needs no more
    make_packed: Any = None  # a sink for so many rays in packets
    apart: bool = False  # groups are wide only if few rays go one way from one place
    packed: int = 1  # groups of packets are of up to so many times as many rays


class Packed(NamedTuple):
    """What a thread has answered for packets: in a sink, for the rays span[0] <= k < span[1]."""

    sink: Any
    span: tuple[int, int]


class Answered(NamedTuple):
    """What a thread has answered: in a sink, for the rays order[k], span[0] <= k < span[1]."""

    sink: Any
    span: tuple[int, int]
    doubts: Ints  # rays for which floats cannot tell


class _Marked(NamedTuple):
    """Rays that have keys: which, how many of each key, how many of them are left, and those in doubt."""

    span: tuple[int, int]
    counts: Ints
    left: int
    doubts: Ints
    packed: list["Packed"]


class Asked(NamedTuple):
    """What threads have answered, and the order that is in; rays have numbers from the batch's first on."""

    done: list[Answered]
    order: Any  # int32
    doubts: Ints  # rays for which floats cannot tell
    packed: list[Packed]


def ask_few(job: Job, span: tuple[int, int], question: Question) -> Answered:
    """Ask for no more rays than are worth sorting, one by one: in their own order."""
    base, number = span[0], span[1] - span[0]
    order, desk = take(_FEW, _make_few)
    order.place[:] = 0
    question.blank(*span)
    sink = question.make(max(number, _LEAST))
    while not ray_groups.ask(job, (base, 0, number), order, desk, sink, ray_groups.FEW):
        sink = question.grow(sink, 1.0)
    put_back(_FEW, (order, desk))
    return Answered(_finished(sink, question), (0, number), _doubts_of(order))


@contextmanager
def asked(job: Job, span: tuple[int, int], question: Question, run: Run) -> Iterator[Asked]:
    """Ask for a batch of rays, and lend the memory that their order is in."""
    if span[1] - span[0] <= ray_groups.FEW:
        done = ask_few(job, span, question)
        yield Asked([done], np.arange(span[1] - span[0], dtype=np.int32), done.doubts, [])
        return
    order = _take_order(span[1] - span[0])
    marked = _sort(job, span, question, order, run)
    careful = order.order[order.starts[CAREFUL] : order.starts[LOST]].astype(np.int64)
    size = _group(question, order.starts[: CAREFUL + 1], run.threads)
    parts = run(
        lambda begin, end: _ask_sorted(job, (span[0], begin, end), question, order, size),
        order.starts[CAREFUL],
        min_chunk=size,
    )
    doubts = np.concatenate([careful, *(part.doubts for part in marked), *(part.doubts for part in parts)])
    yield Asked(parts, order.order, doubts, [packed for part in marked for packed in part.packed])
    put_back(_ORDERS, order)


def _group(question: Question, starts: Ints, threads: int) -> int:
    """Return how many rays are walked together: not so many that threads would wait for each other.

    starts: where rays of each key begin, and where those of the last one end.
    """
    wide, rays = question.wide, int(starts[-1])
    if question.apart and rays > _ALIKE * np.count_nonzero(np.diff(starts)):
        wide = 1
    if threads > 1:
        wide = min(wide, max(1, rays // (_EACH * threads * GROUP)))
    size = GROUP << wide.bit_length() - 1
    while threads > 1 and size > _NARROW and rays < _SHARED * threads * size:
        size >>= 1
    return size


def _sort(job: Job, span: tuple[int, int], question: Question, order: Order, run: Run) -> list[_Marked]:
    """Put the rays of a batch in order, less those that come in packets."""
    packets = (
        question.make_packed is not None
        and fills(job.rows)
        and packet_batches.seem(job.rays, job.frame.numbers, *span)
    )
    mark, past = _mark_packets if packets else _mark, span[1] - span[0] >= _FAR
    marked = run(
        lambda begin, end: mark(job, (span[0], begin, end), question, order, past),
        span[1] - span[0],
        done=lambda part: part.span[1] - part.span[0] - part.left,
        min_chunk=_PIECE if packets else None,
    )
    _spread(marked, order, run)
    return marked


def _mark(job: Job, span: tuple[int, int, int], question: Question, order: Order, past: bool) -> _Marked:
    """List some rays by their keys."""
    base, begin, end = span
    question.blank(base + begin, base + end)
    counts, keys = np.empty(LOST, np.int64), np.empty(ray_groups.AT_HAND + LANES, np.int32)
    return _Marked((begin, end), counts, ray_groups.mark(job, span, order, counts, keys, past), _NONE, [])


def _mark_packets(
    job: Job, span: tuple[int, int, int], question: Question, order: Order, past: bool
) -> _Marked:
    """Answer for those of some rays that come in packets; write the keys of the others."""
    _, begin, end = span
    order, left, packed = _part_of(order, span), 0, []
    size = GROUP * question.packed
    shelf = _PACKETS.setdefault(size, [])
    memory, desk = take(shelf, lambda: packet_batches.make_packets(size))
    while (first := int(order.place[0])) < end:
        sink = question.make_packed(min(end - first, size))
        left += packet_batches.ask_packets(job, span, order, desk, recorders.PacketsOf(sink, *memory))
        packed.append(Packed(sink, (first, int(order.place[0]))))
    put_back(shelf, (memory, desk))
    counts = np.zeros(LOST, np.int64)
    if left:
        left = ray_groups.mark(job, span, order, counts, _MARKED, past)
    return _Marked((begin, end), counts, left, _given_back(order), packed)


def _spread(marked: list[_Marked], order: Order, run: Run) -> None:
    """Put rays in the order of their keys; of one key, those marked first come first."""
    starts, ends = order.starts[:-1], order.starts[1:]
    order.starts[:] = 0
    for part in marked:  # from how many there are to where they begin
        ends += part.counts
        np.subtract(ends, part.counts, out=part.counts)
    np.cumsum(ends, out=ends)
    for part in marked:
        np.add(part.counts, starts, out=part.counts)

    def put(begin: int, end: int) -> None:
        for (first, _), places, left, *_ in marked[begin:end]:
            ray_groups.spread((first, first + left), order, places)

    if starts[-1] < _AT_ONCE:
        put(0, len(marked))
    else:
        run(put, len(marked), done=uncounted, min_chunk=1)


def _ask_sorted(
    job: Job, span: tuple[int, int, int], question: Question, order: Order, size: int
) -> Answered:
    """Answer for rays that are in order, from one place to another, in groups of so many."""
    order, sink = _part_of(order, span), question.make(size)
    shelf = _DESKS.setdefault(size, [])
    desk = take(shelf, lambda: make_desk(size))
    told = _told(desk, order)
    while not ray_groups.ask(job, span, order, told, sink, size):
        rays = span[2] - span[1]
        sink = question.grow(sink, rays / min(order.place[0] - span[1] + size, rays))
    put_back(shelf, desk)
    return Answered(_finished(sink, question), span[1:], _given_back(order))


def _told(desk: Desk, order: Order) -> Desk:
    """Return a desk that knows where rays are."""
    return desk._replace(rows=order.rows, where=order.where)


def _finished(sink: Any, question: Question) -> Any:
    return question.finish(sink) if question.finish else sink


def _part_of(order: Order, span: tuple[int, int, int]) -> Order:
    """Return the order with a list of doubts, and a place, of one thread's own."""
    place = take(_PLACES, lambda: huge_pages.empty((2,), np.int64))
    place[0], place[1] = span[1], 0
    return order._replace(doubts=order.doubts[span[1] : span[2]], place=place)


def _given_back(part: Order) -> Ints:
    """Return the doubts of a thread's part of the order; its place serves another."""
    doubts = _doubts_of(part)
    put_back(_PLACES, part.place)
    return doubts


def _doubts_of(order: Order) -> Ints:
    number = order.place[1]
    return order.doubts[:number].astype(np.int64) if number else _NONE


def take(shelf: list[T], make: Callable[[], T]) -> T:
    """Return what was kept, or a new one."""
    try:
        return shelf.pop()
    except IndexError:
        return make()


def put_back(shelf: list[T], lent: T) -> None:
    """Keep what was lent for the next question."""
    if len(shelf) < _KEPT:
        shelf.append(lent)


def _make_few() -> tuple[Order, Desk]:
    place = huge_pages.empty((2,), np.int64)
    order = _make_order(ray_groups.FEW)._replace(starts=_NONE, place=place)
    return order, _told(make_desk(ray_groups.FEW), order)


def _take_order(rays: int) -> Order:
    """Return the memory for sorting so many rays."""
    order = take(_ORDERS, lambda: _make_order(rays))
    return order if order.keys.size >= rays + LANES else _make_order(rays)


def _make_order(rays: int) -> Order:
    keys, kept, places, where, doubts = (huge_pages.empty((rays + LANES,), np.int32) for _ in range(5))
    rows = huge_pages.empty((rays + LANES, NUMBERS), np.float64)
    return Order(keys, kept, rows, places, where, np.empty(LOST + 1, np.int64), doubts, _NONE)
