"""`first`: the k nearest hits of each ray, in order."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from raybox.compiler import huge_pages
from raybox.compiler.decorators import device, inlined, whole
from raybox.compiler.struct_ref import struct
from raybox.errors import InvalidInput
from raybox.geometry import PrimitiveRows
from raybox.hits import Hits
from raybox.hits.hit_ids import Source
from raybox.primitives.instance_ray import AnyRay
from raybox.primitives.status import HIT, MISS, UNDECIDED, UNDECIDED_INDEX, UNKNOWN_ORDER
from raybox.primitives.table import first_contacts, intersect
from raybox.queries.exact_fallback import OrderedHits
from raybox.queries.hit_query import order_by_bounds, order_of
from raybox.queries.hit_sorting import is_before
from raybox.queries.merge import (
    FlatHits,
    merge_hits,
)
from raybox.queries.per_ray import PerRay, ResultArray
from raybox.queries.query import (
    Query,
    Request,
    RunOne,
)
from raybox.queries.scheduler import run
from raybox.traversal.job import Job
from raybox.traversal.protocol import ExactHooks, StreamHooks, register
from raybox.traversal.ray_setup import RESULT
from raybox.traversal.ray_state import end_at, mark_undecided
from raybox.traversal.workspace import Order, Span, Workspace, list_undecided
from raybox.validation import Floats, Ints, Ints32

# In the stream traversal.

_AT_ONCE = 1024  # hits timed by one call: eight are one vector, and a call has 200 words to pass


@struct
class FirstRecorder(NamedTuple):
    """The nearest hits of each ray, RESULT + 1 of them so far, in order."""

    item: Ints32  # (rays, k)
    low: Floats  # (rays, k): bounds of each one's time
    high: Floats
    index: Ints  # type: ignore[assignment]  # not the method of tuples; the results of all rays, as for t
    t: Floats


@device
def _record(recorder: FirstRecorder, job: Job, workspace: Workspace, count: int) -> None:
    pairs, state = workspace.pairs, workspace.state
    for p in range(count):
        r = int(pairs.ray[p])
        if pairs.status[p] == MISS or state[r, RESULT] == UNDECIDED_INDEX:
            continue
        full = state[r, RESULT] + 1 == recorder.item.shape[1]
        place = _place_of(recorder, job, workspace, (p, r), state[r, RESULT] + 1)
        if full and place == recorder.item.shape[1]:
            continue
        if pairs.status[p] == UNDECIDED or place < 0:
            mark_undecided(workspace, r)
            continue
        last = state[r, RESULT] if full else state[r, RESULT] + 1
        for k in range(last, place, -1):
            recorder.item[r, k] = recorder.item[r, k - 1]
            recorder.low[r, k], recorder.high[r, k] = recorder.low[r, k - 1], recorder.high[r, k - 1]
        recorder.item[r, place] = pairs.item[p]
        recorder.low[r, place], recorder.high[r, place] = pairs.low[p], pairs.high[p]
        state[r, RESULT] = last
        if last + 1 == recorder.item.shape[1]:
            end_at(workspace, r, recorder.high[r, last])


@inlined
def _place_of(
    recorder: FirstRecorder, job: Job, workspace: Workspace, pair: tuple[int, int], count: int
) -> int:
    """Return where a pair comes among a ray's hits so far; -1 where float64 cannot tell."""
    p, r = pair
    place = count
    while place > 0:
        low, high = recorder.low[r, place - 1], recorder.high[r, place - 1]
        order = order_by_bounds(workspace.pairs, p, low, high)
        if order == UNKNOWN_ORDER:
            j = whole(recorder.item[r, place - 1])
            order = order_of(job, workspace, p, j, (low, high))
            if order == UNKNOWN_ORDER:
                return -1
            if order == 0 and workspace.pairs.item[p] > j:
                return place
        if order > 0:
            return place
        place -= 1
    return place


@device
def _write_hits(recorder: FirstRecorder, job: Job, workspace: Workspace, found: int) -> None:
    """Write the listed hits to their places in all results; mark undecided rays."""
    pairs, width = workspace.pairs, recorder.index.shape[1]
    first_contacts(job.rows, workspace.rays64, pairs, found)
    for p in range(found):
        k, slot = divmod(pairs.source[p], width)
        recorder.index[k, slot] = pairs.item[p]
        recorder.t[k, slot] = pairs.low[p]
        if pairs.status[p] != HIT:
            workspace.state[pairs.ray[p], RESULT] = UNDECIDED_INDEX


@device
def _write_results(
    recorder: FirstRecorder, job: Job, order: Order, workspace: Workspace, group: Span
) -> bool:
    base, begin, end = group
    pairs, state = workspace.pairs, workspace.state
    found = whole(0)
    for r in range(end - begin):
        first = (base + order.order[begin + r]) * recorder.index.shape[1]
        for slot in range(state[r, RESULT] + 1):
            pairs.ray[found], pairs.item[found], pairs.source[found] = r, recorder.item[r, slot], first + slot
            found += 1
            if found == _AT_ONCE:
                _write_hits(recorder, job, workspace, found)
                found = whole(0)
    _write_hits(recorder, job, workspace, found)
    for r in range(end - begin):
        if state[r, RESULT] == UNDECIDED_INDEX:
            list_undecided(order, whole(order.order[begin + r]))
    return True


_LEAST_RAYS = 64  # that a recorder has room for, however short a query is


class FirstOptions(NamedTuple):
    """How many hits of each ray."""

    k: int


class FirstResults(NamedTuple):
    """The nearest hits of each ray, (rays, k): padded with index -1 and t +inf."""

    index: Ints  # type: ignore[assignment]  # not the method of tuples
    t: Floats


class ExactFirst(NamedTuple):
    """The nearest hits in the single-ray traversal: of all rays, or of one, count[0] of them so far."""

    index: Ints  # type: ignore[assignment]  # not the method of tuples
    t: Floats
    count: Ints  # type: ignore[assignment]  # not the method of tuples


# In the single-ray traversal.


@device
def _start(recorder: ExactFirst, k: int) -> ExactFirst:
    recorder.count[0] = 0
    return ExactFirst(recorder.index[k], recorder.t[k], recorder.count)


@inlined
def _resolve(recorder: ExactFirst, rows: PrimitiveRows, ray: AnyRay, i: int) -> float:
    hit, t = intersect(rows, ray, i)
    size = recorder.index.size
    if hit:
        place = recorder.count[0]
        if place == size:
            place -= 1
            if not is_before(rows, ray, (i, t), (recorder.index[place], recorder.t[place])):
                return recorder.t[place]
        else:
            recorder.count[0] = place + 1
        while place > 0 and is_before(rows, ray, (i, t), (recorder.index[place - 1], recorder.t[place - 1])):
            recorder.index[place] = recorder.index[place - 1]
            recorder.t[place] = recorder.t[place - 1]
            place -= 1
        recorder.index[place] = i
        recorder.t[place] = t
    return recorder.t[size - 1] if recorder.count[0] == size else np.inf


# Results.


def _recorder(results: FirstResults, size: int, options: FirstOptions) -> FirstRecorder:
    shape = size, options.k
    try:
        low, high, item = np.empty(shape), np.empty(shape), np.empty(shape, np.int32)
    except (MemoryError, ValueError) as error:
        raise huge_pages.too_large(20 * size * options.k) from error
    return FirstRecorder(item, low, high, results.index, results.t)


def _write_exact(results: FirstResults, hits: OrderedHits) -> None:
    ray, count, k = hits.ray, hits.index.size, results.index.shape[1]
    results.index[ray], results.t[ray] = -1, np.inf
    results.index[ray, :count], results.t[ray, :count] = hits.index[:k], hits.t[:k]


PER_RAY = PerRay(
    results=FirstResults,
    arrays=(ResultArray(np.int64, -1), ResultArray(np.float64, np.inf)),
    recorder=_recorder,
    exact_recorder=lambda results: ExactFirst(results.index, results.t, np.empty(1, np.int64)),
    write_hits=_write_exact,
    shape=lambda options: (options.k,),
    packets=lambda _options: False,
)


def _without_misses(hits: FlatHits) -> FlatHits:
    hit = hits.id >= 0
    return FlatHits(hits.ray[hit], hits.id[hit], hits.t[hit])


def _merge_geometries(
    request: Request, run_one: RunOne[FirstOptions, FirstResults], options: FirstOptions
) -> FirstResults:
    parts = [run_one(job, request.rays) for job in request.jobs]
    rays, k = len(parts[0].index), options.k
    ray = np.repeat(np.arange(rays, dtype=np.int64), k)
    flat = [FlatHits(ray, part.index.reshape(-1), part.t.reshape(-1)) for part in parts]
    hits = merge_hits(request, [_without_misses(part) for part in flat])
    place = np.arange(hits.ray.size) - np.searchsorted(hits.ray, hits.ray)
    near = place < k
    index, t = np.full((rays, k), -1, np.int64), np.full((rays, k), np.inf)
    index[hits.ray[near], place[near]] = hits.id[near]
    t[hits.ray[near], place[near]] = hits.t[near]
    return FirstResults(index, t)


def _present(results: FirstResults, shape: tuple[int, ...], source: Source, options: FirstOptions) -> Hits:
    shape = (*shape, options.k)
    return Hits(results.index.reshape(shape), results.t.reshape(shape), source._replace(inner=options.k))


QUERY = Query(
    name="first",
    hooks=(
        StreamHooks(FirstRecorder, record=_record, write_results=_write_results),
        ExactHooks(ExactFirst, _resolve, _start),
    ),
    run=partial(run, PER_RAY),
    merge_geometries=_merge_geometries,
    present=_present,
)
register(*QUERY.hooks)


def check_k(k: Any) -> FirstOptions:
    """Return the options of `first`, checked."""
    if isinstance(k, bool) or not hasattr(k, "__index__") or int(k) < 1:
        raise InvalidInput(f"k must be a whole number, at least 1; got {k!r}.")
    if int(k) >= 2**31:
        raise InvalidInput(f"k must be less than 2**31, for a scene has no more rows; got {k!r}.")
    huge_pages.check_size(8 * _LEAST_RAYS * int(k))
    return FirstOptions(int(k))
