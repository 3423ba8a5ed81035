"""Many rays at once, up to a million: sorted, then traversed by all threads; fewer in their own order.

Rays that enter the scene at one place in one direction are traversed together. The more rays are sorted at
once, the longer their lists. So all threads sort one batch, not each its own part of it, which with sixteen
threads takes twice as long.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from raybox.compiler import huge_pages
from raybox.compiler.buffer_pool import BufferPool, SizedPool
from raybox.compiler.entry_points import alongside
from raybox.geometry import RayRows
from raybox.primitives.table import fills_boxes
from raybox.queries import one_by_one
from raybox.threads.chunks import Run, uncounted
from raybox.traversal import packet_batches, ray_groups
from raybox.traversal.job import Job, RaySpan, Recorder
from raybox.traversal.packet_tiles import LONGEST_ROW, SIDE, PacketForm, row_length, stride_of
from raybox.traversal.ray_groups import KeySpan
from raybox.traversal.ray_keys import MISS_KEY, SINGLE_RAY_KEY
from raybox.traversal.ray_setup import LANES
from raybox.traversal.workspace import (
    Order,
    PacketRecorder,
    Span,
    Workspace,
    clear_undecided,
    make_order,
    make_workspace,
    next_ray,
    set_next_ray,
    undecided_count,
)
from raybox.validation import Ints, Ints32

alongside(packet_batches.traverse_packets, ray_groups.traverse_groups)  # of rays that form no packet

R = TypeVar("R", bound=Recorder)
BATCH = 1 << 20
GROUP = 4096  # rays traversed together, or a multiple of it (`raybox.queries.scheduler`)
_GROUPS_EACH = 4  # groups for each thread, at least, where groups are wide
_AT_ONCE = 1 << 15  # fewer rays are scattered by one thread, before another would start
_SHARED = 2  # groups for each thread, at least, where rays are few
_NARROW = 512  # rays of a group, at least
_PACKET_CHUNK = 1 << 13  # rays among which a thread looks for packets at a time, at least
GRAINS = 5.0  # where every box counts: up to here packets are faster than streams on any scene
_ON_SURFACES = 3.0  # times: so far apart origins count at triangles, but in pictures (sun rays: 1.3 as fast)
_ALIKE = 1024  # rays of a key: of pictures there are thousands, of rays that start anywhere some hundreds
_SCANNED = 4 * LONGEST_ROW  # rays of which the first two rows of a picture are known
_NONE = np.empty(0, np.int64)
_LISTED = np.empty(0, np.int32)  # no room for keys: they are in the order already


class Recording(NamedTuple, Generic[R]):
    """How the rays of a batch are traversed for a query, and where results go."""

    recorder: Callable[[int], R]  # for groups of up to so many rays
    write_misses: Callable[[int, int], None]  # of the rays begin <= k < end
    group_width: int = 1  # groups are of up to so many times as many rays, a power of two
    grow: Callable[[R, float], R] | None = None  # a recorder with room for so many times the hits so far
    release: Callable[[R], R] | None = None  # one without its scratch memory, which is stored for reuse
    packet_recorder: Callable[[int], R] | None = None  # of so many rays in packets; None: none are looked for
    scattered: bool = False  # whether groups are wide only if few rays go one way from one place
    packet_width: int = 1  # groups of packets are of up to so many times as many rays
    grains: float = GRAINS  # how many boxes a packet may be wide
    packs_triangles: bool = False  # whether primitives are triangles that have packets

    def grown(self, recorder: R, factor: float) -> R:
        """Return a recorder with more room."""
        assert self.grow is not None  # of a query whose results may have no room
        return self.grow(recorder, factor)


class PacketPart(NamedTuple, Generic[R]):
    """What a thread recorded of packets."""

    recorder: R
    span: RaySpan


class StreamPart(NamedTuple, Generic[R]):
    """What a thread recorded of streams, for the rays order[k], begin <= k < end."""

    recorder: R
    span: RaySpan
    undecided: Ints


class Traversed(NamedTuple, Generic[R]):
    """What threads recorded of a batch, and its order; rays have numbers from the batch's first on."""

    streams: list[StreamPart[R]]
    order: Ints32
    undecided: Ints
    packets: list[PacketPart[R]]


class _Keyed(NamedTuple, Generic[R]):
    """Rays with keys: which, how many of each key, how many are left after packets, and those undecided."""

    span: RaySpan
    counts: Ints
    left: int
    undecided: Ints
    packets: list[PacketPart[R]]


def _traverse_unsorted(job: Job, rays: RayRows, span: RaySpan, recording: Recording[R]) -> StreamPart[R]:
    """Traverse with few rays in their own order."""
    count = span.end - span.begin
    recording.write_misses(*span)
    recorder = recording.recorder(one_by_one.room(count))
    recorder, undecided = one_by_one.traverse(job, rays, span, recorder, recording.grow)
    return StreamPart(_released(recorder, recording), RaySpan(0, count), undecided)


@contextmanager
def traverse_batch(
    job: Job, rays: RayRows, span: RaySpan, recording: Recording[R], run: Run
) -> Iterator[Traversed[R]]:
    """Traverse a batch of rays; the memory of their order is reused afterwards."""
    count = span.end - span.begin
    if count <= one_by_one.MOST_RAYS:
        done = _traverse_unsorted(job, rays, span, recording)
        yield Traversed([done], np.arange(count, dtype=np.int32), done.undecided, [])
        return
    order, job = _take_order(count), job._replace(rays=rays)
    if rays.starts.size > 1:
        yield _traverse_by_starts(job, span, recording, order, run)
        _ORDERS.put_back(order)
        return
    keyed = _sort(job, span, recording, order, run)
    single = order.order[order.starts[SINGLE_RAY_KEY] : order.starts[MISS_KEY]].astype(np.int64)
    size = _group_size(recording, order.starts[: SINGLE_RAY_KEY + 1], run.threads)

    def traverse(begin: int, end: int) -> StreamPart[R]:
        return _traverse_sorted(job, Span(span.begin, begin, end), recording, order, size)

    streams = run(traverse, order.starts[SINGLE_RAY_KEY], min_chunk=size)
    undecided = [single, *(part.undecided for part in keyed), *(part.undecided for part in streams)]
    packets = [part for some in keyed for part in some.packets]
    yield Traversed(streams, order.order, np.concatenate(undecided), packets)
    _ORDERS.put_back(order)


def _traverse_by_starts(
    job: Job, span: RaySpan, recording: Recording[R], order: Order, run: Run
) -> Traversed[R]:
    """Traverse with the rays of a batch in the order of the nodes at which they start."""
    count = span.end - span.begin
    recording.write_misses(*span)
    order.order[:count] = np.argsort(job.rays.starts[span.begin : span.end], kind="stable")
    order.where[:count] = np.arange(count)
    order.starts[:] = 0  # no keys
    size = _NARROW if run.threads > 1 and count < _SHARED * run.threads * GROUP else GROUP

    def traverse(begin: int, end: int) -> StreamPart[R]:
        part = Span(span.begin, begin, end)
        ray_groups.copy_sorted(job.rays, part, order)
        return _traverse_sorted(job, part, recording, order, size)

    streams = run(traverse, count, min_chunk=size)
    undecided = [_NONE, *(part.undecided for part in streams)]
    return Traversed(streams, order.order, np.concatenate(undecided), [])


def _group_size(recording: Recording[R], starts: Ints, threads: int) -> int:
    """Return how many rays are traversed together: not so many that threads would wait for each other.

    starts: where rays of each key begin, and where those of the last one end.
    """
    width, rays = recording.group_width, int(starts[-1])
    if recording.scattered and rays > _ALIKE * np.count_nonzero(np.diff(starts)):
        width = 1
    if threads > 1:
        width = min(width, max(1, rays // (_GROUPS_EACH * threads * GROUP)))
    size = GROUP << width.bit_length() - 1
    while threads > 1 and size > _NARROW and rays < _SHARED * threads * size:
        size >>= 1
    return size


def _sort(job: Job, span: RaySpan, recording: Recording[R], order: Order, run: Run) -> list[_Keyed[R]]:
    """Traverse with the packets of a batch, and sort its other rays."""
    form = _packet_form(job, span, recording)
    count = span.end - span.begin
    band = SIDE * form.stride if form else 1  # rays that stay together

    def key(begin: int, end: int) -> _Keyed[R]:
        part = Span(span.begin, begin * band, min(end * band, count))
        if form:
            return _key_packets(job, part, recording, order, form)
        return _key(job, part, recording, order)

    keyed = run(
        key,
        -(-count // band),
        done=lambda part: part.span.end - part.span.begin - part.left,
        min_chunk=max(1, _PACKET_CHUNK // band) if form else None,
    )
    _scatter(keyed, order, run)
    return keyed


def _packet_form(job: Job, span: RaySpan, recording: Recording[R]) -> PacketForm | None:
    """Return how some rays of a batch seem to form packets, by samples; None if they seem to form none."""
    is_packed = fills_boxes(job.rows) or recording.packs_triangles
    if recording.packet_recorder is None or job.frame is None or not is_packed:
        return None
    if job.rays.excluded.size:  # rays of a packet are tested as one
        return None
    rays, numbers, (begin, end) = job.rays, job.frame.numbers, span
    length = row_length(rays, numbers, begin, min(end, begin + _SCANNED), recording.grains)
    stride = stride_of(length)
    on_surfaces = recording.packs_triangles and stride == SIDE
    form = PacketForm(stride, recording.grains, _ON_SURFACES if on_surfaces else 1.0)
    return form if packet_batches.seem_coherent(rays, numbers, begin, end, form) else None


def _key(job: Job, span: Span, recording: Recording[R], order: Order) -> _Keyed[R]:
    """List some rays by their keys."""
    base, begin, end = span
    recording.write_misses(base + begin, base + end)
    counts, keys = np.zeros(MISS_KEY, np.int64), np.empty(ray_groups.CACHED_RAYS + LANES, np.int32)
    row = ray_groups.list_keys(job, KeySpan(*span, begin), order, counts, keys)
    return _Keyed(RaySpan(begin, end), counts, row - begin, _NONE, [])


def _key_packets(job: Job, span: Span, recording: Recording[R], order: Order, form: PacketForm) -> _Keyed[R]:
    """Traverse with the packets among some rays; list the others by their keys."""
    _, begin, end = span
    order, packets = _part_of(order, span), []
    size, make_recorder = GROUP * recording.packet_width, recording.packet_recorder
    assert make_recorder is not None  # as `_sort` checks
    memory, workspace = _PACKETS.take(size)
    counts, row, left = np.zeros(MISS_KEY, np.int64), begin, 0
    while (first := next_ray(order)) < end:
        recorder = make_recorder(min(end - first, size))
        packet_recorder = PacketRecorder(recorder, *memory)
        left += packet_batches.traverse_packets(job, span, order, workspace, packet_recorder, form)
        packets.append(PacketPart(recorder, RaySpan(first, next_ray(order))))
    if left:
        row = ray_groups.list_keys(job, KeySpan(*span, row), order, counts, _LISTED)
    _PACKETS.put_back((memory, workspace), size)
    return _Keyed(RaySpan(begin, end), counts, row - begin, _part_undecided(order), packets)


def _scatter(keyed: list[_Keyed[R]], order: Order, run: Run) -> None:
    """Put rays in the order of their keys; of one key, those listed first come first."""
    starts, ends = order.starts[:-1], order.starts[1:]
    order.starts[:] = 0
    for part in keyed:  # counts become the places where each part's rays begin
        ends += part.counts
        np.subtract(ends, part.counts, out=part.counts)
    np.cumsum(ends, out=ends)
    for part in keyed:
        np.add(part.counts, starts, out=part.counts)

    def put(begin: int, end: int) -> None:
        for part in keyed[begin:end]:
            first = part.span.begin
            ray_groups.scatter(RaySpan(first, first + part.left), order, part.counts)

    if starts[-1] < _AT_ONCE:
        put(0, len(keyed))
    else:
        run(put, len(keyed), done=uncounted, min_chunk=1)


def _traverse_sorted(job: Job, span: Span, recording: Recording[R], order: Order, size: int) -> StreamPart[R]:
    """Traverse with a part of the sorted rays, in groups of up to `size`."""
    order, recorder = _part_of(order, span), recording.recorder(size)
    workspace = _WORKSPACES.take(size)
    there = _with_rows(workspace, order)
    while next_ray(order) < span.end:
        if not ray_groups.traverse_groups(job, job.rays, span, order, there, recorder):
            rays = span.end - span.begin
            recorder = recording.grown(recorder, rays / min(next_ray(order) - span.begin + size, rays))
    _WORKSPACES.put_back(workspace, size)
    return StreamPart(_released(recorder, recording), RaySpan(span.begin, span.end), _part_undecided(order))


def _with_rows(workspace: Workspace, order: Order) -> Workspace:
    """Return a workspace with the rows of an order."""
    return workspace._replace(rows=order.rows, where=order.where)


def _released(recorder: R, recording: Recording[R]) -> R:
    return recording.release(recorder) if recording.release else recorder


def _part_of(order: Order, span: Span) -> Order:
    """Return the order with memory of one thread: its undecided rays, and its place."""
    part = order._replace(undecided=order.undecided[span.begin : span.end], place=_PLACES.take())
    set_next_ray(part, span.begin)
    clear_undecided(part)
    return part


def _part_undecided(part: Order) -> Ints:
    """Return the undecided rays of a thread's part of the order; its place is reused."""
    undecided = _undecided_of(part)
    _PLACES.put_back(part.place)
    return undecided


def _undecided_of(order: Order) -> Ints:
    count = undecided_count(order)
    return order.undecided[:count].astype(np.int64) if count else _NONE


def _take_order(rays: int) -> Order:
    """Return the memory for sorting so many rays."""
    order = _ORDERS.take()
    return order if order and order.keys.size >= rays + LANES else make_order(rays)


_WORKSPACES = SizedPool(make_workspace)  # by the size of a group
_PACKETS = SizedPool(packet_batches.make_packets)  # likewise
_PLACES = BufferPool(lambda: huge_pages.empty((2,), np.int64))
_ORDERS = BufferPool[Order | None](lambda: None)
