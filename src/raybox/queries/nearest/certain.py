"""`nearest` in float32: boxes that are certainly hit first, or entered by the plane of the first so far.

A near time is early by at most the margin and a share of itself (`raybox.traversal.ray_setup`). So the latest
of three near times is exactly the latest, and after the start of the ray's range, where it is no earlier than
what the others, and 0, may `reach`: float32 proves by which plane the ray enters the box, and its entry time
needs one number of the box. Where even the latest cannot reach 0, the ray starts inside the box: times count
from the start of its range or, if later, from shortly before its entry into the bounds of all boxes: it
enters none before that.

**Ties and near ties.** Let a ray hit box j by the plane q of an axis, and certainly hit box i by the plane p
of the same side of that axis, if it is not too short. Their times are (p - o)/d and (q - o)/d with one o and
one d, and rounding is not involved: p before q in the direction of the ray is time before time, p = q is a
tie. Where it starts inside of both, both times are the start of its range. If i comes first or ties, its time
is not after that of j, so that the ray is long enough. So two numbers of the boxes, or none, decide: not the
times, however close they are.
"""

from raybox.bvh.node import ROW
from raybox.compiler.intrinsics import Fields, int32, vector_code
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
    lined_up,
    multiply_add,
    splat,
)
from raybox.compiler.simd_arrays import Memory, Register, bits
from raybox.primitives.status import MISS_INDEX
from raybox.primitives.table import has_planes, plane_order
from raybox.traversal.certain_hits import CertainHits
from raybox.traversal.node_test import is_certain, reach, sides_of, undecided
from raybox.traversal.ray_setup import PACKED_WORDS, RESULT, STATE_WORDS, TIMED
from raybox.traversal.slab_coefficients import expand_row

BY = MISS_INDEX - 1  # minus the number of a plane: 0 to 2 are lower planes, 3 to 5 upper ones
_NO_PLANE = 6  # in place of that number
WITHIN = BY - _NO_PLANE  # the ray starts inside the box


def entered_by(b: Builder, near: list[Lanes], margin: Lanes, octant: Scalar) -> Lanes:
    """Return BY minus the number of the plane of entry, WITHIN, or MISS_INDEX where neither is proven.

    near: the times of the near planes of a box, axis by axis.
    """
    x, y, z = near
    later = greater(x, y)
    last, other = greater(later, z), greater(lesser(later, z), lesser(x, y))
    certain = reach(greater(other, constant(b, F32, x.count, 0.0)), margin) <= last
    planes = []
    for axis in range(3):
        backward = b.and_(b.lshr(octant, I64(axis)), I64(1))
        planes.append(splat(b, b.sub(I32(BY - axis), b.mul(b.trunc(backward, I32), I32(3))), x.count))
    plane = z.equals(last).choose(planes[2], y.equals(last).choose(planes[1], planes[0]))
    unknown = (reach(last, margin) < 0.0).choose(WITHIN, constant(b, I32, x.count, MISS_INDEX))
    return certain.choose(plane, unknown)


def _entered_by_one(
    b: Builder, packed_rays: Memory, ray: Scalar, planes: list[Scalar], octant: Scalar
) -> Scalar:
    """Return `entered_by` of one ray and the near planes of a slot."""
    slabs, margin = expand_row(b, packed_rays, b.mul(ray, I64(PACKED_WORDS)))
    near = multiply_add(lined_up(b, [*planes, planes[-1]]), slabs.steep[0], slabs.near[0])
    return entered_by(b, [near.permuted([k]) for k in range(3)], margin, octant).lane(0)


@vector_code(int32)
def plane_entered(b: Builder, nodes: Memory, workspace: Fields, at: Fields, ray: Scalar) -> Scalar:
    """Return `entered_by` of a `LeafSlot` and a ray."""
    row = b.mul(at.node, I64(ROW))
    planes = nodes.as_items(F32)
    near = [planes.get(b.add(sides_of(b, row, at.octant, axis)[0], at.slot)) for axis in range(3)]
    return _entered_by_one(b, workspace.packed_rays, ray, near, at.octant)


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
        left = Register(self.b, undecided(near, far, certain).value)
        if not has_planes(self.rows):
            return left.lanes
        with self.b.if_then(left.lanes.any()):
            self.finish()
            left.value = self.compare_planes(slot, left.lanes).value
        return left.lanes

    def put(self, slot: Scalar, certain: Lanes) -> None:
        """Keep the slot of those rays for which it is certain."""
        number = splat(self.b, self.b.trunc(slot, I32), self.rays.count)
        self.slot.value = certain.choose(number, self.slot.lanes).value

    def compare_planes(self, slot: Scalar, left: Lanes) -> Lanes:
        """Decide a slot's box for rays that enter it by the plane of their result; return the other rays."""
        b, state, margin = self.b, self.workspace.state, self.rays.margin
        near, far = (list(times) for times in zip(*self.rays.slab_times(self.slots, slot), strict=True))
        plane = entered_by(b, near, margin, self.slots.octant)
        first = greater(greater(greater(*near[:2]), near[2]), constant(b, F32, margin.count, 0.0))
        hit = is_certain(reach(first, margin), lesser(lesser(*far[:2]), far[2]), margin)
        places = self.rays.rays.to(I64) * STATE_WORDS
        result, by = (state.pick(places + word) for word in (RESULT, TIMED))
        same = left & hit & by.equals(plane) & (plane < MISS_INDEX) & (result > MISS_INDEX)
        item = splat(b, self.slots.item(slot), margin.count)
        number = same.choose(plane * -1 + BY, _NO_PLANE)
        before = plane_order(b, self.rows, item, same.choose(result, item), number)
        state.scatter(item, same & before, places + RESULT)
        return left & ~same

    def finish(self) -> None:
        """Write the results so far, by which planes boxes are entered, and where the rays now end."""
        numbers, stops = self.slot.value, self.rays.stop.value
        with bits(self.b, (self.slot.lanes > MISS_INDEX).mask()) as lane:
            ray = self.ray(lane)
            slot = self.b.zext(self.b.extract_element(numbers, lane), I64)
            self.write(ray, self.slots.item(slot), self.b.extract_element(stops, lane))
            self.write_plane(ray, slot)
        self.slot.value = self._no_slot()

    def write_plane(self, ray: Scalar, slot: Scalar) -> None:
        """Write by which plane a ray enters its box: about one ray in a box, so one by one."""
        planes = [self.slots.plane(2 * axis, slot, 1).lane(0) for axis in range(3)]
        plane = _entered_by_one(self.b, self.workspace.packed_rays, ray, planes, self.slots.octant)
        self.workspace.state.put(plane, self.state_at(ray, TIMED))
