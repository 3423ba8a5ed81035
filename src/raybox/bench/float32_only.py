"""A query for the nearest box by float32 alone, which measures the cost of exactness.

Its traversal is that of `nearest` without any exact decision: the nearer of two boxes is the one with the
lesser computed time, whatever its rounding error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from raybox.bvh.node import CHILD
from raybox.compiler.decorators import device
from raybox.compiler.simd import Lanes
from raybox.queries import certain_hits, recorders, results
from raybox.traversal.ray_setup import ANSWER, STOP


class ProposalOf(NamedTuple):
    """Recorder of the nearest box by float32 alone: ANSWER is its index, STOP its time."""

    index: Any
    t: Any


class _Proposal(certain_hits.Nearest):
    """Record each candidate that is no farther than the best one so far."""

    def take(self, slot: Any, near: Lanes, far: Lanes) -> Lanes:
        met = near <= far
        self.rays.stop.value = met.choose(near, self.rays.stop.lanes).value
        self.put(slot, met)
        return met & ~met

    def tell_plane(self, ray: Any, slot: Any) -> None:
        pass


@device
def _take(_sink: ProposalOf, job: Any, desk: Any, spot: Any, r: int) -> bool:
    node, _, slot = spot
    if desk.slots[slot] <= desk.probes[r, STOP]:
        desk.answers[r, ANSWER] = ~job.tree.nodes[node, CHILD + slot]
        desk.probes[r, STOP] = desk.slots[slot]
    return True


@device
def _note(_sink: ProposalOf, _job: Any, desk: Any, number: int) -> None:
    for p in range(number):
        desk.answers[desk.pairs.ray[p], ANSWER] = desk.pairs.item[p]


@device
def _answer(sink: ProposalOf, _job: Any, order: Any, desk: Any, place: Any) -> bool:
    base, begin, end = place
    for r in range(end - begin):
        i = desk.answers[r, ANSWER]
        if i >= 0:
            k = base + order.order[begin + r]
            unit = np.int64((1023 - np.int64(desk.power[r])) << 52).view(np.float64)
            sink.index[k] = i
            sink.t[k] = (np.float64(desk.probes[r, STOP]) + np.float64(desk.shift[r])) * unit
    return True


certain_hits.TABLE[ProposalOf] = (certain_hits.sifting(_Proposal), _take)
recorders.TABLE[ProposalOf] = _note
recorders.SPARES.add(ProposalOf)
results.TABLE[ProposalOf] = _answer
