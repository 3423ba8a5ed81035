"""The lists of rays at a node's slots: opened, counted, and pushed on the stack."""

from collections.abc import Callable

import numpy as np

from raybox.bvh.node import CHILD, ROW, WIDTH
from raybox.compiler.intrinsics import Fields, int64, vector_code, void
from raybox.compiler.simd import F32, I32, I64, Builder, Lanes, Scalar, constant, splat, steps
from raybox.compiler.simd_arrays import Memory, Register, bits, loop, while_any
from raybox.traversal.node_test import valid
from raybox.traversal.ray_setup import LANES
from raybox.traversal.slab_coefficients import stops_of
from raybox.traversal.workspace import PENDING_WORDS, PendingList


@vector_code(void)
def open_lists(b: Builder, workspace: Fields, free: Scalar, room: Scalar) -> None:
    """Begin an empty list for each slot of a node, from `free` on."""
    slots = steps(b, I64(0), WIDTH)
    workspace.starts.store(slots * splat(b, room, WIDTH) + splat(b, free, WIDTH), I64(0))
    workspace.lengths.store(constant(b, I64, WIDTH, 0), I64(0))


@vector_code(int64)
def occupied(b: Builder, lengths: Memory) -> Scalar:
    """Return a bit for each slot whose list is not empty."""
    return (lengths.load(I64(0), WIDTH) > 0).mask()


@vector_code(int64)
def drop_ended(b: Builder, workspace: Fields, begin: Scalar, end: Scalar) -> Scalar:
    """Drop the rays of a list that end before its slot; return where the list ends."""
    return _drop(b, workspace, (begin, end), lambda here: workspace.times.load(here, LANES))


@vector_code(int64)
def drop_ended_open(b: Builder, workspace: Fields, begin: Scalar, end: Scalar) -> Scalar:
    """Drop the rays of a list that have ended by now; return where the list ends."""
    return _drop(b, workspace, (begin, end), lambda _here: constant(b, F32, LANES, 0.0))


def _drop(
    b: Builder, workspace: Fields, span: tuple[Scalar, Scalar], times_of: Callable[[Scalar], Lanes]
) -> Scalar:
    begin, end = span
    left = Register(b, begin)
    number = b.sub(end, begin)
    with loop(b, number, LANES) as at:
        here = b.add(begin, at)
        rays = workspace.lists.load(here, LANES)
        times = valid(b, at, number).choose(times_of(here), np.nan)
        open_still = times <= stops_of(b, workspace, rays)
        workspace.lists.squeeze(rays, open_still, left.value)
        left.value = b.add(left.value, b.ctpop(open_still.mask()))
    return left.value


@vector_code(void)
def pad(b: Builder, lists: Memory, ray: Scalar, end: Scalar) -> None:
    """Write a ray's number 16 times past the end of a list: vectors then have rays in every lane."""
    lists.store(splat(b, b.trunc(ray, I32), LANES), end)


@vector_code(int64)
def push_lists(
    b: Builder, nodes: Memory, workspace: Fields, node: Scalar, above: list[Scalar], near_first: Scalar
) -> Scalar:
    """Push a node's children with their lists, and prefetch them; return where the stack ends.

    above: where the stack ends, where memory is free, a bit for each slot; near_first: whether the nearest
    child is to be on top.
    """
    base, free, mask = above
    row = b.add(b.mul(node, I64(ROW)), I64(CHILD))
    top = Register(b, base)
    with bits(b, mask) as slot:
        child = b.sext(nodes.get(b.add(row, slot)), I64)
        for line in range(0, ROW, 16):
            nodes.prefetch(b.add(b.mul(child, I64(ROW)), I64(line)))
        first = workspace.starts.get(slot)
        end = b.add(first, workspace.lengths.get(slot))
        workspace.lists.store(splat(b, workspace.lists.get(first), LANES), end)
        time = workspace.slots.get(slot)
        place = _make_way(b, workspace, (base, top.value), time, near_first)
        workspace.time.put(time, b.sub(place, base))
        for k, number in enumerate(PendingList(child, first, end, free)):
            workspace.pending.put(number, b.add(_pending_row(b, place), I64(k)))
        top.value = b.add(top.value, I64(1))
    return top.value


def _pending_row(b: Builder, place: Scalar) -> Scalar:
    return b.mul(place, I64(PENDING_WORDS))


def _make_way(
    b: Builder, workspace: Fields, span: tuple[Scalar, Scalar], time: Scalar, near_first: Scalar
) -> Scalar:
    """Move what is nearer one place up; return the place that is free now. span: of the stack."""
    base, top = span
    place = Register(b, top)
    nearer = Register(b, I64(0))

    def look() -> None:
        before = b.sub(b.sub(place.value, base), I64(1))
        some = b.icmp_signed(">=", before, I64(0))
        other = workspace.time.get(b.select(some, before, I64(0)))
        found = b.and_(b.and_(some, near_first), b.fcmp_ordered("<", other, time))
        nearer.value = b.zext(found, I64)

    look()
    with while_any(b, nearer):
        before = b.sub(place.value, I64(1))
        here = b.sub(place.value, base)
        workspace.time.put(workspace.time.get(b.sub(here, I64(1))), here)
        waiting = workspace.pending.load(_pending_row(b, before), PENDING_WORDS)
        workspace.pending.store(waiting, _pending_row(b, place.value))
        place.value = before
        look()
    return place.value


@vector_code(int64)
def pair_up(b: Builder, workspace: Fields, slot: Scalar, item: Scalar, found: Scalar) -> Scalar:
    """Add the rays of a slot's list, each with a primitive, to the candidates; return how many there are."""
    begin, length = workspace.starts.get(slot), workspace.lengths.get(slot)
    items = splat(b, b.trunc(item, I32), WIDTH)
    with loop(b, length, WIDTH) as at:
        to = b.add(found, at)
        workspace.pairs.ray.store(workspace.lists.load(b.add(begin, at), WIDTH), to)
        workspace.pairs.item.store(items, to)
    return b.add(found, length)
