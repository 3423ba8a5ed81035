"""A scene's questions, from what is asked to arrays of answers.

Rays go through `raybox.queries.batches`; the few for which floats cannot tell go through
`raybox.queries.exact_traversal`.
"""

from bisect import bisect
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from raybox.compiler import buffer_pool
from raybox.errors import InvalidInput
from raybox.geometry import Rays
from raybox.primitives.box_simd import Pairs, make_pairs
from raybox.queries import exact_traversal, recorders
from raybox.queries.batches import BATCH, Asked, Question, ask_few, asked, put_back, take
from raybox.queries.hit_sorting import make_contacts
from raybox.queries.results import arrange, arrange_packed
from raybox.threads.chunks import Run, check_workers, chunk_runner, uncounted
from raybox.traversal import ray_groups
from raybox.traversal.ray_setup import LANES
from raybox.traversal.single import Job
from raybox.validation import Bools, Floats, Ints

# Bytes of nodes; and in groups of how many times as many rays trees with fewer than the first of these are
# walked, than the second, and so on. The farther nodes come from, the more longer lists are worth, most where
# no ray ends early (10^6 boxes, 16 times over 4: `count` 0.73, but `all`, which needs more room, 1.05).
_SIZES = 1 << 17, 1 << 20, 1 << 24
_PACKED = 4  # the same for packets: at 16, what two threads know of them does not fit the cache they share
_NEAREST, _ANY, _COUNT, _ALL = (1, 4, 4, 4), (1, 4, 8, 16), (4, 4, 8, 16), (4, 4, 4, 4)
_MOST = 1 << 20  # contacts: memory for more is not kept
_SPARE = 1.1  # times as much room as seems to be needed
_CONTACTS: list[Pairs] = []
_ROOMS = 4  # so many groups of packets have room at once, if each of their rays meets as much as it may


def nearest(job: Job, **how: Any) -> tuple[Ints, Floats]:
    """Return index and time of each ray's first contact."""
    total = len(job.rays.origins)
    index, t = buffer_pool.empty((total,), np.int64), buffer_pool.empty((total,), np.float64)

    def make(size: int) -> recorders.NearestOf:
        return recorders.NearestOf(np.empty((size, 2)), index, t)

    blank, wide = _blank((index, -1), (t, np.inf)), _wide(job, _NEAREST)
    question = Question(make, blank, wide, make_packed=make, packed=_PACKED)
    _answer(job, question, exact_traversal.nearest, (index, t), how)
    return index, t


def occluded(job: Job, **how: Any) -> Bools:
    """Return whether each ray meets anything."""
    met = np.zeros(len(job.rays.origins), np.bool_)

    def make(_size: int) -> recorders.OccludedOf:
        return recorders.OccludedOf(met)

    blank, wide = _blank((met, False)), _wide(job, _ANY)
    question = Question(make, blank, wide, make_packed=make, apart=True, packed=_PACKED)
    _answer(job, question, exact_traversal.occluded, (met,), how)
    return met


def _wide(job: Job, widths: tuple[int, ...]) -> int:
    """Tell in groups of how many times as many rays a tree is walked."""
    return widths[bisect(_SIZES, job.tree.nodes.nbytes)] if job.frame else 1


def count(job: Job, **how: Any) -> Ints:
    """Return how many each ray meets."""
    number: Ints = buffer_pool.empty((len(job.rays.origins),), np.int64)

    def make(_size: int) -> recorders.CountOf:
        return recorders.CountOf(number)

    blank, wide = _blank((number, 0)), _wide(job, _COUNT)
    question = Question(make, blank, wide, make_packed=make, packed=_PACKED)
    _answer(job, question, exact_traversal.count, (number,), how)
    return number


def first(job: Job, k: int, **how: Any) -> tuple[Ints, Floats]:
    """Return index and time of each ray's k nearest contacts, rows padded with misses."""
    total = len(job.rays.origins)
    index, t = buffer_pool.empty((total, k), np.int64), buffer_pool.empty((total, k), np.float64)

    def make(size: int) -> recorders.FirstOf:
        low, high = np.empty((size, k)), np.empty((size, k))
        return recorders.FirstOf(np.empty((size, k), np.int32), low, high, index, t)

    question = Question(make, _blank((index, -1), (t, np.inf)))
    _answer(job, question, lambda part: exact_traversal.first(part, k), (index, t), how)
    return index, t


def everything(job: Job, **how: Any) -> tuple[Ints, Ints, Floats]:
    """Return offsets, index and time of every contact, sorted ray by ray."""
    total = len(job.rays.origins)
    with chunk_runner(total, **how) as run:
        if job.frame:
            return _joined([_collect(_part(job, slice(*span)), run) for span in _batches(total)])
        parts = run(
            lambda begin, end: exact_traversal.everything(exact_traversal.some(job, slice(begin, end))), total
        )
    return _joined([(_ends(counts), index, t) for counts, index, t in parts])


def check_rays(rays: Any, dimension: int) -> None:
    """Refuse what is no rays, or of another D than a scene."""
    if not isinstance(rays, Rays):
        raise InvalidInput(
            f"rays must be raybox.Rays; got {type(rays).__name__}. Make some: Rays(origins, directions)."
        )
    if rays.ndim_space != dimension:
        raise InvalidInput(
            f"rays must have the scene's dimensions, D = {dimension}; "
            f"got D = {rays.ndim_space}. Add or drop a coordinate."
        )


def check_k(k: Any) -> int:
    """Return how many contacts `first` is to give."""
    if isinstance(k, bool) or not hasattr(k, "__index__") or int(k) < 1:
        raise InvalidInput(f"k must be a whole number, at least 1; got {k!r}.")
    return int(k)


_NOTHING = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)


def _blank(*answers: tuple[Any, float]) -> Callable[[int, int], None]:
    """Return what writes the answers of rays that meet nothing."""

    def blank(begin: int, end: int) -> None:
        for array, value in answers:
            array[begin:end] = value

    return blank


def _batches(total: int) -> list[tuple[int, int]]:
    """Cut rays into batches of nearly equal size."""
    ends = [total * k // -(-total // BATCH) for k in range(1 + -(-total // BATCH))] if total else []
    return list(pairwise(ends))


def _answer(
    job: Job, question: Question, exactly: Callable[[Job], Any], out: tuple[Any, ...], how: Any
) -> None:
    """Write answers; `exactly` tells those of the rays for which floats cannot."""

    def write(rows: Any) -> None:
        answers = exactly(exact_traversal.some(job, rows))
        for array, part in zip(out, answers if len(out) > 1 else [answers], strict=True):
            array[rows] = part

    def write_all(run: Run, rows: Ints) -> None:
        run(lambda begin, end: write(rows[begin:end]), len(rows), done=uncounted)

    total = len(job.rays.origins)
    if job.frame and total <= ray_groups.FEW:  # threads make one ray a third slower
        check_workers(how.get("workers", -1))
        if (doubts := ask_few(job, (0, total), question).doubts).size:
            write(doubts)
        return
    with chunk_runner(total, **how) as run:
        if not job.frame:
            run(lambda begin, end: write(slice(begin, end)), total)
            return
        for span in _batches(total):
            with asked(job, span, question, run) as found:
                write_all(run, span[0] + found.doubts)


def _part(job: Job, rows: slice) -> Job:
    """Return the job of some rays, to be asked in batches."""
    return job._replace(rays=exact_traversal.some(job, rows).rays)


def _collect(job: Job, run: Run) -> tuple[Ints, Ints, Floats]:
    """Return offsets, index and time of every contact of a batch of rays, sorted ray by ray."""
    number = len(job.rays.origins)
    where, counts = np.empty(number, np.int64), np.zeros(number, np.int64)

    def make(size: int) -> recorders.CollectOf:
        contacts = take(_CONTACTS, lambda: make_pairs(8 * size))
        starts, sizes = np.empty(size + 2, np.int64), np.zeros(2, np.int64)
        return recorders.CollectOf(contacts, sizes, starts, make_contacts(16 * size), where, counts)

    def make_packed(size: int) -> recorders.CollectOf:
        room = make_contacts(_ROOMS * recorders.DEEP * size + LANES)
        return recorders.CollectOf(none, np.zeros(2, np.int64), starts, room, where, counts)

    none, starts = make_pairs(0), np.empty(0, np.int64)
    question = Question(make, _blank(), _wide(job, _ALL), _grown, _finished, make_packed)
    with asked(job, (0, number), question, run) as found:
        return _arranged(job, found, (where, counts), run)


def _arranged(job: Job, found: Asked, of: tuple[Ints, Ints], run: Run) -> tuple[Ints, Ints, Floats]:
    """Return offsets, index and time. of: each ray's place in its room, and how many contacts are there."""
    (done, order, doubts, packed), (where, counts) = found, of
    exact = run(
        lambda begin, end: exact_traversal.everything(exact_traversal.some(job, doubts[begin:end])),
        len(doubts),
        done=uncounted,
    )
    settled, *late = (np.concatenate(some) for some in zip(_NOTHING, *exact, strict=True))
    counts[doubts], where[doubts] = settled, -1
    offsets = _ends(counts)
    index, t = (buffer_pool.empty((offsets[-1],), kind) for kind in (np.int64, np.float64))

    def put(begin: int, end: int) -> None:
        for sink, span, _ in done[begin:end]:
            arrange(span, (order, where, offsets), sink.room, index, t)

    def put_packed(begin: int, end: int) -> None:
        for sink, span in packed[begin:end]:
            arrange_packed(span, (where, offsets), sink.room, index, t)

    run(put, len(done), done=uncounted, min_chunk=1)
    run(put_packed, len(packed), done=uncounted, min_chunk=1)
    places = np.repeat(offsets[doubts] - np.cumsum(settled) + settled, settled) + np.arange(len(late[0]))
    index[places], t[places] = late
    return offsets, index, t


def _ends(counts: Ints) -> Ints:
    """Return where each ray's contacts begin, and where the last ones end."""
    offsets = np.empty(counts.size + 1, np.int64)
    offsets[0] = 0
    np.cumsum(counts, out=offsets[1:])
    return offsets


def _joined(parts: list[tuple[Ints, Ints, Floats]]) -> tuple[Ints, Ints, Floats]:
    """Return offsets, index and time of parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    offsets = _ends(np.concatenate([_NOTHING[0], *(np.diff(part[0]) for part in parts)]))
    index, t = (buffer_pool.empty((offsets[-1],), kind) for kind in (np.int64, np.float64))
    np.concatenate([_NOTHING[1], *(part[1] for part in parts)], out=index)
    np.concatenate([_NOTHING[2], *(part[2] for part in parts)], out=t)
    return offsets, index, t


def _grown(sink: recorders.CollectOf, times: float) -> recorders.CollectOf:
    """Give a sink room for what its last group needs; for so many times what it has to hold by then."""
    needed, done = sink.size
    contacts, room = sink.contacts, sink.room
    if needed + LANES > contacts.ray.size:
        contacts = make_pairs(2 * needed + LANES)
        sink.size[0] = 0
    if done + needed > room.index.size:
        room = make_contacts(int(times * _SPARE * (done + needed)) + LANES)
        room.index[:done], room.t[:done] = sink.room.index[:done], sink.room.t[:done]
    return sink._replace(contacts=contacts, room=room)


def _finished(sink: recorders.CollectOf) -> recorders.CollectOf:
    """Keep the memory for contacts of a group for the next."""
    if sink.contacts.ray.size <= _MOST:
        put_back(_CONTACTS, sink.contacts)
    return sink._replace(contacts=None)
