"""What a query supplies to the traversals: hooks, chosen at compile time by the class of its recorder.

A *recorder* is the state of a query in compiled code: a NamedTuple of arrays. The traversals call the
functions at the end of this module with a recorder first; compiled code calls the hook of the same name and
type that was registered for the recorder's class. Numba picks hooks by type, so a hook costs nothing, and a
query that does not need one leaves it at its default.

The state of one ray in a group is a row of `Workspace.state`: its `RESULT` begins as `MISS_INDEX` and means
what the query makes of it; `UNDECIDED_INDEX` leaves the ray to the exact fallback.
"""

from collections.abc import Hashable
from types import SimpleNamespace
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from raybox.compiler.decorators import Namesakes, device, inlined, no, yes
from raybox.compiler.intrinsics import Fields
from raybox.compiler.simd import Builder, Lanes, Scalar
from raybox.geometry import Rows
from raybox.primitives.instance_ray import AnyRay
from raybox.primitives.ray import Ray
from raybox.traversal.certain_hits import intersect_all
from raybox.traversal.job import Job, Recorder
from raybox.traversal.packet_box import PacketAtBox
from raybox.traversal.ray_bounds import Float64Rays
from raybox.traversal.time_keys import Stretches, get, time_of
from raybox.traversal.workspace import (
    LeafSlot,
    ListSpan,
    NodeSlots,
    Order,
    PacketGroup,
    PacketRecorder,
    Span,
    Workspace,
)

R = TypeVar("R", bound=Recorder)
R_contra = TypeVar("R_contra", bound=Recorder, contravariant=True)
S = TypeVar("S")  # the state of a ray that is cut into segments
S_contra = TypeVar("S_contra", contravariant=True)
S_co = TypeVar("S_co", covariant=True)


class Record(Protocol[R_contra]):
    """Record the candidates of a workspace, which were resolved; never guess: see `mark_undecided`."""

    def __call__(self, recorder: R_contra, job: Job, workspace: Workspace, count: int, /) -> None: ...


class WriteResults(Protocol[R_contra]):
    """Write the results of a group, a span of the order; list its undecided rays; return whether all fit."""

    def __call__(
        self, recorder: R_contra, job: Job, order: Order, workspace: Workspace, group: Span, /
    ) -> bool: ...


class AddCandidate(Protocol[R_contra]):
    """Add a ray and a primitive to the candidates; return how many there are now."""

    def __call__(
        self, recorder: R_contra, workspace: Workspace, count: int, ray: int, primitive: int, /
    ) -> int: ...


class IntersectLists(Protocol[R_contra]):
    """Write to the lists of a node's slots the rays of a list that may hit them, less certain hits."""

    def __call__(
        self, recorder: R_contra, job: Job, workspace: Workspace, node: NodeSlots, rays: ListSpan, /
    ) -> None: ...


class RecordCertain(Protocol[R_contra]):
    """Record that a ray hits the box in a slot for certain; return whether that is all."""

    def __call__(
        self, recorder: R_contra, job: Job, workspace: Workspace, slot: LeafSlot, ray: int, /
    ) -> bool: ...


class Flag(Protocol[R_contra]):
    """Return whether something holds; of most, `yes` or `no`."""

    def __call__(self, recorder: R_contra, /) -> bool: ...


class WritePackets(Protocol[R_contra]):
    """Write the results of packets."""

    def __call__(
        self,
        recorder: R_contra,
        packets: PacketRecorder,
        job: Job,
        order: Order,
        workspace: Workspace,
        group: PacketGroup,
        /,
    ) -> None: ...


class WriteMisses(Protocol[R_contra]):
    """Write the results of rays that hit nothing: group by group, while they are in a core's cache."""

    def __call__(self, recorder: R_contra, begin: int, end: int, /) -> None: ...


class HasRoom(Protocol[R_contra]):
    """Return whether there is room for the results of so many rays in packets."""

    def __call__(self, recorder: R_contra, rays: int, /) -> bool: ...


class IntersectBox(Hashable, Protocol):
    """Vector code: return new stops and results of sixteen rays at a box that one of them may hit."""

    def __call__(self, b: Builder, at: PacketAtBox, /) -> tuple[Lanes, Lanes]: ...


class StoreRays(Hashable, Protocol):
    """Vector code: store the rays of a packet in float64, for its hits."""

    def __call__(
        self, b: Builder, recorder: Fields, workspace: Fields, given: Float64Rays, packet: Scalar, /
    ) -> None: ...


class Resolve(Protocol[R_contra]):
    """Decide primitive i exactly and record it; return the time after which no hit matters, NaN: none."""

    def __call__(self, recorder: R_contra, rows: Rows, ray: AnyRay, i: int, /) -> float: ...


class Start(Protocol[R]):
    """Return the state of ray k, which has hit nothing yet."""

    def __call__(self, recorder: R, k: int, /) -> R: ...


class Finish(Protocol[R_contra]):
    """Write the result of ray k; return False if there was no room."""

    def __call__(self, recorder: R_contra, state: R_contra, job: Job, k: int, /) -> bool: ...


class BeginSegments(Protocol[R_contra, S_co]):
    """Return the state of ray k, which is in no cell yet."""

    def __call__(self, recorder: R_contra, k: int, /) -> S_co: ...


class RecordSegment(Protocol[R_contra, S]):
    """Record the stretch of a ray in a cell, t_enter <= t_exit; return the new state."""

    def __call__(
        self, recorder: R_contra, state: S, ray: Ray, cell: int, t_enter: float, t_exit: float, /
    ) -> S: ...


class EndSegments(Protocol[R_contra, S_contra]):
    """Write the result of ray k; return False if there was no room."""

    def __call__(self, recorder: R_contra, state: S_contra, k: int, /) -> bool: ...


class RecordRay(Protocol[R_contra, S]):
    """Record all stretches of a ray, in order; return the new state."""

    def __call__(self, recorder: R_contra, state: S, ray: Ray, stretches: Stretches, /) -> S: ...


class PrefetchCell(Protocol[R_contra]):
    """Prefetch what `record_segment` reads and writes of a cell."""

    def __call__(self, recorder: R_contra, cell: int, /) -> None: ...


@device
def add_pair(_recorder: Recorder, workspace: Workspace, count: int, ray: int, primitive: int) -> int:
    """Add a ray and a primitive to the candidates; return how many there are now."""
    workspace.pairs.ray[count], workspace.pairs.item[count] = ray, primitive
    return count + 1


@device
def record_none(_recorder: Recorder, _job: Job, _workspace: Workspace, _slot: LeafSlot, _ray: int) -> bool:
    """Record no certain hit: every box is a candidate."""
    return False


@device
def always_room(_recorder: Recorder, _rays: int) -> bool:
    """Return that there is room for the results of any number of rays."""
    return True


@device
def start_with_all(recorder: R, _k: int) -> R:
    """Return the recorder, which is of one ray alone."""
    return recorder


@device
def always_finished(_recorder: Recorder, _state: Recorder, _job: Job, _k: int) -> bool:
    """Return that there was room for a ray's result, which is written already."""
    return True


@device
def prefetch_none(_recorder: Recorder, _item: int) -> None:
    """Prefetch nothing."""


@inlined
def record_each(recorder: Recorder, state: S, ray: Ray, stretches: Stretches) -> S:
    """Record stretches one by one."""
    for s in range(stretches.cell_count):
        begin, end = time_of(get(stretches.keys, s)), time_of(get(stretches.keys, s + 1))
        state = record_segment(recorder, state, ray, get(stretches.cells, s), begin, end)
    return state


class StreamHooks(NamedTuple, Generic[R]):
    """A query in the stream traversal, which tests a list of rays against each node."""

    recorder: type[R]
    record: Record[R]
    write_results: WriteResults[R]
    add_candidate: AddCandidate[R] = add_pair
    intersect_lists: IntersectLists[R] = intersect_all
    """made by `record_hits` for a query that records boxes which sixteen rays hit for certain"""
    record_certain: RecordCertain[R] = record_none
    """the same for one ray"""
    ends_rays: Flag[R] = yes
    """whether rays may end before they have hit everything: then the order of nodes matters"""
    longest_first: Flag[R] = no
    """whether nodes in which rays stay longest come first, not the nearest"""
    defers_float64: Flag[R] = no
    """whether so few boxes are candidates that float64 copies of their rays are made on demand"""
    has_unwritten: Flag[R] = no
    """whether a group was traversed whose results had no room"""


class PacketHooks(NamedTuple, Generic[R]):
    """A query in the packet traversal: sixteen neighbouring rays tested as one."""

    recorder: type[R]
    intersect_box: IntersectBox
    write_packets: WritePackets[R]
    write_misses: WriteMisses[R]
    has_room: HasRoom[R] = always_room
    prefetches_boxes: Flag[R] = no
    """whether boxes that packets are tested against are read soon after"""
    store_rays: StoreRays | None = None


class ExactHooks(NamedTuple, Generic[R]):
    """A query in the single-ray traversal, which decides each primitive exactly as it comes."""

    recorder: type[R]
    resolve: Resolve[R]
    start: Start[R] = start_with_all
    finish: Finish[R] = always_finished
    takes_turns: Flag[R] = no
    """whether rays may take turns: results are written by `resolve`, and `start` may be called again"""
    first_only: Flag[R] = no
    """whether no hit after the first contact matters; such rays may take turns, too"""


class SegmentHooks(NamedTuple, Generic[R, S]):
    """A query in the partition of rays by a grid: the state of a ray is returned, and stays in registers."""

    recorder: type[R]
    begin_segments: BeginSegments[R, S]
    record_segment: RecordSegment[R, S]
    end_segments: EndSegments[R, S]
    record_ray: RecordRay[R, S] = record_each
    prefetch_cell: PrefetchCell[R] = prefetch_none
    has_exact_times: Flag[R] = no
    """whether times are rounded once; otherwise each is off by less than 2^-50 of itself"""


Hooks = StreamHooks[Any] | PacketHooks[Any] | ExactHooks[Any] | SegmentHooks[Any, Any]
STREAM: dict[type, StreamHooks[Any] | SimpleNamespace] = {}  # the latter: of packets
PACKET: dict[type, PacketHooks[Any]] = {}
EXACT: dict[type, ExactHooks[Any]] = {}
SEGMENTS: dict[type, SegmentHooks[Any, Any]] = {}
"""The hooks of every recorder class."""


def register(*hooks: Hooks) -> None:
    """Let the traversals call the hooks of a query."""
    for one in hooks:
        match one:
            case StreamHooks():
                STREAM[one.recorder] = one
            case PacketHooks():
                PACKET[one.recorder] = one
            case ExactHooks():
                EXACT[one.recorder] = one
            case SegmentHooks():
                SEGMENTS[one.recorder] = one


_STREAM = cast("StreamHooks[Recorder]", Namesakes(STREAM))
record = _STREAM.record
write_results = _STREAM.write_results
add_candidate = _STREAM.add_candidate
intersect_lists = _STREAM.intersect_lists
record_certain = _STREAM.record_certain
ends_rays = _STREAM.ends_rays
longest_first = _STREAM.longest_first
defers_float64 = _STREAM.defers_float64
has_unwritten = _STREAM.has_unwritten

_PACKET = cast("PacketHooks[Recorder]", Namesakes(PACKET))
write_packets = _PACKET.write_packets
write_misses = _PACKET.write_misses
has_room = _PACKET.has_room
prefetches_boxes = _PACKET.prefetches_boxes

_EXACT = cast("ExactHooks[Recorder]", Namesakes(EXACT))
resolve = _EXACT.resolve
start = _EXACT.start
finish = _EXACT.finish
takes_turns = _EXACT.takes_turns
first_only = _EXACT.first_only

_SEGMENTS = cast("SegmentHooks[Recorder, Any]", Namesakes(SEGMENTS))
begin_segments = _SEGMENTS.begin_segments
record_segment = _SEGMENTS.record_segment
end_segments = _SEGMENTS.end_segments
record_ray = _SEGMENTS.record_ray
prefetch_cell = _SEGMENTS.prefetch_cell
has_exact_times = _SEGMENTS.has_exact_times
