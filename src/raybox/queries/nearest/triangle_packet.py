"""`nearest` of triangles in the packet traversal: what is recorded at a triangle, and times of hits."""

import numpy as np

from raybox.compiler.intrinsics import Fields
from raybox.compiler.simd import F64, I1, I64, Builder, Lanes, constant, joined, lesser, splat
from raybox.compiler.simd_arrays import Register
from raybox.primitives.status import MISS_INDEX
from raybox.primitives.triangle_packet import PacketAtTriangle, TriangleState
from raybox.primitives.triangle_simd import load_corners, time_of


def record_triangle(b: Builder, at: PacketAtTriangle) -> TriangleState:
    """Record certain hits, which come before the first ones so far."""
    return TriangleState(
        at.hits.choose(lesser(at.late, at.stop), at.stop),
        at.hits.choose(at.low, at.before),
        at.hits.choose(splat(b, at.item, at.hits.count), at.result),
    )


def triangle_times(
    b: Builder, job: Fields, result: Lanes, rays: tuple[list[Lanes], list[Lanes]]
) -> tuple[Lanes, Lanes]:
    """Return which times of sixteen rays at their results are known, and these.

    rays: their origins and directions, axis by axis.
    """
    known, times = [], []
    for k, items in enumerate(result.halves()):
        hit = items > MISS_INDEX
        some = Register(b, constant(b, I1, items.count, 0).value)
        time = Register(b, constant(b, F64, items.count, np.inf).value)
        with b.if_then(hit.any()):
            which = hit.choose(items, 0)
            corners = load_corners(b, job.rows, [b.sext(which.lane(i), I64) for i in range(items.count)])
            o, d = ([column.halves()[k] for column in columns] for columns in rays)
            found, t = time_of(o, d, corners)
            some.value, time.value = found.value, t.value
        known.append(some.lanes)
        times.append(time.lanes)
    return joined(known), joined(times)
