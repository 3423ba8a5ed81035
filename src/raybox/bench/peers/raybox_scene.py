"""raybox itself, and its variants.

`build_float32_only` returns the nearest candidate of the float32 tree as the nearest box, to measure the cost
of exactness: the same traversal without exact decisions. Of two boxes the one with the smaller rounded time
is the nearer. No query of a scene works like this; only `raybox.bench` uses it.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np

import raybox as rb
from raybox.bench.data import BoxSet, RaySet
from raybox.bench.peers.common import Engine
from raybox.bvh.build import build as build_tree
from raybox.bvh.node import CHILD
from raybox.compiler.decorators import device
from raybox.compiler.simd import Lanes, Scalar
from raybox.queries.nearest.certain import CertainNearest
from raybox.queries.nearest.query import PER_RAY, NearestResults
from raybox.queries.per_ray import never
from raybox.queries.scheduler import run
from raybox.traversal.job import Job
from raybox.traversal.protocol import Hooks, StreamHooks, register
from raybox.traversal.ray_setup import RESULT, STOP, frame_of
from raybox.traversal.workspace import Order, Span, Workspace
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
    _recorder: CandidateRecorder, job: Job, workspace: Workspace, spot: tuple[int, int, int], r: int
) -> bool:
    node, _, slot = spot
    if workspace.slots[slot] <= workspace.packed_rays[r, STOP]:
        workspace.state[r, RESULT] = ~job.tree.nodes[node, CHILD + slot]
        workspace.packed_rays[r, STOP] = workspace.slots[slot]
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
    record=_record,
    write_results=_write_results,
    certain_hits=_FirstCandidate,
    record_certain=_record_certain,
    defers_float64=True,
)
register(Hooks({CandidateRecorder: _HOOKS}, {}, {}))
_PER_RAY = PER_RAY._replace(
    recorder=lambda results, _size, _options: CandidateRecorder(*results), packets=never
)


def form(boxes: BoxSet) -> rb.Boxes:
    """Return the boxes of a scene."""
    return rb.Boxes(boxes.lower, boxes.upper)


def build(boxes: rb.Boxes, threads: int, **options: Any) -> Engine:
    """Return a scene; ``workers`` other than ``threads`` serves to compare the two."""
    workers = options.pop("workers", threads)
    known = inspect.signature(rb.Scene).parameters
    if "workers" in known:
        options["workers"] = workers
    if unknown := options.keys() - known.keys():
        raise TypeError(f"this raybox has no Scene(..., {', '.join(sorted(unknown))}=)")
    return engine(rb.Scene(boxes, **options), workers)


def build_float32_only(boxes: rb.Boxes, threads: int) -> Engine:
    """Return a scene whose nearest box is the nearest candidate of the float32 tree."""
    rows, everything = boxes.rows(), np.empty(0, np.bool_)
    everything.flags.writeable = False
    tree = build_tree(*rows, threads=threads)
    frame = frame_of(tree)

    def nearest(rays: rb.Rays) -> NearestResults:
        found: NearestResults = run(
            _PER_RAY, Job(tree, rows, rays.rows(), everything, frame), None, threads, False
        )
        return found

    return Engine(prepare=rays_of, run={"nearest": nearest}, read={"nearest": lambda found: found})


def engine(scene: rb.Scene, workers: int) -> Engine:
    """Return the queries of a scene."""
    how: dict[str, Any] = {"workers": workers}
    return Engine(
        prepare=rays_of,
        run={
            "nearest": lambda rays: scene.nearest(rays, **how),
            "occluded": lambda rays: scene.occluded(rays, **how),
            "count": lambda rays: scene.count(rays, **how),
            "all": lambda rays: scene.all(rays, **how),
        },
        read={
            "nearest": lambda hits: (hits.index, hits.t),
            "occluded": np.asarray,
            "count": np.asarray,
            "all": lambda found: (found.ray, found.index),
        },
    )


def rays_of(rays: RaySet) -> rb.Rays:
    """Return raybox's rays."""
    return rb.Rays(rays.origins, rays.directions)
