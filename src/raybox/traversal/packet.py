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

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from numba import types

from raybox.bvh.node import CHILD, ROW
from raybox.compiler.decorators import closing_over, device, dispatch, whole
from raybox.compiler.intrinsics import Fields, lowest_bit, vector_code
from raybox.compiler.simd import F32, I32, I64, Builder, Lanes, Scalar, constant, splat, steps
from raybox.compiler.simd_arrays import Register
from raybox.primitives.table import prefetch_rows
from raybox.traversal.job import Job, Recorder
from raybox.traversal.node_test import clip, sides_of
from raybox.traversal.packet_setup import end_packet
from raybox.traversal.protocol import REGISTERED, StreamHooks, ends_rays, prefetches_boxes
from raybox.traversal.ray_setup import LANES, STOP
from raybox.traversal.slab_coefficients import expand, margin_of, packed_parts
from raybox.traversal.workspace import (
    COLUMNS,
    MAX_PACKET_HITS,
    MAX_UNDECIDED,
    RESULTS,
    UNDECIDED_BOXES,
    PacketRecorder,
    Workspace,
)

_BLOCK = COLUMNS * LANES


class PacketAtBox(NamedTuple):
    """Sixteen rays at a box that one of them may hit."""

    near: Lanes
    far: Lanes
    margin: Lanes
    stop: Lanes
    result: Lanes  # of each ray, so far
    item: Scalar  # the box
    octant: Scalar  # that the rays run into
    rows: Fields  # of the job
    packets: Fields  # of the `PacketRecorder`
    packet: Scalar

    def add_to_lists(self, b: Builder, some: Lanes, last: Lanes) -> None:
        """Add the box to the lists of some of the rays, as number `last` of each."""
        ray = steps(b, b.mul(self.packet, I64(LANES)), LANES)
        places = ray * MAX_PACKET_HITS + last.to(I64)
        self.packets.item.scatter(splat(b, self.item, LANES), some, places)


def add_undecided(b: Builder, at: PacketAtBox, undecided: Lanes) -> Lanes:
    """Keep a box undecided for some of the rays; return those that keep enough already."""
    left = Register(b, constant(b, I32, LANES, 0).value)
    with b.if_then(undecided.any()):
        place = b.add(b.mul(at.packet, I64(_BLOCK)), I64(LANES * UNDECIDED_BOXES))
        last = at.packets.state.load(place, LANES)
        some = undecided & (last < MAX_UNDECIDED - 1)
        last = last + some.to(I32)
        at.add_to_lists(b, some, last)
        at.packets.state.store(last, place)
        at.packets.undecided.put(I32(1), at.packet)
        left.value = (undecided & ~some).to(I32).value
    return left.lanes > 0


@cache
def _intersection(decide: Any, *others: Any) -> Any:
    """Return the compiled function that tests a packet against a box, and records by `decide`.

    others: hooks that `set_up_packet` is made from; here they identify stored code, too.
    """

    @vector_code(types.void)
    def write(
        b: Builder, packets: Fields, job: Fields, workspace: Fields, spot: list[Scalar], packet: Scalar
    ) -> None:
        row, octant, slot = spot
        planes, base = job.tree.nodes.as_items(F32), b.mul(packet, I64(_BLOCK))

        def word(k: int) -> Lanes:
            return packets.words.load(b.add(base, I64(LANES * k)), LANES)

        def planes_of(axis: int) -> list[Lanes]:
            return [planes.splat(b.add(side, slot), LANES) for side in sides_of(b, row, octant, axis)]

        stop, parts = word(STOP), packed_parts([word(k) for k in range(STOP)])
        near, far = clip(planes_of, expand(*parts), stop)
        with b.if_then((near <= far).any()):
            item = b.not_(job.tree.nodes.get(b.add(b.add(row, I64(CHILD)), slot)))
            result = word(RESULTS).bits(I32)
            stop, result = decide(
                b,
                PacketAtBox(
                    near, far, margin_of(*parts), stop, result, item, octant, job.rows, packets, packet
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
        spot: tuple[int, int, int],
        packet: int,
    ) -> None:
        write(packets, job, workspace, spot, packet)

    return closing_over(intersect, decide, *others)


def intersect_box(
    recorder: Recorder,
    packets: PacketRecorder,
    job: Job,
    workspace: Workspace,
    spot: tuple[int, int, int],
    packet: int,
) -> None:
    """Test a packet's rays against a box. spot: the row of its node, octant, slot; recorder: the inner."""
    raise NotImplementedError("compiled code only")


def _intersection_of(kind: type) -> Any:
    hooks = REGISTERED.packet.get(kind)
    return hooks and _intersection(*filter(None, (hooks.intersect_box, hooks.store_rays)))


dispatch(intersect_box, _intersection_of)


class LeafSlots(NamedTuple):
    """Boxes among the slots of a node: bits for those that a ray may hit, and hits for certain."""

    node: int
    octant: int
    possible: int
    certain: int


@device
def intersect_packet_lists(
    recorder: PacketRecorder, job: Job, workspace: Workspace, node: int, octant: int, mask: int
) -> None:
    """Test the packets of the lists of some slots of a node against the boxes in these slots."""
    while mask != 0:
        slot = lowest_bit(mask)
        mask &= mask - 1
        if prefetches_boxes(recorder.inner):
            prefetch_rows(job.rows, whole(~job.tree.nodes[node, CHILD + slot]))
        spot = node * ROW, octant, slot
        for k in range(workspace.starts[slot], workspace.starts[slot] + workspace.lengths[slot]):
            intersect_box(recorder.inner, recorder, job, workspace, spot, whole(workspace.lists[k]))


@device
def intersect_single_packet(
    recorder: PacketRecorder, job: Job, workspace: Workspace, slots: LeafSlots, packet: int
) -> None:
    """Test one packet against the boxes in some slots of a node."""
    node, octant, mask = slots.node, slots.octant, slots.possible
    while mask != 0:
        slot = lowest_bit(mask)
        mask &= mask - 1
        if prefetches_boxes(recorder.inner):
            prefetch_rows(job.rows, whole(~job.tree.nodes[node, CHILD + slot]))
        intersect_box(recorder.inner, recorder, job, workspace, (node * ROW, octant, slot), packet)


@device
def _ends_rays(recorder: PacketRecorder) -> bool:
    return ends_rays(recorder.inner)


# Packets go through the stream traversal in place of rays; candidates and results are `PacketHooks`.
REGISTERED.stream[PacketRecorder] = StreamHooks(record=None, write_results=None, ends_rays=_ends_rays)
