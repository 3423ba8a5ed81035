"""`nearest` in float32: boxes that are certainly hit first, or decided by the planes of entry.

Where float32 proves by which plane a ray enters a box (`raybox.traversal.box_entry`), its entry time needs
one number of the box, and other boxes are compared by their planes of that number: see
`raybox.queries.nearest.packet` for why their order, in float64, is that of times. A ray that starts inside
of two boxes hits both where its range starts, and the lower index is first.
"""

from raybox.bvh.node import ROW
from raybox.compiler.intrinsics import Fields, int32, int64, vector_code
from raybox.compiler.simd import (
    F32,
    I32,
    I64,
    Builder,
    Lanes,
    Scalar,
    constant,
    lesser,
    lined_up,
    multiply_add,
    splat,
)
from raybox.compiler.simd_arrays import Memory, Register, bits
from raybox.primitives.status import MISS_INDEX
from raybox.primitives.table import has_planes, plane_order
from raybox.traversal.box_entry import INSIDE, BoxTimes, entry_of, planes_of
from raybox.traversal.certain_hits import CertainHits
from raybox.traversal.node_test import is_certain, reach, sides_of, undecided
from raybox.traversal.ray_setup import PACKED_WORDS, RESULT, STATE_WORDS, STOP, TIMED
from raybox.traversal.slab_coefficients import expand_row

BY = MISS_INDEX - 1  # minus the number of a plane: 0 to 2 are lower planes, 3 to 5 upper ones
WITHIN = BY - INSIDE  # the ray starts inside the box


def _entered_by_one(
    b: Builder, packed_rays: Memory, ray: Scalar, planes: list[Scalar], octant: Scalar
) -> Scalar:
    """Return BY minus the number of the plane of entry of one ray and the near planes of a slot.

    MISS_INDEX where neither a plane nor a start inside is proven.
    """
    slabs, margin = expand_row(b, packed_rays, b.mul(ray, I64(PACKED_WORDS)))
    near = multiply_add(lined_up(b, [*planes, planes[-1]]), slabs.steep[0], slabs.near[0])
    axes = [near.permuted([k]) for k in range(3)]
    plane = entry_of(b, BoxTimes([(axis, axis) for axis in axes], margin, planes_of(b, octant, 1))).plane
    return b.sub(I32(BY), plane.lane(0))


@vector_code(int32)
def plane_entered(b: Builder, nodes: Memory, workspace: Fields, at: Fields, ray: Scalar) -> Scalar:
    """Return the plane of entry of a ray and a `LeafSlot`, as `_entered_by_one`."""
    row = b.mul(at.node, I64(ROW))
    planes = nodes.as_items(F32)
    near = [planes.get(b.add(sides_of(b, row, at.octant, axis)[0], at.slot)) for axis in range(3)]
    return _entered_by_one(b, workspace.packed_rays, ray, near, at.octant)


@vector_code(int64)
def enters_first(b: Builder, rows: Fields, box: Scalar, result: Scalar, by: Scalar) -> Scalar:
    """Return 1 if a ray crosses a box's plane before that of its result, or at once if its index is lower.

    by: the plane by which it enters its result, as `plane_entered`.
    """
    if not has_planes(rows):
        return I64(0)
    one, other, number = (splat(b, b.trunc(x, I32), 1) for x in (box, result, b.sub(I64(BY), by)))
    return plane_order(b, rows, one, other, number).to(I64).lane(0)


class CertainNearest(CertainHits):
    """A box that is certainly hit before all others so far is the result so far.

    Its reach is the ray's new end, and the next must reach no farther, with the same room to spare. Boxes
    entered by the plane by which the result so far is entered are decided by that plane.
    """

    records_most = True

    def begin(self) -> None:  # noqa: D102  # inherited
        self.slot = Register(self.b, self._no_slot())

    def _no_slot(self) -> Scalar:
        return constant(self.b, I32, self.rays.count, MISS_INDEX).value

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

    def decide(self, slot: Scalar, left: Lanes) -> Lanes:
        """Decide a slot's box by planes of entry; return the rays that these leave undecided."""
        if not has_planes(self.rows):
            return left
        self.finish()
        entry = self.entry(slot)
        first = left & (entry.room <= lesser(entry.far, self.rays.stop.lanes))
        self.rays.stop.value = first.choose(entry.late, self.rays.stop.lanes).value
        self.put(slot, first)
        places = self.rays.rays.to(I64) * STATE_WORDS
        result, by = (self.workspace.state.pick(places + word) for word in (RESULT, TIMED))
        known = left & ~first & (result > MISS_INDEX) & (by < MISS_INDEX)
        open_still = Register(self.b, (left & ~first).value)
        with self.b.if_then(known.any()):
            item = splat(self.b, self.slots.item(slot), known.count)
            number = known.choose(by * -1 + BY, INSIDE)
            before = plane_order(self.b, self.rows, item, known.choose(result, item), number)
            earlier = known & before & number.equals(entry.plane) & (entry.room <= entry.far)
            self._replace(item, earlier, entry.late)
            open_still.value = (open_still.lanes & ~(earlier | (known & ~before))).value
        return open_still.lanes

    def _replace(self, item: Lanes, earlier: Lanes, late: Lanes) -> None:
        """Replace the results of some rays by a box that they enter by the same plane, and end them there.

        What certainly comes before that end comes before the box, too.
        """
        with self.b.if_then(earlier.any()):
            rays = self.rays.rays.to(I64)
            stop = lesser(late, self.rays.stop.lanes)
            self.workspace.state.scatter(item, earlier, rays * STATE_WORDS + RESULT)
            self.workspace.packed_rays.scatter(stop, earlier, rays * PACKED_WORDS + STOP)
            self.rays.stop.value = earlier.choose(stop, self.rays.stop.lanes).value

    def finish(self) -> None:
        """Write the results so far, by which planes boxes are entered, and where the rays now end."""
        with self.b.if_then((self.slot.lanes > MISS_INDEX).any()):
            self._write_slots()
        self.slot.value = self._no_slot()

    def _write_slots(self) -> None:
        b, slots = self.b, self.slot.lanes
        near = self.rays.near_times(self.slots, (slots > MISS_INDEX).choose(slots, 0))
        planes = self.entry_planes()
        times = BoxTimes([(time, time) for time in near], self.rays.margin, planes)
        numbers, entered, stops = slots.value, entry_of(b, times).plane.value, self.rays.stop.value
        with bits(b, (slots > MISS_INDEX).mask()) as lane:
            ray, slot = self.ray(lane), b.zext(b.extract_element(numbers, lane), I64)
            self.write(ray, self.slots.item(slot), b.extract_element(stops, lane))
            plane = b.sub(I32(BY), b.extract_element(entered, lane))
            self.workspace.state.put(plane, self.state_at(ray, TIMED))
