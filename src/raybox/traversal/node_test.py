"""The node test: many rays against every slot of a node; one ray against all at once is in `single_walk`.

One multiplication and addition a plane, fused where the machine can: near and far planes are chosen once a
node by the octant that the rays run into. See `raybox.traversal.ray_setup` for why no box is lost.

**Certain hits.** A slot's near times are early by 7u of themselves and the margin M at most, far ones late by
16u and M (`raybox.traversal.ray_setup`), so a ray for which ``near (1 + 24u) + 2 M <= far`` hits the slot's
box, with room to spare, within its range. (Where operations are not fused: 8u, 19u, two roundings of the left
side in place of one, and 1 + 32u.) All but one in a thousand boxes that rays hit need no float64 at all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from raybox.bvh.node import CHILD, EMPTY, ROW, WIDTH
from raybox.compiler.intrinsics import Fields, int64, vector_code, void
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
    looked_up,
    multiply_add,
    splat,
    steps,
)
from raybox.compiler.simd_arrays import Memory, Register, on_stack
from raybox.traversal.ray_setup import LANES, PASSES, at_a_time, margins
from raybox.traversal.slab_coefficients import SlabCoefficients, load_rays

TAME = 2.0**50  # planes beyond were moved by an unknown distance


def _backward(b: Builder, octant: Scalar, axis: int) -> Scalar:
    """Return 1 where rays of an octant run towards smaller coordinates on an axis, else 0."""
    return b.and_(b.lshr(octant, I64(axis)), I64(1))


def sides_of(b: Builder, row: Scalar, octant: Scalar, axis: int, width: int = WIDTH) -> tuple[Scalar, Scalar]:
    """Return the places of the near and far planes on one axis, of a node or a row of so many boxes."""
    return near_and_far(b, row, _backward(b, octant, axis), axis, width)


def near_and_far(
    b: Builder, row: Scalar, backward: Scalar, axis: int, width: int = WIDTH
) -> tuple[Scalar, Scalar]:
    """Return the same places for rays that run backward, 1, or forward, 0, on that axis."""
    up = b.mul(backward, I64(3 * width))
    near = b.add(row, b.add(I64(axis * width), up))
    far = b.add(row, b.sub(I64((axis + 3) * width), up))
    return near, far


def clip(slabs: list[tuple[Lanes, Lanes]], stop: Lanes) -> tuple[Lanes, Lanes]:
    """Return when rays enter and leave boxes, by `slab_times`.

    Ends come last: they change from slot to slot, and would be waited for (2 % of `nearest`).
    """
    near, far = constant(stop.b, F32, stop.count, 0.0), constant(stop.b, F32, stop.count, np.inf)
    for first, last in reversed(slabs):
        near, far = greater(first, near), lesser(last, far)
    return near, lesser(far, stop)


def slab_times(planes: Callable[[int], list[Lanes]], slabs: SlabCoefficients) -> list[tuple[Lanes, Lanes]]:
    """Return when lines enter and leave the slabs of boxes, axis by axis.

    planes: the near and far planes of an axis.
    """
    times = []
    for axis in range(3):
        first, last = planes(axis)
        near = multiply_add(first, slabs.steep[axis], slabs.near[axis])
        times.append((near, multiply_add(last, slabs.flat[axis], slabs.far[axis])))
    return times


def valid(b: Builder, at: Scalar, number: Scalar, count: int = LANES) -> Lanes:
    """Return which lanes from `at` on belong to a list."""
    left = b.trunc(b.sub(number, at), I32)
    return steps(b, I64(0), count).to(I32) < splat(b, left, count)


def is_certain(near: Lanes, far: Lanes, room: Lanes) -> Lanes:
    """Return which rays hit a slot's box for certain, and not at its edge; they have `near <= far`.

    room: two margins; or one, if near is what near times `reach`.
    """
    return reach(near, room) <= lesser(far, constant(near.b, F32, near.count, TAME))


def undecided(near: Lanes, far: Lanes, certain: Lanes) -> Lanes:
    """Return which rays may hit a slot's box, but not for certain.

    As one comparison: logic of sixteen lanes that are true or false takes AVX2 several times as long.
    """
    return certain.choose(np.nan, near) <= far


def reach(near: Lanes, margin: Lanes) -> Lanes:
    """Return times by which rays have certainly entered a box, with room to spare."""
    return multiply_add(near, constant(near.b, F32, near.count, margins().growth), margin)


class RayVector:
    """Rays of a list that are tested at a node together: coefficients, ends and margins."""

    def __init__(
        self, b: Builder, recorder: Fields, workspace: Fields, begin: Scalar, at: Scalar, number: Scalar
    ) -> None:
        self.b = b
        self.begin = b.add(begin, at)
        self.count = at_a_time()
        self.rays = workspace.lists.load(self.begin, self.count)
        self.coefficients, stop, self.margin = load_rays(b, recorder, workspace, self.rays)
        self.room = self.margin + self.margin
        self.backward = [slope < 0.0 for slope in self.coefficients.steep]
        self.stop = Register(b, valid(b, at, number, self.count).choose(stop, PASSES).value)

    def intersect_slots(self, slots: AnySlots, slot: Scalar) -> tuple[Lanes, Lanes]:
        """Return when the rays enter and leave a slot's box; those that may hit it enter first."""
        return clip(self.slab_times(slots, slot), self.stop.lanes)

    def slab_times(self, slots: AnySlots, slot: Scalar) -> list[tuple[Lanes, Lanes]]:
        """Return when the lines enter and leave the slabs of a slot's box, axis by axis."""
        return slab_times(partial(self._planes_of, slots, slot), self.coefficients)

    def near_times(self, slots: AnySlots, numbers: Lanes) -> list[Lanes]:
        """Return when the lines enter the slabs of their slots' boxes, axis by axis."""
        planes = [
            self._near_and_far(slots, axis, partial(slots.planes, slots=numbers))[0] for axis in range(3)
        ]
        each = zip(planes, self.coefficients.steep, self.coefficients.near, strict=True)
        return [multiply_add(*one) for one in each]

    def _planes_of(self, slots: AnySlots, slot: Scalar, axis: int) -> list[Lanes]:
        return self._near_and_far(slots, axis, partial(slots.plane, slot=slot, count=self.count))

    def _near_and_far(self, slots: AnySlots, axis: int, plane: Callable[[int], Lanes]) -> list[Lanes]:
        """Return the near and the far planes of an axis: by the octant of each ray, if slots have none."""
        near, far = (plane(2 * axis + side) for side in range(2))
        if slots.octant is not None:
            return [near, far]
        back = self.backward[axis]
        return [back.choose(far, near), back.choose(near, far)]

    def enlist(self, workspace: Fields, slots: Slots, slot: Scalar, near: Lanes | None, some: Lanes) -> None:
        """Add some of the rays to a slot's list, and when they enter it if that is given."""
        to = slots.ends.get(slot)
        workspace.lists.squeeze(self.rays, some, to)
        if near is not None:
            workspace.times.squeeze(near, some, to)
        slots.ends.put(self.b.add(to, self.b.ctpop(some.mask())), slot)


class Slots:
    """A node's slots, copied to the stack: found from one register, where there would be nine."""

    def __init__(self, b: Builder, nodes: Memory, workspace: Fields, row: Scalar, octant: Scalar) -> None:
        self._nodes, self._row, self.octant = nodes, row, octant
        self._planes, self.ends = (on_stack(b, item, size * WIDTH) for item, size in ((F32, 6), (I64, 1)))
        planes = nodes.as_items(F32)
        sides = [side for axis in range(3) for side in sides_of(b, row, octant, axis)]
        for k, side in enumerate(sides):
            self._planes.store(planes.load(side, WIDTH), k * WIDTH)
        self.ends.store(workspace.starts.load(0, WIDTH) + workspace.lengths.load(0, WIDTH), 0)

    def plane(self, number: int, slot: Scalar, count: int) -> Lanes:
        """Return a plane of a slot's: near x, far x, near y and so on."""
        return self._planes.splat(self._planes.b.add(slot, I64(number * WIDTH)), count)

    def planes(self, number: int, slots: Lanes) -> Lanes:
        """Return that plane of each lane's slot."""
        return looked_up(self._planes.load(number * WIDTH, WIDTH), slots)

    def item(self, slot: Scalar) -> Scalar:
        """Return the index of the box in a slot."""
        b = self._planes.b
        return b.not_(self._nodes.get(b.add(b.add(self._row, I64(CHILD)), slot)))

    def triangle(self, slot: Scalar, room: int) -> Scalar:
        """Return the place of a slot's triangle, where each node has so many words."""
        b = self._planes.b
        return b.add(b.mul(b.sdiv(self._row, I64(ROW)), I64(room)), slot)

    def close(self, workspace: Fields) -> None:
        """Write how long the lists are now."""
        workspace.lengths.store(self.ends.load(0, WIDTH) - workspace.starts.load(0, WIDTH), 0)


class SpanSlots:
    """The slots of nodes in a row, numbered through, for rays of any octants: near planes are lower ones."""

    octant = None

    def __init__(self, b: Builder, nodes: Memory, first: Scalar) -> None:
        self._b, self._nodes, self._first = b, nodes, b.mul(first, I64(ROW))
        self._planes = nodes.as_items(F32)

    def _place(self, slot: Scalar, part: int) -> Scalar:
        node = self._b.mul(self._b.lshr(slot, I64(3)), I64(ROW))
        return self._b.add(self._b.add(self._first, node), self._b.add(self._b.and_(slot, I64(7)), I64(part)))

    def plane(self, number: int, slot: Scalar, count: int) -> Lanes:
        """Return a plane of a slot's: lower x, upper x, lower y and so on."""
        return self._planes.splat(self._place(slot, _part(number)), count)

    def planes(self, number: int, slots: Lanes) -> Lanes:
        """Return that plane of each lane's slot."""
        wide = slots.to(I64)
        base = splat(self._b, self._b.add(self._first, I64(_part(number))), slots.count)
        return self._planes.pick((wide >> 3) * ROW + (wide & 7) + base)

    def item(self, slot: Scalar) -> Scalar:
        """Return the index of the box in a slot."""
        return self._b.not_(self._nodes.get(self._place(slot, CHILD)))

    def triangle(self, slot: Scalar, room: int) -> Scalar:
        """Return the place of a slot's triangle, where each node has so many words."""
        b = self._b
        node = b.add(b.sdiv(self._first, I64(ROW)), b.lshr(slot, I64(3)))
        return b.add(b.mul(node, I64(room)), b.and_(slot, I64(7)))


def _part(number: int) -> int:
    """Return where in a row the planes of this number begin."""
    return (number // 2 + 3 * (number % 2)) * WIDTH


AnySlots: TypeAlias = Slots | SpanSlots


@vector_code(int64)
def used(b: Builder, nodes: Memory, row: Scalar) -> Scalar:
    """Return a bit for each slot that is not free."""
    return (nodes.load(b.add(row, I64(CHILD)), WIDTH) > EMPTY).mask()


@vector_code(int64)
def boxes(b: Builder, nodes: Memory, row: Scalar) -> Scalar:
    """Return a bit for each slot that is a box."""
    return (nodes.load(b.add(row, I64(CHILD)), WIDTH) < 0).mask()


@vector_code(void)
def rank_slots(b: Builder, nodes: Memory, workspace: Fields, row: Scalar, octant: Scalar) -> None:
    """Store how far along the octant's diagonal each slot begins."""
    planes = nodes.as_items(F32)
    total = constant(b, F32, WIDTH, 0.0)
    for axis in range(3):
        near = planes.load(sides_of(b, row, octant, axis)[0], WIDTH)
        flip = splat(b, b.icmp_signed("!=", _backward(b, octant, axis), I64(0)), WIDTH)
        total = total + flip.choose(-near, near)
    workspace.slots.store(total, I64(0))


@vector_code(void)
def rank_slots_fullest(b: Builder, workspace: Fields) -> None:
    """Store how many rays are in each slot's list, negated: the fullest is least."""
    workspace.slots.store(-workspace.lengths.load(I64(0), WIDTH).to(I32).to(F32), I64(0))
