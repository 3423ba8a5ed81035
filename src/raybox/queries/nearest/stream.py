"""`nearest` in the stream traversal: bounds of the first hit of each ray, until one is certain.

What is certain in float32 is in `raybox.queries.nearest.certain`.

The six numbers of a box lie in two or three cache lines: `nearest` takes 3 to 5 % longer without this.
"""

from typing import Any, NamedTuple

import numpy as np

from raybox.bvh.node import CHILD
from raybox.compiler.decorators import device, whole, yes
from raybox.compiler.intrinsics import float32, vector_code
from raybox.compiler.simd import F32, Builder, Scalar, lesser, splat
from raybox.compiler.struct_ref import struct
from raybox.primitives.status import UNDECIDED_INDEX
from raybox.primitives.table import entry_times
from raybox.primitives.triangle_decision import RaysAtTriangle, TriangleState
from raybox.queries.hit_query import I, record, write_hits, write_timed
from raybox.queries.nearest.certain import BY, CertainNearest, enters_first, plane_entered
from raybox.traversal.job import Job
from raybox.traversal.protocol import StreamHooks
from raybox.traversal.ray_setup import RESULT, STOP, TIMED, margins
from raybox.traversal.slab_coefficients import MARGIN
from raybox.traversal.workspace import (
    LeafSlot,
    Order,
    Span,
    Workspace,
    list_undecided,
)
from raybox.validation import Floats, Ints


@struct
class Nearest(NamedTuple):
    """The first hit: RESULT is its index; if it is TIMED, its time is within the `bounds` of the workspace.

    If it is not, it was a certain hit, and is resolved when first there is need; TIMED then is by which plane
    the box is entered, if that is known (`raybox.queries.nearest.certain`).
    """

    index: Ints  # type: ignore[assignment]  # not the method of tuples; the results of all rays, as for t
    t: Floats

    def prefers(self, order: I, one: I, other: I) -> Any:
        """Return whether the first of two hits comes first, or ties and has the lower index."""
        return (order < 0) | ((order == 0) & (one < other))


@device
def _add_candidate(_recorder: Nearest, workspace: Workspace, count: int, r: int, i: int) -> int:
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
def _record_certain(_recorder: Nearest, job: Job, workspace: Workspace, slot: LeafSlot, r: int) -> bool:
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


def _record_triangle(b: Builder, at: RaysAtTriangle) -> TriangleState:
    """Record certain hits, which come before the first ones so far."""
    return TriangleState(
        at.hits.choose(lesser(at.late, at.stop), at.stop),
        at.hits.choose(at.low, at.before),
        at.hits.choose(splat(b, at.item, at.hits.count), at.result),
    )


@device
def _write_results(recorder: Nearest, job: Job, order: Order, workspace: Workspace, group: Span) -> bool:
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
    write_timed(recorder, order, workspace, base, found)
    for k in range(others):
        r = workspace.lists[k]
        pairs.ray[k], pairs.item[k] = where[r], state[r, RESULT]
        pairs.source[k] = base + order.order[begin + r]
    write_hits(recorder, job, order, order.rows, workspace, (base, others))
    return True


HOOKS = StreamHooks(
    Nearest,
    record=record,
    write_results=_write_results,
    add_candidate=_add_candidate,
    certain_hits=CertainNearest,
    record_certain=_record_certain,
    record_triangle=_record_triangle,
    defers_float64=yes,
)
