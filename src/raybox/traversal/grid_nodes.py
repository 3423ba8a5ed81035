"""The test of a ray against the children of a node of a `CellTree`, as bits of one integer.

**Why no cell is lost.** A plane at p is crossed at the exact time (p - o)/d, computed as a product with 1/d:
off by less than 2^-51 of itself, and by 2^-1073 where it underflows (of rays that are not tame, as a
quotient, which is closer). Let x <= y be exact times, and X, Y what is computed of them. Then X is at most
`later` (Y), which adds 2^-50 of Y and 2^-1022: where x and y have one sign, twice the error of Y is more than
both errors; where they have not, X <= 0 <= Y. A ray hits a box if and only if no near time, nor t_min,
is later than a far time, or t_max. So with far times and the end of the range moved by `later`, no child
that it hits is dropped. On axes where the direction is 0, the comparisons of o with the planes are exact.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types

from raybox.compiler.decorators import device
from raybox.compiler.intrinsics import vector_code
from raybox.compiler.simd import F64, I64, Lanes, constant, greater, joined, lesser, splat

_LARGEST = 1.7976931348623157e308
_TAME_LOW, _TAME_HIGH = 2.0**-500, 2.0**500
_PAD = 2.0**-50
_UNDERFLOW = 2.0**-1022  # more than underflow loses; sums with denormals are slow


class GridRay(NamedTuple):
    """What the test of a node reads of a ray; tuples of three."""

    origin: Any
    direction: Any
    inverse: Any  # of the direction, of tame rays
    start: float  # t_min


@device
def later(t: float) -> float:
    """Return a time such that no exact time up to that of t is computed later; see the module."""
    return t + (abs(t) * _PAD + _UNDERFLOW) if t > -np.inf else t


@device
def is_tame_grid(rows: Any) -> bool:
    """Return whether products with 1/d are accurate for all planes of a grid, if the ray is tame."""
    size = 0.0
    for axis in range(3):
        edges = rows.x_edges if axis == 0 else (rows.y_edges if axis == 1 else rows.z_edges)
        size = max(size, abs(edges[0]), abs(edges[-1]))
    return size < _TAME_HIGH


@device
def is_tame_ray(ray: Any) -> bool:
    """Return whether products with 1/d are accurate for all planes of a tame grid."""
    for axis in range(3):
        d = abs(ray.direction[axis])
        if (d != 0.0 and not _TAME_LOW < d < _TAME_HIGH) or not abs(ray.origin[axis]) < _TAME_HIGH:
            return False
    return True


@device
def is_tame(rows: Any, ray: Any) -> bool:
    """Return whether products with 1/d are accurate for all planes of a grid; see `GridRaySetup.tame`."""
    return is_tame_grid(rows) and is_tame_ray(ray)


# Tame rays: 64 children at a time.


def _later(times: Lanes) -> Lanes:
    return times + (times.magnitude() * _PAD + _UNDERFLOW)


def _moving(b: Any, planes: Any, place: Any, ray: tuple[Any, Any, Any]) -> tuple[Lanes, Lanes]:
    """Return near and far times of four children on an axis on which the ray moves."""
    origin, inverse = splat(b, ray[0], 4), splat(b, ray[2], 4)
    low = (planes.load(place, 4) - origin) * inverse
    high = (planes.load(b.add(place, I64(1)), 4) - origin) * inverse
    return lesser(low, high), _later(greater(low, high))


def _standing(b: Any, planes: Any, place: Any, ray: tuple[Any, Any, Any]) -> tuple[Lanes, Lanes]:
    """Return near and far times of four children on an axis on which the ray may stand still."""
    near, far = _moving(b, planes, place, ray)
    origin, still = splat(b, ray[0], 4), b.fcmp_ordered("==", ray[1], F64(0.0))
    within = (planes.load(place, 4) <= origin) & (origin <= planes.load(b.add(place, I64(1)), 4))
    last, first = constant(b, F64, 4, np.inf), constant(b, F64, 4, -np.inf)
    near = Lanes(b, b.select(still, within.choose(first, last).value, near.value))
    return near, Lanes(b, b.select(still, within.choose(last, first).value, far.value))


def _hit_bits(b: Any, times: list[tuple[Lanes, Lanes]], start: Any, end: Any) -> Any:
    """Return a bit for each of 4 x 4 x 4 children between whose near and far times there is a time."""
    (near_x, far_x), (near_y, far_y), (near_z, far_z) = times
    near_x, far_x = greater(near_x, splat(b, start, 4)), lesser(far_x, splat(b, end, 4))
    near_yz = joined([greater(near_z, near_y.shuffled(near_y, [k] * 4)) for k in range(4)])
    far_yz = joined([lesser(far_z, far_y.shuffled(far_y, [k] * 4)) for k in range(4)])
    slices = []
    for k in range(4):
        near = greater(near_yz, near_x.shuffled(near_x, [k] * 16))
        slices.append(near <= lesser(far_yz, far_x.shuffled(far_x, [k] * 16)))
    return b.bitcast(joined(slices).value, I64)  # one by one, LLVM would join them by slow instructions


@vector_code(types.int64)
def hit_moving(b: Any, planes: Any, places: Any, ray: Any, end: Any) -> Any:
    """Return `hit_children` of a ray that moves on every axis."""
    rays = zip(ray.origin, ray.direction, ray.inverse, strict=True)
    times = [_moving(b, planes, *axis) for axis in zip(places, rays, strict=True)]
    return _hit_bits(b, times, ray.start, end)


@vector_code(types.int64)
def hit_children(b: Any, planes: Any, places: Any, ray: Any, end: Any) -> Any:
    """Return a bit for each of a node's children that a tame ray may hit before `end`.

    places: where the planes of the first child are, on each axis.
    """
    rays = zip(ray.origin, ray.direction, ray.inverse, strict=True)
    times = [_standing(b, planes, *axis) for axis in zip(places, rays, strict=True)]
    return _hit_bits(b, times, ray.start, end)


# Other rays: quotients that may overflow.


@device
def wild_times(plane: float, o: float, d: float) -> tuple[float, float]:
    """Return the computed time of a plane as a near and as a far one, also where numbers overflow."""
    way = plane - o
    low, high = min(way, _LARGEST), max(way, -_LARGEST)
    near, far = (low / d, high / d) if d > 0.0 else (high / d, low / d)
    return min(near, _LARGEST), max(far, -_LARGEST)


@device
def _wild_axis(planes: Any, place: int, o: float, d: float) -> tuple[float, float]:
    """Return the near and the far time of one child on one axis."""
    low, high = planes[place], planes[place + 1]
    if d == 0.0:
        return (-np.inf, np.inf) if low <= o <= high else (np.inf, -np.inf)
    first, last = (low, high) if d > 0.0 else (high, low)
    return wild_times(first, o, d)[0], later(wild_times(last, o, d)[1])


@device
def hit_wild(planes: Any, places: Any, ray: GridRay, end: float) -> int:
    """Return `hit_children` of any ray."""
    found = 0
    for child in range(64):
        near, far = ray.start, end
        for axis in range(3):
            place = places[axis] + (child >> (4 - 2 * axis) & 3)
            first, last = _wild_axis(planes, place, ray.origin[axis], ray.direction[axis])
            near, far = max(near, first), min(far, last)
        if near <= far:
            found |= 1 << child
    return found
