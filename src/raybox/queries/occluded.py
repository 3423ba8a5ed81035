"""`occluded`: whether each ray hits anything."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple, Never

import numpy as np

from raybox.compiler.decorators import device, inlined, whole, yes
from raybox.compiler.float_environment import in_default_environment
from raybox.compiler.intrinsics import prefetch_to_write, smaller
from raybox.compiler.simd import F32, I32, Builder, Lanes, Scalar, constant
from raybox.compiler.simd_arrays import Register, bits
from raybox.compiler.struct_ref import struct
from raybox.geometry import Cull, Rays, Rows
from raybox.geometry.ray_rows import select_rows
from raybox.geometry.rays import sight_lines
from raybox.hits.hit_ids import Source
from raybox.primitives.instance_ray import AnyRay
from raybox.primitives.status import HIT, MISS_INDEX, UNDECIDED, UNDECIDED_INDEX
from raybox.primitives.table import hits
from raybox.primitives.triangle_packet import PacketAtTriangle, TriangleState
from raybox.queries.columns import RAY, ChunkResults, number_results
from raybox.queries.count import AHEAD, write_misses, write_packets
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
from raybox.traversal.job import Job
from raybox.traversal.node_test import is_certain, undecided
from raybox.traversal.packet_box import PacketAtBox, add_undecided, certain_hits
from raybox.traversal.protocol import ExactHooks, PacketHooks, StreamHooks
from raybox.traversal.ray_setup import LANES, PASSES, RESULT, STOP
from raybox.traversal.workspace import DEFERRED, LeafSlot, Order, Span, Workspace, list_undecided
from raybox.validation import ArrayInput, Bools, MaskInput


class OccludedResults(NamedTuple):
    """Whether each ray hits anything."""

    hit: Bools


@struct
class OccludedRecorder(NamedTuple):
    """Whether anything was hit: RESULT is 1."""

    numbers: Bools


class ExactOccluded(NamedTuple):
    """Whether anything was hit, in the single-ray traversal: of all rays, or of one."""

    hit: Bools


# In the stream traversal.


@device
def _record(_recorder: OccludedRecorder, _job: Job, workspace: Workspace, count: int) -> None:
    state = workspace.state
    for p in range(count):
        r, status = workspace.pairs.ray[p], workspace.pairs.status[p]
        if status == HIT:
            state[r, RESULT] = 1
            workspace.packed_rays[r, STOP] = PASSES
        elif status == UNDECIDED and state[r, RESULT] == MISS_INDEX:
            state[r, RESULT] = UNDECIDED_INDEX  # a later box may decide it


class _CertainOccluded(CertainHits):
    """A certain hit ends a ray."""

    timed = False
    records_most = True

    def begin(self) -> None:
        self.ended = Register(self.b, constant(self.b, I32, self.rays.count, 0).value)

    def record(self, _slot: Scalar, near: Lanes, far: Lanes) -> Lanes:
        certain = is_certain(near, far, self.rays.room)
        self._end(certain)
        return undecided(near, far, certain)

    def decide(self, slot: Scalar, left: Lanes) -> Lanes:
        certain = self.flat_hits(slot, left)
        self._end(certain)
        return left & ~certain

    def _end(self, certain: Lanes) -> None:
        self.rays.stop.value = certain.choose(PASSES, self.rays.stop.lanes).value
        self.ended.value = certain.choose(1, self.ended.lanes).value

    def finish(self) -> None:
        with bits(self.b, (self.ended.lanes > 0).mask()) as lane:
            self.write(self.ray(lane), I32(1), F32(PASSES))


@device
def _record_certain(
    _recorder: OccludedRecorder, _job: Job, workspace: Workspace, _slot: LeafSlot, r: int
) -> bool:
    workspace.state[r, RESULT] = 1
    workspace.packed_rays[r, STOP] = PASSES
    return True


@device
def _write_results(
    recorder: OccludedRecorder, _job: Job, order: Order, workspace: Workspace, group: Span
) -> bool:
    base, begin, end = group
    for r in range(end - begin):
        prefetch_to_write(recorder.numbers, base + order.order[smaller(begin + r + AHEAD, end - 1)])
        result = workspace.state[r, RESULT]
        if result == UNDECIDED_INDEX:
            list_undecided(order, whole(order.order[begin + r]))
        elif result != MISS_INDEX:
            recorder.numbers[base + order.order[begin + r]] = True
    return True


# In the packet traversal.


def _intersect_box(b: Builder, at: PacketAtBox) -> tuple[Lanes, Lanes]:
    certain = certain_hits(b, at)
    deferred = add_undecided(b, at, undecided(at.near, at.far, certain))  # a later box may decide it
    result = certain.choose(constant(b, I32, LANES, 1), deferred.choose(DEFERRED, at.result))
    return certain.choose(PASSES, at.stop), result


def _record_triangle(b: Builder, at: PacketAtTriangle) -> TriangleState:
    result = at.hits.choose(constant(b, I32, LANES, 1), at.result)
    return TriangleState(at.hits.choose(PASSES, at.stop), at.before, result)


# In the single-ray traversal.


@device
def _start(recorder: ExactOccluded, k: int) -> ExactOccluded:
    return ExactOccluded(recorder.hit[k : k + 1])


@inlined
def _resolve(recorder: ExactOccluded, rows: Rows, ray: AnyRay, i: int) -> float:
    if hits(rows, ray, i):
        recorder.hit[0] = True
        return np.nan
    return np.inf


# Results.


def _write_hits(results: OccludedResults, hits: OrderedHits) -> None:
    results.hit[hits.ray] = hits.index.size > 0


PER_RAY = PerRay[OccludedResults, None](
    results=OccludedResults,
    arrays=(ResultArray(np.bool_, False),),
    recorder=lambda results, _size, _options: OccludedRecorder(results.hit),
    exact_recorder=lambda results: ExactOccluded(results.hit),
    write_hits=_write_hits,
    group_widths=(1, 4, 8, 16),
    scattered=True,
    grains=8.5,
    triangle_grains=16.0,
)


def _merge_geometries(
    request: Request, run_one: RunOne[None, OccludedResults], _options: None
) -> OccludedResults:
    first, *others = request.jobs
    (hit,) = run_one(first, request.rays)
    for job in others:
        left = np.flatnonzero(~hit)
        (hit[left],) = run_one(job, select_rows(request.rays, left))
    return OccludedResults(hit)


def _chunks(
    scene: Any, rays: Rays, first: int, workers: int, where: MaskInput = None
) -> Iterator[ChunkResults]:
    yield number_results("occluded", first, scene.occluded(rays, workers=workers, where=where))


def _present(results: OccludedResults, shape: tuple[int, ...], _source: Source, _options: None) -> Bools:
    return results.hit.reshape(shape)


QUERY = Query(
    name="occluded",
    hooks=(
        StreamHooks(
            OccludedRecorder,
            record=_record,
            write_results=_write_results,
            intersect_lists=record_hits(_CertainOccluded),
            record_certain=_record_certain,
            longest_first=yes,
            defers_float64=yes,
        ),
        PacketHooks(
            OccludedRecorder, _intersect_box, write_packets, write_misses, record_triangle=_record_triangle
        ),
        ExactHooks(ExactOccluded, _resolve, _start, takes_turns=yes, first_only=yes),
    ),
    run=partial(run, PER_RAY),
    merge_geometries=_merge_geometries,
    present=_present,
    columns=FileColumns(lambda _dimension, _ids: {**RAY, "occluded": np.dtype(np.bool_)}, _chunks),
)


class OccludedMethod(RunsQueries):
    """Gives a scene its method `occluded`."""

    def occluded(
        self,
        rays: Rays,
        *more: Never,
        workers: int = -1,
        progress: bool = False,
        where: MaskInput = None,
        cull: Cull = None,
    ) -> Bools:
        """Return whether each ray hits anything: bool, of the rays' shape. Parameters as for `nearest`.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([2, -1], [3, 1]))
        >>> scene.occluded(rb.Rays.segments([0, 0], [[1, 0], [2, 0]]))
        array([False,  True])
        """
        refuse_more(more, "occluded")
        return self._run(QUERY, rays, workers=workers, progress=progress, where=where, cull=cull)

    @in_default_environment
    def visible(
        self,
        starts: ArrayInput,
        ends: ArrayInput,
        *,
        margin: ArrayInput | None = None,
        workers: int = -1,
        progress: bool = False,
        where: MaskInput = None,
        cull: Cull = None,
    ) -> Bools:
        """Return whether nothing is hit between two points: lines of sight.

        Touching is a hit, and points often lie on surfaces, so a margin is left out at both ends. It is a
        length of the segment or of its coordinates, never of the scene. A point inside a box sees nothing,
        as the box is hit all the way: leave out that box by `where`.

        Parameters
        ----------
        starts, ends : array_like, shape (..., D)
            The points, of the scene's D, finite; broadcast against each other.
        margin : array_like, scalar or shape (...), optional
            A length in space, as for `Rays.segments`: nothing is hit for t from m to 1 - m, where m is margin
            over the segment's length, rounded once. A segment shorter than two margins is visible. None: the
            larger of 1e-9 of the segment's length and 1e-12 of its largest coordinate.
        workers, progress, where, cull
            As for `nearest`.

        Returns
        -------
        ndarray of bool, of the points' shape

        Raises
        ------
        InvalidInput
            If shapes do not fit, a point or a margin is not finite, or a margin is negative.

        Examples
        --------
        >>> import raybox as rb
        >>> wall = rb.Scene(rb.Boxes([2, 0], [3, 4]))
        >>> wall.visible([0, 1], [[2, 1], [3, 1], [3, 9]])  # its front, its back, and a point above it
        array([ True, False,  True])
        """
        rays = sight_lines(starts, ends, margin)
        hit = self.occluded(rays, workers=workers, progress=progress, where=where, cull=cull)
        return np.asarray(~hit)
