"""The node test: many rays against every slot of a node, or one ray against all of them at once.

One fused multiply-add a plane: near and far planes are picked once a node by the octant that the rays
run into. See `raybox.bvh.aim` for why no box is lost.
"""

from typing import Any

from numba import types
from numba.core import cgutils

from raybox.bvh.aim import LANES, PROBE, STOP
from raybox.bvh.layout import CHILD, EMPTY, WIDTH
from raybox.kernels.lanes import (
    F32,
    I1,
    I32,
    I64,
    Lanes,
    constant,
    fused,
    greater,
    lesser,
    loop,
    splat,
    steps,
    transposed,
    vector_code,
)


def _backward(b: Any, octant: Any, axis: int) -> Any:
    """Return 1 where rays of an octant run towards smaller coordinates on an axis, else 0."""
    return b.and_(b.lshr(octant, I64(axis)), I64(1))


def _sides(b: Any, row: Any, octant: Any, axis: int) -> tuple[Any, Any]:
    """Return where a node's near and far planes on one axis are."""
    up = b.mul(_backward(b, octant, axis), I64(3 * WIDTH))
    near = b.add(row, b.add(I64(axis * WIDTH), up))
    far = b.add(row, b.sub(I64((axis + 3) * WIDTH), up))
    return near, far


def _valid(b: Any, at: Any, number: Any) -> Lanes:
    """Return which of the 16 lanes from `at` on are among a list's."""
    return steps(b, at, LANES) < splat(b, number, LANES)


def _rows(b: Any, rays: Lanes) -> list[Any]:
    """Return where the probes of rays are."""
    return [b.mul(b.sext(rays.lane(k), I64), I64(PROBE)) for k in range(LANES)]


@vector_code(types.void)
def sift(b: Any, nodes: Any, desk: Any, node: Any, begin: Any, end: Any) -> None:
    """Write to the lists of a node's slots the rays of a list that may meet them, and when.

    node: (its row, slots in use, octant).
    """
    row, used, octant = node
    planes = nodes.as_items(F32)
    sides = [_sides(b, row, octant, axis) for axis in range(3)]
    number = b.sub(end, begin)
    with loop(b, number, LANES) as at:
        rays = desk.arena.load(b.add(begin, at), LANES)
        words = transposed([desk.probes.load(place, PROBE) for place in _rows(b, rays)])
        valid = _valid(b, at, number)
        with loop(b, used) as slot:
            near, far = constant(b, F32, LANES, 0.0), words[STOP]
            for axis in range(2, -1, -1):
                first, last = (planes.splat(b.add(side, slot), LANES) for side in sides[axis])
                near = greater(fused(first, words[6 + axis], words[axis]), near)
                far = lesser(fused(last, words[9 + axis], words[3 + axis]), far)
            met = (near <= far) & valid
            length = desk.lengths.get(slot)
            to = b.add(desk.starts.get(slot), length)
            desk.arena.squeeze(rays, met, to)
            desk.times.squeeze(near, met, to)
            desk.lengths.put(b.add(length, b.ctpop(met.mask())), slot)


@vector_code(types.int64)
def open_lists(b: Any, nodes: Any, desk: Any, row: Any, free: Any, room: Any) -> Any:
    """Begin an empty list for each slot of a node, from `free` on; return how many slots are in use."""
    slots = steps(b, I64(0), WIDTH)
    desk.starts.store(slots * splat(b, room, WIDTH) + splat(b, free, WIDTH), I64(0))
    desk.lengths.store(constant(b, I64, WIDTH, 0), I64(0))
    children = nodes.load(b.add(row, I64(CHILD)), WIDTH)
    used = (children > EMPTY).mask()
    return b.sub(I64(64), b.ctlz(used, I1(0)))


@vector_code(types.int64)
def boxes(b: Any, nodes: Any, row: Any) -> Any:
    """Return a bit for each slot that is a box."""
    return (nodes.load(b.add(row, I64(CHILD)), WIDTH) < 0).mask()


@vector_code(types.int64)
def keep(b: Any, desk: Any, begin: Any, end: Any) -> Any:
    """Drop the rays of a list that have ended by now; return where the list ends."""
    kept = cgutils.alloca_once_value(b, begin)
    number = b.sub(end, begin)
    with loop(b, number, LANES) as at:
        here = b.add(begin, at)
        rays = desk.arena.load(here, LANES)
        stops = desk.probes.gather([b.add(place, I64(STOP)) for place in _rows(b, rays)])
        open_still = (desk.times.load(here, LANES) <= stops) & _valid(b, at, number)
        desk.arena.squeeze(rays, open_still, b.load(kept))
        b.store(b.add(b.load(kept), b.ctpop(open_still.mask())), kept)
    return b.load(kept)


@vector_code(types.void)
def pad(b: Any, arena: Any, ray: Any, end: Any) -> None:
    """Write a ray's number 16 times past the end of a list: vectors then have rays in every lane."""
    arena.store(splat(b, b.trunc(ray, I32), LANES), end)


@vector_code(types.int64)
def meet(b: Any, nodes: Any, desk: Any, row: Any, octant: Any, ray: Any) -> Any:
    """Return a bit for each slot that one ray may meet before its stop, and store their near times."""
    planes = nodes.as_items(F32)
    base = b.mul(ray, I64(PROBE))
    near = constant(b, F32, WIDTH, 0.0)
    far = desk.probes.splat(b.add(base, I64(STOP)), WIDTH)
    for axis in range(2, -1, -1):
        first, last = (planes.load(side, WIDTH) for side in _sides(b, row, octant, axis))
        word = [desk.probes.splat(b.add(base, I64(axis + 3 * k)), WIDTH) for k in range(4)]
        near = greater(fused(first, word[2], word[0]), near)
        far = lesser(fused(last, word[3], word[1]), far)
    desk.slots.store(near, I64(0))
    return (near <= far).mask()


@vector_code(types.void)
def rank(b: Any, nodes: Any, desk: Any, row: Any, octant: Any) -> None:
    """Store how far along the octant's diagonal each slot begins."""
    planes = nodes.as_items(F32)
    total = constant(b, F32, WIDTH, 0.0)
    for axis in range(3):
        near = planes.load(_sides(b, row, octant, axis)[0], WIDTH)
        flip = splat(b, b.icmp_signed("!=", _backward(b, octant, axis), I64(0)), WIDTH)
        total = total + flip.choose(near * -1.0, near)
    desk.slots.store(total, I64(0))
