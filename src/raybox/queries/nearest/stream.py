"""`nearest` in the stream traversal: bounds of the first hit of each ray, until one is certain.

What is certain in float32 is in `raybox.queries.nearest.certain`.

The six numbers of a box lie in two or three cache lines: `nearest` takes 3 to 5 % longer without this.
"""

from typing import NamedTuple

import numpy as np

from raybox.bvh.node import CHILD
from raybox.compiler.decorators import device, whole, yes
from raybox.compiler.intrinsics import float32, larger, prefetch_to_write, smaller, vector_code
from raybox.compiler.simd import F32, Builder, Scalar
from raybox.compiler.struct_ref import struct
from raybox.primitives.status import HIT, MISS, MISS_INDEX, UNDECIDED_INDEX, UNKNOWN_ORDER
from raybox.primitives.table import certain_order, entry_times, first_contacts
from raybox.queries.nearest.certain import BY, CertainNearest, enters_first, plane_entered
from raybox.traversal.certain_hits import record_hits
from raybox.traversal.job import Job
from raybox.traversal.protocol import StreamHooks
from raybox.traversal.ray_setup import RESULT, STOP, TIMED, margins
from raybox.traversal.ray_state import both_at_range_start, end_at, mark_undecided
from raybox.traversal.slab_coefficients import MARGIN
from raybox.traversal.workspace import (
    LeafSlot,
    Order,
    Span,
    Workspace,
    list_undecided,
)
from raybox.validation import Floats, Ints

_AHEAD = 16  # results go all over the arrays: their places are prefetched so many before (3 % of `nearest`)


@struct
class NearestRecorder(NamedTuple):
    """The first hit: RESULT is its index; if it is TIMED, its time is within the `bounds` of the workspace.

    If it is not, it was a certain hit, and is resolved when first there is need; TIMED then is by which plane
    the box is entered, if that is known (`raybox.queries.nearest.certain`).
    """

    index: Ints  # type: ignore[assignment]  # not the method of tuples; the results of all rays, as for t
    t: Floats


@device
def _record(recorder: NearestRecorder, job: Job, workspace: Workspace, count: int) -> None:
    pairs, state, times = workspace.pairs, workspace.state, workspace.bounds
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
        elif status == HIT and j >= 0:
            _record_ordered(recorder, job, workspace, p)
        else:
            mark_undecided(workspace, r)


@device
def _record_ordered(recorder: NearestRecorder, job: Job, workspace: Workspace, p: int) -> None:
    """Record a hit that may be as late as the first one so far: by their certain order, then by index."""
    pairs, state, times = workspace.pairs, workspace.state, workspace.bounds
    r, i = whole(pairs.ray[p]), whole(pairs.item[p])
    j = whole(state[r, RESULT])
    order = certain_order(job.rows, workspace.rays64, r, i, j)
    if order == UNKNOWN_ORDER:
        mark_undecided(workspace, r)
        return
    low = larger(pairs.low[p], times[r, 0]) if order == 0 else times[r, 0]
    if order < 0:
        low = pairs.low[p]
    if order < 0 or (order == 0 and i < j):
        state[r, RESULT] = i
    state[r, TIMED] = state[r, RESULT]
    times[r, 0], times[r, 1] = low, smaller(pairs.high[p], times[r, 1])


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


@vector_code(float32)
def _growth(_b: Builder) -> Scalar:
    """Return the growth of `raybox.traversal.ray_setup.Margins`."""
    return F32(margins().growth)


@device
def _reach(near: np.float32, margin: np.float32) -> np.float32:
    """Return a time by which a ray has certainly entered a box, as `node_test.reach` does."""
    return near * _growth() + margin


@device
def _record_certain(
    _recorder: NearestRecorder, job: Job, workspace: Workspace, slot: LeafSlot, r: int
) -> bool:
    near, stop, margin = workspace.slots[slot.slot], workspace.packed_rays[r, STOP], workspace.single[MARGIN]
    late = _reach(near, margin)
    first, box = _reach(late, margin) <= stop, whole(~job.tree.nodes[slot.node, CHILD + slot.slot])
    j, by = whole(workspace.state[r, RESULT]), whole(workspace.state[r, TIMED])
    if not first and (near > stop or j < 0 or by > BY):
        return near > stop
    if not first and enters_first(job.rows, box, j, by) == 0:
        return True
    plane = plane_entered(job.tree.nodes, workspace, slot, r)
    if first or plane == by:
        workspace.state[r, RESULT], workspace.state[r, TIMED] = box, plane
        workspace.packed_rays[r, STOP] = min(late, stop)
        return True
    return False


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
    NearestRecorder,
    record=_record,
    write_results=_write_results,
    add_candidate=_add_candidate,
    intersect_lists=record_hits(CertainNearest),
    record_certain=_record_certain,
    defers_float64=yes,
)
