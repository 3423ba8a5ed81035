"""The packet traversal: sixteen neighbouring rays that go nearly the same way, traversed as if they were one.

A packet has slab coefficients, as a ray has, but they bound those of all sixteen. The near times of a plane
at b are lines in b, one for each ray; the least of them is concave, so between two places the chord lies
below: the chord over all of the scene that the rays have before them is the packet's near time. (Far times:
greatest, convex, above.) Rounding is monotone, so no packet refuses what one of its rays accepts; see
`raybox.traversal.packet_setup` for machines on which products are rounded, too. The loop
over nodes is that of `raybox.traversal.stream`, with packets for rays; only a box is tested against each ray,
all sixteen at once. No ray is sorted, and what is known of a packet lies side by side.

Certain hits are recorded as in `raybox.traversal.certain_hits`. A ray keeps an undecided box until its packet
has been everywhere; then `raybox.traversal.packet_batches` decides. A ray that would keep too many is
`DEFERRED` to the stream traversal. (Boxes of cities and meshes share planes: without this, deferred rays took
a third of the time of `nearest`.)

Source: Wald et al. 2007, "Ray tracing deformable scenes using dynamic bounding volume hierarchies", 4.
"""

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import TypeAlias

from raybox.bvh.node import CHILD, ROW
from raybox.compiler.decorators import declare, device, no, whole
from raybox.compiler.intrinsics import Fields, lowest_bit, vector_code, void
from raybox.compiler.simd import F32, I32, I64, Builder, Lanes, Scalar
from raybox.geometry import PrimitiveRows
from raybox.primitives.table import has_volumes_of
from raybox.traversal.certain_hits import intersect_all
from raybox.traversal.job import Job, Recorder
from raybox.traversal.node_test import clip, sides_of, slab_times
from raybox.traversal.packet_box import BLOCK, PacketAtBox
from raybox.traversal.packet_setup import end_packet
from raybox.traversal.packet_triangles import (
    intersect_single_triangles,
    intersect_triangle_lists,
    prefetch_triangles,
)
from raybox.traversal.protocol import (
    PACKET,
    STREAM,
    IntersectBox,
    StoreRays,
    ends_at_hit,
    ends_rays,
    make_room,
)
from raybox.traversal.ray_setup import LANES, STOP
from raybox.traversal.slab_coefficients import expand, margin_of, packed_parts
from raybox.traversal.workspace import (
    RESULTS,
    LeafSlot,
    LeafSlots,
    ListSpan,
    NodeSlots,
    PacketRecorder,
    Workspace,
    pending_list,
)

# Tests a packet's rays against a box; the recorder is that inside of the packets'.
_IntersectBox: TypeAlias = Callable[[Recorder, PacketRecorder, Job, Workspace, LeafSlot, int], None]


@cache
def _intersection(decide: IntersectBox, store_rays: StoreRays | None) -> _IntersectBox:
    """Return the compiled function that tests a packet against a box, and records by `decide`.

    store_rays: what `set_up_packet` is made from; here it identifies stored code, too.
    """

    @vector_code(void)
    def write(
        b: Builder, packets: Fields, job: Fields, workspace: Fields, at: Fields, packet: Scalar
    ) -> None:
        row, octant, slot = b.mul(at.node, I64(ROW)), at.octant, at.slot
        planes, base = job.tree.nodes.as_items(F32), b.mul(packet, I64(BLOCK))

        def word(k: int) -> Lanes:
            return packets.words.load(b.add(base, I64(LANES * k)), LANES)

        def planes_of(axis: int) -> list[Lanes]:
            return [planes.splat(b.add(side, slot), LANES) for side in sides_of(b, row, octant, axis)]

        stop, parts = word(STOP), packed_parts([word(k) for k in range(STOP)])
        slabs = slab_times(planes_of, expand(*parts))
        near, far = clip(slabs, stop)
        with b.if_then((near <= far).any()):
            item = b.not_(job.tree.nodes.get(b.add(b.add(row, I64(CHILD)), slot)))
            result = word(RESULTS).bits(I32)
            stop, result = decide(
                b,
                PacketAtBox(
                    *(near, far, slabs, [planes_of(axis)[0] for axis in range(3)]),
                    *(margin_of(*parts), stop, result, item, octant),
                    *(job.rows, packets, workspace, packet),
                ),
            )
            packets.words.store(stop, b.add(base, I64(LANES * STOP)))
            packets.state.store(result, b.add(base, I64(LANES * RESULTS)))
            end_packet(b, workspace, packet, stop)

    @device
    def intersect(
        _recorder: Recorder,
        packets: PacketRecorder,
        job: Job,
        workspace: Workspace,
        slot: LeafSlot,
        packet: int,
    ) -> None:
        write(packets, job, workspace, slot, packet)

    return intersect


def _intersection_of(kind: type) -> _IntersectBox | None:
    hooks = PACKET.get(kind)
    return _intersection(hooks.intersect_box, hooks.store_rays) if hooks else None


_intersect_box: _IntersectBox = declare("intersect_box", _intersection_of)


@device
def _list_boxes(
    _rows: PrimitiveRows,
    recorder: PacketRecorder,
    job: Job,
    workspace: Workspace,
    slots: NodeSlots,
    span: ListSpan,
) -> None:
    """Write lists of all slots: boxes are tested by `intersect_packet_lists`."""
    intersect_all(recorder, job, workspace, slots, span)


@device
def _test_lists(
    _rows: PrimitiveRows, recorder: PacketRecorder, job: Job, workspace: Workspace, slots: LeafSlots
) -> None:
    node, octant, mask = slots.node, slots.octant, slots.possible
    while mask != 0:
        slot = lowest_bit(mask)
        mask &= mask - 1
        make_room(recorder.inner, recorder, job, workspace, workspace.lengths[slot])
        at = LeafSlot(node, octant, slot)
        for k in range(workspace.starts[slot], workspace.starts[slot] + workspace.lengths[slot]):
            _intersect_box(recorder.inner, recorder, job, workspace, at, whole(workspace.lists[k]))


@device
def _intersect_boxes(
    _rows: PrimitiveRows,
    recorder: PacketRecorder,
    job: Job,
    workspace: Workspace,
    slots: LeafSlots,
    packet: int,
) -> None:
    """Test one packet against the boxes in some slots of a node."""
    node, octant, mask = slots.node, slots.octant, slots.possible
    while mask != 0:
        slot = lowest_bit(mask)
        mask &= mask - 1
        make_room(recorder.inner, recorder, job, workspace, 1)
        _intersect_box(recorder.inner, recorder, job, workspace, LeafSlot(node, octant, slot), packet)


def _chosen(triangles: object, boxes: object) -> Callable[[type], object]:
    """Return what picks the kernel for triangles or the one for boxes, by the class of the rows."""
    return lambda kind: triangles if has_volumes_of(kind) else boxes


_test_box_lists: Callable[[PrimitiveRows, PacketRecorder, Job, Workspace, LeafSlots], None] = declare(
    "test_box_lists", _chosen(no, _test_lists), inline=True
)
_intersect_lists: Callable[[PrimitiveRows, PacketRecorder, Job, Workspace, NodeSlots, ListSpan], None] = (
    declare("intersect_packets", _chosen(intersect_triangle_lists, _list_boxes), inline=True)
)
_intersect_single: Callable[[PrimitiveRows, PacketRecorder, Job, Workspace, LeafSlots, int], None] = declare(
    "intersect_packet", _chosen(intersect_single_triangles, _intersect_boxes), inline=True
)


@device
def intersect_packet_lists(
    recorder: PacketRecorder, job: Job, workspace: Workspace, node: int, octant: int, mask: int
) -> None:
    """Test the packets of the lists of some slots of a node against the boxes in these slots."""
    _test_box_lists(job.rows, recorder, job, workspace, LeafSlots(node, octant, mask, 0))


@device
def intersect_single_packet(
    recorder: PacketRecorder, job: Job, workspace: Workspace, slots: LeafSlots, packet: int
) -> None:
    """Test one packet against the primitives in some slots of a node."""
    _intersect_single(job.rows, recorder, job, workspace, slots, packet)


@device
def _sort_lists(
    recorder: PacketRecorder, job: Job, workspace: Workspace, slots: NodeSlots, span: ListSpan
) -> None:
    """Write the packets of a list to the lists of a node's slots."""
    _intersect_lists(job.rows, recorder, job, workspace, slots, span)


_prefetch_triangles: Callable[[PrimitiveRows, Job, int], None] = declare(
    "prefetch_triangles", _chosen(prefetch_triangles, no), inline=True
)


@device
def prefetch_pending(_recorder: PacketRecorder, job: Job, workspace: Workspace, top: int) -> None:
    """Prefetch what the node on top of the stack needs; the stack has so many."""
    if top > 0:
        _prefetch_triangles(job.rows, job, pending_list(workspace, top - 1).node)


@device
def _ends_rays(recorder: PacketRecorder) -> bool:
    return ends_rays(recorder.inner)


@device
def _ends_at_hit(recorder: PacketRecorder) -> bool:
    return ends_at_hit(recorder.inner)


# Packets go through the stream traversal in place of rays; candidates and results are `PacketHooks`.
STREAM[PacketRecorder] = SimpleNamespace(
    ends_rays=_ends_rays, ends_at_hit=_ends_at_hit, intersect_lists=_sort_lists
)
