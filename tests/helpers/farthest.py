"""`farthest`: the hit of each ray with the largest t; of several at exactly the same t, the lowest index.

A whole query in one file, by the protocols of `raybox.queries.query` and `raybox.traversal.protocol`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from raybox.compiler.decorators import device, inlined, no, whole
from raybox.compiler.intrinsics import larger, smaller
from raybox.compiler.simd import Lanes
from raybox.compiler.struct_ref import struct
from raybox.exact import definition
from raybox.hits import Hits
from raybox.hits.hit_ids import Source
from raybox.primitives.ray import Ray
from raybox.primitives.status import HIT, MISS, MISS_INDEX, UNDECIDED, UNDECIDED_INDEX
from raybox.primitives.table import certain_order, first_contacts, intersect, tie
from raybox.queries.exact_fallback import OrderedHits
from raybox.queries.merge import exact_time
from raybox.queries.per_ray import PerRay, ResultArray
from raybox.queries.query import Query, Request, RunOne
from raybox.queries.scheduler import run
from raybox.traversal.packet_batches import resolve_undecided
from raybox.traversal.packet_box import PacketAtBox, add_undecided
from raybox.traversal.protocol import ExactHooks, PacketHooks, StreamHooks
from raybox.traversal.ray_setup import LANES, PASSES, RESULT
from raybox.traversal.ray_state import both_at_range_start, mark_undecided
from raybox.traversal.workspace import (
    DEFERRED,
    RESULTS,
    Order,
    PacketGroup,
    PacketRecorder,
    Span,
    list_undecided,
    packet_ray,
)


class FarthestResults(NamedTuple):
    """The farthest hit of each ray; index -1 and t +inf for a miss."""

    index: Any
    t: Any


@struct
class FarthestRecorder(NamedTuple):
    """The farthest hit so far: RESULT is its index, its time is from times[r, 0] to times[r, 1]."""

    times: Any  # float64 (rays, 2)
    index: Any  # the results of all rays, as for t
    t: Any


class ExactFarthest(NamedTuple):
    """The farthest hit in the single-ray traversal: of all rays, or of one."""

    index: Any
    t: Any


# In the stream traversal.


@device
def _record(recorder: FarthestRecorder, job: Any, workspace: Any, count: int) -> None:
    pairs, state, times = workspace.pairs, workspace.state, recorder.times
    for p in range(count):
        status, r, i = pairs.status[p], pairs.ray[p], pairs.item[p]
        j = state[r, RESULT]
        if status == MISS or j == UNDECIDED_INDEX:
            continue
        if status == UNDECIDED:
            mark_undecided(workspace, r)
        elif j == MISS_INDEX or pairs.low[p] > times[r, 1]:
            state[r, RESULT] = i
            times[r, 0], times[r, 1] = pairs.low[p], pairs.high[p]
        elif not pairs.high[p] < times[r, 0]:
            # Float64 cannot order these two hits: they tie for certain, or the exact fallback decides.
            at_start = both_at_range_start((pairs.low[p], pairs.high[p]), (times[r, 0], times[r, 1]))
            if at_start or certain_order(job.rows, workspace.rays64, whole(r), whole(i), whole(j)) == 0:
                state[r, RESULT] = smaller(i, j)
                times[r, 0] = larger(pairs.low[p], times[r, 0])
                times[r, 1] = smaller(pairs.high[p], times[r, 1])
            else:
                mark_undecided(workspace, r)


@device
def _write_results(recorder: FarthestRecorder, job: Any, order: Order, workspace: Any, group: Span) -> bool:
    base, begin, end = group
    pairs, found = workspace.pairs, whole(0)
    for r in range(end - begin):
        i = workspace.state[r, RESULT]
        if i == UNDECIDED_INDEX:
            list_undecided(order, whole(order.order[begin + r]))
        elif i != MISS_INDEX:
            pairs.ray[found], pairs.item[found] = r, i
            pairs.source[found] = base + order.order[begin + r]
            found += 1
    _write_hits(recorder, job, order, workspace, (base, found))
    return True


@device
def _write_hits(
    recorder: FarthestRecorder, job: Any, order: Order, workspace: Any, found: tuple[int, int]
) -> None:
    """Write the hits of pairs, timed in float64. found: the batch's first ray, and how many pairs."""
    pairs = workspace.pairs
    first_contacts(job.rows, workspace.rays64, pairs, found[1])
    for p in range(found[1]):
        k = pairs.source[p]
        if pairs.status[p] != HIT:
            list_undecided(order, k - found[0])
        else:
            recorder.index[k], recorder.t[k] = pairs.item[p], pairs.low[p]


# In the packet traversal.


def _intersect_box(b: Any, at: PacketAtBox) -> tuple[Lanes, Lanes]:
    deferred = add_undecided(b, at, at.near <= at.far)
    return deferred.choose(PASSES, at.stop), deferred.choose(DEFERRED, at.result)


@device
def _write_packets(
    recorder: FarthestRecorder,
    packets: PacketRecorder,
    job: Any,
    order: Order,
    workspace: Any,
    group: PacketGroup,
) -> None:
    resolve_undecided(packets, job, order, workspace, group)
    pairs, found = workspace.pairs, whole(0)
    for p in range(group.count):
        for lane in range(LANES):
            if packets.state[p, RESULTS, lane] > MISS_INDEX:
                pairs.ray[found], pairs.item[found] = p * LANES + lane, packets.state[p, RESULTS, lane]
                pairs.source[found] = group.base + packet_ray(packets, group, p, lane)
                found += 1
    _write_hits(recorder, job, order, workspace, (group.base, found))


@device
def _write_misses(recorder: FarthestRecorder, begin: int, end: int) -> None:
    recorder.index[begin:end], recorder.t[begin:end] = MISS_INDEX, np.inf


# In the single-ray traversal.


@device
def _start(recorder: ExactFarthest, k: int) -> ExactFarthest:
    return ExactFarthest(recorder.index[k : k + 1], recorder.t[k : k + 1])


@inlined
def _resolve(recorder: ExactFarthest, rows: Any, ray: Ray, i: int) -> float:
    hit, t = intersect(rows, ray, i)
    if hit and (recorder.index[0] < 0 or _is_farther(rows, ray, (i, t), (recorder.index[0], recorder.t[0]))):
        recorder.index[0], recorder.t[0] = i, t
    return np.inf


@device
def _is_farther(rows: Any, ray: Ray, one: tuple[int, float], other: tuple[int, float]) -> bool:
    """Return whether the first of two hits (index, t) is farther: exactly, by index where they tie."""
    i, j = one[0], other[0]
    if one[1] != other[1]:
        return one[1] > other[1]
    order = tie(rows, ray, i, j)
    return order > 0 or (order == 0 and i < j)


# Results.


def _write_ordered(results: FarthestResults, hits: OrderedHits) -> None:
    last = int(np.searchsorted(hits.rank, hits.rank.max(initial=0)))
    found = hits.index.size > 0
    results.index[hits.ray], results.t[hits.ray] = (hits.index[last], hits.t[last]) if found else (-1, np.inf)


PER_RAY = PerRay(
    results=FarthestResults,
    arrays=(ResultArray(np.int64, -1), ResultArray(np.float64, np.inf)),
    recorder=lambda results, size, _options: FarthestRecorder(np.empty((size, 2)), *results),
    exact_recorder=lambda results: ExactFarthest(*results),
    write_hits=_write_ordered,
)


def _merge_geometries(
    request: Request, run_one: RunOne[None, FarthestResults], _options: Any
) -> FarthestResults:
    first, *others = request.jobs
    index, t = run_one(first, request.rays)
    for job, start in zip(others, request.starts[1:], strict=True):
        other, t_other = run_one(job, request.rays)
        farther = (other >= 0) & ((index < 0) | (t_other > t))
        for k in np.flatnonzero((other >= 0) & (index >= 0) & (t_other == t)).tolist():
            times = (exact_time(request, k, int(i)) for i in (other[k] + start, index[k]))
            farther[k] = definition.order(*times) > 0  # a true tie goes to the geometry that comes first
        index[farther], t[farther] = other[farther] + start, t_other[farther]
    return FarthestResults(index, t)


def _present(results: FarthestResults, shape: tuple[int, ...], source: Source, _options: Any) -> Hits:
    return Hits(results.index.reshape(shape), results.t.reshape(shape), source)


QUERY = Query(
    name="farthest",
    hooks=(
        StreamHooks(FarthestRecorder, _record, _write_results, ends_rays=no),
        PacketHooks(FarthestRecorder, _intersect_box, _write_packets, _write_misses),
        ExactHooks(ExactFarthest, _resolve, _start),
    ),
    run=partial(run, PER_RAY),
    merge_geometries=_merge_geometries,
    present=_present,
)
