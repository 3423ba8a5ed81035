"""The nearest candidate of the float32 tree as the nearest box, to measure the cost of exactness.

The same traversal without exact decisions: of two boxes the one with the smaller rounded time is the nearer.
No query of a scene works like this; only `raybox.bench` uses it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from raybox.bvh.node import CHILD
from raybox.compiler.decorators import device
from raybox.compiler.simd import Lanes
from raybox.queries.batches import Plan
from raybox.queries.nearest.stream import CertainNearest
from raybox.traversal.protocol import Hooks, StreamHooks, register
from raybox.traversal.ray_order import Order, Span
from raybox.traversal.ray_setup import RESULT, STOP


class CandidateRecorder(NamedTuple):
    """The nearest box in float32: RESULT is its index, STOP its time."""

    index: Any
    t: Any


class _FirstCandidate(CertainNearest):
    """Records every box that may be hit and is no farther than the first so far."""

    def record(self, slot: Any, near: Lanes, far: Lanes) -> Lanes:
        hit = near <= far
        self.rays.stop.value = hit.choose(near, self.rays.stop.lanes).value
        self.put(slot, hit)
        return hit & ~hit

    def write_plane(self, ray: Any, slot: Any) -> None:
        pass


@device
def _record_certain(_recorder: CandidateRecorder, job: Any, workspace: Any, spot: Any, r: int) -> bool:
    node, _, slot = spot
    if workspace.slots[slot] <= workspace.packed_rays[r, STOP]:
        workspace.state[r, RESULT] = ~job.tree.nodes[node, CHILD + slot]
        workspace.packed_rays[r, STOP] = workspace.slots[slot]
    return True


@device
def _record(_recorder: CandidateRecorder, _job: Any, workspace: Any, count: int) -> None:
    for p in range(count):
        workspace.state[workspace.pairs.ray[p], RESULT] = workspace.pairs.item[p]


@device
def _write_results(recorder: CandidateRecorder, _job: Any, order: Order, workspace: Any, group: Span) -> bool:
    base, begin, end = group
    for r in range(end - begin):
        i = workspace.state[r, RESULT]
        if i >= 0:
            k = base + order.order[begin + r]
            unit = np.int64((1023 - np.int64(workspace.power[r])) << 52).view(np.float64)
            recorder.index[k] = i
            stop, shift = np.float64(workspace.packed_rays[r, STOP]), np.float64(workspace.shift[r])
            recorder.t[k] = (stop + shift) * unit
    return True


def plan(index: Any, t: Any) -> Plan:
    """Return the plan of a traversal that writes to index and t, which contain misses."""
    return Plan(lambda _size: CandidateRecorder(index, t), write_misses=lambda _begin, _end: None)


_HOOKS = StreamHooks(
    record=_record,
    write_results=_write_results,
    certain_hits=_FirstCandidate,
    record_certain=_record_certain,
    defers_float64=True,
)
register(Hooks({CandidateRecorder: _HOOKS}, {}, {}))
