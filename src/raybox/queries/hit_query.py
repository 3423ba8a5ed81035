"""Queries of one hit a ray: `nearest` keeps the first.

Such a query is the class of its results, a `HitFold`, whose `prefers` says which of two hits a ray keeps. The
hooks of all traversals are derived from it here. Those of streams and packets let float64 decide each
primitive; a query that is decided in float32 has hooks of its own (`raybox.queries.nearest`).

A group's RESULT is the index of the hit so far. The bounds of its time are those of the workspace.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from raybox.compiler.decorators import declare_method, device, inlined, no, whole, yes
from raybox.compiler.intrinsics import larger, prefetch_to_write, smaller
from raybox.compiler.simd import Builder, Lanes
from raybox.geometry import PrimitiveRows, Rays
from raybox.hits import Hits
from raybox.hits.file_columns import ChunkResults, FileColumns
from raybox.hits.hit_ids import Source
from raybox.primitives.box_simd import Pairs
from raybox.primitives.instance_ray import AnyRay
from raybox.primitives.status import HIT, MISS, MISS_INDEX, UNDECIDED_INDEX, UNKNOWN_ORDER
from raybox.primitives.table import certain_order, first_contacts, has_volumes, intersect, tie
from raybox.queries.columns import hit_columns, hit_dtypes
from raybox.queries.exact_fallback import OrderedHits
from raybox.queries.merge import exact_order
from raybox.queries.per_ray import PLAIN, PerRay, ResultArray, Speed
from raybox.queries.query import Query, Request, RunOne
from raybox.queries.scheduler import run
from raybox.traversal.job import Job, Recorder
from raybox.traversal.packet_batches import resolve_undecided
from raybox.traversal.packet_box import PacketAtBox, add_undecided
from raybox.traversal.protocol import ExactHooks, PacketHooks, StreamHooks, ends_rays
from raybox.traversal.ray_setup import LANES, PASSES, RESULT, TIMED
from raybox.traversal.ray_state import (
    both_at_range_start,
    bound_by_packed,
    end_at,
    mark_undecided,
    start_before,
)
from raybox.traversal.workspace import (
    DEFERRED,
    RESULTS,
    Order,
    PacketGroup,
    PacketRecorder,
    Span,
    Workspace,
    list_undecided,
    packet_ray,
)
from raybox.validation import Floats, Ints

I = TypeVar("I", int, Ints)  # noqa: E741  # an index, or those of many hits
_AHEAD = 16  # results go all over the arrays: their places are prefetched so many before (3 % of `nearest`)


class HitFold(Recorder, Protocol):
    """The results of such a query, a `struct`: a `NamedTuple` of two arrays, whose class is the query."""

    @property
    def index(self) -> Ints:
        """Of the hit of each ray; -1 for a miss."""
        ...

    @property
    def t(self) -> Floats:
        """Of the same hit; +inf for a miss."""
        ...

    def prefers(self, order: I, one: I, other: I, /) -> Any:
        """Return whether a ray keeps one of two hits, and not the other.

        order: -1, 0 or 1, that of their exact times; one and other: their indices.
        """
        ...


F = TypeVar("F", bound=HitFold)


prefers = declare_method("prefers")
"""Call a fold's `prefers` in compiled code; it comes first."""


def _ends_rays(fold: type[HitFold]) -> bool:
    """Return whether nothing after a hit matters."""
    return not fold.prefers(None, 1, 0, 1)  # type: ignore[arg-type]  # no arrays are needed


# In the stream traversal.


@inlined
def order_by_bounds(pairs: Pairs, p: int, low: float, high: float) -> int:
    """Return the order of a candidate and of a hit from `low` to `high`; `UNKNOWN_ORDER` if these overlap."""
    if pairs.low[p] > high:
        return 1
    return -1 if pairs.high[p] < low else UNKNOWN_ORDER


@device
def order_of(job: Job, workspace: Workspace, p: int, j: int, bounds: tuple[float, float]) -> int:
    """Return the order of a candidate, if it is hit, and of a hit j of its ray, or `UNKNOWN_ORDER`.

    bounds: of the time of hit j, which those of the candidate overlap.
    """
    pairs = workspace.pairs
    if both_at_range_start((pairs.low[p], pairs.high[p]), bounds):
        return 0
    return certain_order(job.rows, workspace.rays64, whole(pairs.ray[p]), whole(pairs.item[p]), j)


@inlined
def _replace(recorder: HitFold, job: Job, workspace: Workspace, p: int, low: float, high: float) -> None:
    """Make a candidate the hit so far. low, high: bounds of its time."""
    r, i = whole(workspace.pairs.ray[p]), workspace.pairs.item[p]
    workspace.state[r, RESULT] = workspace.state[r, TIMED] = i
    workspace.bounds[r, 0], workspace.bounds[r, 1] = low, high
    if has_volumes(job.rows):
        start_before(workspace, r, low)
    if ends_rays(recorder):
        end_at(workspace, r, high)


@device
def _record_overlapping(recorder: HitFold, job: Job, workspace: Workspace, p: int) -> None:
    """Record a candidate whose bounds overlap those of the hit so far: each time bounds the other."""
    pairs, state, times = workspace.pairs, workspace.state, workspace.bounds
    r, i = whole(pairs.ray[p]), whole(pairs.item[p])
    j, first, last = whole(state[r, RESULT]), times[r, 0], times[r, 1]
    order = order_of(job, workspace, p, j, (first, last))
    is_new: bool = prefers(recorder, order, i, j)
    if order == UNKNOWN_ORDER or (is_new and pairs.status[p] != HIT):
        mark_undecided(workspace, r)
    elif pairs.status[p] == HIT:
        low, high = larger(pairs.low[p], first), smaller(pairs.high[p], last)
        if is_new:
            low, high = low if order >= 0 else pairs.low[p], high if order <= 0 else pairs.high[p]
            _replace(recorder, job, workspace, p, low, high)
        else:
            state[r, TIMED] = j
            times[r, 0], times[r, 1] = low if order <= 0 else first, high if order >= 0 else last


@device
def record(recorder: HitFold, job: Job, workspace: Workspace, count: int) -> None:
    """Keep the hits among resolved candidates that rays prefer to those so far."""
    pairs, state, times = workspace.pairs, workspace.state, workspace.bounds
    for p in range(count):
        status, r, i = pairs.status[p], pairs.ray[p], whole(pairs.item[p])
        j = whole(state[r, RESULT])
        if i == j:  # a certain hit: only its times were unknown
            times[r, 0], times[r, 1] = pairs.low[p], pairs.high[p]
            if status != HIT:
                mark_undecided(workspace, r)
            continue
        if status == MISS or j == UNDECIDED_INDEX:
            continue
        order = UNKNOWN_ORDER
        if j != MISS_INDEX:
            if has_volumes(job.rows) and state[r, TIMED] != j:
                state[r, TIMED] = j
                bound_by_packed(workspace, r)
            order = order_by_bounds(pairs, p, times[r, 0], times[r, 1])
            if order != UNKNOWN_ORDER and not prefers(recorder, order, i, j):
                continue
        if status == HIT and (j == MISS_INDEX or order != UNKNOWN_ORDER):
            _replace(recorder, job, workspace, p, pairs.low[p], pairs.high[p])
        elif j != MISS_INDEX and order == UNKNOWN_ORDER:
            _record_overlapping(recorder, job, workspace, p)
        else:
            mark_undecided(workspace, r)


@device
def _write_results(recorder: HitFold, job: Job, order: Order, workspace: Workspace, group: Span) -> bool:
    base, begin, end = group
    pairs, found = workspace.pairs, whole(0)
    for r in range(end - begin):
        i, k = workspace.state[r, RESULT], whole(order.order[begin + r])
        if i == UNDECIDED_INDEX:
            list_undecided(order, k)
        elif i != MISS_INDEX:
            pairs.ray[found], pairs.item[found], pairs.source[found] = r, i, base + k
            found += 1
    write_hits(recorder, job, order, workspace.rays64, workspace, (base, found))
    return True


@device
def write_hits(
    recorder: HitFold,
    job: Job,
    order: Order,
    rays64: Floats,
    workspace: Workspace,
    place: tuple[int, int],
) -> None:
    """Write the hits of rays that certainly hit something. place: the batch's first ray, how many pairs."""
    first_contacts(job.rows, rays64, workspace.pairs, place[1])
    write_timed(recorder, order, workspace, place[0], place[1])


@device
def write_timed(recorder: HitFold, order: Order, workspace: Workspace, base: int, found: int) -> None:
    """Write the hits of pairs whose times are known, and list the other rays as undecided."""
    pairs = workspace.pairs
    for p in range(found):
        ahead = pairs.source[smaller(p + _AHEAD, found - 1)]
        prefetch_to_write(recorder.index, ahead)
        prefetch_to_write(recorder.t, ahead)
        k = pairs.source[p]
        if pairs.status[p] != HIT:
            list_undecided(order, k - base)
        else:
            recorder.index[k] = pairs.item[p]
            recorder.t[k] = pairs.low[p]


# In the packet traversal.


def _intersect_box(b: Builder, at: PacketAtBox) -> tuple[Lanes, Lanes]:
    deferred = add_undecided(b, at, at.near <= at.far)
    return deferred.choose(PASSES, at.stop), deferred.choose(DEFERRED, at.result)


@device
def _write_packets(
    recorder: HitFold,
    packets: PacketRecorder,
    job: Job,
    order: Order,
    workspace: Workspace,
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
    write_hits(recorder, job, order, workspace.rays64, workspace, (group.base, found))


@device
def write_misses(recorder: HitFold, begin: int, end: int) -> None:
    """Write the results of rays that hit nothing."""
    recorder.index[begin:end], recorder.t[begin:end] = MISS_INDEX, np.inf


# In the single-ray traversal.


class HitOfRay(NamedTuple):
    """The hit of one ray in the single-ray traversal."""

    fold: Any  # a `HitFold`
    ray: int


@device
def _start(recorder: HitOfRay, k: int) -> HitOfRay:
    return HitOfRay(recorder.fold, k)


@inlined
def _resolve(recorder: HitOfRay, rows: PrimitiveRows, ray: AnyRay, i: int) -> float:
    hit, t = intersect(rows, ray, i)
    index, times, k = recorder.fold.index, recorder.fold.t, recorder.ray
    if hit and (index[k] < 0 or _replaces(recorder, rows, ray, i, t)):
        index[k], times[k] = i, t
    return times[k] if ends_rays(recorder.fold) else np.inf


@inlined
def _replaces(recorder: HitOfRay, rows: PrimitiveRows, ray: AnyRay, i: int, t: float) -> bool:
    """Return whether a hit is preferred to the one so far: by their times, exactly where they are equal."""
    j, other = recorder.fold.index[recorder.ray], recorder.fold.t[recorder.ray]
    order = (t > other) - (t < other) if t != other else tie(rows, ray, i, j)
    return bool(prefers(recorder.fold, order, i, j))


@device
def _first_only(recorder: HitOfRay) -> bool:
    return ends_rays(recorder.fold)


EXACT_HOOKS = ExactHooks(HitOfRay, _resolve, _start, takes_turns=yes, first_only=_first_only)


# Results.


def _write_ordered(results: HitFold, found: OrderedHits) -> None:
    best = -1
    for k in range(found.index.size):
        order = best >= 0 and int(np.sign(found.rank[k] - found.rank[best]))
        if best < 0 or results.prefers(order, int(found.index[k]), int(found.index[best])):
            best = k
    hit = (found.index[best], found.t[best]) if best >= 0 else (MISS_INDEX, np.inf)
    results.index[found.ray], results.t[found.ray] = hit


def _merge_geometries(request: Request, run_one: RunOne[None, F], _options: None) -> F:
    """Return the hits with all geometries."""
    first, *others = request.jobs
    merged, rays = run_one(first, request.rays), request.rays
    index, t, ends = merged.index, merged.t, _ends_rays(type(merged))
    for job, start in zip(others, request.starts[1:], strict=True):
        if ends:  # what comes after a hit does not matter; its exact time may be half a unit later
            with np.errstate(over="ignore"):  # of a hit at the largest float
                stops = np.minimum(request.rays.t_max, np.nextafter(t, np.inf))
            stops.flags.writeable = False
            rays = request.rays._replace(t_max=stops)
        other = run_one(job, rays)
        found = np.flatnonzero(other.index >= 0)
        new, old, new_t, old_t = other.index[found] + start, index[found], other.t[found], t[found]
        order = np.subtract(new_t > old_t, new_t < old_t, dtype=np.int8)
        tied = np.flatnonzero((order == 0) & (old >= 0))
        if tied.size:
            order[tied] = exact_order(request, found[tied], new[tied], old[tied])
        best = (old < 0) | merged.prefers(order, new, old)
        index[found[best]], t[found[best]] = new[best], new_t[best]
    return merged


def _present(results: HitFold, shape: tuple[int, ...], source: Source, _options: None) -> Hits:
    index, t = results.index, results.t
    if len(shape) != 1:
        index, t = index.reshape(shape), t.reshape(shape)
    return Hits(index, t, source)


def _chunks(
    query: Query[None, F, Hits], scene: Any, rays: Rays, first: int, workers: int, **how: Any
) -> Iterator[ChunkResults]:
    hits = scene._run(query, rays, workers=workers, **how)
    yield ChunkResults(int(np.count_nonzero(hits.hit)), partial(hit_columns, rays, hits, first))


def per_ray_of(fold: type[Any], speed: Speed = PLAIN) -> PerRay[Any, None]:
    """Return how a query whose results are a class of folds is run."""
    return PerRay(
        results=fold,
        arrays=(ResultArray(np.int64, MISS_INDEX), ResultArray(np.float64, np.inf)),
        recorder=lambda results, _size, _options: results,
        exact_recorder=lambda results: HitOfRay(results, 0),
        write_hits=_write_ordered,
        speed=speed,
    )


def hit_query(
    name: str,
    fold: type[F],
    speed: Speed = PLAIN,
    hooks: tuple[StreamHooks[F], PacketHooks[F]] | None = None,
) -> Query[None, F, Hits]:
    """Return the query whose results are a class of folds. hooks: in place of the derived ones."""
    ends = yes if _ends_rays(fold) else no
    stream, packet = hooks or (
        StreamHooks(fold, record, _write_results, ends_rays=ends),
        PacketHooks(fold, _intersect_box, _write_packets, write_misses),
    )
    query = Query(
        name=name,
        hooks=(stream, packet, EXACT_HOOKS),
        run=partial(run, per_ray_of(fold, speed)),
        merge_geometries=_merge_geometries,
        present=_present,
    )
    columns = FileColumns(lambda dimension, ids: hit_dtypes(ids, "xyz"[:dimension]), partial(_chunks, query))
    return query._replace(columns=columns)
