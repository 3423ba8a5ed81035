"""Packets of rays: which rays form packets, and the loop that traverses the tree with them.

Neighbours that go nearly the same way, as in pictures and sweeps, are traversed sixteen at a time
(`raybox.traversal.packet`); the others, and those that are deferred, get the keys by which
`raybox.traversal.ray_groups` sorts them.

Boxes that rays of packets keep undecided are resolved in float64, eight at a time, after the traversal. They
are recorded as the candidates of streams are; the result of a ray that float64 cannot decide becomes
`UNDECIDED_INDEX`.
"""

import numpy as np

from raybox.compiler.decorators import device, whole
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import Fields, int64, larger, smaller, vector_code
from raybox.compiler.simd import I64, Builder, Scalar
from raybox.geometry import RayRows
from raybox.primitives.box_simd import make_pairs
from raybox.primitives.ray import start_of
from raybox.primitives.status import MISS_INDEX, UNDECIDED_INDEX
from raybox.primitives.triangle_slots import WAY_WORDS
from raybox.traversal.block_culling import Streak, cull_blocks
from raybox.traversal.job import Job
from raybox.traversal.packet_box import BLOCK
from raybox.traversal.packet_setup import set_up_packet
from raybox.traversal.packet_tiles import (
    SIDE,
    PacketForm,
    Tile,
    TileGroup,
    is_coherent,
    ray_of,
    tile_of,
)
from raybox.traversal.protocol import add_candidate, has_room, write_misses, write_packets
from raybox.traversal.ray_keys import MISS_KEY, copy_ray, sort_keys, sort_tile
from raybox.traversal.ray_setup import LANES, RESULT, STOP, TIMED
from raybox.traversal.stream import resolve_candidates, traverse_starts
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
    Workspace,
    list_undecided,
    make_workspace,
    next_ray,
    packet_ray,
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
            count = _add_candidates(packets, job.rays, workspace, group, p, count)
    if count > 0:
        resolve_candidates(job, packets.inner, workspace, count)
    for p in range(group.count):
        if packets.undecided[p] != 0:
            _update_results(packets, order, workspace, group, p)


@device
def _is_open(packets: PacketRecorder, p: int, lane: int) -> bool:
    """Return whether a ray keeps undecided boxes, and is neither deferred nor at its end."""
    if packets.state[p, RESULTS, lane] == DEFERRED or packets.words[p, STOP, lane] < 0.0:
        return False
    return bool(packets.state[p, UNDECIDED_BOXES, lane] > MISS_INDEX)


@device
def _add_candidates(
    packets: PacketRecorder, rays: RayRows, workspace: Workspace, group: PacketGroup, p: int, count: int
) -> int:
    """Add the undecided boxes of a packet's rays to the candidates; return how many there are now."""
    for lane in range(LANES):
        if _is_open(packets, p, lane):
            r = p * LANES + lane
            copy_ray(rays, group.base + packet_ray(packets, group, p, lane), workspace.rays64, r)
            workspace.state[r, RESULT] = packets.state[p, RESULTS, lane]
            workspace.state[r, TIMED] = MISS_INDEX
            # recording may end a ray, in any units: none of these rays is traversed further
            workspace.packed_rays[r, STOP], workspace.power[r], workspace.shift[r] = np.inf, 0, 0.0
            for k in range(packets.state[p, UNDECIDED_BOXES, lane] + 1):
                box = whole(packets.item[r * MAX_PACKET_HITS + k])
                count = add_candidate(packets.inner, workspace, count, r, box)
    return count


@device
def _update_results(
    packets: PacketRecorder, order: Order, workspace: Workspace, group: PacketGroup, p: int
) -> None:
    """Copy the results of a packet's open rays back; list those that stay undecided."""
    for lane in range(LANES):
        if _is_open(packets, p, lane):
            result = workspace.state[p * LANES + lane, RESULT]
            packets.state[p, RESULTS, lane], packets.state[p, ENTRY, lane] = result, MISS_INDEX
            if result == UNDECIDED_INDEX:
                list_undecided(order, packet_ray(packets, group, p, lane))


SAMPLES = 32  # of a span, sixteen rays each


@entry
def seem_coherent(rays: RayRows, numbers: Floats, begin: int, end: int, form: PacketForm) -> bool:
    """Return whether any of a few samples of rays seems to form a packet."""
    last = end - begin - (SIDE - 1) * form.stride - SIDE
    for k in range(SAMPLES):
        tile = Tile(begin + k * last // (SAMPLES - 1), form.stride)
        if last >= 0 and is_coherent(rays, numbers, tile, form) != 0:
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
    ways = np.empty((number + LANES, WAY_WORDS, LANES), np.float32)
    undecided = np.empty(number, np.int32)
    memory = PacketMemory(words, words.view(np.int32), first, octant, item, ways, undecided)
    return memory, workspace


@entry
def traverse_packets(
    job: Job, span: Span, order: Order, workspace: Workspace, recorder: PacketRecorder, form: PacketForm
) -> int:
    """Traverse with the packets among some rays; key the others, and return their number.

    Continues at `next_ray`. Where that is not the span's end afterwards, there was no room.
    """
    base, _, end = span
    at, left, most = next_ray(order), whole(0), recorder.first.size
    streak = Streak(0, 0)
    while at + LANES <= end and has_room(recorder.inner, smaller(end - at, most * LANES)):
        group = _next_group(at, end, most, form.stride)
        packets = whole(0)
        stop = at + group.count * LANES
        write_misses(recorder.inner, base + at, base + stop)
        order.keys[at:stop] = MISS_KEY
        streak = cull_blocks(job, recorder, Span(base, at, stop), group.stride, streak)
        own = PacketForm(group.stride, form.grains, form.origins)
        for k in range(group.count):
            if recorder.octant[k] == NO_OCTANT:
                continue
            tile = tile_of(at, group.stride, k)
            octant = set_up_packet(job, workspace, recorder, own, (base + tile.first, packets))
            if octant < NO_OCTANT:
                recorder.first[packets], recorder.octant[packets] = tile.first, octant
                recorder.undecided[packets] = 0
                packets += 1
            elif octant == UNFIT:
                sort_tile(job.rays, job.frame, base, tile, order.keys)
                left += LANES
        _traverse_octants(job, workspace, recorder, packets)
        formed = PacketGroup(base, packets, group.stride)
        write_packets(recorder.inner, recorder, job, order, workspace, formed)
        left += _key_deferred(job, recorder, order, formed)
        at = stop
    if end - at < LANES:
        write_misses(recorder.inner, base + at, base + end)
        _write_last_keys(job, order, workspace, Span(base, at, end))
        left, at = left + end - at, end
    set_next_ray(order, at)
    return left


@device
def _next_group(at: int, end: int, most: int, stride: int) -> TileGroup:
    """Return how many tiles of which stride are the next group: whole bands, if there is one, else rows."""
    in_band = stride // SIDE
    bands = smaller((end - at) // (SIDE * stride), most // in_band)
    if bands > 0:
        return TileGroup(stride, whole(bands * in_band))
    return TileGroup(whole(SIDE), whole(smaller((end - at) // LANES, most)))


@device
def _write_last_keys(job: Job, order: Order, workspace: Workspace, span: Span) -> None:
    """Write the keys of fewer than sixteen rays, computed together with their neighbours'."""
    base, begin, end = span
    first = larger(0, end - LANES)
    sort_keys(job.rays, job.frame, base + first, base + first + LANES, workspace.lists)
    for k in range(begin, end):
        order.keys[k] = workspace.lists[k - first]


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
            traverse_starts(job, recorder, workspace, octant, number, start_of(job.rays, 0))


@device
def _key_deferred(job: Job, recorder: PacketRecorder, order: Order, group: PacketGroup) -> int:
    """Write the keys of deferred rays; return how many there are."""
    total = 0
    for p in range(group.count):
        tile, deferred = Tile(recorder.first[p], group.stride), _deferred(recorder, p)
        if deferred != 0:
            sort_tile(job.rays, job.frame, group.base, tile, order.keys)
            for lane in range(LANES):
                if deferred >> lane & 1:
                    total += 1
                else:
                    order.keys[ray_of(tile, lane)] = MISS_KEY
    return total


@vector_code(int64)
def _deferred(b: Builder, recorder: Fields, packet: Scalar) -> Scalar:
    """Return a bit for each ray of a packet that is deferred."""
    results = recorder.state.load(b.add(b.mul(packet, I64(BLOCK)), I64(LANES * RESULTS)), LANES)
    return results.equals(DEFERRED).mask()
