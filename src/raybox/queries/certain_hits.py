"""Boxes that rays meet for sure: what becomes of them at once, by question.

Nothing of these boxes is looked up but their slot. ``sift(sink, job, desk, node, span)`` tests the rays of
a list against a node's slots, and deals with sure boxes on the way, sixteen rays at a time.
``take(sink, job, desk, spot, r)`` does so for one ray and the box in one slot (spot: node, octant, slot), and
tells whether that was all there was to do. What is left goes to `raybox.queries.recorders`.

For the nearest box a sure one counts where it is surely before any other so far: its reach is the ray's
new stop, and the next must reach no farther than that with the same room to spare.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numba import types

from raybox.bvh.node import CHILD, ROW
from raybox.compiler.decorators import device, dispatch
from raybox.compiler.intrinsics import vector_code
from raybox.compiler.simd import F32, F64, I32, I64, Lanes, constant, splat
from raybox.compiler.simd_loops import Register, bits
from raybox.primitives.table import fills
from raybox.queries.recorders import CollectOf, CountOf, FirstOf, NearestOf, OccludedOf, PacketsOf
from raybox.traversal.entry_plane import entered_by, plane_entered
from raybox.traversal.node_test import GROWTH, Slots, Together, reach, sift_with, surely, unsure
from raybox.traversal.ray_setup import ANSWER, LANES, MISS, NOTES, PASSES, PROBE, STOP, TIMED
from raybox.traversal.slab_coefficients import MARGIN


class Hand:
    """All boxes go to their lists."""

    timed = True  # whether lists say when rays enter slots: not where that prunes nothing (saves 1 to 7 %)
    takes = False  # whether it takes most boxes: a branch past the lists then saves 5 to 9 % (of `count`)

    def __init__(self, b: Any, sink: Any, desk: Any, rays: Together, slots: Slots) -> None:
        self.b, self.sink, self.desk, self.rays, self.slots = b, sink, desk, rays, slots

    def take(self, _slot: Any, near: Lanes, far: Lanes) -> Lanes:
        """Deal with the rays that meet a box for sure; return the others that may meet it."""
        return near <= far

    def finish(self) -> None:
        """Write down what became of the rays."""

    def ray(self, lane: Any) -> Any:
        """Return the number of one of the rays."""
        return self.b.sext(self.desk.arena.get(self.b.add(self.rays.begin, lane)), I64)

    def write(self, ray: Any, answer: Any, stop: Any) -> None:
        """Write down a ray's answer so far, and where it now stops."""
        self.desk.answers.put(answer, self.note(ray, ANSWER))
        self.desk.probes.put(stop, self.b.add(self.b.mul(ray, I64(PROBE)), I64(STOP)))

    def note(self, ray: Any, kind: int) -> Any:
        """Return where a note of a ray is: ANSWER or TIMED."""
        return self.b.add(self.b.mul(ray, I64(NOTES)), I64(kind))


class Nearest(Hand):
    """A sure box before all others is the answer so far."""

    takes = True

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self.slot = Register(self.b, constant(self.b, I32, self.rays.count, MISS).value)

    def take(self, slot: Any, near: Lanes, far: Lanes) -> Lanes:
        """Deal with the rays for which the box is surely before all others so far."""
        margin = self.rays.margin
        stop = reach(near, margin)
        sure = surely(stop, far, margin)
        self.rays.stop.value = sure.choose(stop, self.rays.stop.lanes).value
        self.put(slot, sure)
        return unsure(near, far, sure)

    def put(self, slot: Any, sure: Lanes) -> None:
        """Remember the slot of those rays for which it counts."""
        number = splat(self.b, self.b.trunc(slot, I32), self.rays.count)
        self.slot.value = sure.choose(number, self.slot.lanes).value

    def finish(self) -> None:
        """Write down the answers so far, by which planes they are entered, and where the rays now stop."""
        numbers, stops = self.slot.value, self.rays.stop.value
        with bits(self.b, (self.slot.lanes > MISS).mask()) as lane:
            ray = self.ray(lane)
            slot = self.b.zext(self.b.extract_element(numbers, lane), I64)
            self.write(ray, self.slots.item(slot), self.b.extract_element(stops, lane))
            self.tell_plane(ray, slot)

    def tell_plane(self, ray: Any, slot: Any) -> None:
        """Write down by which plane a ray enters its box: about one ray in a box, so one by one."""
        planes = [self.slots.plane(2 * axis, slot, 1).lane(0) for axis in range(3)]
        plane = entered_by(self.b, self.desk.probes, ray, planes, self.slots.octant)
        self.desk.answers.put(plane, self.note(ray, TIMED))


class _Occluded(Hand):
    """A sure box ends a ray."""

    timed = False
    takes = True

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self.ended = Register(self.b, constant(self.b, I32, self.rays.count, 0).value)

    def take(self, _slot: Any, near: Lanes, far: Lanes) -> Lanes:
        sure = surely(near, far, self.rays.room)
        self.rays.stop.value = sure.choose(PASSES, self.rays.stop.lanes).value
        self.ended.value = sure.choose(1, self.ended.lanes).value
        return unsure(near, far, sure)

    def finish(self) -> None:
        with bits(self.b, (self.ended.lanes > 0).mask()) as lane:
            self.write(self.ray(lane), I32(1), F32(PASSES))


class _Count(Hand):
    """Sure boxes are counted."""

    timed = False
    takes = True

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self.number = Register(self.b, constant(self.b, I32, self.rays.count, 0).value)

    def take(self, _slot: Any, near: Lanes, far: Lanes) -> Lanes:
        sure = surely(near, far, self.rays.room)
        self.number.value = (self.number.lanes + sure.to(I32)).value
        return unsure(near, far, sure)

    def finish(self) -> None:
        number = self.number.value
        with bits(self.b, (self.number.lanes > 0).mask()) as lane:
            place, more = self.note(self.ray(lane), ANSWER), self.b.extract_element(number, lane)
            self.desk.answers.put(self.b.add(self.desk.answers.get(place), more), place)


class _Collect(Hand):
    """Sure boxes are contacts, but for those that may be met where the range begins: those tie."""

    timed = False
    takes = True

    def take(self, slot: Any, near: Lanes, far: Lanes) -> Lanes:
        b = self.b
        later = (near > self.rays.margin).choose(near, np.inf)
        sure = surely(later, far, self.rays.room)
        contacts = self.sink.contacts
        size = self.sink.size.get(0)
        after = b.add(size, b.ctpop(sure.mask()))
        with b.if_then(b.icmp_signed("<=", b.add(size, I64(LANES)), contacts.ray.size)):
            contacts.ray.squeeze(self.rays.rays, sure, size)
            contacts.item.store(splat(b, self.slots.item(slot), self.rays.count), size)
            contacts.high.store(constant(b, F64, self.rays.count, np.inf), size)
        self.sink.size.put(after, 0)
        return unsure(near, far, sure)


def sifting(hand: type[Hand]) -> Any:
    """Make the function that sifts with a hand."""

    @vector_code(types.void)
    def write(b: Any, sink: Any, job: Any, desk: Any, node: Any, span: Any) -> None:
        # who meets the box of something else is not sure of what is in it
        sifter = hand if hand is Hand or fills(job.rows) else Hand
        sift_with(partial(sifter, b, sink, desk), b, (sink, job.tree.nodes), desk, node, span)

    @device
    def sift(sink: Any, job: Any, desk: Any, node: Any, span: Any) -> None:
        write(sink, job, desk, node, span)

    return sift


@device
def _take_nearest(_sink: NearestOf, job: Any, desk: Any, spot: Any, r: int) -> bool:
    node, octant, slot = spot
    near, stop, margin = desk.slots[slot], desk.probes[r, STOP], desk.alone[MARGIN]
    late = near * np.float32(GROWTH) + margin
    if late * np.float32(GROWTH) + margin <= stop:
        desk.answers[r, ANSWER] = ~job.tree.nodes[node, CHILD + slot]
        desk.answers[r, TIMED] = plane_entered(job.tree.nodes, desk, (node * ROW, octant, slot), r)
        desk.probes[r, STOP] = late
        return True
    return near > stop


@device
def _take_occluded(_sink: OccludedOf, _job: Any, desk: Any, _spot: Any, r: int) -> bool:
    desk.answers[r, ANSWER] = 1
    desk.probes[r, STOP] = PASSES
    return True


@device
def _take_count(_sink: CountOf, _job: Any, desk: Any, _spot: Any, r: int) -> bool:
    desk.answers[r, ANSWER] += 1
    return True


@device
def _take_collect(sink: CollectOf, job: Any, desk: Any, spot: Any, r: int) -> bool:
    node, _, slot = spot
    if not desk.slots[slot] > desk.alone[MARGIN]:
        return False
    contacts, size = sink.contacts, sink.size[0]
    if size + LANES <= contacts.ray.size:
        contacts.ray[size], contacts.item[size] = r, ~job.tree.nodes[node, CHILD + slot]
        contacts.high[size] = np.inf
    sink.size[0] = size + 1
    return True


@device
def _take_none(_sink: Any, _job: Any, _desk: Any, _spot: Any, _r: int) -> bool:
    return False


_NOTHING = (sifting(Hand), _take_none)
TABLE = {
    NearestOf: (sifting(Nearest), _take_nearest),
    OccludedOf: (sifting(_Occluded), _take_occluded),
    CountOf: (sifting(_Count), _take_count),
    FirstOf: _NOTHING,
    PacketsOf: _NOTHING,
    CollectOf: (sifting(_Collect), _take_collect),
}


def sift(sink: Any, job: Any, desk: Any, node: Any, span: Any) -> None:
    """Write to the lists of a node's slots the rays of a list that may meet them, less what is sure."""
    raise NotImplementedError("compiled code only")


def take(sink: Any, job: Any, desk: Any, spot: Any, r: int) -> bool:
    """Deal with the box in a slot, which ray r meets for sure; tell whether that is all."""
    raise NotImplementedError("compiled code only")


dispatch(sift, lambda kind: TABLE[kind][0] if kind in TABLE else None)
dispatch(take, lambda kind: TABLE[kind][1] if kind in TABLE else None)
