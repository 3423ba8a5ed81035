"""The stream traversal: many rays at a time, so that each node is fetched once for a list of rays.

All rays of a group run into the same octant. At a node, sixteen rays of its list at a time are tested against
every slot, and the numbers of those that may hit a slot are squeezed into that slot's list. Boxes among the
slots become candidates; inner nodes wait with their lists, near ones first, less the
rays that have ended meanwhile. Short lists go on ray by ray.

Source: Barringer and Akenine-Moeller 2014, "Dynamic Ray Stream Traversal".

Where any box will do (`StreamHooks.ends_at_hit`), a ray goes first where it stays longest, and a list of
rays where most of them go: boxes are likely there. So rays that hit something visit a fifth fewer nodes one
by one, and `occluded` takes 5 to 30 % less time. How soon a ray enters a slot then does not say whether the
slot still matters; whether the ray has ended does.

Source: Ize and Hansen 2011, "RTSAH Traversal Order for Occlusion Rays".
"""

from collections.abc import Callable

from raybox.bvh.node import CHILD, ROW, WIDTH
from raybox.compiler.decorators import declare, device, inlined, no, whole, yes
from raybox.compiler.intrinsics import int64, lowest_bit, vector_code
from raybox.compiler.simd import I64, Builder, Scalar
from raybox.geometry import PrimitiveRows
from raybox.primitives.table import classify, fills_boxes, has_volumes, has_volumes_of, prefetch_rows
from raybox.traversal import node_test, stream_lists
from raybox.traversal.job import Job, Recorder
from raybox.traversal.node_test import boxes, used
from raybox.traversal.packed_rays import load_float64
from raybox.traversal.packet import intersect_packet_lists, intersect_single_packet, prefetch_pending
from raybox.traversal.protocol import (
    Flag,
    add_candidate,
    add_pair,
    defers_float64,
    ends_at_hit,
    ends_rays,
    intersect_lists,
    intersect_triangles,
    record,
    record_certain,
    scan_nodes,
)
from raybox.traversal.ray_setup import LANES, STOP, at_a_time
from raybox.traversal.single_walk import NextNode, unpack, walk_longest, walk_nearest
from raybox.traversal.slab_coefficients import load_single_ray
from raybox.traversal.slot_triangles import prefetch_slots
from raybox.traversal.stream_lists import occupied, open_lists, pad, pair_up, push_lists
from raybox.traversal.tree import is_excluded
from raybox.traversal.workspace import (
    MOST_PAIRS,
    LeafSlot,
    LeafSlots,
    ListSpan,
    NodeSlots,
    NodeSpan,
    PacketRecorder,
    PendingList,
    Workspace,
    count_candidates,
    count_list_test,
    pending_list,
    put_pending,
)
from raybox.validation import Ints32

# Which of a node's slots come first: the nearest, or those in which rays stay longest.

_has_packets: Flag[Recorder] = declare("has_packets", lambda kind: yes if kind is PacketRecorder else no)


@inlined
def walk(recorder: Recorder, job: Job, workspace: Workspace, top: int, octant: int, ray: int) -> NextNode:
    """Go on with one ray until a node has boxes that it may hit; store the order of its slots."""
    if ends_at_hit(recorder):
        return unpack(walk_longest(job, workspace, (top, octant, ray)))
    return unpack(walk_nearest(job, workspace, (top, octant, ray)))


@inlined
def drop_ended(recorder: Recorder, workspace: Workspace, begin: int, end: int) -> int:
    """Drop the rays of a list that end before its slot; return where the list ends."""
    if ends_at_hit(recorder) and not _has_packets(recorder):
        return stream_lists.drop_ended_open(workspace, begin, end)
    return stream_lists.drop_ended(workspace, begin, end)


@inlined
def rank_slots(recorder: Recorder, nodes: Ints32, workspace: Workspace, row: int, octant: int) -> None:
    """Store the order of a node's slots that have lists: the least comes first."""
    if ends_at_hit(recorder):
        node_test.rank_slots_fullest(workspace)
    else:
        node_test.rank_slots(nodes, workspace, row, octant)


@inlined
def is_pruned(recorder: Recorder, workspace: Workspace, order: float, ray: int) -> bool:
    """Return whether a ray ends before a slot. order: what `walk` stored of the slot."""
    if ends_at_hit(recorder):
        return workspace.packed_rays[ray, STOP] < 0.0
    return order > workspace.packed_rays[ray, STOP]


FULL = 8  # candidates that are resolved at a time
SHORT, SHORT_AT_TRIANGLES = 2, 5  # lists up to this long go on ray by ray


@inlined
def _allowed(job: Job, node: int, mask: int) -> int:
    """Drop from a node's boxes those that `where` excludes."""
    if job.allowed.size > 0:
        for slot in range(WIDTH):
            if mask >> slot & 1 and not job.allowed[~whole(job.tree.nodes[node, CHILD + slot])]:
                mask &= ~(1 << slot)
    return mask


@device
def _without_excluded(job: Job, workspace: Workspace, node: int, mask: int, ray: int) -> int:
    """Drop from a node's boxes those that a ray does not hit."""
    left = mask
    while left != 0:
        slot = lowest_bit(left)
        left &= left - 1
        if is_excluded(job, workspace.excluded[ray], whole(~job.tree.nodes[node, CHILD + slot])):
            mask &= ~(1 << slot)
    return mask


@device
def float64_is_deferred(job: Job, recorder: Recorder) -> bool:
    """Return whether float64 copies of rays are made on demand, by `load_float64`."""
    return defers_float64(recorder) and (fills_boxes(job.rows) or has_volumes(job.rows))


@device
def resolve_candidates(job: Job, recorder: Recorder, workspace: Workspace, count: int) -> None:
    """Resolve candidates in float64, and record them."""
    count_candidates(workspace, count)
    classify(job.rows, workspace.rays64, workspace.pairs, count)
    record(recorder, job, workspace, count)


@device
def _resolve(job: Job, recorder: Recorder, workspace: Workspace, count: int) -> None:
    """Resolve candidates whose rays may have no float64 copy yet."""
    if float64_is_deferred(job, recorder):
        load_float64(workspace, workspace.first_ray[0], count)
    resolve_candidates(job, recorder, workspace, count)


@device
def _resolve_full(job: Job, recorder: Recorder, workspace: Workspace, count: int) -> None:
    """Resolve candidates, eight at a time; the rest waits for more.

    A vector of one pair takes as long as one of eight. Boxes do not wait: certain hits are recorded at once,
    and would overtake them.
    """
    full = count if fills_boxes(job.rows) else count // FULL * FULL
    if full > 0:
        _resolve(job, recorder, workspace, full)
    pairs = workspace.pairs
    for k in range(full, count):
        pairs.ray[k - full], pairs.item[k - full] = pairs.ray[k], pairs.item[k]
    workspace.waiting_count[0] = count - full


@device
def resolve_waiting(job: Job, recorder: Recorder, workspace: Workspace) -> None:
    """Resolve the candidates that wait."""
    if workspace.waiting_count[0] > 0:
        _resolve(job, recorder, workspace, workspace.waiting_count[0])
        workspace.waiting_count[0] = 0


@device
def _make_room(job: Job, recorder: Recorder, workspace: Workspace, count: int) -> int:
    """Return how many candidates wait; resolve them first if there is no room for so many more."""
    if workspace.waiting_count[0] + count + FULL > workspace.pairs.ray.size:
        resolve_waiting(job, recorder, workspace)
    return workspace.waiting_count[0]


@device
def _triangles_undecided(
    _rows: PrimitiveRows, recorder: Recorder, job: Job, workspace: Workspace, slots: LeafSlots, ray: int
) -> int:
    """Record the triangles that one ray hits for certain; return a bit for each that it may hit."""
    return intersect_triangles(recorder, job, workspace, slots, ray)


@device
def _all_undecided(
    _rows: PrimitiveRows, _recorder: Recorder, _job: Job, _workspace: Workspace, slots: LeafSlots, _ray: int
) -> int:
    return slots.possible


_undecided: Callable[[PrimitiveRows, Recorder, Job, Workspace, LeafSlots, int], int] = declare(
    "undecided",
    lambda kind: _triangles_undecided if has_volumes_of(kind) else _all_undecided,
    inline=True,
)


@device
def _add_ray(recorder: Recorder, job: Job, workspace: Workspace, slots: LeafSlots, ray: int) -> None:
    """Record the boxes that one ray hits for certain; make the others that it may hit candidates."""
    nodes, certain = job.tree.nodes, slots.certain
    left = _undecided(job.rows, recorder, job, workspace, slots, ray)
    while certain != 0:
        slot = lowest_bit(certain)
        certain &= certain - 1
        if record_certain(recorder, job, workspace, LeafSlot(slots.node, slots.octant, slot), ray):
            left &= ~(1 << slot)
    count = _make_room(job, recorder, workspace, 2 * WIDTH)
    while left != 0:
        slot = lowest_bit(left)
        left &= left - 1
        if not is_pruned(recorder, workspace, workspace.slots[slot], ray):
            item = whole(~nodes[slots.node, CHILD + slot])
            if not fills_boxes(job.rows):
                prefetch_rows(job.rows, item)
            if has_volumes(job.rows):
                count = add_pair(recorder, workspace, count, ray, item)
            else:
                count = add_candidate(recorder, workspace, count, ray, item)
    if count > 0:
        _resolve_full(job, recorder, workspace, count)


@inlined
def _traverse_single(
    job: Job, recorder: Recorder, workspace: Workspace, octant: int, start: int, ray: int
) -> None:
    """Traverse the tree below a node with one ray."""
    load_single_ray(recorder, workspace, ray)
    workspace.node[0], workspace.time[0] = start, 0.0
    top = whole(1)
    while True:  # one place of the call: it is inlined
        node, possible, certain, top = walk(recorder, job, workspace, top, octant, ray)
        if node < 0:
            return
        possible = _allowed(job, node, possible)
        if workspace.excludes[0] != 0:
            possible = _without_excluded(job, workspace, node, possible, ray)
        if possible != 0:
            certain = certain & possible if fills_boxes(job.rows) else 0
            _add_boxes(recorder, job, workspace, LeafSlots(node, octant, possible, certain), ray)


@device
def _add_ray_lists(
    recorder: Recorder, job: Job, workspace: Workspace, node: int, _octant: int, mask: int
) -> None:
    """Make the boxes in some slots of a node candidates of the rays of their lists."""
    nodes = job.tree.nodes
    most = whole(0)
    for slot in range(WIDTH):
        most += 2 * workspace.lengths[slot] * (mask >> slot & 1)
    count = _make_room(job, recorder, workspace, most)
    while mask != 0:
        slot = lowest_bit(mask)
        mask &= mask - 1
        item = whole(~nodes[node, CHILD + slot])
        prefetch_rows(job.rows, item)
        # Only boxes have certain hits, which `add_candidate` may have to resolve first.
        if fills_boxes(job.rows):
            for k in range(workspace.starts[slot], workspace.starts[slot] + workspace.lengths[slot]):
                count = add_candidate(recorder, workspace, count, whole(workspace.lists[k]), item)
        else:
            count = pair_up(workspace, slot, item, count)
    _resolve_full(job, recorder, workspace, count)


def _chosen(packet: object, stream: object) -> Callable[[type], object]:
    """Return what picks the kernel for packets or the one for rays."""
    return lambda kind: packet if kind is PacketRecorder else stream


# The rays of the lists of some slots of a node (node, octant, slots), or one ray, against the boxes there.
_add_box_lists: Callable[[Recorder, Job, Workspace, int, int, int], None] = declare(
    "add_box_lists", _chosen(intersect_packet_lists, _add_ray_lists), inline=True
)
_add_boxes: Callable[[Recorder, Job, Workspace, LeafSlots, int], None] = declare(
    "add_boxes", _chosen(intersect_single_packet, _add_ray), inline=True
)


@device
def _prefetch_slots(_recorder: Recorder, job: Job, workspace: Workspace, top: int) -> None:
    """Prefetch the triangles of the node on top of the stack; the stack has so many."""
    if has_volumes(job.rows) and top > 0:
        prefetch_slots(job.triangles, pending_list(workspace, top - 1).node)


_prefetch_next: Callable[[Recorder, Job, Workspace, int], None] = declare(
    "prefetch_next", _chosen(prefetch_pending, _prefetch_slots), inline=True
)


@device
def traverse_starts(
    job: Job, recorder: Recorder, workspace: Workspace, octant: int, number: int, row: int
) -> None:
    """Record every allowed primitive that the rays of the first list, so many, may hit.

    row: that of `Tree.starts` at whose nodes these rays start, beside row 0; ~row: at those alone.
    """
    starts, last, is_first = job.tree.starts, whole(0), True
    if row < 0:
        row = last = ~row
    while row >= 0:
        for node in range(starts[row, 0], starts[row, 0] + starts[row, 1]):
            # Below a node, ended rays are dropped, and memory behind those that are left is overwritten.
            if ends_rays(recorder) and (number > 1 or not is_first):
                pad(workspace.lists, whole(workspace.lists[0]), number)
                number = drop_ended(recorder, workspace, 0, number)
            is_first = False
            if number > 0:
                _traverse_below(job, recorder, workspace, octant, whole(node), number)
        row = last if row > last else -1


@vector_code(int64)
def _at_a_time(_b: Builder) -> Scalar:
    """Return how many rays are tested together."""
    return I64(at_a_time())


@device
def scan_span(job: Job, recorder: Recorder, workspace: Workspace, nodes: ListSpan, number: int) -> None:
    """Record every box in some nodes, of boxes alone, that the rays of the first list, so many, may hit.

    The rays run into any octants.
    """
    lists, free = workspace.lists, number + LANES
    pad(lists, whole(lists[0]), number)
    span = NodeSpan(nodes.begin, nodes.end - nodes.begin, free)
    for begin in range(0, number, _at_a_time()):
        found = scan_nodes(recorder, job, workspace, span, ListSpan(begin, number))
        if found > 0:
            count = _make_room(job, recorder, workspace, 2 * found)
            for k in range(free, free + found):
                ray, item = whole(lists[k]), whole(lists[k + MOST_PAIRS])
                count = add_candidate(recorder, workspace, count, ray, item)
            _resolve_full(job, recorder, workspace, count)
    count_list_test(workspace, number * span.count)


@inlined
def _traverse_below(
    job: Job, recorder: Recorder, workspace: Workspace, octant: int, start: int, number: int
) -> None:
    """Record every allowed primitive below a node that the rays of the first list, so many, may hit."""
    nodes, lists = job.tree.nodes, workspace.lists
    pad(lists, lists[0], number)
    put_pending(workspace, 0, PendingList(start, 0, number, number + LANES))
    short = SHORT_AT_TRIANGLES if has_volumes(job.rows) else SHORT
    top = 1
    while top > 0:
        # Take the node that comes first, and its list less the rays that have ended.
        top -= 1
        node, begin, end, free = pending_list(workspace, top)
        if ends_rays(recorder):
            end = drop_ended(recorder, workspace, begin, end)
            if end == begin:
                continue
            pad(lists, whole(lists[begin]), end)
        _prefetch_next(recorder, job, workspace, top)
        room = end - begin + LANES
        if end - begin <= short or free + WIDTH * room > lists.size or workspace.excludes[0] != 0:
            for k in range(begin, end):
                _traverse_single(job, recorder, workspace, octant, node, whole(lists[k]))
            continue

        # Sort the list's rays by the slots that they may hit.
        leaves = boxes(nodes, node * ROW)
        filled = used(nodes, node * ROW)
        open_lists(workspace, free, room)
        slots = NodeSlots(node * ROW, octant, _allowed(job, node, filled & leaves), filled & ~leaves)
        intersect_lists(recorder, job, workspace, slots, ListSpan(begin, end))
        if ends_rays(recorder):
            rank_slots(recorder, nodes, workspace, node * ROW, octant)
        count_list_test(workspace, end - begin)

        # Add the boxes; the inner nodes wait with their lists.
        filled = occupied(workspace.lengths)
        if filled & leaves != 0:
            _add_box_lists(recorder, job, workspace, node, octant, filled & leaves)
        above = (top, free + WIDTH * room, filled & ~leaves)
        top = push_lists(nodes, workspace, node, above, ends_rays(recorder))
