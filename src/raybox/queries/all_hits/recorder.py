"""`all` in compiled code: the recorder, and what is recorded while the tree is traversed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from raybox.compiler.decorators import device
from raybox.compiler.simd import F64, I32, Lanes, constant
from raybox.compiler.struct_ref import struct
from raybox.queries.hit_pairs import CertainPairs, add_certain
from raybox.traversal.node_test import is_certain, undecided
from raybox.traversal.packet import PacketAtBox
from raybox.traversal.ray_setup import LANES, PASSES
from raybox.traversal.slab_coefficients import MARGIN
from raybox.traversal.workspace import DEFERRED, MAX_PACKET_HITS


@struct
class AllHitsRecorder(NamedTuple):
    """Everything that was hit: pairs in no order, then sorted ray by ray in `hits`."""

    pairs: Any  # of one group; those of packets are written at once
    size: Any  # int64 (2,): how many pairs, also past the end of their memory; how many hits are sorted
    starts: Any  # int64 (rays + 2,)
    hits: Any  # HitArrays: of all groups so far, each ray's in one row
    where: Any  # for each ray: where its row begins (of a ray in a packet: PACKED less that)
    counts: Any  # for each ray: how many hits its row has


SORTED = 1  # place in `AllHitsRecorder.size`, beside `PAIRS`
PACKED = -2  # where rows of rays in packets begin, counted down from here


class CertainAllHits(CertainPairs):
    """Certain hits are pairs, but for boxes that may be hit where the range begins: those tie."""

    def certain(self, near: Lanes, far: Lanes) -> Lanes:
        """Return which rays hit a slot's box for certain, and after the beginning of their range."""
        later = (near > self.rays.margin).choose(near, np.inf)
        return is_certain(later, far, self.rays.room)

    def write_more(self, size: Any) -> None:
        """Write that no hit is where the range begins."""
        self.recorder.pairs.high.store(constant(self.b, F64, self.rays.count, np.inf), size)


@device
def record_certain(recorder: AllHitsRecorder, job: Any, workspace: Any, spot: Any, r: int) -> bool:
    """Add a certain hit of one ray to the pairs."""
    if not workspace.slots[spot[2]] > workspace.single[MARGIN]:
        return False
    add_certain(recorder, job, spot, r, np.inf)
    return True


def intersect_box(b: Any, at: PacketAtBox) -> tuple[Lanes, Lanes]:
    """List certain hits of the rays of a packet; defer rays that may hit a box, or have too many hits."""
    # what may be hit where the range begins ties with others there
    certain = is_certain(at.near, at.far, at.margin * 2.0) & (at.near > at.margin)
    certain = certain & (at.result < MAX_PACKET_HITS - 1)
    deferred = undecided(at.near, at.far, certain)
    result = at.result + certain.to(I32)
    at.add_to_lists(b, certain, result)
    return deferred.choose(PASSES, at.stop), deferred.choose(DEFERRED, result)


@device
def has_room(recorder: AllHitsRecorder, rays: int) -> bool:
    """Return whether there is room for the hits of so many rays in packets."""
    return recorder.size[SORTED] + rays * MAX_PACKET_HITS + LANES <= recorder.hits.index.size


@device
def write_misses(_recorder: AllHitsRecorder, _begin: int, _end: int) -> None:
    """Write nothing: a ray that hits nothing has no row."""
