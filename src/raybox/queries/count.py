"""`count`: how many primitives each ray hits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple, Never, Protocol

import numpy as np

from raybox.compiler.decorators import device, inlined, no, whole, yes
from raybox.compiler.intrinsics import prefetch_to_write, smaller
from raybox.compiler.simd import I32, Builder, Lanes, Scalar, constant
from raybox.compiler.simd_arrays import Register, bits
from raybox.compiler.struct_ref import struct
from raybox.geometry import Cull, Rays, Rows
from raybox.hits.hit_ids import Source
from raybox.primitives.instance_ray import AnyRay
from raybox.primitives.status import MISS_INDEX, UNDECIDED, UNDECIDED_INDEX
from raybox.primitives.table import hits
from raybox.primitives.triangle_packet import PacketAtTriangle, TriangleState
from raybox.queries.columns import RAY, ChunkResults, number_results
from raybox.queries.exact_fallback import OrderedHits
from raybox.queries.per_ray import PerRay, ResultArray
from raybox.queries.query import (
    FileColumns,
    Query,
    Request,
    RunOne,
    RunsQueries,
    refuse_more,
)
from raybox.queries.scheduler import run
from raybox.traversal.certain_hits import CertainHits, record_hits
from raybox.traversal.job import Job, Recorder
from raybox.traversal.node_test import is_certain, undecided
from raybox.traversal.packet_batches import resolve_undecided
from raybox.traversal.packet_box import PacketAtBox, add_undecided, certain_hits
from raybox.traversal.protocol import ExactHooks, PacketHooks, StreamHooks
from raybox.traversal.ray_setup import LANES, PASSES, RESULT
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
from raybox.validation import Bools, Ints, MaskInput

AHEAD = 16
"""Results go all over the arrays: their places are prefetched so many before."""


class CountResults(NamedTuple):
    """How many primitives each ray hits."""

    count: Ints  # type: ignore[assignment]  # not the method of tuples


class NumberRecorder(Recorder, Protocol):
    """The recorder of a query that has one number for each ray: RESULT + 1."""

    @property
    def numbers(self) -> Bools | Ints:
        """Of all rays."""
        ...


@struct
class CountRecorder(NamedTuple):
    """How many were hit: RESULT + 1."""

    numbers: Ints


class ExactCount(NamedTuple):
    """How many were hit, in the single-ray traversal: of all rays, or of one."""

    count: Ints  # type: ignore[assignment]  # not the method of tuples


# In the stream traversal.


@device
def _record(_recorder: CountRecorder, _job: Job, workspace: Workspace, count: int) -> None:
    state = workspace.state
    for p in range(count):
        r, status = workspace.pairs.ray[p], workspace.pairs.status[p]
        if status == UNDECIDED:
            mark_undecided(workspace, r)
        elif state[r, RESULT] != UNDECIDED_INDEX:
            state[r, RESULT] += status


class _CertainCount(CertainHits):
    """Certain hits are counted."""

    timed = False
    records_most = True

    def begin(self) -> None:
        self.count = Register(self.b, constant(self.b, I32, self.rays.count, 0).value)

    def record(self, _slot: Scalar, near: Lanes, far: Lanes) -> Lanes:
        certain = is_certain(near, far, self.rays.room)
        self.count.value = (self.count.lanes + certain.to(I32)).value
        return undecided(near, far, certain)

    def decide(self, slot: Scalar, left: Lanes) -> Lanes:
        certain = self.flat_hits(slot, left)
        self.count.value = (self.count.lanes + certain.to(I32)).value
        return left & ~certain

    def finish(self) -> None:
        count = self.count.value
        with bits(self.b, (self.count.lanes > 0).mask()) as lane:
            place, more = self.state_at(self.ray(lane), RESULT), self.b.extract_element(count, lane)
            self.workspace.state.put(self.b.add(self.workspace.state.get(place), more), place)


@device
def _record_certain(
    _recorder: CountRecorder, _job: Job, workspace: Workspace, _slot: LeafSlot, r: int
) -> bool:
    workspace.state[r, RESULT] += 1
    return True


@device
def _write_results(
    recorder: CountRecorder, _job: Job, order: Order, workspace: Workspace, group: Span
) -> bool:
    base, begin, end = group
    for r in range(end - begin):
        prefetch_to_write(recorder.numbers, base + order.order[smaller(begin + r + AHEAD, end - 1)])
        result = workspace.state[r, RESULT]
        if result == UNDECIDED_INDEX:
            list_undecided(order, whole(order.order[begin + r]))
        else:
            recorder.numbers[base + order.order[begin + r]] = result + 1
    return True


# In the packet traversal.


def _intersect_box(b: Builder, at: PacketAtBox) -> tuple[Lanes, Lanes]:
    certain = certain_hits(b, at)
    deferred = add_undecided(b, at, undecided(at.near, at.far, certain))
    return deferred.choose(PASSES, at.stop), deferred.choose(DEFERRED, at.result + certain.to(I32))


def _record_triangle(_b: Builder, at: PacketAtTriangle) -> TriangleState:
    return TriangleState(at.stop, at.before, at.result + at.hits.to(I32))


@device
def write_packets(
    recorder: NumberRecorder,
    packets: PacketRecorder,
    job: Job,
    order: Order,
    workspace: Workspace,
    group: PacketGroup,
) -> None:
    """Resolve the undecided boxes of packets; write RESULT + 1 of each ray that hits anything."""
    resolve_undecided(packets, job, order, workspace, group)
    for p in range(group.count):
        for lane in range(LANES):
            if packets.state[p, RESULTS, lane] > MISS_INDEX:
                to = group.base + packet_ray(packets, group, p, lane)
                recorder.numbers[to] = packets.state[p, RESULTS, lane] + 1


@device
def write_misses(recorder: NumberRecorder, begin: int, end: int) -> None:
    """Write 0, or False, for rays that hit nothing."""
    recorder.numbers[begin:end] = 0


# In the single-ray traversal.


@device
def _start(recorder: ExactCount, k: int) -> ExactCount:
    return ExactCount(recorder.count[k : k + 1])


@inlined
def _resolve(recorder: ExactCount, rows: Rows, ray: AnyRay, i: int) -> float:
    if hits(rows, ray, i):
        recorder.count[0] += 1
    return np.inf


# Results.


def _write_hits(results: CountResults, hits: OrderedHits) -> None:
    results.count[hits.ray] = hits.index.size


PER_RAY = PerRay[CountResults, None](
    results=CountResults,
    arrays=(ResultArray(np.int64, 0),),
    recorder=lambda results, _size, _options: CountRecorder(results.count),
    exact_recorder=lambda results: ExactCount(results.count),
    write_hits=_write_hits,
    group_widths=(4, 4, 8, 16),
    triangle_grains=16.0,
)


def _merge_geometries(request: Request, run_one: RunOne[None, CountResults], _options: None) -> CountResults:
    first, *others = request.jobs
    (count,) = run_one(first, request.rays)
    for job in others:
        count += run_one(job, request.rays).count
    return CountResults(count)


def _chunks(
    scene: Any, rays: Rays, first: int, workers: int, where: MaskInput = None
) -> Iterator[ChunkResults]:
    yield number_results("count", first, scene.count(rays, workers=workers, where=where))


def _present(results: CountResults, shape: tuple[int, ...], _source: Source, _options: None) -> Ints:
    return results.count.reshape(shape)


QUERY = Query(
    name="count",
    hooks=(
        StreamHooks(
            CountRecorder,
            record=_record,
            write_results=_write_results,
            intersect_lists=record_hits(_CertainCount),
            record_certain=_record_certain,
            ends_rays=no,
            defers_float64=yes,
        ),
        PacketHooks(
            CountRecorder, _intersect_box, write_packets, write_misses, record_triangle=_record_triangle
        ),
        ExactHooks(ExactCount, _resolve, _start, takes_turns=yes),
    ),
    run=partial(run, PER_RAY),
    merge_geometries=_merge_geometries,
    present=_present,
    columns=FileColumns(lambda _dimension, _ids: {**RAY, "count": np.dtype(np.int64)}, _chunks),
)


class CountMethod(RunsQueries):
    """Gives a scene its method `count`."""

    def count(
        self,
        rays: Rays,
        *more: Never,
        workers: int = -1,
        progress: bool = False,
        where: MaskInput = None,
        cull: Cull = None,
    ) -> Ints:
        """Return how many primitives each ray hits: int64, of the rays' shape. Parameters as for `nearest`.

        Of a mesh, triangles are counted, also where they belong to objects: `AllHits.by_object` counts these.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]]))
        >>> scene.count(rb.Rays([[0, 0], [4, 0]], [1, 0]))
        array([2, 1])
        """
        refuse_more(more, "count")
        return self._run(QUERY, rays, workers=workers, progress=progress, where=where, cull=cull)
