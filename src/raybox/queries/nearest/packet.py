"""`nearest` in the packet traversal: first hits by the planes of entry, and times by one plane.

A ray keeps, with its first box so far, the number of the plane by which it enters this box and that plane in
float32, as the tree stores it: negated where rays run backward, so that a greater plane is a later one.

**Order.** Let a ray enter box j by the plane q of an axis, for certain (`raybox.traversal.box_entry`), and
let p be the near plane of box i on this axis. Both are crossed at (p - o)/d and (q - o)/d, with one o and one
d != 0: p > q in the direction of the ray is a later time, p = q the same one, and no rounding is involved. A
ray has crossed all near planes of a box when it enters it: it enters box i no sooner than it crosses p. ::

    p > q   =>   box i is later than box j, or missed
    p < q   =>   box i is earlier, if the ray certainly hits it and enters it by the plane p
    p = q   =>   both are hit at the same time, under the same two conditions: the lower index is first

Box i is certainly hit within the ray's range where it comes no later than box j, which is. A ray that starts
inside of boxes hits them where its range starts, and no box sooner: their plane is 0.

**Planes in float32.** A tree's planes are float64 ones, moved and rounded by functions that keep their order
(`raybox.bvh.sah_rows.outward`): where the float32 planes of two boxes differ, the float64 planes are in the
same order. No margin is needed, and planes that were moved by an unknown distance (`raybox.bvh.node.FAR`)
are no exception. Where the float32 planes are equal, the box is listed, and float64 planes decide later.
Until then box j stands for all boxes that tie with it. The result may change before, to a box that is entered
certainly before box j, or by its plane. Listed boxes are compared with that one, on the same axis: if it is
entered before them by another plane, it has crossed its plane on this axis before, too, and stays.

Where axes differ or are unknown, margins decide (`raybox.traversal.node_test`). Boxes that these cannot tell
apart are kept undecided.

**Times.** A box that is certainly entered by a plane p is entered at (p - o)/d: one number of it is read.
"""

import numpy as np

from raybox.compiler.decorators import device, whole
from raybox.compiler.intrinsics import Fields, int64, vector_code, void
from raybox.compiler.simd import (
    F32,
    F64,
    I1,
    I32,
    I64,
    Builder,
    Lanes,
    Scalar,
    constant,
    joined,
    lesser,
    splat,
    steps,
)
from raybox.compiler.simd_arrays import Register, loop
from raybox.primitives.box_simd import inverse_of, quotient
from raybox.primitives.status import MISS_INDEX
from raybox.primitives.table import entry_planes, has_planes, has_volumes, plane_order
from raybox.primitives.triangle_simd import load_corners, time_of
from raybox.queries.hit_query import write_hits, write_misses
from raybox.queries.nearest.stream import Nearest
from raybox.traversal.box_entry import INSIDE, NO_PLANE, BoxEntry, plane_number
from raybox.traversal.job import Job
from raybox.traversal.node_test import is_certain, reach, undecided, valid
from raybox.traversal.packet_batches import resolve_undecided
from raybox.traversal.packet_box import BLOCK, PacketAtBox, add_undecided, entry_at
from raybox.traversal.packet_tiles import load_bounds, load_vectors, rows_of, store_tile
from raybox.traversal.protocol import PacketHooks
from raybox.traversal.ray_keys import copy_ray
from raybox.traversal.ray_setup import LANES, PASSES
from raybox.traversal.workspace import (
    DEFERRED,
    ENTRY,
    PLANE,
    RESULTS,
    Order,
    PacketGroup,
    PacketRecorder,
    Workspace,
    packet_ray,
)

_UPPER = 3  # the first number of an upper plane
_MANY = 8  # ties of sixteen rays with one box: decided at once (100 equal boxes: 0.43 of the time)
_SIGN = 31  # the bit of a float32's sign
_BITS = 4  # of a ray's number in its packet
_HALF = LANES // 2


def _intersect_box(b: Builder, at: PacketAtBox) -> tuple[Lanes, Lanes]:
    if not has_planes(at.rows):
        late = reach(at.near, at.margin)
        certain = is_certain(late, at.far, at.margin)
        return _recorded(b, at, late, certain, undecided(at.near, at.far, certain))
    entry = entry_at(b, at)
    before = entry.room <= lesser(entry.far, at.stop)
    first = Register(b, before.value)
    left = Register(b, undecided(at.near, at.far, before).value)
    with b.if_then(left.lanes.any()):
        earlier, decided = _compare(b, at, entry, left.lanes)
        first.value = (before | earlier).value
        left.value = (left.lanes & ~decided).value
    with b.if_then(first.lanes.any()):
        _store_entry(b, at, entry, first.lanes)
    return _recorded(b, at, entry.late, first.lanes, left.lanes)


def _recorded(b: Builder, at: PacketAtBox, late: Lanes, first: Lanes, left: Lanes) -> tuple[Lanes, Lanes]:
    """Return new stops and results: of rays whose first hit this is, and of those that may hit it."""
    deferred = add_undecided(b, at, left)
    result = deferred.choose(DEFERRED, first.choose(splat(b, at.item, LANES), at.result))
    return deferred.choose(PASSES, first.choose(lesser(late, at.stop), at.stop)), result


def _column(b: Builder, packet: Scalar, column: int) -> Scalar:
    """Return the place of a column of a packet."""
    return b.add(b.mul(packet, I64(BLOCK)), I64(LANES * column))


def _plane_by(b: Builder, at: PacketAtBox, numbers: Lanes) -> Lanes:
    """Return the near planes of these numbers, negated where rays run backward: 0 inside, NaN for none."""
    chosen = numbers.equals(INSIDE).choose(constant(b, F32, LANES, 0.0), np.nan)
    for axis, plane in enumerate(at.planes):
        sign = b.shl(b.trunc(b.lshr(at.octant, I64(axis)), I32), I32(_SIGN))
        number = splat(b, plane_number(b, at.octant, axis), LANES)
        chosen = numbers.equals(number).choose((plane.bits(I32) ^ splat(b, sign, LANES)).bits(F32), chosen)
    return chosen


def _compare(b: Builder, at: PacketAtBox, entry: BoxEntry, left: Lanes) -> tuple[Lanes, Lanes]:
    """Return which rays enter the box before their result, and which of them are decided; list ties."""
    number = at.packets.state.load(_column(b, at.packet, ENTRY), LANES)
    p, q = _plane_by(b, at, number), at.packets.words.load(_column(b, at.packet, PLANE), LANES)
    same = left & number.equals(entry.plane) & (entry.room <= entry.far)
    tied, inside = same & p.equals(q), number.equals(INSIDE)
    earlier = (same & (p < q)) | (tied & inside & (splat(b, at.item, LANES) < at.result))
    earlier = earlier | _decide_ties(b, at, number, tied & ~inside)
    return earlier, earlier | tied | (p > q)


def _decide_ties(b: Builder, at: PacketAtBox, number: Lanes, tied: Lanes) -> Lanes:
    """Return which rays enter the box before their result by the float32 plane of both; list a few ties."""
    first = Register(b, (tied & ~tied).value)
    count = b.ctpop(tied.mask())
    with b.if_then(b.icmp_signed(">=", count, I64(_MANY))):
        box = splat(b, at.item, LANES)
        planes = tied.choose(number, INSIDE)
        first.value = (tied & plane_order(b, at.rows, box, tied.choose(at.result, box), planes)).value
    some = b.and_(b.icmp_signed(">", count, I64(0)), b.icmp_signed("<", count, I64(_MANY)))
    with b.if_then(some):
        pairs, listed = at.workspace.pairs, at.workspace.waiting_count
        place = listed.get(0)
        pairs.ray.squeeze(steps(b, b.mul(at.packet, I64(LANES)), LANES).to(I32), tied, place)
        pairs.status.squeeze(number, tied, place)
        pairs.item.store(splat(b, at.item, LANES), place)
        listed.put(b.add(place, count), 0)
    return first.lanes


def _store_entry(b: Builder, at: PacketAtBox, entry: BoxEntry, first: Lanes) -> None:
    """Store by which planes some rays enter the box."""
    for memory, column, new in (
        (at.packets.state, ENTRY, entry.plane),
        (at.packets.words, PLANE, _plane_by(b, at, entry.plane)),
    ):
        place = _column(b, at.packet, column)
        memory.store(first.choose(new, memory.load(place, LANES)), place)


@device
def _make_room(
    _recorder: Nearest, packets: PacketRecorder, job: Job, workspace: Workspace, number: int
) -> None:
    """Make room for the ties of so many packets with a box."""
    if workspace.waiting_count[0] + number * LANES > workspace.pairs.ray.size - LANES:
        _resolve_ties(packets, job, workspace)


@vector_code(void)
def _resolve_ties(b: Builder, packets: Fields, job: Fields, workspace: Fields) -> None:
    """Decide listed ties by planes in float64, one after the other: a ray may have several."""
    count = workspace.waiting_count.get(0)
    if has_planes(job.rows):
        with loop(b, count, _HALF) as k:
            _load_ties(b, packets, job, workspace, k)
        with loop(b, count) as k:
            _resolve_tie(b, packets, job, workspace, k)
    workspace.waiting_count.put(I64(0), 0)


def _load_ties(b: Builder, packets: Fields, job: Fields, workspace: Fields, first: Scalar) -> None:
    """Store the planes of eight listed boxes, and of their rays' results, which are soon compared.

    In a loop of few instructions, so that many loads are under way at once.
    """
    pairs, listed = workspace.pairs, valid(b, first, workspace.waiting_count.get(0), _HALF)
    rays, boxes = (listed.choose(array.load(first, _HALF), 0) for array in (pairs.ray, pairs.item))
    numbers = pairs.status.load(first, _HALF)
    pairs.low.store(entry_planes(b, job.rows, boxes, numbers), first)
    results = packets.state.pick(_places(b, rays, RESULTS))
    results = (results > MISS_INDEX).choose(results, boxes)
    pairs.high.store(entry_planes(b, job.rows, results, numbers), first)


def _places(b: Builder, rays: Lanes, column: int) -> Lanes:
    """Return the places of rays in a column of their packets."""
    wide = rays.to(I64)
    return (wide >> _BITS) * BLOCK + (wide & (LANES - 1)) + LANES * column


def _resolve_tie(b: Builder, packets: Fields, job: Fields, workspace: Fields, k: Scalar) -> None:
    """Decide one listed tie: the box is the result if it is entered first, or ties and has a lower index."""
    pairs = workspace.pairs
    ray, box, number = (array.load(k, 1) for array in (pairs.ray, pairs.item, pairs.status))
    place = _places(b, ray, RESULTS).lane(0)
    result = packets.state.load(place, 1)
    hit = result > MISS_INDEX
    p, q = pairs.low.load(k, 1), entry_planes(b, job.rows, hit.choose(result, box), number)
    earlier = (number >= _UPPER).choose(p > q, p < q) | (p.equals(q) & (box < result))
    packets.state.store((hit & earlier).choose(box, result), place)


@vector_code(int64)
def _write_entries(
    b: Builder, recorder: Fields, packets: Fields, job: Fields, workspace: Fields, group: Fields
) -> Scalar:
    """Write the hits of packets; return how many pairs with unknown times are listed for `write_hits`.

    `pairs.ray` is numbered from the first packet's.
    """
    if has_planes(job.rows):
        with loop(b, group.count) as p:
            _load_planes(b, packets, job, p)
    left = Register(b, I64(0))
    with loop(b, group.count) as p:
        result = packets.state.load(_column(b, p, RESULTS), LANES)
        hit, first = result > MISS_INDEX, b.add(group.base, b.sext(packets.first.get(p), I64))
        rows = rows_of(b, first, group.stride)
        with b.if_then(hit.any()):
            if has_volumes(job.rows):
                known, times = _triangle_times(b, job, result, load_vectors(b, job.rays, rows))
            else:
                known, times = _entry_times(b, packets, job, p, rows)
            _write(recorder, (hit & known).choose(result, MISS_INDEX), times, rows)
            _list_others(b, workspace, hit & ~known, (p, result), left)
    return left.value


def _list_others(
    b: Builder, workspace: Fields, others: Lanes, at: tuple[Scalar, Lanes], left: Register
) -> None:
    """List rays whose time is not known with their results, as pairs. at: the packet, and its results."""
    with b.if_then(others.any()):
        rays = steps(b, b.mul(at[0], I64(LANES)), LANES).to(I32)
        workspace.pairs.ray.squeeze(rays, others, left.value)
        workspace.pairs.item.squeeze(at[1], others, left.value)
        left.value = b.add(left.value, b.ctpop(others.mask()))


def _write(recorder: Fields, index: Lanes, times: Lanes, rows: list[Scalar]) -> None:
    """Write the results of a packet's rays; those that hit nothing have no time."""
    store_tile(recorder.index, rows, index.to(I64))
    store_tile(recorder.t, rows, (index > MISS_INDEX).choose(times, np.inf))


def _load_planes(b: Builder, packets: Fields, job: Fields, packet: Scalar) -> None:
    """Store the planes of entry of a packet's rays where its coefficients were.

    In a loop of few instructions, so that many loads are under way at once.
    """
    results, numbers = (packets.state.load(_column(b, packet, column), LANES) for column in (RESULTS, ENTRY))
    boxes, to = (results > MISS_INDEX).choose(results, 0), b.lshr(_column(b, packet, 0), I64(1))
    for k, (box, number) in enumerate(zip(boxes.halves(), numbers.halves(), strict=True)):
        planes = entry_planes(b, job.rows, box, number)
        packets.words.as_items(F64).store(planes, b.add(to, I64(k * _HALF)))


def _entry_times(
    b: Builder, packets: Fields, job: Fields, packet: Scalar, rows: list[Scalar]
) -> tuple[Lanes, Lanes]:
    """Return which entry times of a packet's rays into their boxes are known, and these.

    rows: the first ray of each row.
    """
    numbers = packets.state.load(_column(b, packet, ENTRY), LANES)
    place = b.lshr(_column(b, packet, 0), I64(1))
    origins, ways = load_vectors(b, job.rays, rows)
    starts = load_bounds(job.rays.t_min, rows).halves()
    known, times = [], []
    for k, number in enumerate(numbers.halves()):
        o, d = (_picked(number, [column.halves()[k] for column in columns]) for columns in (origins, ways))
        inside = number.equals(INSIDE)
        p = packets.words.as_items(F64).load(b.add(place, I64(k * _HALF)), _HALF)
        exact, t = quotient(p, o, d, inverse_of(d))
        known.append((exact & (number > NO_PLANE)) | inside)
        times.append(inside.choose(starts[k] + 0.0, t))
    return joined(known), joined(times)


def _picked(number: Lanes, columns: list[Lanes]) -> Lanes:
    """Return the columns of the axes of planes."""
    on_y, on_z = (number.equals(axis) | number.equals(axis + _UPPER) for axis in (1, 2))
    return on_y.choose(columns[1], on_z.choose(columns[2], columns[0]))


@device
def _write_packets(
    recorder: Nearest,
    packets: PacketRecorder,
    job: Job,
    order: Order,
    workspace: Workspace,
    group: PacketGroup,
) -> None:
    _resolve_ties(packets, job, workspace)
    resolve_undecided(packets, job, order, workspace, group)
    left = _write_entries(recorder, packets, job, workspace, group)
    for k in range(left):
        r = whole(workspace.pairs.ray[k])
        ray = group.base + packet_ray(packets, group, r // LANES, r % LANES)
        workspace.pairs.source[k] = ray
        copy_ray(job.rays, ray, workspace.rays64, r)
    write_hits(recorder, job, order, workspace.rays64, workspace, (group.base, left))


def _triangle_times(
    b: Builder, job: Fields, result: Lanes, rays: tuple[list[Lanes], list[Lanes]]
) -> tuple[Lanes, Lanes]:
    """Return which times of sixteen rays at their results are known, and these.

    rays: their origins and directions, axis by axis.
    """
    known, times = [], []
    for k, items in enumerate(result.halves()):
        hit = items > MISS_INDEX
        some = Register(b, constant(b, I1, items.count, 0).value)
        time = Register(b, constant(b, F64, items.count, np.inf).value)
        with b.if_then(hit.any()):
            which = hit.choose(items, 0)
            corners = load_corners(b, job.rows, [b.sext(which.lane(i), I64) for i in range(items.count)])
            o, d = ([column.halves()[k] for column in columns] for columns in rays)
            found, t = time_of(o, d, corners, hit)
            some.value, time.value = found.value, t.value
        known.append(some.lanes)
        times.append(time.lanes)
    return joined(known), joined(times)


HOOKS = PacketHooks(
    Nearest,
    intersect_box=_intersect_box,
    write_packets=_write_packets,
    write_misses=write_misses,
    make_room=_make_room,
    ties_by_index=True,
)
