"""Packets of rays: which rays form packets, and the loop that traverses the tree with them.

Neighbours that go nearly the same way, as in pictures and sweeps, are traversed sixteen at a time
(`raybox.traversal.packet`); the others, and those that are deferred, get the keys by which
`raybox.traversal.ray_groups` sorts them.

Boxes that rays of packets keep undecided are resolved in float64, eight at a time, after the traversal. They
are recorded as the candidates of streams are; the result of a ray that float64 cannot decide becomes
`UNDECIDED_INDEX`.
"""

import numpy as np

from raybox.bvh.node import WIDTH
from raybox.compiler.decorators import device, whole
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import Fields, int64, larger, smaller, vector_code
from raybox.compiler.simd import I32, I64, Builder, Scalar, constant
from raybox.geometry import RayRows
from raybox.primitives.box_simd import make_pairs
from raybox.primitives.status import MISS_INDEX, UNDECIDED_INDEX
from raybox.primitives.triangle_packet import TRIANGLE_WORDS, WAY_COLUMNS
from raybox.traversal.job import Job, frame_of
from raybox.traversal.packet_box import BLOCK
from raybox.traversal.packet_setup import set_up_packet
from raybox.traversal.protocol import add_candidate, has_room, write_misses, write_packets, writes_all
from raybox.traversal.ray_keys import MISS_KEY, copy_ray, sort_keys
from raybox.traversal.ray_setup import CENTER, GRAIN, LANES, RESULT, SCALE, STOP, TIMED
from raybox.traversal.stream import resolve_candidates, traverse_stream
from raybox.traversal.workspace import (
    COLUMNS,
    DEFERRED,
    ENTRY,
    MAX_PACKET_HITS,
    MAX_UNDECIDED,
    NO_OCTANT,
    RESULTS,
    SLAB_WORDS,
    UNDECIDED_BOXES,
    UNFIT,
    Order,
    PacketGroup,
    PacketMemory,
    PacketRecorder,
    Span,
    SurfaceMemory,
    Workspace,
    list_undecided,
    make_workspace,
    next_ray,
    room_for,
    set_next_ray,
)
from raybox.validation import Floats


@device
def resolve_undecided(
    packets: PacketRecorder, job: Job, order: Order, workspace: Workspace, group: PacketGroup
) -> None:
    """Resolve the undecided boxes of packets, update their rays' results, and list undecided rays."""
    count = whole(0)
    for p in range(group.count):
        if packets.undecided[p] != 0:
            if count + LANES * (MAX_UNDECIDED + 1) > workspace.pairs.ray.size - LANES:
                resolve_candidates(job, packets.inner, workspace, count)
                count = whole(0)
            count = _add_candidates(packets, job.rays, workspace, group.base, p, count)
    if count > 0:
        resolve_candidates(job, packets.inner, workspace, count)
    for p in range(group.count):
        if packets.undecided[p] != 0:
            _update_results(packets, order, workspace, p)


@device
def _is_open(packets: PacketRecorder, p: int, lane: int) -> bool:
    """Return whether a ray keeps undecided boxes, and is neither deferred nor at its end."""
    if packets.state[p, RESULTS, lane] == DEFERRED or packets.words[p, STOP, lane] < 0.0:
        return False
    return bool(packets.state[p, UNDECIDED_BOXES, lane] > MISS_INDEX)


@device
def _add_candidates(
    packets: PacketRecorder, rays: RayRows, workspace: Workspace, base: int, p: int, count: int
) -> int:
    """Add the undecided boxes of a packet's rays to the candidates; return how many there are now."""
    for lane in range(LANES):
        if _is_open(packets, p, lane):
            r = p * LANES + lane
            copy_ray(rays, base + packets.first[p] + lane, workspace.rays64, r)
            workspace.state[r, RESULT] = packets.state[p, RESULTS, lane]
            workspace.state[r, TIMED] = MISS_INDEX
            # recording may end a ray, in any units: none of these rays is traversed further
            workspace.packed_rays[r, STOP], workspace.power[r], workspace.shift[r] = np.inf, 0, 0.0
            for k in range(packets.state[p, UNDECIDED_BOXES, lane] + 1):
                box = whole(packets.item[r * MAX_PACKET_HITS + k])
                count = add_candidate(packets.inner, workspace, count, r, box)
    return count


@device
def _update_results(packets: PacketRecorder, order: Order, workspace: Workspace, p: int) -> None:
    """Copy the results of a packet's open rays back; list those that stay undecided."""
    for lane in range(LANES):
        if _is_open(packets, p, lane):
            result = workspace.state[p * LANES + lane, RESULT]
            packets.state[p, RESULTS, lane], packets.state[p, ENTRY, lane] = result, MISS_INDEX
            if result == UNDECIDED_INDEX:
                list_undecided(order, packets.first[p] + lane)


SAMPLES = 32  # of a span, sixteen rays each


@device
def _is_coherent(rays: RayRows, numbers: Floats, at: int, grains: float) -> bool:
    """Return whether the sixteen rays from `at` on seem to form a packet, by a test of four.

    They run into one octant and, at the centre of the scene, are no farther apart than some boxes are long.
    """
    o, d = rays.origins, rays.directions
    size = larger(larger(abs(d[at, 0]), abs(d[at, 1])), abs(d[at, 2]))
    away = 0.0
    for axis in range(3):
        away += abs(o[at, axis] - numbers[CENTER + axis])
    same = size > 0.0
    for k in (5, 10, 15):
        for axis in range(3):
            one, other = d[at, axis], d[at + k, axis]
            apart = abs(o[at, axis] - o[at + k, axis]) + away * abs(one - other) / size
            same = same and (one < 0.0) == (other < 0.0) and apart * numbers[SCALE] <= grains * numbers[GRAIN]
    return same


@entry
def seem_coherent(rays: RayRows, numbers: Floats, begin: int, end: int, grains: float) -> bool:
    """Return whether any of a few samples of rays seems to form a packet, so many boxes wide at most."""
    for k in range(SAMPLES):
        if _is_coherent(rays, numbers, begin + k * (end - begin - LANES) // (SAMPLES - 1), grains):
            return True
    return False


def make_packets(rays: int) -> tuple[PacketMemory, Workspace]:
    """Make the memory for groups of up to so many rays in packets, and their workspace."""
    number = rays // LANES
    words = np.empty((number + LANES, COLUMNS, LANES), np.float32)
    first, octant = np.empty(number, np.int32), np.empty(number, np.int32)
    workspace = make_workspace(rays, room_for(number))._replace(
        packet_slabs=np.empty((number + LANES, SLAB_WORDS), np.float32),
        pairs=make_pairs(max(rays, 2 * MAX_PACKET_HITS * LANES)),
    )
    item = np.empty(number * MAX_PACKET_HITS * LANES + LANES, np.int32)
    surface = SurfaceMemory(
        np.empty((number + LANES, WAY_COLUMNS, LANES), np.float32),
        np.empty((TRIANGLE_WORDS, WIDTH), np.float32),
        np.empty(3),
    )
    undecided = np.empty(number, np.int32)
    memory = PacketMemory(words, words.view(np.int32), first, octant, item, surface, undecided)
    return memory, workspace


@entry
def traverse_packets(
    job: Job, span: Span, order: Order, workspace: Workspace, recorder: PacketRecorder, grains: float
) -> int:
    """Traverse with the packets among some rays; key the others, and return their number.

    grains: how many boxes a packet may be wide.
    Continues at `next_ray`. Where that is not the span's end afterwards, there was no room.
    """
    base, _, end = span
    at, left, most = next_ray(order), whole(0), recorder.first.size
    while at + LANES <= end and has_room(recorder.inner, smaller(end - at, most * LANES)):
        packets, first = whole(0), at
        while at + LANES <= end and packets < most:
            octant = whole(UNFIT)
            if _is_coherent(job.rays, frame_of(job).numbers, base + at, grains):
                octant = set_up_packet(job, workspace, recorder, base + at, packets)
            if octant < NO_OCTANT:
                recorder.first[packets], recorder.octant[packets], recorder.undecided[packets] = at, octant, 0
                packets += 1
            else:
                left += _leave_out(job, recorder, order, Span(base, at, at + LANES), octant)
            at += LANES
        if not writes_all(recorder.inner):
            write_misses(recorder.inner, base + first, base + at)
        _traverse_octants(job, workspace, recorder, packets)
        write_packets(recorder.inner, recorder, job, order, workspace, PacketGroup(base, packets))
        left += _key_deferred(job, recorder, order, base, packets)
    if end - at < LANES:
        write_misses(recorder.inner, base + at, base + end)
        _write_last_keys(job, order, workspace, Span(base, at, end))
        left, at = left + end - at, end
    set_next_ray(order, at)
    return left


@device
def _leave_out(job: Job, recorder: PacketRecorder, order: Order, span: Span, octant: int) -> int:
    """Key sixteen rays that form no packet; return how many of them may hit anything."""
    if writes_all(recorder.inner):
        write_misses(recorder.inner, span.base + span.begin, span.base + span.end)
    if octant == UNFIT:
        _write_keys(job, order, span.base, span.begin)
        return LANES
    order.keys[span.begin : span.end] = MISS_KEY
    return 0


@device
def _write_last_keys(job: Job, order: Order, workspace: Workspace, span: Span) -> None:
    """Write the keys of fewer than sixteen rays, computed together with their neighbours'."""
    base, begin, end = span
    first = larger(0, end - LANES)
    sort_keys(job.rays, job.frame, base + first, base + first + LANES, workspace.lists)
    for k in range(begin, end):
        order.keys[k] = workspace.lists[k - first]


@device
def _write_keys(job: Job, order: Order, base: int, at: int) -> None:
    sort_keys(job.rays, job.frame, base + at, base + at + LANES, order.keys[at:])


@device
def _traverse_octants(job: Job, workspace: Workspace, recorder: PacketRecorder, packets: int) -> None:
    """Traverse the tree with packets, octant by octant."""
    for octant in range(8):
        number = whole(0)
        for p in range(packets):
            if recorder.octant[p] == octant:
                workspace.lists[number], workspace.times[number] = p, 0.0
                number += 1
        if number > 0:
            traverse_stream(job, recorder, workspace, octant, number)


@device
def _key_deferred(job: Job, recorder: PacketRecorder, order: Order, base: int, packets: int) -> int:
    """Write the keys of deferred rays; return how many there are."""
    total = 0
    for p in range(packets):
        at, deferred = whole(recorder.first[p]), _drop_keys(recorder, order, p)
        if deferred != 0:
            _write_keys(job, order, base, at)
            for lane in range(LANES):
                if deferred >> lane & 1:
                    total += 1
                else:
                    order.keys[at + lane] = MISS_KEY
    return total


@vector_code(int64)
def _drop_keys(b: Builder, recorder: Fields, order: Fields, packet: Scalar) -> Scalar:
    """Write that the rays of a packet are not left; return a bit for each that is deferred."""
    order.keys.store(constant(b, I32, LANES, MISS_KEY), recorder.first.get(packet))
    results = recorder.state.load(b.add(b.mul(packet, I64(BLOCK)), I64(LANES * RESULTS)), LANES)
    return results.equals(DEFERRED).mask()
