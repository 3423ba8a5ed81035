"""`first` in the stream traversal: bounds of the k nearest hits of each ray, in order."""

from __future__ import annotations

from typing import NamedTuple

from raybox.compiler.decorators import device, inlined, whole
from raybox.compiler.struct_ref import struct
from raybox.primitives.status import HIT, MISS, UNDECIDED, UNDECIDED_INDEX, UNKNOWN_ORDER
from raybox.primitives.table import certain_order, first_contacts
from raybox.traversal.job import Job
from raybox.traversal.protocol import StreamHooks
from raybox.traversal.ray_setup import RESULT
from raybox.traversal.ray_state import both_at_range_start, end_at, mark_undecided
from raybox.traversal.workspace import Order, Span, Workspace, list_undecided
from raybox.validation import Floats, Ints, Ints32

_AT_ONCE = 1024  # hits timed by one call: eight are one vector, and a call has 200 words to pass


@struct
class FirstRecorder(NamedTuple):
    """The nearest hits of each ray, RESULT + 1 of them so far, in order."""

    item: Ints32  # (rays, k)
    low: Floats  # (rays, k): bounds of each one's time
    high: Floats
    index: Ints  # type: ignore[assignment]  # not the method of tuples; the results of all rays, as for t
    t: Floats


@device
def _record(recorder: FirstRecorder, job: Job, workspace: Workspace, count: int) -> None:
    pairs, state = workspace.pairs, workspace.state
    for p in range(count):
        r = int(pairs.ray[p])
        if pairs.status[p] == MISS or state[r, RESULT] == UNDECIDED_INDEX:
            continue
        full = state[r, RESULT] + 1 == recorder.item.shape[1]
        place = _place_of(recorder, job, workspace, (p, r), state[r, RESULT] + 1)
        if full and place == recorder.item.shape[1]:
            continue
        if pairs.status[p] == UNDECIDED or place < 0:
            mark_undecided(workspace, r)
            continue
        last = state[r, RESULT] if full else state[r, RESULT] + 1
        for k in range(last, place, -1):
            recorder.item[r, k] = recorder.item[r, k - 1]
            recorder.low[r, k], recorder.high[r, k] = recorder.low[r, k - 1], recorder.high[r, k - 1]
        recorder.item[r, place] = pairs.item[p]
        recorder.low[r, place], recorder.high[r, place] = pairs.low[p], pairs.high[p]
        state[r, RESULT] = last
        if last + 1 == recorder.item.shape[1]:
            end_at(workspace, r, recorder.high[r, last])


@inlined
def _place_of(
    recorder: FirstRecorder, job: Job, workspace: Workspace, pair: tuple[int, int], count: int
) -> int:
    """Return where a pair comes among a ray's hits so far; -1 where float64 cannot tell."""
    p, r = pair
    pairs, place = workspace.pairs, count
    while place > 0:
        low, high = recorder.low[r, place - 1], recorder.high[r, place - 1]
        if pairs.low[p] > high:
            return place
        if not pairs.high[p] < low:
            i, j = whole(pairs.item[p]), whole(recorder.item[r, place - 1])
            tied = both_at_range_start((pairs.low[p], pairs.high[p]), (low, high))
            order = 0 if tied else certain_order(job.rows, workspace.rays64, whole(r), i, j)
            if order == UNKNOWN_ORDER:
                return -1
            if order > 0 or (order == 0 and i > j):
                return place
        place -= 1
    return place


@device
def _write_hits(recorder: FirstRecorder, job: Job, workspace: Workspace, found: int) -> None:
    """Write the listed hits to their places in all results; mark undecided rays."""
    pairs, width = workspace.pairs, recorder.index.shape[1]
    first_contacts(job.rows, workspace.rays64, pairs, found)
    for p in range(found):
        k, slot = divmod(pairs.source[p], width)
        recorder.index[k, slot] = pairs.item[p]
        recorder.t[k, slot] = pairs.low[p]
        if pairs.status[p] != HIT:
            workspace.state[pairs.ray[p], RESULT] = UNDECIDED_INDEX


@device
def _write_results(
    recorder: FirstRecorder, job: Job, order: Order, workspace: Workspace, group: Span
) -> bool:
    base, begin, end = group
    pairs, state = workspace.pairs, workspace.state
    found = whole(0)
    for r in range(end - begin):
        first = (base + order.order[begin + r]) * recorder.index.shape[1]
        for slot in range(state[r, RESULT] + 1):
            pairs.ray[found], pairs.item[found], pairs.source[found] = r, recorder.item[r, slot], first + slot
            found += 1
            if found == _AT_ONCE:
                _write_hits(recorder, job, workspace, found)
                found = whole(0)
    _write_hits(recorder, job, workspace, found)
    for r in range(end - begin):
        if state[r, RESULT] == UNDECIDED_INDEX:
            list_undecided(order, whole(order.order[begin + r]))
    return True


HOOKS = StreamHooks(FirstRecorder, record=_record, write_results=_write_results)
