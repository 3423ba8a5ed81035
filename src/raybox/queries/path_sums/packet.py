"""Sums of rays in the packet traversal: which rays hit a box is listed, and lengths are added later.

All rays of a packet run into one octant, so a box's planes are the same for all, and nothing is gathered. A
packet has ten columns of float64: the crossing rows of its rays (`raybox.primitives.box_lengths`), their
speeds, NaN where a ray is out of range there, and their sums so far. Lengths have the same bits as in the
stream traversal. A sum that is not finite is computed again by the exact fallback.

Lengths are added after the traversal, when what is next can be prefetched: as they come takes a tenth longer.
"""

from typing import NamedTuple

from raybox.compiler.decorators import device, whole
from raybox.compiler.intrinsics import Fields, int64, lowest_bit, smaller, vector_code, void
from raybox.compiler.simd import F64, I1, I32, I64, Builder, Lanes, Scalar, constant, mask_of, splat
from raybox.compiler.simd_arrays import Memory, Register, loop
from raybox.geometry import PrimitiveRows
from raybox.primitives.box_lengths import (
    CrossingRays,
    PairSpan,
    crossing_columns,
    times_inside,
    write_crossing,
)
from raybox.primitives.box_simd import Float64Rays, fill_up, prefetch_box
from raybox.primitives.status import UNDECIDED_INDEX
from raybox.primitives.table import write_lengths
from raybox.queries.path_sums.stream import BLOCK, PATH_COLUMNS, PathRecorder
from raybox.queries.path_sums.sums import RaySums
from raybox.traversal.job import Job
from raybox.traversal.node_test import is_certain, undecided
from raybox.traversal.packet_batches import resolve_undecided
from raybox.traversal.packet_box import PacketAtBox, add_undecided
from raybox.traversal.packet_tiles import rows_of, store_tile
from raybox.traversal.protocol import PacketHooks
from raybox.traversal.ray_setup import LANES, PASSES
from raybox.traversal.workspace import (
    COLUMNS,
    DEFERRED,
    RESULTS,
    Order,
    PacketGroup,
    PacketRecorder,
    Workspace,
    list_undecided,
    packet_ray,
)

_SPEED, _SUM = 8, 9  # columns after those of crossing rows
_ROW = PATH_COLUMNS * LANES
_WORDS = 3  # of a listed hit: packet, box, and bits for the rays and the octant
_AHEAD = 8  # a listed box is prefetched so many before
_PART = 8  # rays whose lengths are computed together


class _PacketHit(NamedTuple):
    """Some rays of a packet hit a box."""

    packet: Scalar
    item: Scalar
    octant: Scalar  # that the rays run into
    rays: Lanes


class _Part(NamedTuple):
    """Eight rays of a packet at a box that some of them hit."""

    begin: Scalar  # of their first column
    hit: Lanes
    planes: list[tuple[Scalar, Scalar]]  # of each axis, where rays enter, and where they leave
    value: Scalar


def _store_rays(b: Builder, recorder: Fields, _workspace: Fields, given: Float64Rays, packet: Scalar) -> None:
    """Store the rays of a packet, and sums of 0."""
    crossing, speed = crossing_columns(given.origin, given.direction)
    base, zero = b.mul(packet, I64(_ROW)), constant(b, F64, LANES, 0.0)
    for k, column in enumerate([*crossing, given.t_min, given.t_max, speed, zero]):
        recorder.memory.packets.store(column, b.add(base, I64(k * LANES)))


def _intersect_box(b: Builder, at: PacketAtBox) -> tuple[Lanes, Lanes]:
    certain = is_certain(at.near, at.far, at.margin * 2.0)
    deferred = add_undecided(b, at, undecided(at.near, at.far, certain))
    with b.if_then(certain.any()):
        _list_hit(b, at, certain)
    return deferred.choose(PASSES, at.stop), deferred.choose(DEFERRED, at.result)


def _list_hit(b: Builder, at: PacketAtBox, certain: Lanes) -> None:
    """List that some rays hit a box; add the lengths at once if there is no room."""
    recorder = at.packets.inner
    memory, count = recorder.memory, recorder.packet_hit_count.get(0)
    place = b.mul(count, I64(_WORDS))
    has_room = b.icmp_signed("<", place, memory.packet_hits.size)
    with b.if_else(has_room, likely=True) as (room, full):
        with room:
            flags = b.or_(certain.mask(), b.shl(at.octant, I64(LANES)))
            for k, word in enumerate((b.trunc(at.packet, I32), at.item, b.trunc(flags, I32))):
                memory.packet_hits.put(word, b.add(place, I64(k)))
            recorder.packet_hit_count.put(b.add(count, I64(1)), 0)
        with full:
            _add_lengths(b, recorder, at.rows, _PacketHit(at.packet, at.item, at.octant, certain))


@vector_code(void)
def _add_listed(b: Builder, recorder: Fields, rows: Fields) -> None:
    """Add the lengths inside of listed boxes."""
    hits, count = recorder.memory.packet_hits, recorder.packet_hit_count.get(0)
    last = b.sub(count, I64(1))
    with loop(b, count) as k:
        ahead = b.add(k, I64(_AHEAD))
        soon = b.select(b.icmp_signed("<", ahead, last), ahead, last)
        prefetch_box(b, rows, b.sext(hits.get(b.add(b.mul(soon, I64(_WORDS)), I64(1))), I64))
        place = b.mul(k, I64(_WORDS))
        packet, item, flags = (hits.get(b.add(place, I64(word))) for word in range(_WORDS))
        octant = b.lshr(b.zext(flags, I64), I64(LANES))
        hit = _PacketHit(b.sext(packet, I64), item, octant, mask_of(b, flags, LANES))
        _add_lengths(b, recorder, rows, hit)
    recorder.packet_hit_count.put(I64(0), 0)


def _add_lengths(b: Builder, recorder: Fields, rows: Fields, at: _PacketHit) -> None:
    """Add the lengths inside of a box, times its value, to the sums of some rays."""
    value, values = Register(b, F64(1.0)), recorder.sums.values
    with b.if_then(b.icmp_signed(">", values.size, I64(0))):
        value.value = values.get(at.item)
    base, planes = b.mul(at.packet, I64(_ROW)), _planes_of(b, rows, at)
    with b.if_then(b.fcmp_unordered("!=", value.value, F64(0.0))):  # most cells may be empty
        for first in range(0, LANES, _PART):
            hit = at.rays.permuted(range(first, first + _PART))
            with b.if_then(hit.any()):
                part = _Part(b.add(base, I64(first)), hit, planes, value.value)
                _add_part(b, recorder.memory.packets, part)


def _add_part(b: Builder, paths: Memory, part: _Part) -> None:
    """Add the lengths of eight rays inside of a box, times its value, to the sums of those that hit it."""

    def column(k: int) -> Lanes:
        return paths.load(b.add(part.begin, I64(k * LANES)), _PART)

    planes = [(splat(b, first, _PART), splat(b, last, _PART)) for first, last in part.planes]
    # of a certain hit, which is no touch: above 0
    length = times_inside([column(k) for k in range(_SPEED)], planes) * column(_SPEED)
    total = column(_SUM)
    more = total + length * splat(b, part.value, _PART)
    paths.store(part.hit.choose(more, total), b.add(part.begin, I64(_SUM * LANES)))


def _planes_of(b: Builder, rows: Fields, at: _PacketHit) -> list[tuple[Scalar, Scalar]]:
    """Return, of each axis, the planes of a box through which rays of an octant enter and leave."""
    planes, row = [], b.mul(b.sext(at.item, I64), I64(3))
    for k in range(3):
        low, up = (bound.get(b.add(row, I64(k))) for bound in (rows.lower, rows.upper))
        backward = b.trunc(b.lshr(at.octant, I64(k)), I1)
        planes.append((b.select(backward, up, low), b.select(backward, low, up)))
    return planes


@device
def _add_resolved(recorder: PathRecorder[RaySums], rows: PrimitiveRows, workspace: Workspace) -> None:
    """Add the lengths inside of boxes that were undecided, and turned out to be hit."""
    memory, pairs, count = recorder.memory, recorder.pairs, recorder.pair_count[0]
    values = recorder.sums.values
    fill_up(pairs, count)
    for p in range(count):
        r = whole(pairs.ray[p])
        write_crossing(workspace.rays64, r, memory.crossings, memory.speeds, r)
    for begin in range(0, count, BLOCK):
        end = smaller(begin + BLOCK, count)
        rays = CrossingRays(memory.crossings, memory.speeds)
        write_lengths(rows, rays, pairs, PairSpan(whole(begin), end, count), memory.lengths)
        for p in range(begin, end):
            value = values[pairs.item[p], 0] if values.shape[0] > 0 else 1.0
            if value != 0.0:
                packet, lane = divmod(pairs.ray[p], LANES)
                memory.packets[packet, _SUM, lane] += value * memory.lengths[p - begin]
    recorder.pair_count[0] = 0


@device
def _write_packets(
    recorder: PathRecorder[RaySums],
    packets: PacketRecorder,
    job: Job,
    order: Order,
    workspace: Workspace,
    group: PacketGroup,
) -> None:
    resolve_undecided(packets, job, order, workspace, group)
    _add_listed(recorder, job.rows)
    _add_resolved(recorder, job.rows, workspace)
    for p in range(group.count):
        odd = _write_sums(recorder, packets, group, p)
        while odd != 0:
            list_undecided(order, packet_ray(packets, group, p, lowest_bit(odd)))
            odd &= odd - 1


@vector_code(int64)
def _write_sums(b: Builder, recorder: Fields, packets: Fields, group: Fields, packet: Scalar) -> Scalar:
    """Write the sums of a packet's rays; return those that are not finite, as bits."""
    row = b.add(b.mul(packet, I64(COLUMNS * LANES)), I64(RESULTS * LANES))
    result = packets.state.load(row, LANES)
    total = recorder.memory.packets.load(b.add(b.mul(packet, I64(_ROW)), I64(_SUM * LANES)), LANES)
    is_left = result.equals(DEFERRED) | result.equals(UNDECIDED_INDEX)
    total = is_left.choose(0.0, total)
    first = b.add(group.base, b.sext(packets.first.get(packet), I64))
    store_tile(recorder.sums.results, rows_of(b, first, group.stride), total)
    return (~(total.magnitude() < float("inf"))).mask()


@device
def _write_misses(recorder: PathRecorder[RaySums], begin: int, end: int) -> None:
    recorder.sums.results[begin:end, 0] = 0.0


HOOKS = PacketHooks(
    PathRecorder,
    intersect_box=_intersect_box,
    write_packets=_write_packets,
    write_misses=_write_misses,
    store_rays=_store_rays,
)
