"""The loop behind a question of many rays: they are sorted, walked in groups, answered in their own order."""

from typing import Any

from raybox.bvh.aim import CELLS, aim, octant_of
from raybox.bvh.answers import Order, answer, doubt
from raybox.bvh.desk import Desk
from raybox.bvh.keys import CAREFUL, LOST, sort_by, sort_keys
from raybox.bvh.stream import walk_alone, walk_group
from raybox.kernels.jit import device, entry, whole

KEYED = -2  # a place in the order: keys are written, but not sorted
FEW = 64  # so many rays are not worth sorting
_OCTANT = CELLS**3


@device
def _aim(job: Any, desk: Desk, order: Any, place: tuple[Any, Any, Any]) -> None:
    """Write the probes of a group: emitted once, called twice."""
    aim(job, desk, order, place)


@device
def _line_up(desk: Desk, number: int) -> None:
    """Make all rays of the desk the first list."""
    for r in range(number):
        desk.arena[r], desk.times[r] = r, 0.0


@entry
def ask(job: Any, span: Any, order: Order, desk: Desk, sink: Any, size: int) -> bool:
    """Answer for the rays of a span, from the group at order.place on; False: the sink has no room for it."""
    if span[1] - span[0] <= FEW:
        return _ask_few(job, span, order, desk, sink)
    if order.place[0] < 0:
        if order.place[0] != KEYED:
            sort_keys(job.rays, job.frame, span[0], span[1], order.keys)
        sort_by(order.keys, span[1] - span[0], order.starts, order.order)
        order.place[0] = 0
        for k in range(order.starts[CAREFUL], order.starts[LOST]):
            doubt(order, whole(order.order[k]))
    while order.place[0] < 8:
        octant = order.place[0]
        begin = max(order.place[1], order.starts[octant * _OCTANT])
        end = min(order.starts[(octant + 1) * _OCTANT], begin + size)
        if begin < end:
            _aim(job, desk, order.order, (span[0], begin, end))
            _line_up(desk, end - begin)
            walk_group(job, sink, desk, octant, end - begin)
            if not answer(sink, job, order, desk, (span[0], begin, end)):
                return False
        order.place[1] = end
        if end == order.starts[(octant + 1) * _OCTANT]:
            order.place[0] += 1
    return True


@device
def _ask_few(job: Any, span: Any, order: Order, desk: Desk, sink: Any) -> bool:
    """Answer for a few rays, one by one."""
    begin, number = whole(0), span[1] - span[0]
    order.place[2] = 0
    for k in range(number):
        order.order[k] = k
    _aim(job, desk, order.order, (span[0], begin, number))
    for r in range(number):
        walk_alone(job, sink, desk, octant_of(desk.probes, r), begin, r)
    return answer(sink, job, order, desk, (span[0], begin, number))
