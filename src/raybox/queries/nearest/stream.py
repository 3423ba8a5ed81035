"""`nearest` in the stream traversal: bounds of the first hit of each ray, until one box is certain."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from raybox.bvh.node import CHILD, ROW
from raybox.compiler.decorators import device, whole
from raybox.compiler.intrinsics import larger, prefetch_to_write, smaller
from raybox.compiler.simd import I32, I64, Lanes, constant, splat
from raybox.compiler.simd_loops import Register, bits
from raybox.compiler.struct_ref import struct
from raybox.primitives.status import HIT, MISS, MISS_INDEX, UNDECIDED_INDEX
from raybox.primitives.table import entry_times, first_contacts, tie_is_certain
from raybox.queries.nearest.entry_plane import BY, entered_by, plane_entered
from raybox.traversal.certain_hits import CertainHits
from raybox.traversal.node_test import GROWTH, is_certain, reach, undecided
from raybox.traversal.protocol import StreamHooks
from raybox.traversal.ray_order import Order, Span, list_undecided
from raybox.traversal.ray_setup import RESULT, STOP, TIMED
from raybox.traversal.ray_state import both_at_range_start, end_at, mark_undecided
from raybox.traversal.slab_coefficients import MARGIN

_AHEAD = 16  # results go all over the arrays: their places are prefetched so many before (3 % of `nearest`)


@struct
class NearestRecorder(NamedTuple):
    """The first hit: RESULT is its index; if it is TIMED, its time is from times[r, 0] to times[r, 1].

    If it is not, it was a certain hit, and is resolved when first there is need; TIMED then is by which plane
    the box is entered, if that is known (`raybox.queries.nearest.entry_plane`).
    """

    times: Any  # float64 (rays, 2)
    index: Any  # the results of all rays, as for t
    t: Any


@device
def _record(recorder: NearestRecorder, job: Any, workspace: Any, count: int) -> None:
    pairs, state, times = workspace.pairs, workspace.state, recorder.times
    for p in range(count):
        status = pairs.status[p]
        r, i = pairs.ray[p], pairs.item[p]
        j = state[r, RESULT]
        if i == j:
            times[r, 0], times[r, 1] = pairs.low[p], pairs.high[p]
            if status != HIT:
                mark_undecided(workspace, r)
            continue
        if status == MISS or j == UNDECIDED_INDEX or (j >= 0 and pairs.low[p] > times[r, 1]):
            continue
        if status == HIT and (j == MISS_INDEX or pairs.high[p] < times[r, 0]):
            state[r, RESULT] = state[r, TIMED] = i
            times[r, 0], times[r, 1] = pairs.low[p], pairs.high[p]
            end_at(workspace, r, pairs.high[p])
        elif status == HIT and both_at_range_start((pairs.low[p], pairs.high[p]), (times[r, 0], times[r, 1])):
            state[r, RESULT] = state[r, TIMED] = smaller(i, j)
        elif (
            status == HIT
            and j >= 0
            and tie_is_certain(job.rows, workspace.rays64, whole(r), whole(i), whole(j))
        ):
            state[r, RESULT] = state[r, TIMED] = smaller(i, j)
            low, high = larger(pairs.low[p], times[r, 0]), smaller(pairs.high[p], times[r, 1])
            times[r, 0], times[r, 1] = low, high
        else:
            mark_undecided(workspace, r)


@device
def _add_candidate(_recorder: NearestRecorder, workspace: Any, count: int, r: int, i: int) -> int:
    """Add a candidate; before it, a certain hit that has no time yet."""
    j = workspace.state[r, RESULT]
    if j >= 0 and j != workspace.state[r, TIMED]:
        workspace.state[r, TIMED] = j
        workspace.pairs.ray[count], workspace.pairs.item[count] = r, j
        count += 1
    workspace.pairs.ray[count], workspace.pairs.item[count] = r, i
    return count + 1


class CertainNearest(CertainHits):
    """A box that is certainly hit before all others so far is the result so far.

    Its reach is the ray's new end, and the next must reach no farther, with the same room to spare.
    """

    records_most = True

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self.slot = Register(self.b, constant(self.b, I32, self.rays.count, MISS_INDEX).value)

    def record(self, slot: Any, near: Lanes, far: Lanes) -> Lanes:
        """Record the rays for which the box is certainly before all others so far."""
        margin = self.rays.margin
        stop = reach(near, margin)
        certain = is_certain(stop, far, margin)
        self.rays.stop.value = certain.choose(stop, self.rays.stop.lanes).value
        self.put(slot, certain)
        return undecided(near, far, certain)

    def put(self, slot: Any, certain: Lanes) -> None:
        """Keep the slot of those rays for which it is certain."""
        number = splat(self.b, self.b.trunc(slot, I32), self.rays.count)
        self.slot.value = certain.choose(number, self.slot.lanes).value

    def finish(self) -> None:
        """Write the results so far, by which planes boxes are entered, and where the rays now end."""
        numbers, stops = self.slot.value, self.rays.stop.value
        with bits(self.b, (self.slot.lanes > MISS_INDEX).mask()) as lane:
            ray = self.ray(lane)
            slot = self.b.zext(self.b.extract_element(numbers, lane), I64)
            self.write(ray, self.slots.item(slot), self.b.extract_element(stops, lane))
            self.write_plane(ray, slot)

    def write_plane(self, ray: Any, slot: Any) -> None:
        """Write by which plane a ray enters its box: about one ray in a box, so one by one."""
        planes = [self.slots.plane(2 * axis, slot, 1).lane(0) for axis in range(3)]
        plane = entered_by(self.b, self.workspace.packed_rays, ray, planes, self.slots.octant)
        self.workspace.state.put(plane, self.state_at(ray, TIMED))


@device
def _reach(near: float, margin: float) -> Any:
    """Return a time by which a ray has certainly entered a box, as `node_test.reach` does."""
    return near * np.float32(GROWTH) + margin


@device
def _record_certain(_recorder: NearestRecorder, job: Any, workspace: Any, spot: Any, r: int) -> bool:
    node, octant, slot = spot
    near, stop, margin = workspace.slots[slot], workspace.packed_rays[r, STOP], workspace.single[MARGIN]
    late = _reach(near, margin)
    if _reach(late, margin) <= stop:
        workspace.state[r, RESULT] = ~job.tree.nodes[node, CHILD + slot]
        workspace.state[r, TIMED] = plane_entered(job.tree.nodes, workspace, (node * ROW, octant, slot), r)
        workspace.packed_rays[r, STOP] = late
        return True
    return near > stop


@device
def _write_results(recorder: NearestRecorder, job: Any, order: Order, workspace: Any, group: Span) -> bool:
    base, begin, end = group
    pairs, state, where = workspace.pairs, workspace.state, order.where[begin:]
    found, others = whole(0), whole(0)
    for r in range(end - begin):
        i = state[r, RESULT]
        if i >= 0 and state[r, TIMED] <= BY:
            pairs.ray[found], pairs.item[found], pairs.status[found] = where[r], i, BY - state[r, TIMED]
            pairs.source[found] = base + order.order[begin + r]
            found += 1
        elif i >= 0:
            workspace.lists[others] = r
            others += 1
        elif i == UNDECIDED_INDEX:
            list_undecided(order, whole(order.order[begin + r]))
    entry_times(job.rows, order.rows, pairs, found)
    _write_timed(recorder, order, workspace, base, found)
    for k in range(others):
        r = workspace.lists[k]
        pairs.ray[k], pairs.item[k] = where[r], state[r, RESULT]
        pairs.source[k] = base + order.order[begin + r]
    write_hits(recorder, job, order, order.rows, workspace, (base, others))
    return True


@device
def write_hits(
    recorder: NearestRecorder, job: Any, order: Order, rays64: Any, workspace: Any, place: tuple[int, int]
) -> None:
    """Write the hits of rays that certainly hit something. place: the batch's first ray, how many pairs."""
    first_contacts(job.rows, rays64, workspace.pairs, place[1])
    _write_timed(recorder, order, workspace, place[0], place[1])


@device
def _write_timed(recorder: NearestRecorder, order: Order, workspace: Any, base: int, found: int) -> None:
    """Write the hits of pairs whose times are known, and list the other rays as undecided."""
    pairs = workspace.pairs
    for p in range(found):
        ahead = pairs.source[smaller(p + _AHEAD, found - 1)]
        prefetch_to_write(recorder.index, ahead)
        prefetch_to_write(recorder.t, ahead)
        k = pairs.source[p]
        if pairs.status[p] != HIT:
            list_undecided(order, k - base)
        else:
            recorder.index[k] = pairs.item[p]
            recorder.t[k] = pairs.low[p]


HOOKS = StreamHooks(
    record=_record,
    write_results=_write_results,
    add_candidate=_add_candidate,
    certain_hits=CertainNearest,
    record_certain=_record_certain,
    defers_float64=True,
)
