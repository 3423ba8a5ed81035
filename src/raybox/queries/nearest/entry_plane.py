"""The plane by which a ray enters a box, where float32 proves it: then only one number of the box is read.

A near time is early by at most the margin and a share of itself (`raybox.traversal.ray_setup`). So the latest
of three near times is exactly the latest, and after the start of the ray's range, where it is no earlier
than what the others, and 0, may `reach`. Where even the latest cannot reach 0, the ray starts inside the box:
times count from the start of its range or, if later, from its entry into the bounds of all boxes, before
which it enters none.

The six numbers of a box lie in two or three cache lines: `nearest` takes 3 to 5 % longer without this.
"""

from __future__ import annotations

from typing import Any

from numba import types

from raybox.compiler.intrinsics import vector_code
from raybox.compiler.simd import F32, I32, I64, constant, fused, greater, lesser, lined_up
from raybox.primitives.status import MISS_INDEX
from raybox.traversal.node_test import reach, sides_of
from raybox.traversal.ray_setup import PACKED_WORDS
from raybox.traversal.slab_coefficients import expand_row

BY = MISS_INDEX - 1  # minus the number of a plane: 0 to 2 are lower planes, 3 to 5 upper ones
WITHIN = BY - 6  # the ray starts inside the box


def entered_by(b: Any, packed_rays: Any, ray: Any, planes: list[Any], octant: Any) -> Any:
    """Return BY minus the number of the plane of entry, WITHIN, or MISS_INDEX where neither is proven.

    planes: the near planes of the box's slot.
    """
    near_planes = lined_up(b, [*planes, planes[-1]])
    slabs, margin = expand_row(b, packed_rays, b.mul(ray, I64(PACKED_WORDS)))
    near = fused(near_planes, slabs.steep[0], slabs.near[0])
    x, y, z = (near.shuffled(near, [k]) for k in range(3))
    later = greater(x, y)
    last, other = greater(later, z), greater(lesser(later, z), lesser(x, y))
    certain = reach(greater(other, constant(b, F32, 1, 0.0)), margin) <= last
    axis = z.equals(last).choose(constant(b, I64, 1, 2), y.equals(last).to(I64)).lane(0)
    side = b.and_(b.lshr(octant, axis), I64(1))
    plane = b.add(axis, b.mul(side, I64(3)))
    within = reach(last, margin) < 0.0
    unknown = b.select(within.lane(0), I32(WITHIN), I32(MISS_INDEX))
    return b.select(certain.lane(0), b.sub(I32(BY), b.trunc(plane, I32)), unknown)


@vector_code(types.int32)
def plane_entered(b: Any, nodes: Any, workspace: Any, spot: Any, ray: Any) -> Any:
    """Return `entered_by` of a slot and a ray; spot: row of the node, octant, slot."""
    row, octant, slot = spot
    planes = nodes.as_items(F32)
    near = [planes.get(b.add(sides_of(b, row, octant, axis)[0], slot)) for axis in range(3)]
    return entered_by(b, workspace.packed_rays, ray, near, octant)
