"""Pairs of a ray and a box that it hits, listed while the tree is traversed: those of one group, in no order.

A recorder that lists them has `pairs`, with arrays of ray numbers and of boxes, and `size`, whose place
`PAIRS` has how many there are, also past the end of their memory. A group whose pairs had no room is
traversed again with more (`raybox.queries.batches.Plan.grow`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from raybox.bvh.node import CHILD
from raybox.compiler.decorators import device, dispatch
from raybox.compiler.simd import I64, Lanes, splat
from raybox.primitives.box_simd import Pairs
from raybox.primitives.status import HIT, UNDECIDED
from raybox.traversal.certain_hits import CertainHits
from raybox.traversal.node_test import is_certain, undecided
from raybox.traversal.ray_setup import LANES
from raybox.traversal.ray_state import mark_undecided

PAIRS = 0  # place in the `size` of a recorder


class HitPairs(NamedTuple):
    """Pairs without times; with room for 16 more."""

    ray: Any  # int32
    item: Any  # int32


def make_hit_pairs(number: int) -> HitPairs:
    """Return memory for so many pairs."""
    return HitPairs(*(np.empty(number + LANES, np.int32) for _ in range(2)))


def room_for(needed: int) -> int:
    """Return how many pairs the memory is made for when so many had no room."""
    return 2 * needed + LANES


def write_bound(pairs: Any, place: int, high: float) -> None:
    """Write the upper bound of a hit's first contact, if the pairs have such bounds."""
    raise NotImplementedError("compiled code only")


@device
def _write_high(pairs: Pairs, place: int, high: float) -> None:
    pairs.high[place] = high


@device
def _write_nothing(_pairs: HitPairs, _place: int, _high: float) -> None:
    pass


dispatch(write_bound, {Pairs: _write_high, HitPairs: _write_nothing}.get)


@device
def record(recorder: Any, _job: Any, workspace: Any, count: int) -> None:
    """Add the hits among resolved candidates to the pairs."""
    found, pairs = workspace.pairs, recorder.pairs
    size = recorder.size[PAIRS]
    for p in range(count):
        if found.status[p] == UNDECIDED:
            mark_undecided(workspace, found.ray[p])
        elif found.status[p] == HIT:
            if size + LANES <= pairs.ray.size:
                pairs.ray[size], pairs.item[size] = found.ray[p], found.item[p]
                write_bound(pairs, size, found.high[p])
            size += 1
    recorder.size[PAIRS] = size


class CertainPairs(CertainHits):
    """Certain hits are pairs."""

    timed = False
    records_most = True

    def record(self, slot: Any, near: Lanes, far: Lanes) -> Lanes:
        """Add certain hits to the pairs."""
        b, pairs = self.b, self.recorder.pairs
        certain = self.certain(near, far)
        size = self.recorder.size.get(PAIRS)
        after = b.add(size, b.ctpop(certain.mask()))
        with b.if_then(b.icmp_signed("<=", b.add(size, I64(LANES)), pairs.ray.size)):
            pairs.ray.squeeze(self.rays.rays, certain, size)
            pairs.item.store(splat(b, self.slots.item(slot), self.rays.count), size)
            self.write_more(size)
        self.recorder.size.put(after, PAIRS)
        return undecided(near, far, certain)

    def certain(self, near: Lanes, far: Lanes) -> Lanes:
        """Return which rays hit a slot's box for certain."""
        return is_certain(near, far, self.rays.room)

    def write_more(self, _size: Any) -> None:
        """Write what pairs have beside ray and box, from this place on."""


@device
def add_certain(recorder: Any, job: Any, spot: Any, r: int, high: float) -> None:
    """Add a certain hit of one ray to the pairs. spot: node, octant, slot; high: see `write_bound`."""
    node, _, slot = spot
    pairs, size = recorder.pairs, recorder.size[PAIRS]
    if size + LANES <= pairs.ray.size:
        pairs.ray[size], pairs.item[size] = r, ~job.tree.nodes[node, CHILD + slot]
        write_bound(pairs, size, high)
    recorder.size[PAIRS] = size + 1


@device
def has_unwritten(recorder: Any) -> bool:
    """Return whether a group was traversed whose hits had no room."""
    return recorder.size[PAIRS] > 0
