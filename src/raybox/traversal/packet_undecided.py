"""Boxes that rays of packets keep undecided: resolved in float64, eight at a time, after the traversal.

They are recorded as the candidates of streams are; the result of a ray that float64 cannot decide becomes
`UNDECIDED_INDEX`.
"""

from typing import Any

import numpy as np

from raybox.compiler.decorators import device, whole
from raybox.primitives.status import MISS_INDEX, UNDECIDED_INDEX
from raybox.traversal.packet_recorder import (
    DEFERRED,
    MAX_PACKET_HITS,
    MAX_UNDECIDED,
    RESULTS,
    UNDECIDED_BOXES,
    PacketRecorder,
)
from raybox.traversal.protocol import add_candidate
from raybox.traversal.ray_keys import copy_ray
from raybox.traversal.ray_order import Order, PacketGroup, list_undecided
from raybox.traversal.ray_setup import LANES, RESULT, STOP, TIMED
from raybox.traversal.stream import resolve_candidates
from raybox.traversal.workspace import Workspace


@device
def resolve_undecided(
    packets: PacketRecorder, job: Any, order: Order, workspace: Workspace, group: PacketGroup
) -> None:
    """Resolve the undecided boxes of packets, update their rays' results, and list undecided rays."""
    count = whole(0)
    for p in range(group.count):
        if packets.undecided[p] != 0:
            if count + LANES * (MAX_UNDECIDED + 1) > workspace.pairs.ray.size - LANES:
                resolve_candidates(job, packets.inner, workspace, count)
                count = whole(0)
            count = _add_candidates(packets, job.rays, workspace, group.base, p, count)
    if count > 0:
        resolve_candidates(job, packets.inner, workspace, count)
    for p in range(group.count):
        if packets.undecided[p] != 0:
            _update_results(packets, order, workspace, p)


@device
def write_packet_results(
    packets: PacketRecorder, job: Any, order: Order, workspace: Workspace, group: PacketGroup, out: Any
) -> None:
    """Resolve the undecided boxes of packets; write each hit ray's result + 1 to `out`.

    out: of all rays; a boolean array gets True.
    """
    resolve_undecided(packets, job, order, workspace, group)
    for p in range(group.count):
        for lane in range(LANES):
            if packets.state[p, RESULTS, lane] > MISS_INDEX:
                out[group.base + packets.first[p] + lane] = packets.state[p, RESULTS, lane] + 1


@device
def _is_open(packets: PacketRecorder, p: int, lane: int) -> bool:
    """Return whether a ray keeps undecided boxes, and is neither deferred nor at its end."""
    if packets.state[p, RESULTS, lane] == DEFERRED or packets.words[p, STOP, lane] < 0.0:
        return False
    return bool(packets.state[p, UNDECIDED_BOXES, lane] > MISS_INDEX)


@device
def _add_candidates(
    packets: PacketRecorder, rays: Any, workspace: Workspace, base: int, p: int, count: int
) -> int:
    """Add the undecided boxes of a packet's rays to the candidates; return how many there are now."""
    for lane in range(LANES):
        if _is_open(packets, p, lane):
            r = p * LANES + lane
            copy_ray(rays, base + packets.first[p] + lane, workspace.rays64, r)
            workspace.state[r, RESULT] = packets.state[p, RESULTS, lane]
            workspace.state[r, TIMED] = MISS_INDEX
            # recording may end a ray, in units of a packed ray: without effect, none of these goes on
            workspace.packed_rays[r, STOP], workspace.power[r], workspace.shift[r] = np.inf, 0, 0.0
            for k in range(packets.state[p, UNDECIDED_BOXES, lane] + 1):
                box = whole(packets.item[r * MAX_PACKET_HITS + k])
                count = add_candidate(packets.inner, workspace, count, r, box)
    return count


@device
def _update_results(packets: PacketRecorder, order: Order, workspace: Workspace, p: int) -> None:
    """Copy the results of a packet's open rays back; list those that stay undecided."""
    for lane in range(LANES):
        if _is_open(packets, p, lane):
            result = workspace.state[p * LANES + lane, RESULT]
            packets.state[p, RESULTS, lane] = result
            if result == UNDECIDED_INDEX:
                list_undecided(order, packets.first[p] + lane)
