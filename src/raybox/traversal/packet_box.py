"""A packet at a box: what vector code of a query decides there, for sixteen rays at once."""

from typing import NamedTuple, Protocol

from raybox.compiler.intrinsics import Fields
from raybox.compiler.simd import I32, I64, Builder, Lanes, Scalar, constant, lesser, splat, steps
from raybox.compiler.simd_arrays import Register
from raybox.traversal.box_entry import BoxEntry, BoxTimes, entry_of, planes_of
from raybox.traversal.node_test import is_certain, undecided
from raybox.traversal.ray_setup import LANES
from raybox.traversal.workspace import COLUMNS, MAX_PACKET_HITS, MAX_UNDECIDED, UNDECIDED_BOXES

BLOCK = COLUMNS * LANES  # words of a packet


class PacketAtBox(NamedTuple):
    """Sixteen rays at a box that one of them may hit."""

    near: Lanes
    far: Lanes
    slabs: list[tuple[Lanes, Lanes]]  # when the rays enter and leave those of each axis
    planes: list[Lanes]  # near ones, axis by axis
    margin: Lanes
    stop: Lanes
    result: Lanes  # of each ray, so far
    item: Scalar  # the box
    octant: Scalar  # that the rays run into
    rows: Fields  # of the job
    packets: Fields  # of the `PacketRecorder`
    workspace: Fields
    packet: Scalar

    def add_to_lists(self, b: Builder, some: Lanes, last: Lanes) -> None:
        """Add the box to the lists of some of the rays, as number `last` of each."""
        add_to_lists(b, self, some, last)


class PacketAtPrimitive(Protocol):
    """A packet at a primitive."""

    @property
    def packets(self) -> Fields:
        """The `PacketRecorder`."""
        ...

    @property
    def packet(self) -> Scalar:
        """Which packet."""
        ...

    @property
    def item(self) -> Scalar:
        """The primitive."""
        ...


def add_to_lists(b: Builder, at: PacketAtPrimitive, some: Lanes, last: Lanes) -> None:
    """Add a primitive to the lists of some of the rays, as number `last` of each."""
    ray = steps(b, b.mul(at.packet, I64(LANES)), LANES)
    places = ray * MAX_PACKET_HITS + last.to(I64)
    at.packets.item.scatter(splat(b, at.item, LANES), some, places)


def add_undecided(b: Builder, at: PacketAtPrimitive, undecided: Lanes) -> Lanes:
    """Keep a box undecided for some of the rays; return those that keep enough already."""
    left = Register(b, constant(b, I32, LANES, 0).value)
    with b.if_then(undecided.any()):
        place = b.add(b.mul(at.packet, I64(BLOCK)), I64(LANES * UNDECIDED_BOXES))
        last = at.packets.state.load(place, LANES)
        some = undecided & (last < MAX_UNDECIDED - 1)
        last = last + some.to(I32)
        add_to_lists(b, at, some, last)
        at.packets.state.store(last, place)
        at.packets.undecided.put(I32(1), at.packet)
        left.value = (undecided & ~some).to(I32).value
    return left.lanes > 0


def entry_at(b: Builder, at: PacketAtBox) -> BoxEntry:
    """Return how the rays of a packet enter the box."""
    return entry_of(b, BoxTimes(at.slabs, at.margin, planes_of(b, at.octant, at.margin.count)))


def certain_hits(b: Builder, at: PacketAtBox) -> Lanes:
    """Return which rays of a packet hit the box for certain."""
    certain = Register(b, is_certain(at.near, at.far, at.margin * 2.0).value)
    with b.if_then(undecided(at.near, at.far, certain.lanes).any()):
        entry = entry_at(b, at)
        certain.value = (certain.lanes | (entry.room <= lesser(entry.far, at.stop))).value
    return certain.lanes
