"""`nearest` in the packet traversal."""

import numpy as np

from raybox.compiler.decorators import device, yes
from raybox.compiler.simd import Builder, Lanes, splat
from raybox.primitives.status import MISS_INDEX
from raybox.queries.nearest.stream import NearestRecorder, write_hits
from raybox.traversal.job import Job
from raybox.traversal.node_test import is_certain, reach, undecided
from raybox.traversal.packed_rays import store_rows
from raybox.traversal.packet_batches import resolve_undecided
from raybox.traversal.packet_box import PacketAtBox, add_undecided
from raybox.traversal.protocol import PacketHooks
from raybox.traversal.ray_setup import LANES, PASSES
from raybox.traversal.workspace import DEFERRED, RESULTS, Order, PacketGroup, PacketRecorder, Workspace


def _intersect_box(b: Builder, at: PacketAtBox) -> tuple[Lanes, Lanes]:
    late = reach(at.near, at.margin)
    certain = is_certain(late, at.far, at.margin)
    deferred = add_undecided(b, at, undecided(at.near, at.far, certain))
    result = deferred.choose(DEFERRED, certain.choose(splat(b, at.item, LANES), at.result))
    return deferred.choose(PASSES, certain.choose(late, at.stop)), result


@device
def _write_packets(
    recorder: NearestRecorder,
    packets: PacketRecorder,
    job: Job,
    order: Order,
    workspace: Workspace,
    group: PacketGroup,
) -> None:
    pairs, found = workspace.pairs, 0
    resolve_undecided(packets, job, order, workspace, group)
    for p in range(group.count):
        for lane in range(LANES):
            i = packets.state[p, RESULTS, lane]
            if i >= 0:
                pairs.ray[found], pairs.item[found] = p * LANES + lane, i
                pairs.source[found] = group.base + packets.first[p] + lane
                found += 1
    write_hits(recorder, job, order, workspace.rays64, workspace, (group.base, found))


@device
def _write_misses(recorder: NearestRecorder, begin: int, end: int) -> None:
    recorder.index[begin:end], recorder.t[begin:end] = MISS_INDEX, np.inf


HOOKS = PacketHooks(
    NearestRecorder,
    intersect_box=_intersect_box,
    write_packets=_write_packets,
    write_misses=_write_misses,
    prefetches_boxes=yes,
    store_rays=store_rows,
)
