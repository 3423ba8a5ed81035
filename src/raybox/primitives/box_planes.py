"""The planes by which rays enter boxes: entry times by known ones, and ties.

Entry times are computed eight at a time: one number of a box is read, not six.
"""

from typing import NamedTuple

import numpy as np

from raybox.compiler.decorators import device, inlined
from raybox.compiler.intrinsics import Fields, vector_code, void
from raybox.compiler.simd import I64, Builder, Lanes, Scalar, splat
from raybox.compiler.simd_arrays import Memory, loop
from raybox.exact.error_free import order_of
from raybox.geometry import BoxRows
from raybox.primitives.box_simd import AHEAD, LANES, Pairs, fill_up, inverse_of, quotient, timed_status
from raybox.primitives.ray import DIRECTION, T_MIN
from raybox.primitives.status import UNKNOWN_ORDER
from raybox.validation import Floats

_UPPER = 3  # the first plane that is an upper one
_WITHIN = 6  # no plane: the ray starts inside
_PAD = 2.0**-50  # four times the relative error of a quotient of a difference
_UNDERFLOW = 1e-300


@vector_code(void)
def _entry_times(b: Builder, boxes: Fields, exact: Memory, pairs: Fields, number: Scalar) -> None:
    with loop(b, number, LANES) as at:
        soon = b.add(at, I64(AHEAD))
        with b.if_then(b.icmp_signed("<", soon, number)):
            planes = _planes(b, boxes, pairs, soon)
            for k in range(LANES):
                boxes.lower.prefetch(planes.offsets.lane(k))
                exact.prefetch(b.mul(b.sext(pairs.ray.get(b.add(soon, I64(k))), I64), I64(LANES)))
        planes = _planes(b, boxes, pairs, at)
        rows = pairs.ray.load(at, LANES).to(I64) * LANES
        p, d = boxes.lower.pick(planes.offsets), exact.pick(rows + planes.axes + DIRECTION)
        o = exact.pick(rows + planes.within.choose(T_MIN, planes.axes))
        known, t = quotient(p, o, d, inverse_of(d))
        pairs.status.store(timed_status(known | planes.within), at)
        pairs.low.store(planes.within.choose(o, t), at)


class _Planes(NamedTuple):
    """Planes of boxes, in vectors."""

    offsets: Lanes  # from the first lower corner, or that of the box
    axes: Lanes
    within: Lanes  # there is none: the ray starts inside


def _planes(b: Builder, boxes: Fields, pairs: Fields, at: Scalar) -> _Planes:
    """Return eight planes, from the first lower corner on."""
    primitives, numbers = (kind.load(at, LANES).to(I64) for kind in (pairs.item, pairs.status))
    planes = _planes_of(b, boxes, numbers)
    return planes._replace(offsets=primitives * 3 + planes.offsets)


def _planes_of(b: Builder, boxes: Fields, planes: Lanes) -> _Planes:
    """Return the planes of these numbers, from the lower corners of their boxes on."""
    lower, upper = (b.ptrtoint(corner.data, I64) for corner in (boxes.lower, boxes.upper))
    apart = splat(b, b.ashr(b.sub(upper, lower), I64(3)), planes.count)
    above, within = planes >= _UPPER, planes >= _WITHIN
    axes = (within | (planes < 0)).choose(0, above.choose(planes - _UPPER, planes))
    return _Planes(axes + above.choose(apart, 0), axes, within)


def entry_planes(b: Builder, boxes: Fields, items: Lanes, planes: Lanes) -> Lanes:
    """Return planes of boxes by their numbers; what stands for a number outside of 0 to 5 means nothing."""
    return boxes.lower.pick(items.to(I64) * 3 + _planes_of(b, boxes, planes.to(I64)).offsets)


def plane_order(b: Builder, boxes: Fields, one: Lanes, other: Lanes, planes: Lanes) -> Lanes:
    """Return which rays enter one box first, or at the same time if its index is lower.

    They enter both boxes by planes of the same number, or start inside of both (6).
    """
    planes = planes.to(I64)
    both = _planes_of(b, boxes, planes)
    p, q = (boxes.lower.pick(box.to(I64) * 3 + both.offsets) for box in (one, other))
    earlier = (planes >= _UPPER).choose(p > q, p < q) & ~both.within
    return earlier | ((p.equals(q) | both.within) & (one < other))


@inlined
def entry_times(boxes: BoxRows, exact: Floats, pairs: Pairs, number: int) -> None:
    """Write entry times of rays into boxes, rounded once, to `low`, and the status: `HIT` or `UNDECIDED`.

    On entry each status is the number of the plane by which the ray enters: 0 to 2 lower ones, 3 to 5 upper
    ones; 6 if it starts inside: then it enters at t_min.
    """
    for k in range(number, (number + LANES - 1) // LANES * LANES):
        pairs.status[k] = pairs.status[0]
    fill_up(pairs, number)
    _entry_times(boxes, exact, pairs, number)


@device
def certain_order(boxes: BoxRows, exact: Floats, r: int, i: int, j: int) -> int:
    """Return the order of the planes by which a ray enters two boxes, if these have one axis for certain.

    exact: rows of rays, see `raybox.traversal.ray_setup`. Most ties are of this kind (walls in line, cells of
    a grid), so exact arithmetic is rarely needed.
    """
    axis = _entry_axis(boxes, exact, r, i)
    if axis < 0 or axis != _entry_axis(boxes, exact, r, j):
        return UNKNOWN_ORDER
    if exact[r, DIRECTION + axis] < 0.0:
        return order_of(boxes.upper[j, axis], boxes.upper[i, axis])
    return order_of(boxes.lower[i, axis], boxes.lower[j, axis])


@device
def _entry_axis(boxes: BoxRows, exact: Floats, r: int, i: int) -> int:
    """Return the axis of the face by which a ray enters a box that it hits; -1 if uncertain."""
    best, latest, others = -1, -np.inf, exact[r, T_MIN]
    for axis in range(3):
        d = exact[r, DIRECTION + axis]
        if d != 0.0:
            plane = boxes.upper[i, axis] if d < 0.0 else boxes.lower[i, axis]
            t = (plane - exact[r, axis]) / d
            if t > latest:
                best, latest, others = axis, t, max(others, latest)
            else:
                others = max(others, t)
    return best if latest - others > (abs(latest) + abs(others)) * _PAD + _UNDERFLOW else -1
