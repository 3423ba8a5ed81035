"""raybox without exact decisions: the nearest candidate of the float32 tree as the nearest box.

It measures the cost of exactness: the same traversal, and of two boxes the one with the smaller rounded time
is the nearer. No query of a scene works like this.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import raybox as rb
from raybox.bench import raybox_scene
from raybox.bench.peers import Engine
from raybox.bvh.build import build as build_tree
from raybox.bvh.node import CHILD
from raybox.compiler.decorators import device, yes
from raybox.compiler.simd import Lanes, Scalar
from raybox.geometry.ray_rows import NO_ROWS
from raybox.queries.hit_query import per_ray_of
from raybox.queries.nearest.certain import CertainNearest
from raybox.queries.nearest.query import SPEED
from raybox.queries.nearest.stream import Nearest
from raybox.queries.scheduler import run
from raybox.traversal.job import Job
from raybox.traversal.protocol import StreamHooks, register
from raybox.traversal.ray_setup import RESULT, STOP, frame_of
from raybox.traversal.workspace import LeafSlot, Order, Span, Workspace
from raybox.validation import Floats, Ints


class CandidateRecorder(NamedTuple):
    """The nearest box in float32: RESULT is its index, STOP its time."""

    index: Ints  # type: ignore[assignment]  # not the method of tuples
    t: Floats


class _FirstCandidate(CertainNearest):
    """Records every box that may be hit and is no farther than the first so far."""

    def record(self, slot: Scalar, near: Lanes, far: Lanes) -> Lanes:
        hit = near <= far
        self.rays.stop.value = hit.choose(near, self.rays.stop.lanes).value
        self.put(slot, hit)
        return hit & ~hit

    def write_plane(self, ray: Scalar, slot: Scalar) -> None:
        pass


@device
def _record_certain(
    _recorder: CandidateRecorder, job: Job, workspace: Workspace, slot: LeafSlot, r: int
) -> bool:
    if workspace.slots[slot.slot] <= workspace.packed_rays[r, STOP]:
        workspace.state[r, RESULT] = ~job.tree.nodes[slot.node, CHILD + slot.slot]
        workspace.packed_rays[r, STOP] = workspace.slots[slot.slot]
    return True


@device
def _record(_recorder: CandidateRecorder, _job: Job, workspace: Workspace, count: int) -> None:
    for p in range(count):
        workspace.state[workspace.pairs.ray[p], RESULT] = workspace.pairs.item[p]


@device
def _write_results(
    recorder: CandidateRecorder, _job: Job, order: Order, workspace: Workspace, group: Span
) -> bool:
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


_HOOKS = StreamHooks(
    CandidateRecorder,
    record=_record,
    write_results=_write_results,
    certain_hits=_FirstCandidate,
    record_certain=_record_certain,
    defers_float64=yes,
)
register(_HOOKS)
_PER_RAY = per_ray_of(Nearest, SPEED)._replace(
    recorder=lambda results, _size, _options: CandidateRecorder(*results), packets=lambda _options: False
)


form = raybox_scene.form


def build(boxes: rb.Boxes, threads: int) -> Engine:
    """Return a scene whose nearest box is the nearest candidate of the float32 tree."""
    rows, everything = boxes._rows(), np.empty(0, np.bool_)
    everything.flags.writeable = False
    tree = build_tree(*rows, threads=threads)
    job = Job(tree, rows, NO_ROWS, everything, frame_of(tree))

    def nearest(rays: rb.Rays) -> Nearest:
        found: Nearest = run(_PER_RAY, job, rays._rows(), None, threads, False)
        return found

    return Engine(
        prepare=raybox_scene.rays_of, run={"nearest": nearest}, read={"nearest": lambda found: found}
    )
