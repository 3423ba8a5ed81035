"""Pairs of a ray and a box that it hits, listed while the tree is traversed: those of one group, in no order.

A recorder that lists them has `pairs`, with arrays of ray numbers and of boxes, and `pair_count`: how many
there are, also past the end of their memory. A group whose pairs had no room is traversed again with more
(`raybox.queries.batches.Recording.grow`).
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from raybox.bvh.node import CHILD
from raybox.compiler.decorators import declare, device
from raybox.compiler.simd import I64, Lanes, Scalar, splat
from raybox.primitives.box_simd import Pairs
from raybox.primitives.status import HIT, UNDECIDED
from raybox.traversal.certain_hits import CertainHits
from raybox.traversal.job import Job, Recorder
from raybox.traversal.node_test import is_certain, undecided
from raybox.traversal.ray_setup import LANES
from raybox.traversal.ray_state import mark_undecided
from raybox.traversal.workspace import LeafSlot, Workspace
from raybox.validation import Ints, Ints32


class HitPairs(NamedTuple):
    """Pairs without times; with room for 16 more."""

    ray: Ints32
    item: Ints32


def make_hit_pairs(number: int) -> HitPairs:
    """Return memory for so many pairs."""
    return HitPairs(*(np.empty(number + LANES, np.int32) for _ in range(2)))


def room_for(needed: int) -> int:
    """Return how many pairs the memory is made for when so many had no room."""
    return 2 * needed + LANES


@device
def _write_high(pairs: Pairs, place: int, high: float) -> None:
    pairs.high[place] = high


@device
def _write_nothing(_pairs: HitPairs, _place: int, _high: float) -> None:
    pass


_WRITERS: dict[type, object] = {Pairs: _write_high, HitPairs: _write_nothing}
write_bound: Callable[[Pairs | HitPairs, int, float], None] = declare("write_bound", _WRITERS.get)
"""(pairs, place, high): write the upper bound of a hit's first contact, if the pairs have such bounds."""


class PairRecorder(Recorder, Protocol):
    """A recorder that lists pairs."""

    @property
    def pairs(self) -> Pairs | HitPairs:
        """The pairs."""
        ...

    @property
    def pair_count(self) -> Ints:
        """(1,): how many there are."""
        ...


@device
def record(recorder: PairRecorder, _job: Job, workspace: Workspace, count: int) -> None:
    """Add the hits among resolved candidates to the pairs."""
    found, pairs = workspace.pairs, recorder.pairs
    size = recorder.pair_count[0]
    for p in range(count):
        if found.status[p] == UNDECIDED:
            mark_undecided(workspace, found.ray[p])
        elif found.status[p] == HIT:
            if size + LANES <= pairs.ray.size:
                pairs.ray[size], pairs.item[size] = found.ray[p], found.item[p]
                write_bound(pairs, size, found.high[p])
            size += 1
    recorder.pair_count[0] = size


class CertainPairs(CertainHits):
    """Certain hits are pairs."""

    timed = False
    records_most = True

    def record(self, slot: Scalar, near: Lanes, far: Lanes) -> Lanes:
        """Add certain hits to the pairs."""
        b, pairs = self.b, self.recorder.pairs
        certain = self.certain(near, far)
        size = self.recorder.pair_count.get(0)
        after = b.add(size, b.ctpop(certain.mask()))
        with b.if_then(b.icmp_signed("<=", b.add(size, I64(LANES)), pairs.ray.size)):
            pairs.ray.squeeze(self.rays.rays, certain, size)
            pairs.item.store(splat(b, self.slots.item(slot), self.rays.count), size)
            self.write_more(size)
        self.recorder.pair_count.put(after, 0)
        return undecided(near, far, certain)

    def certain(self, near: Lanes, far: Lanes) -> Lanes:
        """Return which rays hit a slot's box for certain."""
        return is_certain(near, far, self.rays.room)

    def write_more(self, _size: Scalar) -> None:
        """Write what pairs have beside ray and box, from this place on."""


@device
def add_certain(recorder: PairRecorder, job: Job, slot: LeafSlot, r: int, high: float) -> None:
    """Add a certain hit of one ray to the pairs. high: see `write_bound`."""
    pairs, size = recorder.pairs, recorder.pair_count[0]
    if size + LANES <= pairs.ray.size:
        pairs.ray[size], pairs.item[size] = r, ~job.tree.nodes[slot.node, CHILD + slot.slot]
        write_bound(pairs, size, high)
    recorder.pair_count[0] = size + 1


@device
def has_unwritten(recorder: PairRecorder) -> bool:
    """Return whether a group was traversed whose hits had no room."""
    return recorder.pair_count[0] > 0
