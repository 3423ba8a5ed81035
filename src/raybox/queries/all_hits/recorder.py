"""`all` in compiled code: the recorder, and what is recorded while the tree is traversed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from raybox.bvh.node import CHILD
from raybox.compiler.decorators import device
from raybox.compiler.simd import F64, I32, I64, Builder, Lanes, Scalar, constant, splat
from raybox.compiler.struct_ref import struct
from raybox.primitives.box_simd import Pairs
from raybox.primitives.status import HIT, UNDECIDED
from raybox.queries.hit_sorting import HitArrays
from raybox.traversal.certain_hits import CertainHits
from raybox.traversal.job import Job
from raybox.traversal.node_test import is_certain, undecided
from raybox.traversal.packet import PacketAtBox
from raybox.traversal.ray_setup import LANES, PASSES
from raybox.traversal.ray_state import mark_undecided
from raybox.traversal.slab_coefficients import MARGIN
from raybox.traversal.workspace import DEFERRED, MAX_PACKET_HITS, Workspace
from raybox.validation import Ints


@struct
class AllHitsRecorder(NamedTuple):
    """All hits: pairs in no order, then sorted ray by ray in `hits`."""

    pairs: Pairs  # of one group; those of packets are written at once
    size: Ints  # (2,): how many pairs, with those that had no room; how many sorted hits
    starts: Ints  # (rays + 2,)
    hits: HitArrays  # of all groups so far, each ray's in one row
    where: Ints  # for each ray: where its row begins (for a ray in a packet: PACKED minus it)
    counts: Ints  # for each ray: how many hits its row has


PAIRS, SORTED = 0, 1  # places in `AllHitsRecorder.size`
PACKED = -2  # where rows of rays in packets begin, counted down from here


@device
def record(recorder: AllHitsRecorder, _job: Job, workspace: Workspace, count: int) -> None:
    """Add the hits among resolved candidates to the pairs."""
    found, pairs = workspace.pairs, recorder.pairs
    size = recorder.size[PAIRS]
    for p in range(count):
        if found.status[p] == UNDECIDED:
            mark_undecided(workspace, found.ray[p])
        elif found.status[p] == HIT:
            if size + LANES <= pairs.ray.size:
                pairs.ray[size], pairs.item[size] = found.ray[p], found.item[p]
                pairs.high[size] = found.high[p]
            size += 1
    recorder.size[PAIRS] = size


class CertainAllHits(CertainHits):
    """Records certain hits as pairs, but not boxes that may be hit where the range begins: those tie."""

    timed = False
    records_most = True

    def record(self, slot: Scalar, near: Lanes, far: Lanes) -> Lanes:
        """Add certain hits to the pairs."""
        b, pairs = self.b, self.recorder.pairs
        later = (near > self.rays.margin).choose(near, np.inf)
        certain = is_certain(later, far, self.rays.room)
        size = self.recorder.size.get(PAIRS)
        after = b.add(size, b.ctpop(certain.mask()))
        with b.if_then(b.icmp_signed("<=", b.add(size, I64(LANES)), pairs.ray.size)):
            pairs.ray.squeeze(self.rays.rays, certain, size)
            pairs.item.store(splat(b, self.slots.item(slot), self.rays.count), size)
            pairs.high.store(constant(b, F64, self.rays.count, np.inf), size)
        self.recorder.size.put(after, PAIRS)
        return undecided(near, far, certain)


@device
def record_certain(
    recorder: AllHitsRecorder, job: Job, workspace: Workspace, spot: tuple[int, int, int], r: int
) -> bool:
    """Add a certain hit of one ray to the pairs."""
    node, _, slot = spot
    if not workspace.slots[slot] > workspace.single[MARGIN]:
        return False
    pairs, size = recorder.pairs, recorder.size[PAIRS]
    if size + LANES <= pairs.ray.size:
        pairs.ray[size], pairs.item[size] = r, ~job.tree.nodes[node, CHILD + slot]
        pairs.high[size] = np.inf
    recorder.size[PAIRS] = size + 1
    return True


@device
def has_unwritten(recorder: AllHitsRecorder) -> bool:
    """Return whether a group was traversed whose hits had no room."""
    return recorder.size[PAIRS] > 0


def intersect_box(b: Builder, at: PacketAtBox) -> tuple[Lanes, Lanes]:
    """List certain hits of the rays of a packet; defer rays that may hit a box, or have too many hits."""
    # boxes that may be hit where the range begins tie there
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
