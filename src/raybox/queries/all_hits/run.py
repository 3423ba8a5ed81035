"""`all` on one geometry: hits are recorded in rows, one for each ray, then copied to their places."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import numpy as np

from raybox.compiler import huge_pages
from raybox.compiler.buffer_pool import BufferPool
from raybox.compiler.decorators import device, inlined
from raybox.geometry import PrimitiveRows, RayRows
from raybox.geometry.ray_rows import ray_count, select_rows
from raybox.hits.runs import offsets_of, places_of
from raybox.primitives.box_simd import Pairs, make_pairs
from raybox.primitives.instance_ray import AnyRay
from raybox.primitives.ray import get_ray
from raybox.primitives.table import intersect
from raybox.queries import one_by_one
from raybox.queries.all_hits import hit_rows
from raybox.queries.all_hits.recorder import AllHitsRecorder
from raybox.queries.batches import Recording, StreamPart, Traversed, traverse_batch
from raybox.queries.exact_fallback import undecided_hits
from raybox.queries.hit_pairs import room_for
from raybox.queries.hit_sorting import Exactly, HitArrays, make_hit_arrays, sort
from raybox.queries.per_ray import join_arrays, select_rays
from raybox.queries.scheduler import EXACT_CHUNK, batches_of, goes_one_by_one, group_width, rays_each
from raybox.threads.chunks import InlineRun, Run, check_workers, chunk_runner, uncounted
from raybox.traversal.job import Job, RaySpan
from raybox.traversal.protocol import ExactHooks
from raybox.traversal.ray_setup import LANES
from raybox.traversal.single import make_scratch, traverse_rays
from raybox.traversal.workspace import MAX_PACKET_HITS
from raybox.validation import Floats, Ints

_GROUP_WIDTHS = 4, 4, 4, 4
_FIRST_ROOM = 4096  # hits that rows of rays one by one first have room for
_MOST = 1 << 20  # pairs: memory for more is not reused
_SPARE = 1.1  # times as much room as seems to be needed
_PACKET_GROUPS = 4  # so many groups of packets have room at once, if each ray hits as much as it may
_PAIRS = BufferPool[Pairs | None](lambda: None, _PACKET_GROUPS)
_NO_PAIRS = make_pairs(0)


class AllResults(NamedTuple):
    """The hits of ray i are offsets[i] <= c < offsets[i + 1], in order."""

    offsets: Ints
    index: Ints  # type: ignore[assignment]  # not the method of tuples
    t: Floats


class ExactRows(NamedTuple):
    """Counts, and hits in order, of rays one after the other."""

    counts: Ints
    index: Ints  # type: ignore[assignment]  # not the method of tuples
    t: Floats


class ExactAllHits(NamedTuple):
    """Hits in the single-ray traversal: a `RowRoom`, and how many one ray has so far."""

    hits: HitArrays
    used: Ints
    counts: Ints
    count: Ints  # type: ignore[assignment]  # not the method of tuples


@device
def _start(recorder: ExactAllHits, _k: int) -> ExactAllHits:
    recorder.count[0] = 0
    return recorder


@inlined
def _resolve(recorder: ExactAllHits, rows: PrimitiveRows, ray: AnyRay, i: int) -> float:
    hit, t = intersect(rows, ray, i)
    if hit:
        place = recorder.used[0] + recorder.count[0]
        if place < recorder.hits.index.size:
            recorder.hits.index[place] = i
            recorder.hits.t[place] = t
        recorder.count[0] += 1
    return np.inf


@device
def _finish(recorder: ExactAllHits, _state: ExactAllHits, job: Job, k: int) -> bool:
    """Sort the hits of a ray; return False if they had no room."""
    used, count = recorder.used[0], recorder.count[0]
    recorder.counts[k] = count
    if used + count > recorder.hits.index.size:
        return False
    sort(Exactly(job.rows, get_ray(job.rays, k)), recorder.hits, used, used + count)
    recorder.used[0] = used + count
    return True


EXACT_HOOKS = ExactHooks(ExactAllHits, _resolve, _start, _finish)


def run(job: Job, rays: RayRows, options: None, workers: int, progress: bool) -> AllResults:
    """Return every hit of all rays, sorted along each ray."""
    total = ray_count(rays)
    if job.frame and goes_one_by_one(job, rays):
        check_workers(workers)
        return _run_unsorted(job, rays)
    with chunk_runner(total, workers=workers, progress=progress, least=rays_each(job)) as threads:
        if job.frame:
            parts = (select_rows(rays, slice(*span)) for span in batches_of(total))
            return joined([_run_batch(job, part, threads) for part in parts])
        exact = _run_exactly(job, rays, np.arange(total), threads)
    return joined([AllResults(offsets_of(part.counts), part.index, part.t) for part in exact])


def _run_unsorted(job: Job, rays: RayRows) -> AllResults:
    """Return every hit of few rays, without a thread pool."""
    count, run = ray_count(rays), InlineRun()
    rows = _Rows(np.empty(count, np.int64), np.zeros(count, np.int64))
    recorder = _make_recorder(rows, one_by_one.room(count))
    recorder, undecided = one_by_one.traverse(job, rays, RaySpan(0, count), recorder, _grown)
    part = StreamPart(_released(recorder), RaySpan(0, count), undecided)
    exact = _run_exactly(job, rays, undecided, run) if undecided.size else []
    return _collected(Traversed([part], np.arange(count, dtype=np.int32), undecided, []), rows, exact, run)


class _Rows(NamedTuple):
    """Of each ray: the place of its row in the memory of its thread, and how many hits are there."""

    where: Ints
    counts: Ints


def _make_recorder(rows: _Rows, size: int) -> AllHitsRecorder:
    """Return a recorder of groups of up to so many rays."""
    pairs = _PAIRS.take() or make_pairs(8 * size)
    hits, (pair_count, sorted_count) = make_hit_arrays(16 * size), np.zeros((2, 1), np.int64)
    return AllHitsRecorder(pairs, pair_count, sorted_count, np.empty(size + 2, np.int64), hits, *rows)


def _make_packet_recorder(rows: _Rows, size: int) -> AllHitsRecorder:
    """Return a recorder of so many rays in packets."""
    hits = make_hit_arrays(_PACKET_GROUPS * MAX_PACKET_HITS * size + LANES)
    pair_count, sorted_count = np.zeros((2, 1), np.int64)
    return AllHitsRecorder(_NO_PAIRS, pair_count, sorted_count, np.empty(0, np.int64), hits, *rows)


def _run_exactly(job: Job, rays: RayRows, numbers: Ints, threads: Run) -> list[ExactRows]:
    """Return every hit of some rays by the exact single-ray traversal."""
    job = job._replace(rays=rays)
    return threads(
        lambda begin, end: run_exact(select_rays(job, numbers[begin:end])),
        len(numbers),
        done=uncounted,
        min_chunk=EXACT_CHUNK,
    )


def _run_batch(job: Job, rays: RayRows, threads: Run) -> AllResults:
    """Return every hit of a batch of rays."""
    count = ray_count(rays)
    rows = _Rows(np.empty(count, np.int64), np.zeros(count, np.int64))
    recording = Recording(
        partial(_make_recorder, rows),
        write_misses=lambda begin, end: None,
        group_width=group_width(job, _GROUP_WIDTHS),
        grow=_grown,
        release=_released,
        packet_recorder=partial(_make_packet_recorder, rows),
    )
    with traverse_batch(job, rays, RaySpan(0, count), recording, threads) as traversed:
        exact = _run_exactly(job, rays, traversed.undecided, threads)
        return _collected(traversed, rows, exact, threads)


def _collected(
    traversed: Traversed[AllHitsRecorder], rows: _Rows, parts: list[ExactRows], threads: Run
) -> AllResults:
    """Return the rows of all threads in the order of the rays, those of undecided rays, `parts`, included."""
    (streams, order, undecided, packets), (where, counts) = traversed, rows
    if undecided.size:
        counts[undecided] = np.concatenate([part.counts for part in parts])
        where[undecided] = -1
    offsets = offsets_of(counts)
    index, t = (huge_pages.pooled((offsets[-1],), dtype) for dtype in (np.int64, np.float64))

    def copy(begin: int, end: int) -> None:
        for part in streams[begin:end]:
            hit_rows.copy_rows(part.span, (order, where, offsets), part.recorder.hits, index, t)

    def copy_packets(begin: int, end: int) -> None:
        for part in packets[begin:end]:
            hit_rows.copy_packet_rows(part.span, (where, offsets), part.recorder.hits, index, t)

    threads(copy, len(streams), done=uncounted, min_chunk=1)
    threads(copy_packets, len(packets), done=uncounted, min_chunk=1)
    if undecided.size:
        own = counts[undecided]
        places = places_of(offsets[undecided], own)
        index[places] = np.concatenate([part.index for part in parts])
        t[places] = np.concatenate([part.t for part in parts])
    return AllResults(offsets, index, t)


class RowRoom(NamedTuple):
    """Room for the rows of some rays, one after the other."""

    hits: HitArrays
    used: Ints
    """(1,): how many hits the rows so far have"""
    counts: Ints
    """how many hits each ray has, of those so far, and of the one whose row had no room"""


def rows_of(rays: int, traverse: Callable[[RaySpan, RowRoom], int]) -> list[ExactRows]:
    """Return the rows of so many rays, in parts.

    traverse: write the rows of a span of rays, until one has no room; return the number of that ray.
    """
    begin, size, counts, parts = 0, _FIRST_ROOM, np.zeros(rays, np.int64), []
    while begin < rays:
        room = _make_room(size, counts)
        end = traverse(RaySpan(begin, rays), room)
        used = room.used[0]
        parts.append(ExactRows(counts[begin:end], room.hits.index[:used], room.hits.t[:used]))
        size = max(2 * size, int(counts[end]) if end < rays else 0)
        begin = end
    return parts


def _make_room(size: int, counts: Ints) -> RowRoom:
    """Return room for so many hits, in pooled memory; that for sorting them is touched when it is used."""
    index, t = (huge_pages.pooled((size,), dtype) for dtype in (np.int64, np.float64))
    hits = HitArrays(index, t, np.empty(size, np.int64), np.empty(size))
    return RowRoom(hits, np.zeros(1, np.int64), counts)


def join_rows(parts: list[ExactRows]) -> ExactRows:
    """Return rows, one after the other, in pooled memory."""
    counts = np.concatenate([np.empty(0, np.int64), *(part.counts for part in parts)])
    index = join_arrays([part.index for part in parts], np.int64)
    return ExactRows(counts, index, join_arrays([part.t for part in parts], np.float64))


def run_exact(job: Job) -> ExactRows:
    """Return every hit of the rays of a job by the exact single-ray traversal."""

    def traverse(span: RaySpan, room: RowRoom) -> int:
        recorder = ExactAllHits(*room, np.empty(1, np.int64))
        return traverse_rays(job, span, make_scratch(), recorder)

    return _corrected(job, join_rows(rows_of(len(job.rays.directions), traverse)))


def _corrected(job: Job, found: ExactRows) -> ExactRows:
    """Return hits with those of undecided rays replaced by what the exact fallback finds."""
    decided = list(undecided_hits(job))
    if not decided:
        return found
    rays, index, times, _ = zip(*decided, strict=True)
    numbers, counts = np.array(rays), found.counts
    stay = ~np.repeat(np.isin(np.arange(counts.size), numbers), counts)
    counts[numbers] = 0
    places = np.repeat(np.cumsum(counts)[numbers], [part.size for part in index])
    counts[numbers] = [part.size for part in index]
    return ExactRows(
        counts,
        np.insert(found.index[stay], places, np.concatenate(index)),
        np.insert(found.t[stay], places, np.concatenate(times)),
    )


def joined(parts: list[AllResults]) -> AllResults:
    """Return the results of batches, one after the other."""
    if len(parts) == 1:
        return parts[0]
    counts: Iterable[Ints] = (np.diff(part.offsets) for part in parts)
    offsets = offsets_of(np.concatenate([np.empty(0, np.int64), *counts]))
    index = join_arrays([part.index for part in parts], np.int64)
    return AllResults(offsets, index, join_arrays([part.t for part in parts], np.float64))


def _grown(recorder: AllHitsRecorder, factor: float) -> AllHitsRecorder:
    """Return a recorder with room for its last group, and for so many times what it has to hold by then."""
    needed, done = recorder.pair_count[0], recorder.sorted_count[0]
    pairs, hits = recorder.pairs, recorder.hits
    if needed + LANES > pairs.ray.size:
        pairs = make_pairs(room_for(needed))
        recorder.pair_count[0] = 0
    if done + needed > hits.index.size:
        hits = make_hit_arrays(int(factor * _SPARE * (done + needed)) + LANES)
        hits.index[:done], hits.t[:done] = recorder.hits.index[:done], recorder.hits.t[:done]
    return recorder._replace(pairs=pairs, hits=hits)


def _released(recorder: AllHitsRecorder) -> AllHitsRecorder:
    """Store the memory for the pairs of a group for the next query."""
    if recorder.pairs.ray.size <= _MOST:
        _PAIRS.put_back(recorder.pairs)
    return recorder._replace(pairs=_NO_PAIRS)
