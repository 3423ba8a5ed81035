"""`all` in compiled code: the recorder, and what is recorded while the tree is traversed."""

from typing import NamedTuple

import numpy as np

from raybox.compiler.decorators import device
from raybox.compiler.simd import F64, I32, Builder, Lanes, Scalar, constant
from raybox.compiler.struct_ref import struct
from raybox.primitives.box_simd import Pairs
from raybox.queries.hit_pairs import CertainPairs, add_certain
from raybox.queries.hit_sorting import HitArrays
from raybox.traversal.job import Job
from raybox.traversal.node_test import is_certain, undecided
from raybox.traversal.packet_box import PacketAtBox, certain_hits
from raybox.traversal.ray_setup import LANES, PASSES
from raybox.traversal.slab_coefficients import MARGIN
from raybox.traversal.workspace import DEFERRED, MAX_PACKET_HITS, LeafSlot, Workspace
from raybox.validation import Ints


@struct
class AllHitsRecorder(NamedTuple):
    """All hits: pairs in no order, then sorted ray by ray in `hits`."""

    pairs: Pairs  # of one group; those of packets are written at once
    pair_count: Ints  # (1,): with those that had no room
    sorted_count: Ints  # (1,): hits in `hits`
    starts: Ints  # (rays + 2,)
    hits: HitArrays  # of all groups so far, each ray's in one row
    where: Ints  # for each ray: where its row begins (for a ray in a packet: PACKED minus it)
    counts: Ints  # for each ray: how many hits its row has


PACKED = -2  # where rows of rays in packets begin, counted down from here


class CertainAllHits(CertainPairs):
    """Records certain hits as pairs, but not boxes that may be hit where the range begins: those tie."""

    def certain(self, near: Lanes, far: Lanes) -> Lanes:
        """Return which rays hit a slot's box for certain, and after the beginning of their range."""
        later = (near > self.rays.margin).choose(near, np.inf)
        return is_certain(later, far, self.rays.room)

    def write_more(self, size: Scalar) -> None:
        """Write that no hit is where the range begins."""
        self.recorder.pairs.high.store(constant(self.b, F64, self.rays.count, np.inf), size)


@device
def record_certain(recorder: AllHitsRecorder, job: Job, workspace: Workspace, slot: LeafSlot, r: int) -> bool:
    """Add a certain hit of one ray to the pairs."""
    if not workspace.slots[slot.slot] > workspace.single[MARGIN]:
        return False
    add_certain(recorder, job, slot, r, np.inf)
    return True


def intersect_box(b: Builder, at: PacketAtBox) -> tuple[Lanes, Lanes]:
    """List certain hits of the rays of a packet; defer rays that may hit a box, or have too many hits."""
    # boxes that may be hit where the range begins tie there
    certain = certain_hits(b, at) & (at.near > at.margin)
    certain = certain & (at.result < MAX_PACKET_HITS - 1)
    deferred = undecided(at.near, at.far, certain)
    result = at.result + certain.to(I32)
    at.add_to_lists(b, certain, result)
    return deferred.choose(PASSES, at.stop), deferred.choose(DEFERRED, result)


@device
def has_room(recorder: AllHitsRecorder, rays: int) -> bool:
    """Return whether there is room for the hits of so many rays in packets."""
    return recorder.sorted_count[0] + rays * MAX_PACKET_HITS + LANES <= recorder.hits.index.size


@device
def write_misses(_recorder: AllHitsRecorder, _begin: int, _end: int) -> None:
    """Write nothing: a ray that hits nothing has no row."""
