"""Rows of hits: what each ray hits, side by side in memory, in order along the ray; of streams and packets.

Times nearly always differ. So the place of a hit in a short row is how many times are less: eight comparisons
at once, and no branch is mispredicted (insertion took a quarter of the loop).
"""

from raybox.compiler.decorators import device, inlined, whole
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import Fields, int64, vector_code
from raybox.compiler.simd import F64, I32, I64, Builder, Scalar, constant, splat, steps
from raybox.compiler.simd_arrays import Register, loop
from raybox.geometry import PrimitiveRows
from raybox.primitives.box_simd import Pairs
from raybox.primitives.ray import T_MIN
from raybox.primitives.status import HIT, UNDECIDED_INDEX, UNKNOWN_ORDER
from raybox.primitives.table import certain_order, first_contacts
from raybox.queries.all_hits.recorder import PACKED, AllHitsRecorder
from raybox.queries.hit_sorting import ByTime, HitArrays, sort
from raybox.traversal.job import Job, RaySpan
from raybox.traversal.ray_setup import LANES, RESULT
from raybox.traversal.workspace import (
    COLUMNS,
    MAX_PACKET_HITS,
    RESULTS,
    Order,
    PacketGroup,
    PacketRecorder,
    Span,
    Workspace,
    list_undecided,
    packet_ray,
)
from raybox.validation import Floats, Ints, Ints32

_EIGHT = 8
_SHORT = 64  # hits: longer rows are sorted


@vector_code(int64)
def _rank(b: Builder, pairs: Fields, hits: Fields, run: list[Scalar], to: Scalar) -> Scalar:
    """Copy the pairs run[0] <= c < run[1] to their places in a row at `to`; return how many tie."""
    begin, end = run
    number, ties = b.sub(end, begin), Register(b, I64(0))
    with loop(b, number) as k:
        c = b.add(begin, k)
        t, place = pairs.low.get(c), Register(b, to)
        with loop(b, number, _EIGHT) as at:
            others = pairs.low.load(b.add(begin, at), _EIGHT)
            there = steps(b, at, _EIGHT) < splat(b, number, _EIGHT)
            mine = splat(b, t, _EIGHT)
            place.value = b.add(place.value, b.ctpop(((others < mine) & there).mask()))
            ties.value = b.add(ties.value, b.ctpop((others.equals(mine) & there).mask()))
        hits.t.put(t, place.value)
        hits.index.put(b.sext(pairs.item.get(c), I64), place.value)
    return b.sub(ties.value, number)


@device
def _write_row(
    recorder: AllHitsRecorder, job: Job, workspace: Workspace, pairs: Pairs, r: int, run: tuple[int, int]
) -> bool:
    """Write the row of ray r, of the timed pairs begin <= c < end; return False if the ray is undecided.

    run: begin, end. Of pairs where the range begins, `high` says whether that is certain: they tie.
    """
    begin, end = run
    first, decided = recorder.sorted_count[0] + begin, True
    for c in range(begin, end):
        begins = pairs.low[c] == workspace.rays64[r, T_MIN]
        decided = decided and pairs.status[c] == HIT and not (begins and pairs.high[c] == 0.0)
    if not decided:
        return False
    if end - begin <= _SHORT and _rank(pairs, recorder.hits, run, first) == 0:
        return True
    for c in range(begin, end):
        at = first + c - begin
        recorder.hits.index[at], recorder.hits.t[at] = pairs.item[c], pairs.low[c]
    sort(ByTime(0), recorder.hits, first, first + end - begin)
    row = Span(0, first, first + end - begin)
    return _sort_ties(job.rows, recorder.hits, row, workspace.rays64, r)


@inlined
def _sort_ties(rows: PrimitiveRows, hits: HitArrays, row: Span, rays64: Floats, r: int) -> bool:
    """Sort the hits of ray r whose times are equal but for rounding; return False if their order is open.

    row: they are sorted by time, then by index.
    """
    index, t = hits.index, hits.t
    for c in range(row.begin + 1, row.end):
        for k in range(c, row.begin, -1):
            if t[k] != t[k - 1] or t[k] == rays64[r, T_MIN]:
                break
            i, j = whole(index[k]), whole(index[k - 1])
            order = certain_order(rows, rays64, whole(r), i, j)
            if order == UNKNOWN_ORDER or (order < 0 and row.end - row.begin > _SHORT):
                return False
            if order > 0 or (order == 0 and i > j):
                break
            index[k], index[k - 1] = j, i
    return True


@device
def write_results(
    recorder: AllHitsRecorder, job: Job, order: Order, workspace: Workspace, group: Span
) -> bool:
    """Write the rows of a group of rays; return False if there is no room."""
    base, begin, end = group
    pairs, starts = recorder.pairs, recorder.starts
    count, done = recorder.pair_count[0], recorder.sorted_count[0]
    if count + LANES > pairs.ray.size or done + count > recorder.hits.index.size:
        return False
    _group_by_ray(recorder, workspace, end - begin)
    first_contacts(job.rows, workspace.rays64, pairs, count)
    for r in range(end - begin):
        first, stop, k = starts[r], starts[r + 1], order.order[begin + r]
        decided = workspace.state[r, RESULT] != UNDECIDED_INDEX
        if not (decided and _write_row(recorder, job, workspace, pairs, whole(r), (first, stop))):
            list_undecided(order, whole(k))
            stop = first
        recorder.where[base + k], recorder.counts[base + k] = done + first, stop - first
    recorder.pair_count[0] = 0
    recorder.sorted_count[0] = done + count
    return True


@device
def _group_by_ray(recorder: AllHitsRecorder, workspace: Workspace, rays: int) -> None:
    """Sort the pairs by ray: starts[r] is where those of ray r begin.

    `high` says from then on whether a hit is known to be where the range begins: 1 or 0.
    """
    pairs, starts, count = recorder.pairs, recorder.starts, recorder.pair_count[0]
    starts[: rays + 2] = 0
    for c in range(count):
        starts[pairs.ray[c] + 2] += 1
    for r in range(rays):
        starts[r + 2] += starts[r + 1]
    for c in range(count):
        r, i = whole(pairs.ray[c]), whole(pairs.item[c])
        begins = pairs.high[c] == workspace.rays64[r, T_MIN]
        pairs.source[starts[r + 1]] = r << 33 | i << 1 | int(begins)
        starts[r + 1] += 1
    for c in range(count):
        code = pairs.source[c]
        pairs.ray[c], pairs.item[c], pairs.high[c] = code >> 33, code >> 1 & 0x7FFFFFFF, code & 1


@device
def write_packets(
    recorder: AllHitsRecorder,
    packets: PacketRecorder,
    job: Job,
    order: Order,
    workspace: Workspace,
    group: PacketGroup,
) -> None:
    """Write the rows of so many packets."""
    begin = found = whole(0)
    for p in range(group.count):
        found = _list_pairs(packets, workspace, p, found)
        if found + (MAX_PACKET_HITS + 1) * LANES > workspace.pairs.ray.size or p == group.count - 1:
            first_contacts(job.rows, workspace.rays64, workspace.pairs, found)
            _write_packet_rows(recorder, packets, job, order, workspace, (group, begin, p + 1))
            begin, found = p + 1, whole(0)


@vector_code(int64)
def _list_pairs(b: Builder, packets: Fields, workspace: Fields, packet: Scalar, found: Scalar) -> Scalar:
    """Make pairs of what a packet's rays hit, ray by ray, from `found` on; return how many there are now."""
    end, pairs = Register(b, found), workspace.pairs
    first = b.mul(packet, I64(LANES))
    results = b.mul(b.add(b.mul(packet, I64(COLUMNS)), I64(RESULTS)), I64(LANES))
    for lane in range(LANES):
        ray = b.add(first, I64(lane))
        result = packets.state.get(b.add(results, I64(lane)))
        number = b.add(b.sext(result, I64), I64(1))
        with loop(b, number, LANES) as at:
            to = b.add(end.value, at)
            pairs.item.store(packets.item.load(b.add(b.mul(ray, I64(MAX_PACKET_HITS)), at), LANES), to)
            pairs.ray.store(splat(b, b.trunc(ray, I32), LANES), to)
            pairs.high.store(constant(b, F64, LANES, 0.0), to)  # see `_write_row`: none begins the range
        end.value = b.add(end.value, b.select(b.icmp_signed(">", number, I64(0)), number, I64(0)))
    return end.value


@device
def _write_packet_rows(
    recorder: AllHitsRecorder,
    packets: PacketRecorder,
    job: Job,
    order: Order,
    workspace: Workspace,
    some: tuple[PacketGroup, int, int],
) -> None:
    """Write the rows of packets begin <= p < end of a group, whose pairs are timed."""
    group, begin, end = some
    at = whole(0)
    for p in range(begin, end):
        for lane in range(LANES):
            count, k = packets.state[p, RESULTS, lane] + 1, packet_ray(packets, group, p, lane)
            if count < 0:
                continue
            row = recorder.sorted_count[0] + at
            to = group.base + k
            recorder.where[to], recorder.counts[to] = PACKED - row, count
            run = at, at + count
            if not _write_row(recorder, job, workspace, workspace.pairs, p * LANES + lane, run):
                list_undecided(order, whole(k))
            at += count
    recorder.sorted_count[0] += at


@entry
def copy_packet_rows(span: RaySpan, rays: tuple[Ints, Ints], hits: HitArrays, index: Ints, t: Floats) -> None:
    """Copy the rows of rays in packets, begin <= k < end, to their places; see `copy_rows`."""
    where, offsets = rays
    k = span.begin
    while k < span.end:
        at, first = PACKED - where[k], k
        k += 1
        if at < 0:
            continue
        # rows of neighbours are mostly neighbours too: copied as one
        while k < span.end and PACKED - where[k] == at + offsets[k] - offsets[first]:
            k += 1
        to = offsets[first]
        for c in range(offsets[k] - to):
            index[to + c], t[to + c] = hits.index[at + c], hits.t[at + c]


@entry
def copy_rows(
    span: RaySpan, rays: tuple[Ints32, Ints, Ints], hits: HitArrays, index: Ints, t: Floats
) -> None:
    """Copy the rows of rays order[p], begin <= p < end, to their places.

    rays: their order; where each one's row is in `hits`, or -1 if it is not there; and where it belongs.
    """
    order, where, offsets = rays
    for p in range(span.begin, span.end):
        k = order[p]
        at = where[k]
        if at < 0:
            continue
        for to in range(offsets[k], offsets[k + 1]):
            index[to], t[to] = hits.index[at], hits.t[at]
            at += 1
