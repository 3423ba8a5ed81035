"""By which plane a ray enters a box, where float32 is sure of it: then nothing else of the box is looked up.

A near time is early by no more than the margin and a share of itself (`raybox.traversal.ray_setup`). So the
latest of three is the latest in truth, and after the beginning of the ray's range, where it is no sooner than
what the others, and 0, may `reach`. Where even the latest may not reach 0, the ray begins within the box:
times count from the beginning of its range or, if that is later, from where it enters the bounds of all
boxes, before which it enters none.

A box's six numbers lie in two or three cache lines, and of eight boxes they are as many loads and shuffles as
all else that their times take: `nearest` takes 3 to 5 % longer without this (measured, 10^5 boxes).
"""

from __future__ import annotations

from typing import Any

from numba import types

from raybox.compiler.intrinsics import vector_code
from raybox.compiler.simd import F32, I32, I64, constant, fused, greater, lesser, lined_up
from raybox.traversal.node_test import reach, sides_of
from raybox.traversal.ray_setup import MISS, PACKED_WORDS
from raybox.traversal.slab_coefficients import expand_row

BY = MISS - 1  # this less the number of a plane: 0 to 2 are lower ones, 3 to 5 upper ones
WITHIN = BY - 6  # the ray begins within the box


def entered_by(b: Any, packed_rays: Any, ray: Any, planes: list[Any], octant: Any) -> Any:
    """Return BY less the number of the plane by which a ray enters a box, or WITHIN, or MISS: not known.

    planes: the near ones of the box's slot.
    """
    three = lined_up(b, [*planes, planes[-1]])
    lines, margin = expand_row(b, packed_rays, b.mul(ray, I64(PACKED_WORDS)))
    near = fused(three, lines.steep[0], lines.near[0])
    x, y, z = (near.shuffled(near, [k]) for k in range(3))
    late = greater(x, y)
    last, other = greater(late, z), greater(lesser(late, z), lesser(x, y))
    sure = reach(greater(other, constant(b, F32, 1, 0.0)), margin) <= last
    axis = z.equals(last).choose(constant(b, I64, 1, 2), y.equals(last).to(I64)).lane(0)
    side = b.and_(b.lshr(octant, axis), I64(1))
    plane = b.add(axis, b.mul(side, I64(3)))
    within = reach(last, margin) < 0.0
    unknown = b.select(within.lane(0), I32(WITHIN), I32(MISS))
    return b.select(sure.lane(0), b.sub(I32(BY), b.trunc(plane, I32)), unknown)


@vector_code(types.int32)
def plane_entered(b: Any, nodes: Any, workspace: Any, spot: Any, ray: Any) -> Any:
    """Return what `entered_by` does of a slot and a ray. spot: the row of its node, octant, slot."""
    row, octant, slot = spot
    planes = nodes.as_items(F32)
    near = [planes.get(b.add(sides_of(b, row, octant, axis)[0], slot)) for axis in range(3)]
    return entered_by(b, workspace.packed_rays, ray, near, octant)
