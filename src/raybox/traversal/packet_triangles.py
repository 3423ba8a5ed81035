"""Packets at the triangles of a node: sixteen rays at a time, by `raybox.primitives.triangle_slots`.

A ray has two times: the stop of its packed ray, and one below which certain hits are within its range and
come before its first hit so far. A triangle that is neither a certain hit nor a certain miss is listed, like
an undecided box (`raybox.traversal.packet_batches`), and resolved in float64.

A stop is later than the time it stands for by `LATER`: node tests err by less.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeAlias

from raybox.bvh.node import CHILD, NUDGE, ROW, WIDTH
from raybox.compiler.decorators import declare, device, whole
from raybox.compiler.intrinsics import Fields, int64, vector_code, void
from raybox.compiler.simd import F32, I1, I64, Builder, Lanes, Scalar, splat
from raybox.compiler.simd_arrays import Memory, Register, bits, while_any
from raybox.geometry import PrimitiveRows
from raybox.primitives.status import MISS_INDEX
from raybox.primitives.triangle_decision import (
    Ends,
    RaysAtTriangle,
    RecordTriangle,
    TriangleHits,
    TriangleState,
)
from raybox.primitives.triangle_simd import share_level
from raybox.primitives.triangle_slots import BEFORE, REACH, ROOM, WAY_WORDS, intersect, way_of
from raybox.traversal.certain_hits import intersect_all
from raybox.traversal.job import Job, Recorder
from raybox.traversal.node_test import clip, sides_of, slab_times
from raybox.traversal.packed_rays import PackedRays, way_columns
from raybox.traversal.packet_box import BLOCK, add_undecided
from raybox.traversal.protocol import PACKET, STREAM, StoreRays
from raybox.traversal.ray_setup import LANES, LATER, PACKED_WORDS, PASSES, STOP
from raybox.traversal.slab_coefficients import MARGIN, coefficients_of, range_error
from raybox.traversal.slot_triangles import prefetch_slots
from raybox.traversal.workspace import (
    DEFERRED,
    RESULTS,
    SLAB_WORDS,
    LeafSlots,
    ListSpan,
    NodeSlots,
    PacketRecorder,
    Workspace,
)

_Test: TypeAlias = Callable[[Recorder, PacketRecorder, Job, Workspace, LeafSlots, int], None]


class _Listed(NamedTuple):
    """A triangle and the packet that keeps it undecided."""

    packets: Fields
    packet: Scalar
    item: Scalar


def store_ways(b: Builder, recorder: Fields, words: PackedRays, packet: Scalar) -> None:
    """Store the rays of a packet for triangles."""
    for k, column in enumerate(way_columns(words)):
        recorder.ways.store(column, b.add(b.mul(packet, I64(LANES * WAY_WORDS)), I64(LANES * k)))


def _column(b: Builder, packet: Scalar, column: int) -> Scalar:
    """Return the place of a column of a packet."""
    return b.add(b.mul(packet, I64(BLOCK)), I64(LANES * column))


@cache
def _test_of(record: RecordTriangle, store_rays: StoreRays | None, by_index: bool) -> _Test:
    """Return the compiled function that tests a packet against triangles of a node.

    store_rays: what `set_up_packet` is made from; here it identifies stored code, too.
    """

    @vector_code(void)
    def write(
        b: Builder, packets: Fields, job: Fields, workspace: Fields, at: Fields, packet: Scalar
    ) -> None:
        _test(b, record, by_index, (packets, job, workspace), at, packet)

    @device
    def test(
        _recorder: Recorder,
        packets: PacketRecorder,
        job: Job,
        workspace: Workspace,
        slots: LeafSlots,
        packet: int,
    ) -> None:
        write(packets, job, workspace, slots, packet)

    return test


def _test(
    b: Builder,
    record: RecordTriangle,
    by_index: bool,
    memory: tuple[Fields, Fields, Fields],
    at: Fields,
    packet: Scalar,
) -> None:
    """Test a packet against the triangles in some slots. by_index: `PacketHooks.ties_by_index`."""
    packets, job, workspace = memory
    base, row = b.mul(packet, I64(LANES * WAY_WORDS)), b.mul(at.node, I64(ROW))
    columns = [packets.ways.load(b.add(base, I64(LANES * k)), LANES) for k in range(REACH + 1)]
    way, off = way_of(columns), range_error(columns[REACH])
    stops, results = (_column(b, packet, column) for column in (STOP, RESULTS))
    places = stops, b.add(base, I64(LANES * BEFORE)), results
    memories = packets.words, packets.ways, packets.state
    state = [Register(b, m.load(place, LANES).value) for m, place in zip(memories, places, strict=True)]
    triangles, changed = b.mul(at.node, I64(ROOM)), Register(b, I64(0))
    with bits(b, at.possible) as slot:
        item = b.not_(job.tree.nodes.get(b.add(b.add(row, I64(CHILD)), slot)))

        def word(k: int) -> Lanes:
            return job.triangles.splat(b.add(b.add(triangles, slot), I64(k * WIDTH)), LANES)

        ends = Ends(state[1].lanes, state[0].lanes, off)
        left, decide = intersect(word, way, ends, job.rows.cull_back)
        with b.if_then(left.any()):
            found = decide()
            changed.value = b.or_(changed.value, (found.hits | found.undecided).mask())
            if by_index:
                found = _decide_ties(b, job.rows, found, item, state[2])
            new = _decided(b, record, found, _Listed(packets, packet, item), state)
            for register, lanes in zip(state, new, strict=True):
                register.value = lanes.value
    with b.if_then(b.icmp_signed("!=", changed.value, I64(0))):
        for array, place, register in zip(memories, places, state, strict=True):
            array.store(register.lanes, place)
        end = b.add(b.mul(packet, I64(PACKED_WORDS)), I64(STOP))
        workspace.packed_rays.store(state[0].lanes.greatest(), end)


def _decide_ties(
    b: Builder, mesh: Fields, found: TriangleHits, item: Scalar, result: Register
) -> TriangleHits:
    """Decide by index between a triangle and first hits so far in one plane across an axis.

    A ray crosses both at one time, so the bounds of the first hit's time are those of the other's. (Walls,
    ceilings and floors lie face to face: of the hits in pictures of a house, float64 got three in ten.)
    """
    ties, new = found.undecided & found.inside & (result.lanes > MISS_INDEX), splat(b, item, LANES)
    undecided, left = Register(b, found.undecided.value), Register(b, ties.mask())
    with while_any(b, left):
        first = splat(b, b.extract_element(result.value, b.cttz(left.value, I1(1))), LANES)
        same = ties & result.lanes.equals(first)
        left.value = b.and_(left.value, b.not_(same.mask()))
        with b.if_then(share_level(b, mesh, b.sext(item, I64), b.sext(first.lane(0), I64))):
            result.value = (same & (new < first)).choose(new, result.lanes).value
            undecided.value = (undecided.lanes & ~same).value
    return found._replace(undecided=undecided.lanes)


def _decided(
    b: Builder, record: RecordTriangle, found: TriangleHits, at: _Listed, state: list[Register]
) -> TriangleState:
    """Record certain hits, and keep the triangle for rays that may hit it; return the new state."""
    stop, before, result = (register.lanes for register in state)
    late = found.high + found.high.magnitude() * LATER + NUDGE
    new = record(
        b, RaysAtTriangle(found.hits, found.low, late, at.item, stop, before, result, at.packets.inner)
    )
    deferred = add_undecided(b, at, found.undecided)
    return TriangleState(deferred.choose(PASSES, new.stop), new.before, deferred.choose(DEFERRED, new.result))


def _test_for(kind: type) -> _Test | None:
    packet = PACKET.get(kind)
    record = STREAM[kind].record_triangle if packet else None
    return _test_of(record, packet.store_rays, packet.ties_by_index) if record and packet else None


intersect_node_triangles: _Test = declare("intersect_node_triangles", _test_for)


@vector_code(int64)
def _leaf_mask(b: Builder, nodes: Memory, workspace: Fields, slots: Fields, packet: Scalar) -> Scalar:
    """Return a bit for each triangle of a node that a packet may hit."""
    planes, slabs = nodes.as_items(F32), b.mul(packet, I64(SLAB_WORDS))
    words = [workspace.packet_slabs.splat(b.add(slabs, I64(k)), WIDTH) for k in range(MARGIN)]
    stop = workspace.packed_rays.splat(b.add(b.mul(packet, I64(PACKED_WORDS)), I64(STOP)), WIDTH)

    def planes_of(axis: int) -> list[Lanes]:
        return [planes.load(side, WIDTH) for side in sides_of(b, slots.row, slots.octant, axis)]

    near, far = clip(slab_times(planes_of, coefficients_of(words)), stop)
    return b.and_((near <= far).mask(), slots.boxes)


@device
def prefetch_triangles(_rows: PrimitiveRows, job: Job, node: int) -> None:
    """Prefetch the triangles of a node."""
    prefetch_slots(job.triangles, node)


@device
def intersect_triangle_lists(
    _rows: PrimitiveRows,
    recorder: PacketRecorder,
    job: Job,
    workspace: Workspace,
    slots: NodeSlots,
    span: ListSpan,
) -> None:
    """Test the packets of a list against the triangles of a node; write lists of its inner nodes."""
    intersect_all(recorder, job, workspace, NodeSlots(slots.row, slots.octant, 0, slots.inner), span)
    if slots.boxes != 0:
        node = slots.row // ROW
        for k in range(span.begin, span.end):
            packet = whole(workspace.lists[k])
            mask = _leaf_mask(job.tree.nodes, workspace, slots, packet)
            if mask != 0:
                at = LeafSlots(node, slots.octant, mask, 0)
                intersect_node_triangles(recorder.inner, recorder, job, workspace, at, packet)


@device
def intersect_single_triangles(
    _rows: PrimitiveRows,
    recorder: PacketRecorder,
    job: Job,
    workspace: Workspace,
    slots: LeafSlots,
    packet: int,
) -> None:
    """Test one packet against the triangles in some slots of a node."""
    intersect_node_triangles(recorder.inner, recorder, job, workspace, slots, packet)
