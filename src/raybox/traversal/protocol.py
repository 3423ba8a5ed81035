"""What a query supplies to the traversals: hooks, chosen at compile time by the class of its recorder.

A *recorder* is the state of a query in compiled code: a NamedTuple of arrays. The traversals call the
functions at the end of this module with a recorder first; compiled code calls the hook of the same name and
type that was registered for the recorder's class. Numba picks hooks by type, so a hook costs nothing, and a
query that does not need one leaves it at its default.

The state of one ray in a group is a row of `Workspace.state`: its `RESULT` begins as `MISS_INDEX` and means
what the query makes of it; `UNDECIDED_INDEX` leaves the ray to the exact fallback.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, cast

from raybox.compiler.decorators import Namesakes, device, inlined, no, yes
from raybox.compiler.intrinsics import Fields
from raybox.compiler.simd import Builder, Lanes, Scalar
from raybox.geometry import PrimitiveRows
from raybox.primitives.box_simd import Float64Rays
from raybox.primitives.instance_ray import AnyRay
from raybox.primitives.ray import Ray
from raybox.primitives.triangle_decision import RecordTriangle
from raybox.traversal.certain_hits import CertainHits, IntersectLists, ScanNodes, record_hits
from raybox.traversal.job import Job, Recorder
from raybox.traversal.packet_box import PacketAtBox
from raybox.traversal.slot_triangles import AtSlots, slot_triangles, triangle_lists
from raybox.traversal.time_keys import Stretches, get, time_of
from raybox.traversal.workspace import (
    LeafSlot,
    Order,
    PacketGroup,
    PacketRecorder,
    Span,
    Workspace,
)

R = TypeVar("R", bound=Recorder)
S = TypeVar("S")  # the state of a ray that is cut into segments
W = TypeVar("W")  # its way through the grid: `raybox.traversal.plane_slabs.Way`

Flag: TypeAlias = Callable[[R], bool]  # of most, `yes` or `no`
IntersectBox: TypeAlias = Callable[[Builder, PacketAtBox], tuple[Lanes, Lanes]]
StoreRays: TypeAlias = Callable[[Builder, Fields, Fields, Float64Rays, Scalar], None]


@device
def add_pair(_recorder: Recorder, workspace: Workspace, count: int, ray: int, primitive: int) -> int:
    """Add a ray and a primitive to the candidates; return how many there are now."""
    workspace.pairs.ray[count], workspace.pairs.item[count] = ray, primitive
    return count + 1


@device
def start_with_all(recorder: R, _k: int) -> R:
    """Return the recorder, which is of one ray alone."""
    return recorder


@device
def prefetch_none(_recorder: Recorder, _item: int) -> None:
    """Prefetch nothing."""


@device
def record_no_number(_recorder: Recorder, _k: int, _count: int) -> None:
    """Do nothing."""


@device
def has_room_for_all(
    _recorder: Recorder, _packets: PacketRecorder, _job: Job, _workspace: Workspace, _number: int
) -> None:
    """Do nothing."""


@inlined
def record_each(recorder: Recorder, state: S, ray: Ray, stretches: Stretches) -> S:
    """Record stretches one by one."""
    for s in range(stretches.cell_count):
        begin, end = time_of(get(stretches.keys, s)), time_of(get(stretches.keys, s + 1))
        state = record_segment(recorder, state, ray, get(stretches.cells, s), begin, end)
    return state


@device
def record_nothing(_recorder: Recorder, state: S, _way: W) -> tuple[bool, S]:
    """Record nothing."""
    return False, state


class StreamHooks(NamedTuple, Generic[R]):
    """A query in the stream traversal, which tests a list of rays against each node."""

    recorder: type[R]
    record: Callable[[R, Job, Workspace, int], None]
    """Record so many candidates of a workspace, which were resolved; never guess: see `mark_undecided`."""
    write_results: Callable[[R, Job, Order, Workspace, Span], bool]
    """Write the results of a group, a span of the order; list its undecided rays; return whether all fit."""
    add_candidate: Callable[[R, Workspace, int, int, int], int] = add_pair
    """Add (ray, primitive) to so many candidates (count, ray, primitive); return how many there are now."""
    certain_hits: Callable[..., CertainHits] = CertainHits
    """what records boxes that rays hit for certain, sixteen rays at a time; by default, nothing does"""
    record_triangle: RecordTriangle | None = None
    """Vector code: return the new state of rays at a triangle; None: float64 decides, without packets."""
    record_certain: Callable[[R, Job, Workspace, LeafSlot, int], bool] = no
    """Record that a ray hits the box in a slot for certain; return whether that is all: else a candidate."""
    ends_rays: Flag[R] = yes
    """whether rays may end before they have hit everything: then the order of nodes matters"""
    ends_at_hit: Flag[R] = no
    """whether any hit ends a ray: nodes in which rays stay longest then come first, not the nearest"""
    defers_float64: Flag[R] = no
    """whether so few boxes are candidates that float64 copies of their rays are made on demand"""
    has_unwritten: Flag[R] = no
    """whether a group was traversed whose results had no room"""

    @property
    def intersect_lists(self) -> IntersectLists:
        """See `RecordHits`."""
        return record_hits(self.certain_hits, triangle_lists(self.record_triangle)).intersect_lists

    @property
    def scan_nodes(self) -> ScanNodes:
        """Likewise."""
        return record_hits(self.certain_hits, triangle_lists(self.record_triangle)).scan_nodes

    @property
    def intersect_triangles(self) -> AtSlots:
        """Likewise, of a single ray."""
        return slot_triangles(self.record_triangle)


class PacketHooks(NamedTuple, Generic[R]):
    """A query in the packet traversal: sixteen neighbouring rays tested as one."""

    recorder: type[R]
    intersect_box: IntersectBox
    """Vector code: return new stops and results of sixteen rays at a box that one of them may hit."""
    write_packets: Callable[[R, PacketRecorder, Job, Order, Workspace, PacketGroup], None]
    """Write the results of packets: at least of the rays that hit something."""
    write_misses: Callable[[R, int, int], None]
    """Write that the rays begin <= k < end hit nothing; their hits are written over it later."""
    has_room: Callable[[R, int], bool] = yes
    """Return whether there is room for the results of so many rays in packets."""
    make_room: Callable[[R, PacketRecorder, Job, Workspace, int], None] = has_room_for_all
    """Make room for what `intersect_box` stores of so many packets with a box."""
    ties_by_index: bool = False
    """whether the result is the first hit, by index among those at one time"""
    store_rays: StoreRays | None = None
    """Vector code: store the rays of a packet in float64, for its hits."""


class ExactHooks(NamedTuple, Generic[R]):
    """A query in the single-ray traversal, which decides each primitive exactly as it comes."""

    recorder: type[R]
    resolve: Callable[[R, PrimitiveRows, AnyRay, int], float]
    """Decide primitive i exactly and record it; return the time after which no hit matters, NaN: none."""
    start: Callable[[R, int], R] = start_with_all
    """Return the state of ray k, which has hit nothing yet."""
    finish: Callable[[R, R, Job, int], bool] = yes
    """Write the result of ray k (recorder, state, job, k); return False if there was no room.

    By default `resolve` has written it.
    """
    takes_turns: Flag[R] = no
    """whether rays may take turns: results are written by `resolve`, and `start` may be called again"""
    first_only: Flag[R] = no
    """whether no hit after the first contact matters; such rays may take turns, too"""
    number_only: Flag[R] = no
    """whether it only matters how many primitives a ray hits; likewise"""
    record_number: Callable[[R, int, int], None] = record_no_number
    """Record that ray k hits so many primitives, and no others."""


class SegmentHooks(NamedTuple, Generic[R, S, W]):
    """A query in the partition of rays by a grid: the state of a ray is returned, and stays in registers."""

    recorder: type[R]
    begin_segments: Callable[[R, int], S]
    """Return the state of ray k, which is in no cell yet."""
    record_segment: Callable[[R, S, Ray, int, float, float], S]
    """Record the stretch of a ray in a cell (cell, t_enter <= t_exit); return the new state."""
    end_segments: Callable[[R, S, int], bool]
    """Write the result of ray k; return False if there was no room."""
    record_ray: Callable[[R, S, Ray, Stretches], S] = record_each
    """Record all stretches of a ray, in order; return the new state."""
    record_way: Callable[[R, S, W], tuple[bool, S]] = record_nothing
    """Record all stretches of a ray in any order, if their times are certain.

    Return whether they are, and the new state.
    """
    prefetch_cell: Callable[[R, int], None] = prefetch_none
    """Prefetch what `record_segment` reads and writes of a cell."""
    has_exact_times: Flag[R] = no
    """whether times are rounded once; otherwise each is off by less than 2^-50 of itself"""


Hooks = StreamHooks[Any] | PacketHooks[Any] | ExactHooks[Any] | SegmentHooks[Any, Any, Any]
STREAM: dict[type, StreamHooks[Any] | SimpleNamespace] = {}  # the latter: of packets
PACKET: dict[type, PacketHooks[Any]] = {}
EXACT: dict[type, ExactHooks[Any]] = {}
SEGMENTS: dict[type, SegmentHooks[Any, Any, Any]] = {}
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
intersect_triangles = _STREAM.intersect_triangles
scan_nodes = _STREAM.scan_nodes
record_certain = _STREAM.record_certain
ends_rays = _STREAM.ends_rays
ends_at_hit = _STREAM.ends_at_hit
defers_float64 = _STREAM.defers_float64
has_unwritten = _STREAM.has_unwritten

_PACKET = cast("PacketHooks[Recorder]", Namesakes(PACKET))
write_packets = _PACKET.write_packets
write_misses = _PACKET.write_misses
has_room = _PACKET.has_room
make_room = _PACKET.make_room

_EXACT = cast("ExactHooks[Recorder]", Namesakes(EXACT))
resolve = _EXACT.resolve
start = _EXACT.start
finish = _EXACT.finish
takes_turns = _EXACT.takes_turns
first_only = _EXACT.first_only
number_only = _EXACT.number_only
record_number = _EXACT.record_number

_SEGMENTS = cast("SegmentHooks[Recorder, Any, Any]", Namesakes(SEGMENTS))
begin_segments = _SEGMENTS.begin_segments
record_segment = _SEGMENTS.record_segment
end_segments = _SEGMENTS.end_segments
record_ray = _SEGMENTS.record_ray
record_way = _SEGMENTS.record_way
prefetch_cell = _SEGMENTS.prefetch_cell
has_exact_times = _SEGMENTS.has_exact_times
