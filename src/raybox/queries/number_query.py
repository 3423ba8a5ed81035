"""Queries of one number a ray, folded over its hits: `count` adds them up, `occluded` needs one.

Such a query is the class of its results, a `NumberFold`: of a miss the number is 0, of one hit 1, and `merge`
makes one number of those of two sets of hits, in any order, with ``merge(x, 0) == x``. Where a second hit
changes nothing, ``merge(1, 1) == 1``, a ray ends at the first. The hooks of all traversals are derived here.

A group's RESULT is the number less 1: of a miss, `MISS_INDEX`.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from raybox.compiler.decorators import declare_method, device, inlined, no, whole, yes
from raybox.compiler.intrinsics import Fields, prefetch_to_write, smaller
from raybox.compiler.simd import F32, I32, Builder, Lanes, Scalar, constant, splat
from raybox.compiler.simd_arrays import Register, bits
from raybox.geometry import PrimitiveRows, Rays
from raybox.geometry.ray_rows import select_rows
from raybox.hits.file_columns import ChunkResults, FileColumns
from raybox.hits.hit_ids import Source
from raybox.primitives.instance_ray import AnyRay
from raybox.primitives.status import HIT, MISS_INDEX, UNDECIDED, UNDECIDED_INDEX
from raybox.primitives.table import hits
from raybox.primitives.triangle_decision import RaysAtTriangle, TriangleState
from raybox.queries.columns import RAY, number_results
from raybox.queries.exact_fallback import OrderedHits
from raybox.queries.per_ray import PLAIN, PerRay, ResultArray, Speed
from raybox.queries.query import Query, Request, RunOne
from raybox.queries.scheduler import run
from raybox.traversal.certain_hits import CertainHits
from raybox.traversal.job import Job, Recorder
from raybox.traversal.node_test import is_certain, undecided
from raybox.traversal.packet_batches import resolve_undecided
from raybox.traversal.packet_box import PacketAtBox, add_undecided, certain_hits
from raybox.traversal.protocol import ExactHooks, PacketHooks, StreamHooks, ends_at_hit
from raybox.traversal.ray_setup import LANES, PASSES, RESULT, STOP
from raybox.traversal.ray_state import mark_undecided
from raybox.traversal.workspace import (
    DEFERRED,
    RESULTS,
    LeafSlot,
    Order,
    PacketGroup,
    PacketRecorder,
    Span,
    Workspace,
    list_undecided,
    packet_ray,
)
from raybox.validation import Bools, Ints

N = TypeVar("N", int, Bools | Ints, Lanes)
"""A number, those of many rays, or of the rays of a vector"""
_ONE = MISS_INDEX + 1  # RESULT where the number is 1
_AHEAD = 16  # results go all over the arrays: their places are prefetched so many before


class NumberFold(Recorder, Protocol):
    """The results of such a query, a `struct`: a `NamedTuple` of one array, whose class is the query."""

    @property
    def numbers(self) -> Bools | Ints:
        """Of all rays."""
        ...

    def merge(self, one: N, other: N, /) -> N:
        """Return the number of all hits, given that of some and that of the others."""
        ...


F = TypeVar("F", bound=NumberFold)


merge = declare_method("merge")
"""Call a fold's `merge` in compiled code; it comes first."""


def _ends_at_hit(fold: type[NumberFold]) -> bool:
    return fold.merge(None, 1, 1) == 1  # type: ignore[arg-type]  # no array is needed


# In vector code, a recorder is wrapped: `__class__` is that of what it wraps.


def _vectors_end(recorder: Any) -> bool:
    """Return whether rays end at the first hit."""
    return _ends_at_hit(recorder.__class__)


def _merged(recorder: Any, one: Lanes, other: Lanes) -> Lanes:
    """Return the numbers of all hits of some rays."""
    made: Lanes = recorder.__class__.merge(recorder, one, other)
    return made


# In the stream traversal.


@inlined
def _add(recorder: NumberFold, workspace: Workspace, r: int, number: int) -> None:
    """Add the number of a hit, 1, or of a miss, 0, to that of a ray."""
    state = workspace.state
    if not ends_at_hit(recorder):
        state[r, RESULT] = merge(recorder, state[r, RESULT] + 1, number) - 1
    elif number == 1:
        state[r, RESULT], workspace.packed_rays[r, STOP] = _ONE, PASSES


@device
def _record(recorder: NumberFold, _job: Job, workspace: Workspace, count: int) -> None:
    pairs, state = workspace.pairs, workspace.state
    for p in range(count):
        r, status = pairs.ray[p], pairs.status[p]
        if status == UNDECIDED and not ends_at_hit(recorder):
            mark_undecided(workspace, r)
        elif status == UNDECIDED and state[r, RESULT] == MISS_INDEX:
            state[r, RESULT] = UNDECIDED_INDEX  # a later hit may decide it
        elif status != UNDECIDED and (ends_at_hit(recorder) or state[r, RESULT] != UNDECIDED_INDEX):
            _add(recorder, workspace, r, status)  # without a branch for a hit: which comes is not predictable


@device
def _record_certain(recorder: NumberFold, _job: Job, workspace: Workspace, _slot: LeafSlot, r: int) -> bool:
    _add(recorder, workspace, r, HIT)
    return True


class _CertainNumbers(CertainHits):
    """Numbers of certain hits in registers: merged into memory once a node, for rays that have some."""

    timed = False
    records_most = True

    def begin(self) -> None:
        self.number = Register(self.b, constant(self.b, I32, self.rays.count, 0).value)

    def record(self, _slot: Scalar, near: Lanes, far: Lanes) -> Lanes:
        certain = is_certain(near, far, self.rays.room)
        self._add(certain)
        return undecided(near, far, certain)

    def decide(self, slot: Scalar, left: Lanes) -> Lanes:
        certain = self.flat_hits(slot, left)
        self._add(certain)
        return left & ~certain

    def _add(self, certain: Lanes) -> None:
        self.number.value = _merged(self.recorder, self.number.lanes, certain.to(I32)).value
        if _vectors_end(self.recorder):
            self.rays.stop.value = certain.choose(PASSES, self.rays.stop.lanes).value

    def finish(self) -> None:
        b, state, numbers = self.b, self.workspace.state, self.number.value
        with bits(b, (self.number.lanes > 0).mask()) as lane:
            ray = self.ray(lane)
            if _vectors_end(self.recorder):
                self.write(ray, I32(_ONE), F32(PASSES))
            else:
                place = self.state_at(ray, RESULT)
                more = splat(b, b.extract_element(numbers, lane), 1)
                before = splat(b, state.get(place), 1) + 1
                state.put((_merged(self.recorder, before, more) - 1).lane(0), place)


@device
def _write_results(recorder: NumberFold, _job: Job, order: Order, workspace: Workspace, group: Span) -> bool:
    base, begin, end = group
    for r in range(end - begin):
        prefetch_to_write(recorder.numbers, base + order.order[smaller(begin + r + _AHEAD, end - 1)])
        result = workspace.state[r, RESULT]
        if result == UNDECIDED_INDEX:
            list_undecided(order, whole(order.order[begin + r]))
        elif result != MISS_INDEX:
            recorder.numbers[base + order.order[begin + r]] = result + 1
    return True


# In the packet traversal.


def _added(recorder: Fields, result: Lanes, certain: Lanes) -> Lanes:
    """Return the results of rays after certain hits of some."""
    if _vectors_end(recorder):
        return certain.choose(_ONE, result)
    return _merged(recorder, result + 1, certain.to(I32)) - 1


def _intersect_box(b: Builder, at: PacketAtBox) -> tuple[Lanes, Lanes]:
    certain = certain_hits(b, at)
    deferred = add_undecided(b, at, undecided(at.near, at.far, certain))
    result = _added(at.packets.inner, deferred.choose(DEFERRED, at.result), certain)
    ends = _vectors_end(at.packets.inner)  # and no undecided box: a later one may be hit
    return (certain if ends else deferred).choose(PASSES, at.stop), result


def _record_triangle(_b: Builder, at: RaysAtTriangle) -> TriangleState:
    stop = at.hits.choose(PASSES, at.stop) if _vectors_end(at.recorder) else at.stop
    return TriangleState(stop, at.before, _added(at.recorder, at.result, at.hits))


@device
def _write_packets(
    recorder: NumberFold,
    packets: PacketRecorder,
    job: Job,
    order: Order,
    workspace: Workspace,
    group: PacketGroup,
) -> None:
    resolve_undecided(packets, job, order, workspace, group)
    for p in range(group.count):
        for lane in range(LANES):
            if packets.state[p, RESULTS, lane] > MISS_INDEX:
                to = group.base + packet_ray(packets, group, p, lane)
                recorder.numbers[to] = packets.state[p, RESULTS, lane] + 1


@device
def _write_misses(recorder: NumberFold, begin: int, end: int) -> None:
    recorder.numbers[begin:end] = 0


# In the single-ray traversal.


class NumberOfRay(NamedTuple):
    """The number of one ray in the single-ray traversal."""

    fold: Any  # a `NumberFold`
    ray: int


@device
def _start(recorder: NumberOfRay, k: int) -> NumberOfRay:
    return NumberOfRay(recorder.fold, k)


@inlined
def _resolve(recorder: NumberOfRay, rows: PrimitiveRows, ray: AnyRay, i: int) -> float:
    if hits(rows, ray, i):
        numbers, k = recorder.fold.numbers, recorder.ray
        numbers[k] = merge(recorder.fold, numbers[k], 1)
        if ends_at_hit(recorder.fold):
            return np.nan
    return np.inf


@device
def _first_only(recorder: NumberOfRay) -> bool:
    return ends_at_hit(recorder.fold)


@device
def _number_only(recorder: NumberOfRay) -> bool:
    return not ends_at_hit(recorder.fold)


@inlined
def _record_number(recorder: NumberOfRay, k: int, count: int) -> None:
    number = 0
    for _ in range(count):
        number = merge(recorder.fold, number, 1)
    recorder.fold.numbers[k] = number


# Results.


def _write_hits(results: NumberFold, found: OrderedHits) -> None:
    number = 0
    for _ in found.index:
        number = results.merge(number, 1)
    results.numbers[found.ray] = number


def _merge_geometries(request: Request, run_one: RunOne[None, F], _options: None) -> F:
    """Return the numbers with all geometries: of rays that have ended, with the first ones alone."""
    first, *others = request.jobs
    merged = run_one(first, request.rays)
    numbers, ends = merged.numbers, _ends_at_hit(type(merged))
    for job in others:
        left = np.flatnonzero(numbers != 1) if ends else slice(None)
        rays = select_rows(request.rays, left) if ends else request.rays
        numbers[left] = merged.merge(numbers[left], run_one(job, rays).numbers)
    return merged


def _chunks(
    query: Query[None, F, NDArray[Any]],
    scene: Any,
    rays: Rays,
    first: int,
    workers: int,
    **how: Any,
) -> Iterator[ChunkResults]:
    yield number_results(query.name, first, scene._run(query, rays, workers=workers, **how))


def _present(results: NumberFold, shape: tuple[int, ...], _source: Source, _options: None) -> NDArray[Any]:
    return results.numbers.reshape(shape)


def number_query(
    name: str, fold: type[F], dtype: type[np.generic], speed: Speed = PLAIN
) -> Query[None, F, NDArray[Any]]:
    """Return the query whose results are a class of folds, with numbers of a dtype."""
    ends = yes if _ends_at_hit(fold) else no
    per_ray = PerRay[Any, None](
        results=fold,
        arrays=(ResultArray(dtype, 0),),
        recorder=lambda results, _size, _options: results,
        exact_recorder=lambda results: NumberOfRay(results, 0),
        write_hits=_write_hits,
        speed=speed,
    )
    stream = StreamHooks(
        fold,
        record=_record,
        write_results=_write_results,
        certain_hits=_CertainNumbers,
        record_certain=_record_certain,
        record_triangle=_record_triangle,
        ends_rays=ends,
        ends_at_hit=ends,
        defers_float64=yes,
    )
    packet = PacketHooks(fold, _intersect_box, _write_packets, _write_misses)
    query = Query(
        name=name,
        hooks=(stream, packet, EXACT_HOOKS),
        run=partial(run, per_ray),
        merge_geometries=_merge_geometries,
        present=_present,
    )
    columns = FileColumns(lambda _dimension, _ids: {**RAY, name: np.dtype(dtype)}, partial(_chunks, query))
    return query._replace(columns=columns)


EXACT_HOOKS = ExactHooks(
    NumberOfRay,
    _resolve,
    _start,
    takes_turns=yes,
    first_only=_first_only,
    number_only=_number_only,
    record_number=_record_number,
)
