"""Packets at the triangles of a node: sixteen rays at a time, by `raybox.primitives.triangle_packet`.

The triangles of a node are set up once for all packets in the node's lists, or for a single packet. A ray
keeps, beside the stop of its packed ray, a time *before* which a certain hit comes before its first hit so
far; at first, before the end of its range. What is neither a certain hit nor a certain miss is kept as
undecided boxes are (`raybox.traversal.packet_batches`): float64 decides later.

A stop is later than the time it stands for by `LATER`: node tests err by less.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeAlias

from raybox.bvh.node import CHILD, NUDGE, ROW, WIDTH
from raybox.compiler.decorators import declare, device, whole
from raybox.compiler.intrinsics import Fields, int64, lowest_bit, vector_code, void
from raybox.compiler.simd import F32, I1, I64, Builder, Lanes, Scalar, constant, mask_of, splat
from raybox.compiler.simd_arrays import Memory, Register, bits
from raybox.geometry import PrimitiveRows
from raybox.primitives.box_simd import Float64Rays
from raybox.primitives.table import prefetch_rows
from raybox.primitives.triangle_decision import (
    Ends,
    RaysAtTriangle,
    RecordTriangle,
    TriangleHits,
    TriangleState,
)
from raybox.primitives.triangle_packet import (
    AWAY,
    WAY_COLUMNS,
    intersect,
    moves_of,
    node_triangles,
    ways_of,
)
from raybox.primitives.triangle_simd import load_corners
from raybox.traversal.certain_hits import intersect_all
from raybox.traversal.job import Job, Recorder
from raybox.traversal.node_test import boxes, clip, sides_of, slab_times, used
from raybox.traversal.packed_rays import PackedRays
from raybox.traversal.packet_box import BLOCK, add_undecided
from raybox.traversal.protocol import PACKET, STREAM, StoreRays
from raybox.traversal.ray_bounds import ClippedRays
from raybox.traversal.ray_setup import LANES, LATER, PACKED_WORDS, PASSES, SCALE, STOP
from raybox.traversal.slab_coefficients import MARGIN, coefficients_of, range_error
from raybox.traversal.workspace import (
    DEFERRED,
    PLANE,
    RESULTS,
    SLAB_WORDS,
    LeafSlots,
    ListSpan,
    NodeSlots,
    PacketRecorder,
    Workspace,
)

BEFORE = PLANE  # triangles have no planes of entry: the column is free
_LESS = 2.0**-22
_Test: TypeAlias = Callable[[Recorder, PacketRecorder, Job, Workspace, LeafSlots, int], None]


class _Listed(NamedTuple):
    """A triangle and the packet that keeps it undecided."""

    packets: Fields
    packet: Scalar
    item: Scalar


def store_ways(
    b: Builder,
    job: Fields,
    recorder: Fields,
    rays: tuple[ClippedRays, Float64Rays, PackedRays],
    packet: Scalar,
) -> None:
    """Store the rays of a packet for triangles. The first packet of a group chooses the eye."""
    clipped, given, words = rays
    eye, scale = recorder.surface.eye, job.frame.numbers.splat(SCALE, LANES)
    with b.if_then(b.icmp_signed("==", packet, I64(0))):
        lane = b.cttz(clipped.alive.mask(), I1(1))
        for k, origin in enumerate(given.origin):
            eye.put(b.extract_element(origin.value, lane), k)
    off = range_error(words.slack)
    away = [(o - eye.splat(k, LANES)) * scale for k, o in enumerate(given.origin)]
    still = away[0].equals(0.0) & away[1].equals(0.0) & away[2].equals(0.0)
    at = b.mul(packet, I64(LANES * WAY_COLUMNS))

    def store(columns: list[Lanes], first: int) -> None:
        for k, column in enumerate(columns, first):
            recorder.surface.ways.store(column, b.add(at, I64(LANES * k)))

    store([*(x.to(F32) for x in clipped.w), clipped.start, off, constant(b, F32, LANES, 0.0)], 0)
    with b.if_then((clipped.alive & ~still).any()):
        store(moves_of(away, clipped.w).columns(), AWAY)
    recorder.words.store(words.stop - words.stop * _LESS - off, _column(b, packet, BEFORE))


def _column(b: Builder, packet: Scalar, column: int) -> Scalar:
    """Return the place of a column of a packet."""
    return b.add(b.mul(packet, I64(BLOCK)), I64(LANES * column))


@vector_code(void)
def set_up_node(b: Builder, job: Fields, packets: Fields, node: Scalar, mask: Scalar) -> None:
    """Store the words of the triangles in some slots of a node."""
    eye, words = packets.surface.eye, packets.surface.node
    place = b.add(b.mul(node, I64(ROW)), I64(CHILD))
    first = job.tree.nodes.get(b.add(place, b.cttz(mask, I1(1))))
    some = mask_of(b, mask, WIDTH)
    items = ~some.choose(job.tree.nodes.load(place, WIDTH), splat(b, first, WIDTH))  # else: one of these
    corners = load_corners(b, job.rows, [b.sext(items.lane(k), I64) for k in range(WIDTH)])
    scale = job.frame.numbers.splat(SCALE, WIDTH)
    triangles = node_triangles(corners, [eye.splat(k, WIDTH) for k in range(3)], scale)
    for k, word in enumerate(triangles):
        words.store(word, k * WIDTH)


@cache
def _test_of(record: RecordTriangle, store_rays: StoreRays | None) -> _Test:
    """Return the compiled function that tests a packet against triangles of a node.

    store_rays: what `set_up_packet` is made from; here it identifies stored code, too.
    """

    @vector_code(void)
    def write(
        b: Builder, packets: Fields, job: Fields, workspace: Fields, at: Fields, packet: Scalar
    ) -> None:
        base = b.mul(packet, I64(LANES * WAY_COLUMNS))
        away = packets.surface.ways.load(b.add(base, I64(LANES * AWAY)), LANES)
        with b.if_else((~away.equals(0.0)).any()) as (moved, still):
            for place, columns in ((moved, WAY_COLUMNS), (still, AWAY)):
                with place:
                    _test(b, record, (packets, job, workspace), at, packet, columns)

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
    memory: tuple[Fields, Fields, Fields],
    at: Fields,
    packet: Scalar,
    count: int,
) -> None:
    """Test a packet against the triangles in some slots. count: of columns that its rays need."""
    packets, job, workspace = memory
    base, row = b.mul(packet, I64(LANES * WAY_COLUMNS)), b.mul(at.node, I64(ROW))
    columns = [packets.surface.ways.load(b.add(base, I64(LANES * k)), LANES) for k in range(count)]
    ways = ways_of(columns)
    places = [_column(b, packet, column) for column in (STOP, BEFORE, RESULTS)]
    memories = packets.words, packets.words, packets.state
    state = [Register(b, m.load(place, LANES).value) for m, place in zip(memories, places, strict=True)]
    changed = Register(b, I64(0))
    with bits(b, at.possible) as slot:
        item = b.not_(job.tree.nodes.get(b.add(b.add(row, I64(CHILD)), slot)))

        def word(k: int) -> Lanes:
            return packets.surface.node.splat(b.add(slot, I64(k * WIDTH)), LANES)

        ends = Ends(state[1].lanes, state[0].lanes, ways.off)
        left, decide = intersect(b, word, ways, ends, job.rows.cull_back)
        with b.if_then(left.any()):
            found = decide()
            new = _decided(b, record, found, _Listed(packets, packet, item), state)
            for register, lanes in zip(state, new, strict=True):
                register.value = lanes.value
            changed.value = b.or_(changed.value, (found.hits | found.undecided).mask())
    with b.if_then(b.icmp_signed("!=", changed.value, I64(0))):
        for array, place, register in zip(memories, places, state, strict=True):
            array.store(register.lanes, place)
        end = b.add(b.mul(packet, I64(PACKED_WORDS)), I64(STOP))
        workspace.packed_rays.store(state[0].lanes.greatest(), end)


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
    record = STREAM[kind].record_triangle if kind in PACKET else None
    return _test_of(record, PACKET[kind].store_rays) if record else None


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
def prefetch_triangles(rows: PrimitiveRows, job: Job, node: int) -> None:
    """Prefetch the triangles of a node, which itself was prefetched before."""
    nodes = job.tree.nodes
    mask = used(nodes, node * ROW) & boxes(nodes, node * ROW)
    while mask != 0:
        item = whole(~nodes[node, CHILD + lowest_bit(mask)])
        mask &= mask - 1
        prefetch_rows(rows, item)


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
        set_up_node(job, recorder, node, slots.boxes)
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
    set_up_node(job, recorder, slots.node, slots.possible)
    intersect_node_triangles(recorder.inner, recorder, job, workspace, slots, packet)
