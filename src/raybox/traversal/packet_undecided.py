"""Boxes that rays of packets hold, because float32 was not sure of them: decided in float64, eight at a time.

As for rays that go by themselves, by `raybox.queries.recorders`: a ray for which floats cannot tell is a
`DOUBT`.
"""

from typing import Any

import numpy as np

from raybox.compiler.decorators import device, whole
from raybox.queries.recorders import DEEP, PacketsOf, propose
from raybox.traversal.packet import ANSWERS, HELD, HOLDS, LEFT
from raybox.traversal.ray_keys import copy_ray
from raybox.traversal.ray_order import Order, doubt
from raybox.traversal.ray_setup import ANSWER, DOUBT, LANES, MISS, STOP, TIMED
from raybox.traversal.stream import judge
from raybox.traversal.workspace import Desk


@device
def decide_held(packets: PacketsOf, job: Any, order: Order, desk: Desk, place: tuple[int, int]) -> None:
    """Decide what rays of packets hold, write their answers, and list those in doubt.

    place: the span's first ray, and how many packets.
    """
    base, number = place
    found = whole(0)
    for p in range(number):
        if packets.unsure[p] != 0:
            if found + LANES * (HOLDS + 1) > desk.pairs.ray.size - LANES:
                judge(job, packets.sink, desk, found)
                found = whole(0)
            found = _propose_held(packets, job.rays, desk, (base, p), found)
    if found > 0:
        judge(job, packets.sink, desk, found)
    for p in range(number):
        if packets.unsure[p] != 0:
            _take_back(packets, order, desk, p)


@device
def _holds(packets: PacketsOf, p: int, lane: int) -> bool:
    """Tell whether a ray holds boxes, and is neither left to others nor answered already."""
    if packets.answers[p, ANSWERS, lane] == LEFT or packets.words[p, STOP, lane] < 0.0:
        return False
    return bool(packets.answers[p, HELD, lane] > MISS)


@device
def _propose_held(packets: PacketsOf, rays: Any, desk: Desk, place: tuple[int, int], found: int) -> int:
    """Add what rays of a packet hold to the pairs to be judged; return how many there are now."""
    base, p = place
    for lane in range(LANES):
        if _holds(packets, p, lane):
            r = p * LANES + lane
            copy_ray(rays, base + packets.first[p] + lane, desk.exact, r)
            desk.answers[r, ANSWER], desk.answers[r, TIMED] = packets.answers[p, ANSWERS, lane], MISS
            # notes end a ray at a time, in a probe's units: of no account, since none of these walks on
            desk.probes[r, STOP], desk.power[r], desk.shift[r] = np.inf, 0, 0.0
            for k in range(packets.answers[p, HELD, lane] + 1):
                found = propose(packets.sink, desk, found, r, whole(packets.item[r * DEEP + k]))
    return found


@device
def _take_back(packets: PacketsOf, order: Order, desk: Desk, p: int) -> None:
    """Write the answers of a packet's rays that held boxes; list those in doubt."""
    for lane in range(LANES):
        if _holds(packets, p, lane):
            said = desk.answers[p * LANES + lane, ANSWER]
            packets.answers[p, ANSWERS, lane] = said
            if said == DOUBT:
                doubt(order, packets.first[p] + lane)
