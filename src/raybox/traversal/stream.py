"""Walk the tree with many rays at a time: each node is fetched once for a list of rays.

All rays of a group run into the same octant. At a node, sixteen rays of its list at a time are tested against
every slot, and the numbers of those that may meet a slot are squeezed into that slot's list. Boxes among the
slots are screened; inner nodes are entered with their lists, near ones first (or as
`raybox.queries.child_order` says), less the rays that have ended meanwhile. Lists that have grown short go on
ray by ray.

Source: Barringer and Akenine-Moeller 2014, "Dynamic Ray Stream Traversal".
"""

from typing import Any

from raybox.bvh.node import CHILD, ROW, WIDTH
from raybox.compiler import simd_single as simd
from raybox.compiler.decorators import device, dispatch, inlined, whole
from raybox.compiler.intrinsics import prefetch
from raybox.primitives.table import fetch, fills, screen
from raybox.queries.certain_hits import sift, take
from raybox.queries.child_order import is_over, keep, meet, rank
from raybox.queries.recorders import PacketsOf, note, propose, prunes, spares
from raybox.traversal.node_test import boxes, used
from raybox.traversal.packed_rays import bring
from raybox.traversal.packet import strike_alone, strike_lists
from raybox.traversal.ray_setup import LANES
from raybox.traversal.single import push
from raybox.traversal.slab_coefficients import go_alone
from raybox.traversal.stream_lists import occupied, open_lists, pad, pair_up, push_lists
from raybox.traversal.workspace import WAITING, Desk

FULL = 8  # pairs that are judged at a time
SHORT = 2  # lists up to this long are walked ray by ray


@inlined
def _allowed(job: Any, node: int, mask: int) -> int:
    """Drop from a node's boxes those that may not be met."""
    if job.allowed.size > 0:
        for slot in range(WIDTH):
            if mask >> slot & 1 and not job.allowed[~whole(job.tree.nodes[node, CHILD + slot])]:
                mask &= ~(1 << slot)
    return mask


@device
def is_spared(job: Any, sink: Any) -> bool:
    """Tell whether few rays need their numbers in float64 before they are answered: see `bring`."""
    return spares(sink) and fills(job.rows)


@device
def judge(job: Any, sink: Any, desk: Desk, number: int) -> None:
    """Screen the pairs of the desk and have the sink take note of them."""
    desk.work[2] += number
    screen(job.rows, desk.exact, desk.pairs, number)
    note(sink, job, desk, number)


@device
def _judge(job: Any, sink: Any, desk: Desk, number: int) -> None:
    """Judge pairs whose rays may have been spared."""
    if is_spared(job, sink):
        bring(desk, number)
    judge(job, sink, desk, number)


@device
def _judge_full(job: Any, sink: Any, desk: Desk, number: int) -> None:
    """Judge pairs, eight at a time; what is left over waits for more.

    A vector of one pair takes as long as one of eight. Boxes do not wait: what a ray surely meets is noted
    at once (`raybox.queries.certain_hits`), and would overtake them.
    """
    full = number if fills(job.rows) else number // FULL * FULL
    if full > 0:
        _judge(job, sink, desk, full)
    for k in range(full, number):
        desk.pairs.ray[k - full], desk.pairs.item[k - full] = desk.pairs.ray[k], desk.pairs.item[k]
    desk.work[WAITING] = number - full


@device
def judge_rest(job: Any, sink: Any, desk: Desk) -> None:
    """Judge the pairs that wait."""
    if desk.work[WAITING] > 0:
        _judge(job, sink, desk, desk.work[WAITING])
        desk.work[WAITING] = 0


@device
def _room_for(job: Any, sink: Any, desk: Desk, number: int) -> int:
    """Return how many pairs wait, none if there would be no room for so many more."""
    if desk.work[WAITING] + number + FULL > desk.pairs.ray.size:
        judge_rest(job, sink, desk)
    return desk.work[WAITING]


@device
def _decide_alone(sink: Any, job: Any, desk: Desk, slots: tuple[int, int, int, int], ray: int) -> None:
    """Deal with the boxes among a node's slots that one ray may meet, of which it meets some for sure."""
    node, octant, left, sure = slots
    nodes = job.tree.nodes
    while sure != 0:
        slot = simd.lowest_bit(sure)
        sure &= sure - 1
        if take(sink, job, desk, (node, octant, slot), ray):
            left &= ~(1 << slot)
    found = _room_for(job, sink, desk, 2 * WIDTH)
    while left != 0:
        slot = simd.lowest_bit(left)
        left &= left - 1
        if not is_over(sink, desk, desk.slots[slot], ray):
            item = whole(~nodes[node, CHILD + slot])
            if not fills(job.rows):
                fetch(job.rows, item)
            found = propose(sink, desk, found, ray, item)
    if found > 0:
        _judge_full(job, sink, desk, found)


@inlined
def _walk_alone(job: Any, sink: Any, desk: Desk, octant: int, start: int, ray: int) -> None:
    """Walk one ray through the tree below a node."""
    nodes = job.tree.nodes
    go_alone(sink, desk, ray)
    desk.node[0], desk.time[0] = start, 0.0
    top = 1
    while top > 0:
        top -= 1
        if is_over(sink, desk, desk.time[top], ray):
            continue
        node = whole(desk.node[top])
        met = meet(sink, nodes, desk, node * ROW, octant, ray)
        desk.work[1] += 1
        leaves = boxes(nodes, node * ROW)
        inner = met & ~leaves & (1 << WIDTH) - 1
        base = top
        while inner != 0:
            slot = simd.lowest_bit(inner)
            inner &= inner - 1
            child = whole(nodes[node, CHILD + slot])
            for line in range(0, ROW, 16):
                prefetch(nodes, child * ROW + line)
            top = push(desk, base, top, child, desk.slots[slot])
        leaves = _allowed(job, node, leaves & met)
        if leaves != 0:
            sure = leaves & met >> WIDTH if fills(job.rows) else 0
            decide_alone(sink, job, desk, (node, octant, leaves, sure), ray)


@device
def _decide_lists(sink: Any, job: Any, desk: Desk, node: int, _octant: int, mask: int) -> None:
    """Decide the boxes in some slots of a node for the rays of their lists."""
    nodes = job.tree.nodes
    most = whole(0)
    for slot in range(WIDTH):
        most += 2 * desk.lengths[slot] * (mask >> slot & 1)
    found = _room_for(job, sink, desk, most)
    while mask != 0:
        slot = simd.lowest_bit(mask)
        mask &= mask - 1
        item = whole(~nodes[node, CHILD + slot])
        fetch(job.rows, item)
        if fills(job.rows):  # only then may rays have met something for sure, which `propose` looks after
            for k in range(desk.starts[slot], desk.starts[slot] + desk.lengths[slot]):
                found = propose(sink, desk, found, whole(desk.arena[k]), item)
        else:
            found = pair_up(desk, slot, item, found)
    _judge_full(job, sink, desk, found)


def decide_lists(sink: Any, job: Any, desk: Desk, node: int, octant: int, mask: int) -> None:
    """Decide the boxes in some slots of a node for the rays of their lists."""
    raise NotImplementedError("compiled code only")


def decide_alone(sink: Any, job: Any, desk: Desk, slots: tuple[int, int, int, int], ray: int) -> None:
    """Decide boxes for one ray. slots: node, octant, a bit for each box it may meet, and surely meets."""
    raise NotImplementedError("compiled code only")


dispatch(decide_lists, lambda kind: strike_lists if kind is PacketsOf else _decide_lists, inline=True)
dispatch(decide_alone, lambda kind: strike_alone if kind is PacketsOf else _decide_alone, inline=True)


@inlined
def walk_group(job: Any, sink: Any, desk: Desk, octant: int, number: int) -> None:
    """Have the sink take note of every allowed primitive that the rays of the desk's first list may meet."""
    nodes, arena, pending = job.tree.nodes, desk.arena, desk.pending
    pad(arena, arena[0], number)
    pending[0, 0], pending[0, 1], pending[0, 2], pending[0, 3] = 0, 0, number, number + LANES
    top = 1
    while top > 0:
        # Take the node that comes first, and its list less the rays that have ended.
        top -= 1
        node, begin, end, free = pending[top, 0], pending[top, 1], pending[top, 2], pending[top, 3]
        if prunes(sink):
            end = keep(sink, desk, begin, end)
            if end == begin:
                continue
            pad(arena, whole(arena[begin]), end)
        room = end - begin + LANES
        if end - begin <= SHORT or free + WIDTH * room > arena.size:
            for k in range(begin, end):
                _walk_alone(job, sink, desk, octant, node, whole(arena[k]))
            continue

        # Sort the list's rays by the slots that they may meet.
        leaves = boxes(nodes, node * ROW)
        filled = used(nodes, node * ROW)
        open_lists(desk, free, room)
        sift(
            sink,
            job,
            desk,
            (node * ROW, octant, _allowed(job, node, filled & leaves), filled & ~leaves),
            (begin, end),
        )
        if prunes(sink):
            rank(sink, nodes, desk, node * ROW, octant)
        desk.work[0] += end - begin
        desk.work[3] += 1

        # Screen the boxes; the inner nodes wait with their lists.
        filled = occupied(desk.lengths)
        if filled & leaves != 0:
            decide_lists(sink, job, desk, node, octant, filled & leaves)
        above = (top, free + WIDTH * room, filled & ~leaves)
        top = push_lists(nodes, desk, node, above, prunes(sink))
