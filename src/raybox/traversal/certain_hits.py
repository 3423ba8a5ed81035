"""Boxes that rays hit for certain by float32 alone: recorded sixteen rays at a time, without float64.

A query that records such hits derives a class from `CertainHits`, for `StreamHooks.certain_hits`. What it
does not record stays in the lists, as candidates. See `raybox.traversal.node_test` for what certain means.
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from typing import NamedTuple, TypeAlias

from raybox.bvh.node import WIDTH
from raybox.compiler.decorators import device
from raybox.compiler.intrinsics import Fields, int64, vector_code, void
from raybox.compiler.simd import I32, I64, Builder, Lanes, Scalar, constant, lesser, splat
from raybox.compiler.simd_arrays import Register, bits, loop
from raybox.primitives.table import fills_boxes, has_volumes
from raybox.traversal.box_entry import BoxEntry, BoxTimes, entry_of, planes_of
from raybox.traversal.job import Job, Recorder
from raybox.traversal.node_test import AnySlots, RayVector, Slots, SpanSlots
from raybox.traversal.ray_setup import PACKED_WORDS, RESULT, STATE_WORDS, STOP, at_a_time
from raybox.traversal.workspace import MOST_PAIRS, ListSpan, NodeSlots, NodeSpan, Workspace


class CertainHits:
    """Sixteen rays at the slots of a node; this one records nothing: every box is a candidate."""

    timed = True  # whether lists store entry times: not where that prunes nothing (saves 1 to 7 %)
    records_most = False  # whether most boxes are recorded: a branch past the lists then saves 5 to 9 %

    def __init__(
        self, b: Builder, recorder: Fields, job: Fields, workspace: Fields, rays: RayVector, slots: AnySlots
    ) -> None:
        self.b, self.recorder, self.job, self.workspace = b, recorder, job, workspace
        self.rows = job.rows
        self.rays, self.slots = rays, slots
        self.begin()

    def begin(self) -> None:
        """Set up what is recorded of these rays."""

    def record(self, _slot: Scalar, near: Lanes, far: Lanes) -> Lanes:
        """Record the rays that hit a slot's box for certain; return the others that may hit it."""
        return near <= far

    def entry(self, slot: Scalar) -> BoxEntry:
        """Return how the rays enter a slot's box."""
        slabs = self.rays.slab_times(self.slots, slot)
        return entry_of(self.b, BoxTimes(slabs, self.rays.margin, self.entry_planes()))

    def entry_planes(self) -> list[Lanes]:
        """Return the numbers of the planes by which the rays enter boxes, axis by axis."""
        if self.slots.octant is not None:
            return planes_of(self.b, self.slots.octant, self.rays.count)
        lower = [constant(self.b, I32, self.rays.count, axis) for axis in range(3)]
        return [back.choose(low + 3, low) for back, low in zip(self.rays.backward, lower, strict=True)]

    def decide(self, _slot: Scalar, left: Lanes) -> Lanes:
        """Record what the planes of entry prove of the rays that are left; return the others."""
        return left

    def flat_hits(self, slot: Scalar, left: Lanes) -> Lanes:
        """Return which of the rays that are left hit a slot's box for certain: it is flat, or thin."""
        entry = self.entry(slot)
        return left & (entry.room <= lesser(entry.far, self.rays.stop.lanes))

    def finish(self) -> None:
        """Write what was recorded to the state of the rays."""

    def ray(self, lane: Scalar) -> Scalar:
        """Return the number of one of the rays."""
        return self.b.sext(self.workspace.lists.get(self.b.add(self.rays.begin, lane)), I64)

    def write(self, ray: Scalar, result: Scalar, stop: Scalar) -> None:
        """Write a ray's result so far, and where it now ends."""
        self.workspace.state.put(result, self.state_at(ray, RESULT))
        self.workspace.packed_rays.put(stop, self.b.add(self.b.mul(ray, I64(PACKED_WORDS)), I64(STOP)))

    def state_at(self, ray: Scalar, word: int) -> Scalar:
        """Return the place of a word of a ray's state."""
        return self.b.add(self.b.mul(ray, I64(STATE_WORDS)), I64(word))


Chosen: TypeAlias = Callable[..., CertainHits]


class _ListAtNode(NamedTuple):
    """A list of rays at the slots of a node."""

    node: Fields  # `NodeSlots`
    rays: Fields  # `ListSpan`


def _intersect_lists(
    chosen: Callable[..., CertainHits],
    b: Builder,
    recorder: Fields,
    job: Fields,
    workspace: Fields,
    at: _ListAtNode,
) -> None:
    """Write to the lists of a node's slots the rays of a list that may hit them, and when."""
    node, rays = at
    slots = Slots(b, job.tree.nodes, workspace, node.row, node.octant)
    number = b.sub(rays.end, rays.begin)
    with loop(b, number, at_a_time()) as step:
        vector = RayVector(b, recorder, workspace, rays.begin, step, number)
        with b.if_then(b.icmp_signed("!=", node.boxes, I64(0))):
            hits = chosen(b, recorder, job, workspace, vector, slots)
            with bits(b, node.boxes) as slot:
                near, far = vector.intersect_slots(slots, slot)
                left = hits.record(slot, near, far)
                with b.if_then(left.any()) if hits.records_most else nullcontext():
                    left = hits.decide(slot, left)
                    vector.enlist(workspace, slots, slot, near if hits.timed else None, left)
            hits.finish()
        with bits(b, node.inner) as slot:
            near, far = vector.intersect_slots(slots, slot)
            vector.enlist(workspace, slots, slot, near if hits.timed else None, near <= far)
    slots.close(workspace)


class _ListAtNodes(NamedTuple):
    """The first rays of a list at nodes of boxes alone."""

    nodes: Fields  # `NodeSpan`
    rays: Fields  # `ListSpan`


def _scan_nodes(
    chosen: Callable[..., CertainHits],
    b: Builder,
    recorder: Fields,
    job: Fields,
    workspace: Fields,
    at: _ListAtNodes,
) -> Scalar:
    """Write which boxes in some nodes the first rays of a list may hit; return how many pairs there are.

    The rays stay in registers from node to node, and may run into any octants.
    """
    nodes, rays = at
    slots = SpanSlots(b, job.tree.nodes, nodes.first)
    vector = RayVector(b, recorder, workspace, rays.begin, I64(0), b.sub(rays.end, rays.begin))
    hits, pairs = chosen(b, recorder, job, workspace, vector, slots), Register(b, nodes.pairs)
    with loop(b, b.mul(nodes.count, I64(WIDTH))) as slot:
        near, far = vector.intersect_slots(slots, slot)
        left = hits.record(slot, near, far)
        with b.if_then(left.any()):
            left = hits.decide(slot, left)
            workspace.lists.squeeze(vector.rays, left, pairs.value)
            items = splat(b, slots.item(slot), vector.count)
            workspace.lists.store(items, b.add(pairs.value, I64(MOST_PAIRS)))
            pairs.value = b.add(pairs.value, b.ctpop(left.mask()))
    hits.finish()
    return b.sub(pairs.value, nodes.pairs)


IntersectLists: TypeAlias = Callable[[Recorder, Job, Workspace, NodeSlots, ListSpan], None]
ScanNodes: TypeAlias = Callable[[Recorder, Job, Workspace, NodeSpan, ListSpan], int]


class RecordHits(NamedTuple):
    """What tests the rays of a list for a query that records hits by a class of `CertainHits`."""

    intersect_lists: IntersectLists
    """Write to the lists of a node's slots the rays that may hit them, less certain hits."""
    scan_nodes: ScanNodes
    """Write the boxes in some nodes that the first rays may hit, less certain hits; return how many pairs."""


@cache
def record_hits(boxes: Chosen, triangles: Chosen = CertainHits) -> RecordHits:
    """Return what records hits by a class for boxes, and one for triangles."""

    def chosen(rows: Fields) -> Chosen:
        # a ray that hits the box of another primitive may miss the primitive
        return boxes if fills_boxes(rows) else triangles if has_volumes(rows) else CertainHits

    @vector_code(void)
    def write(
        b: Builder, recorder: Fields, job: Fields, workspace: Fields, node: Fields, rays: Fields
    ) -> None:
        _intersect_lists(chosen(job.rows), b, recorder, job, workspace, _ListAtNode(node, rays))

    @device
    def intersect(
        recorder: Recorder, job: Job, workspace: Workspace, node: NodeSlots, rays: ListSpan
    ) -> None:
        write(recorder, job, workspace, node, rays)

    @vector_code(int64)
    def list_pairs(
        b: Builder, recorder: Fields, job: Fields, workspace: Fields, nodes: Fields, rays: Fields
    ) -> Scalar:
        return _scan_nodes(chosen(job.rows), b, recorder, job, workspace, _ListAtNodes(nodes, rays))

    @device
    def scan(recorder: Recorder, job: Job, workspace: Workspace, nodes: NodeSpan, rays: ListSpan) -> int:
        return list_pairs(recorder, job, workspace, nodes, rays)

    return RecordHits(intersect, scan)


intersect_all = record_hits(CertainHits).intersect_lists
"""Every box that a ray may hit becomes a candidate."""
