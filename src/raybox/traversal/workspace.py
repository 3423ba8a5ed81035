"""The memory of a traversal with many rays, made once and used again.

`Order` is the order of a batch's rays and lists those that are undecided. `PacketRecorder` has the packets of
a group, sixteen rays each that stay together. `Workspace` has all else.
"""

from typing import NamedTuple

import numpy as np

from raybox.bvh.node import MAX_DEPTH, MAX_STARTS, STACK, WIDTH
from raybox.compiler import huge_pages
from raybox.compiler.decorators import accessor, device, inlined
from raybox.compiler.struct_ref import struct
from raybox.primitives.box_simd import Pairs, make_pairs
from raybox.primitives.triangle_slots import WAY_WORDS
from raybox.traversal.job import Recorder
from raybox.traversal.packet_tiles import Tile, ray_of
from raybox.traversal.ray_keys import MISS_KEY
from raybox.traversal.ray_setup import LANES, NUMBERS, PACKED_WORDS, STATE_WORDS
from raybox.validation import Floats, Floats32, Ints, Ints32

MOST_PAIRS = LANES * (MAX_STARTS * WIDTH + 1)  # of rays that are tested together with a span of nodes
_NEXT, _UNDECIDED = 0, 1  # in `Order.place`
_NO_PLACE = np.empty(0, np.int64)
_LIST_TESTS, SINGLE_TESTS, _CANDIDATES, _NODE_TESTS = range(4)  # in `Workspace.work`


@struct
class Order(NamedTuple):
    """Rays from a base on by key: that of ray base + order[k] has starts[key] <= k < starts[key + 1]."""

    keys: Ints32  # (rays + 16,): of those that may hit anything, as threads list them
    numbers: Ints32  # (rays + 16,): which rays these are, from the base on
    rows: Floats  # (rays + 16, 8): their origins, directions, t_min and t_max
    order: Ints32  # (rays + 16,)
    where: Ints32  # (rays + 16,): in which row ray base + order[k] is
    starts: Ints  # (MISS_KEY + 1,); none for few rays, which are in no order
    undecided: Ints32  # numbers from the base of undecided rays; room for all rays
    place: Ints  # (2,): see `next_ray` and `undecided_count`


class Span(NamedTuple):
    """Rays base + k, or base + order[k], for begin <= k < end."""

    base: int
    begin: int
    end: int


class SetupSpan(NamedTuple):
    """The rays begin <= k < end of an order, and whether float64 copies are left to `load_float64`."""

    begin: int
    end: int
    deferred: bool


class PendingList(NamedTuple):
    """A node that waits on the stack with its list of rays, and from where on memory is free."""

    node: int
    begin: int
    end: int
    free: int


class WorkCounts(NamedTuple):
    """What a traversal has tested so far."""

    list_tests: int  # of a ray in a list
    single_tests: int  # of a ray alone
    candidates: int  # that were resolved
    node_tests: int  # with lists


class ListSpan(NamedTuple):
    """A list of rays in `Workspace.lists`."""

    begin: int
    end: int


class NodeSpan(NamedTuple):
    """Nodes of boxes alone, in a row, and from where on in `Workspace.lists` there is room for pairs.

    Rays of pairs come first; their boxes begin `MOST_PAIRS` behind.
    """

    first: int
    count: int  # type: ignore[assignment]  # not the method of tuples
    pairs: int


class NodeSlots(NamedTuple):
    """The slots of a node for rays that run into an octant: a bit for each box, and for each inner node."""

    row: int
    octant: int
    boxes: int
    inner: int


class LeafSlots(NamedTuple):
    """Boxes among the slots of a node: bits for those that a ray may hit, and hits for certain."""

    node: int
    octant: int
    possible: int
    certain: int


class LeafSlot(NamedTuple):
    """The slot of a box, for rays that run into an octant."""

    node: int
    octant: int
    slot: int


class PacketGroup(NamedTuple):
    """Packets that are traversed together: tiles of one stride (`raybox.traversal.packet_tiles`)."""

    base: int  # the first ray of the batch
    count: int  # type: ignore[assignment]  # not the method of tuples
    stride: int


@inlined
def packet_ray(packets: "PacketRecorder", group: PacketGroup, p: int, lane: int) -> int:
    """Return the number of a packet's ray, from the base on."""
    return ray_of(Tile(packets.first[p], group.stride), lane)


@accessor
def next_ray(order: Order) -> int:
    """Return where in the order the next group begins."""
    return int(order.place[_NEXT])


@accessor
def set_next_ray(order: Order, k: int) -> None:
    """Note where in the order the next group begins."""
    order.place[_NEXT] = k


@accessor
def undecided_count(order: Order) -> int:
    """Return how many rays are listed as undecided."""
    return int(order.place[_UNDECIDED])


@accessor
def clear_undecided(order: Order) -> None:
    """Empty the list of undecided rays."""
    order.place[_UNDECIDED] = 0


@device
def list_undecided(order: Order, k: int) -> None:
    """List a ray for the exact fallback."""
    order.undecided[order.place[_UNDECIDED]] = k
    order.place[_UNDECIDED] += 1


MAX_PACKET_HITS = 64  # of a ray in a packet; rays with more are left to streams
MAX_UNDECIDED = 4  # boxes that a ray may keep undecided until its packet has been everywhere
RESULTS, UNDECIDED_BOXES = 8, 9  # columns past those of packed rays: results; how many boxes, less one
ENTRY, PLANE = 10, 11  # by which axis and plane rays enter the box of their results (`box_entry`)
COLUMNS = 12
DEFERRED = -3  # the result of rays that are left to streams
NO_OCTANT, UNFIT = 8, 9  # in place of an octant: no ray hits anything; these rays are no packet


class PacketMemory(NamedTuple):
    """The memory of a `PacketRecorder`."""

    words: Floats32
    state: Ints32
    first: Ints32
    octant: Ints32
    item: Ints32
    ways: Floats32
    undecided: Ints32


@struct
class PacketRecorder(NamedTuple):
    """The recorder of a query, and the rays of packets; see `raybox.traversal.packet`."""

    inner: Recorder  # the recorder of the query
    words: Floats32  # (packets, COLUMNS, 16): packed rays, results and entries, column by column
    state: Ints32  # the same memory as int32
    first: Ints32  # (packets,): the first ray of each, from the base of the span
    octant: Ints32  # (packets,)
    item: Ints32  # (packets * 16 * MAX_PACKET_HITS + 16,): boxes of each ray: hit, or undecided
    ways: Floats32  # (packets + 16, 8, 16): rays at triangles, column by column
    undecided: Ints32  # (packets,): 1 where a ray keeps an undecided box


PENDING, PENDING_WORDS = MAX_DEPTH * WIDTH, 4
SLAB_WORDS = 16
_ROOM = 64  # lists of all rays that `lists` has room for; a traversal that needs more goes on ray by ray


@struct
class Workspace(NamedTuple):
    """The rays of a group, their state, the candidates, and the stack of a traversal."""

    packed_rays: Floats32  # (rays + 16, 8): see `raybox.traversal.ray_setup`
    state: Ints32  # (rays + 16, 2): RESULT and TIMED
    rays64: Floats  # (rays + 16, 8): origin, direction, t_min and t_max, or made on demand
    bounds: Floats  # (rays + 16, 2): of the time of each ray's result, where a query has one
    power: Ints32  # (rays + 16,): the times of a packed ray are t * 2^power - shift
    shift: Floats32  # (rays + 16,)
    pairs: Pairs  # candidates
    lists: Ints32  # lists of rays
    times: Floats32  # when each ray of a list enters the slot that the list is for
    starts: Ints  # (8,): where each slot's list begins
    lengths: Ints  # (8,): and how long it is
    pending: Ints  # (PENDING, PENDING_WORDS): the stack: a `PendingList` a row
    node: Ints32  # (STACK,): the stack of a single ray
    time: Floats32  # (STACK,)
    slots: Floats32  # (8,): of a node's slots: entry times, or which come first
    work: Ints  # (4,): `WorkCounts`
    first_ray: Ints  # (1,): where in the order the group begins
    waiting_count: Ints  # (1,): how many candidates wait to be resolved
    single: Floats32  # (16,): slab coefficients of a single ray
    packet_slabs: Floats32  # (packets + 16, 16): slab coefficients of packets
    rows: Floats  # those of an `Order`: ray r is in rows[where[first_ray[0] + r]]
    where: Ints32
    excluded: Ints  # (rays + 16,): what each ray does not hit, if there is any such ray
    excludes: Ints  # (1,): whether there is
    ways: Floats32  # (rays + 16, 8): rays at triangles: see `raybox.primitives.triangle_slots`


@inlined
def pending_list(workspace: Workspace, place: int) -> PendingList:
    """Return a node of the stack."""
    pending = workspace.pending
    return PendingList(pending[place, 0], pending[place, 1], pending[place, 2], pending[place, 3])


@inlined
def put_pending(workspace: Workspace, place: int, waiting: PendingList) -> None:
    """Store a node on the stack."""
    pending = workspace.pending
    pending[place, 0], pending[place, 1] = waiting.node, waiting.begin
    pending[place, 2], pending[place, 3] = waiting.end, waiting.free


@accessor
def work_counts(workspace: Workspace) -> WorkCounts:
    """Return what was tested so far."""
    work = workspace.work
    return WorkCounts(work[_LIST_TESTS], work[SINGLE_TESTS], work[_CANDIDATES], work[_NODE_TESTS])


@accessor
def count_list_test(workspace: Workspace, rays: int) -> None:
    """Count the test of a node with a list of rays."""
    workspace.work[_LIST_TESTS] += rays
    workspace.work[_NODE_TESTS] += 1


@accessor
def count_candidates(workspace: Workspace, count: int) -> None:
    """Count candidates that are resolved."""
    workspace.work[_CANDIDATES] += count


def make_order(rays: int) -> Order:
    """Make the memory for sorting so many rays, but for that of a thread's place."""
    keys, numbers, places, where, undecided = (huge_pages.empty((rays + LANES,), np.int32) for _ in range(5))
    rows = huge_pages.empty((rays + LANES, NUMBERS), np.float64)
    return Order(keys, numbers, rows, places, where, np.empty(MISS_KEY + 1, np.int64), undecided, _NO_PLACE)


def room_for(rays: int) -> int:
    """Return for how many numbers of so many rays there is room in lists."""
    return _ROOM * (rays + LANES)


def make_workspace(rays: int, room: int | None = None) -> Workspace:
    """Make the memory for groups of up to so many rays, with room for so many numbers in lists."""
    room = room_for(rays) if room is None else room
    counters = huge_pages.zeros((7,), np.int64)  # in one cache line
    return Workspace(
        huge_pages.empty((rays + LANES, PACKED_WORDS), np.float32),
        huge_pages.empty((rays + LANES, STATE_WORDS), np.int32),
        huge_pages.empty((rays + LANES, 8), np.float64),
        huge_pages.empty((rays + LANES, 2), np.float64),
        huge_pages.empty((rays + LANES,), np.int32),
        huge_pages.empty((rays + LANES,), np.float32),
        make_pairs((WIDTH + 1) * rays),
        huge_pages.empty((room,), np.int32),
        huge_pages.empty((room,), np.float32),
        huge_pages.empty((WIDTH,), np.int64),
        huge_pages.empty((WIDTH,), np.int64),
        huge_pages.empty((PENDING, PENDING_WORDS), np.int64),
        huge_pages.empty((STACK,), np.int32),
        huge_pages.empty((STACK,), np.float32),
        huge_pages.empty((WIDTH,), np.float32),
        *(counters[:4], counters[4:5], counters[5:6]),
        huge_pages.empty((SLAB_WORDS,), np.float32),
        np.empty((0, SLAB_WORDS), np.float32),
        np.empty((0, 8)),
        np.empty(0, np.int32),
        huge_pages.empty((rays + LANES,), np.int64),
        counters[6:],
        huge_pages.empty((rays + LANES, WAY_WORDS), np.float32),
    )
