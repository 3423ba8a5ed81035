"""`nearest` in the stream traversal: bounds of the first hit of each ray, until one box is certain.

Where float32 proves by which plane a ray enters a box, only one number of the box is read. A near time is
early by at most the margin and a share of itself (`raybox.traversal.ray_setup`). So the latest of three near
times is exactly the latest, and after the start of the ray's range, where it is no earlier than what the
others, and 0, may `reach`. Where even the latest cannot reach 0, the ray starts inside the box: times count
from the start of its range or, if later, from its entry into the bounds of all boxes, before which it enters
none.

The six numbers of a box lie in two or three cache lines: `nearest` takes 3 to 5 % longer without this.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from raybox.bvh.node import CHILD, ROW
from raybox.compiler.decorators import device, whole
from raybox.compiler.intrinsics import Fields, larger, prefetch_to_write, smaller, vector_code
from raybox.compiler.simd import (
    F32,
    I32,
    I64,
    Builder,
    Lanes,
    Scalar,
    constant,
    greater,
    lesser,
    lined_up,
    multiply_add,
    splat,
)
from raybox.compiler.simd_arrays import Memory, Register, bits
from raybox.compiler.struct_ref import struct
from raybox.primitives.status import HIT, MISS, MISS_INDEX, UNDECIDED_INDEX
from raybox.primitives.table import entry_times, first_contacts, tie_is_certain
from raybox.traversal.certain_hits import CertainHits
from raybox.traversal.job import Job
from raybox.traversal.node_test import is_certain, reach, sides_of, undecided
from raybox.traversal.protocol import StreamHooks
from raybox.traversal.ray_setup import PACKED_WORDS, RESULT, STOP, TIMED, margins
from raybox.traversal.ray_state import both_at_range_start, end_at, mark_undecided
from raybox.traversal.slab_coefficients import MARGIN, expand_row
from raybox.traversal.workspace import Order, Span, Workspace, list_undecided
from raybox.validation import Floats, Ints

BY = MISS_INDEX - 1  # minus the number of a plane: 0 to 2 are lower planes, 3 to 5 upper ones
WITHIN = BY - 6  # the ray starts inside the box


def entered_by(b: Builder, packed_rays: Memory, ray: Scalar, planes: list[Scalar], octant: Scalar) -> Scalar:
    """Return BY minus the number of the plane of entry, WITHIN, or MISS_INDEX where neither is proven.

    planes: the near planes of the box's slot.
    """
    near_planes = lined_up(b, [*planes, planes[-1]])
    slabs, margin = expand_row(b, packed_rays, b.mul(ray, I64(PACKED_WORDS)))
    near = multiply_add(near_planes, slabs.steep[0], slabs.near[0])
    x, y, z = (near.shuffled(near, [k]) for k in range(3))
    later = greater(x, y)
    last, other = greater(later, z), greater(lesser(later, z), lesser(x, y))
    certain = reach(greater(other, constant(b, F32, 1, 0.0)), margin) <= last
    axis = z.equals(last).choose(constant(b, I64, 1, 2), y.equals(last).to(I64)).lane(0)
    side = b.and_(b.lshr(octant, axis), I64(1))
    plane = b.add(axis, b.mul(side, I64(3)))
    within = reach(last, margin) < 0.0
    unknown = b.select(within.lane(0), I32(WITHIN), I32(MISS_INDEX))
    return b.select(certain.lane(0), b.sub(I32(BY), b.trunc(plane, I32)), unknown)


@vector_code(types.int32)
def plane_entered(b: Builder, nodes: Memory, workspace: Fields, spot: list[Scalar], ray: Scalar) -> Scalar:
    """Return `entered_by` of a slot and a ray; spot: row of the node, octant, slot."""
    row, octant, slot = spot
    planes = nodes.as_items(F32)
    near = [planes.get(b.add(sides_of(b, row, octant, axis)[0], slot)) for axis in range(3)]
    return entered_by(b, workspace.packed_rays, ray, near, octant)


_AHEAD = 16  # results go all over the arrays: their places are prefetched so many before (3 % of `nearest`)


@struct
class NearestRecorder(NamedTuple):
    """The first hit: RESULT is its index; if it is TIMED, its time is from times[r, 0] to times[r, 1].

    If it is not, it was a certain hit, and is resolved when first there is need; TIMED then is by which plane
    the box is entered, if that is known (`raybox.queries.nearest.stream`).
    """

    times: Floats  # (rays, 2)
    index: Ints  # type: ignore[assignment]  # not the method of tuples; the results of all rays, as for t
    t: Floats


@device
def _record(recorder: NearestRecorder, job: Job, workspace: Workspace, count: int) -> None:
    pairs, state, times = workspace.pairs, workspace.state, recorder.times
    for p in range(count):
        status = pairs.status[p]
        r, i = pairs.ray[p], pairs.item[p]
        j = state[r, RESULT]
        if i == j:  # a certain hit: only its times were unknown
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
def _add_candidate(_recorder: NearestRecorder, workspace: Workspace, count: int, r: int, i: int) -> int:
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

    def record(self, slot: Scalar, near: Lanes, far: Lanes) -> Lanes:
        """Record the rays for which the box is certainly before all others so far."""
        margin = self.rays.margin
        stop = reach(near, margin)
        certain = is_certain(stop, far, margin)
        self.rays.stop.value = certain.choose(stop, self.rays.stop.lanes).value
        self.put(slot, certain)
        return undecided(near, far, certain)

    def put(self, slot: Scalar, certain: Lanes) -> None:
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

    def write_plane(self, ray: Scalar, slot: Scalar) -> None:
        """Write by which plane a ray enters its box: about one ray in a box, so one by one."""
        planes = [self.slots.plane(2 * axis, slot, 1).lane(0) for axis in range(3)]
        plane = entered_by(self.b, self.workspace.packed_rays, ray, planes, self.slots.octant)
        self.workspace.state.put(plane, self.state_at(ray, TIMED))


@vector_code(types.float32)
def _growth(_b: Any) -> Any:
    """Return the growth of `raybox.traversal.ray_setup.Margins`."""
    return F32(margins().growth)


@device
def _reach(near: np.float32, margin: np.float32) -> np.float32:
    """Return a time by which a ray has certainly entered a box, as `node_test.reach` does."""
    return near * _growth() + margin


@device
def _record_certain(
    _recorder: NearestRecorder, job: Job, workspace: Workspace, spot: tuple[int, int, int], r: int
) -> bool:
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
def _write_results(
    recorder: NearestRecorder, job: Job, order: Order, workspace: Workspace, group: Span
) -> bool:
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
    recorder: NearestRecorder,
    job: Job,
    order: Order,
    rays64: Floats,
    workspace: Workspace,
    place: tuple[int, int],
) -> None:
    """Write the hits of rays that certainly hit something. place: the batch's first ray, how many pairs."""
    first_contacts(job.rows, rays64, workspace.pairs, place[1])
    _write_timed(recorder, order, workspace, place[0], place[1])


@device
def _write_timed(
    recorder: NearestRecorder, order: Order, workspace: Workspace, base: int, found: int
) -> None:
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
