"""Lengths of rays inside of boxes that they hit, eight pairs at a time.

A *crossing row* is a ray as this kernel reads it: the origin, 1/direction (+inf where the direction is 0),
t_min and t_max. Beside it stands its *speed*, the length of its direction.

**Error.** A time ``fl(fl(p - o) * fl(1/d))`` has three roundings, u = 2^-53 each. The greatest of several
near times is off by no more of itself than they are, and so is the least of far times. Their difference and
the product with the speed are rounded once each; the speed is off by 2.5 u. In all, a length is off by less
than 8 u = 2^-50 times (a + b), where a and b are the distances from the origin to where the ray enters the
box and leaves it, within its range; and, where products underflow, by 2^-1000. What comes out negative, a
touch, is 0.

**Range.** `write_crossing` returns whether each number of the direction is 0 or between 2^-400 and 2^60. Then
products lose less than 2^-1000 by underflow, and a time overflows only past 2^1023 of the direction's length.
A time of a plane that does not bound the ray inside the box may do so. Where the length is not finite, it is
computed again of numbers times 2^-600, among which nothing overflows but what has no end.
"""

from functools import partial
from math import sqrt
from typing import NamedTuple

import numpy as np

from raybox.compiler.decorators import device, inlined
from raybox.compiler.intrinsics import Fields, vector_code, void
from raybox.compiler.simd import F64, I64, Builder, Lanes, constant, greater, lesser, square_root
from raybox.compiler.simd_arrays import Memory, Register, loop
from raybox.compiler.simd_transpose import transposed
from raybox.geometry import BoxRows
from raybox.primitives.box_simd import LANES, Numbers, load_boxes, look_ahead, numbers, prefetch_box
from raybox.primitives.ray import DIRECTION, T_MAX, T_MIN
from raybox.validation import Floats

CROSSING_WORDS = 8
_LEAST, _MOST = 2.0**-400, 2.0**60
_SCALE = 2.0**-600


class CrossingRays(NamedTuple):
    """Crossing rows of rays, and the lengths of their directions."""

    rows: Floats  # (rays, CROSSING_WORDS)
    speeds: Floats


class PairSpan(NamedTuple):
    """The pairs begin <= p < end, of `count` pairs."""

    begin: int
    end: int
    count: int  # type: ignore[assignment]  # not the method of tuples


@device
def write_crossing(row: Floats, which: int, crossings: Floats, speeds: Floats, r: int) -> bool:
    """Write crossing row and speed r of the ray in a row of eight numbers; return whether they are in range.

    row: rays in rows, as in `raybox.traversal.workspace.Order`; which: the ray's row.
    """
    in_range, total = True, 0.0
    for k in range(3):
        d = row[which, DIRECTION + k]
        size = abs(d)
        in_range = in_range and (size == 0.0 or (size >= _LEAST and size <= _MOST))
        crossings[r, k] = row[which, k]
        crossings[r, DIRECTION + k] = 1.0 / d if size > 0.0 else np.inf
        total += d * d
    crossings[r, T_MIN], crossings[r, T_MAX] = row[which, T_MIN], row[which, T_MAX]
    speeds[r] = sqrt(total)
    return in_range


def crossing_columns(origin: list[Lanes], direction: list[Lanes]) -> tuple[list[Lanes], Lanes]:
    """Return origins and inverse directions of crossing rows, and speeds: NaN where rays are out of range."""
    b, count = origin[0].b, origin[0].count
    total, inverse = constant(b, F64, count, 0.0), []
    for d in direction:
        size = d.magnitude()
        moves = size > 0.0
        inverse.append(moves.choose(constant(b, F64, count, 1.0) / d, np.inf))
        total = total + (moves & ~((size >= _LEAST) & (size <= _MOST))).choose(np.nan, d * d)
    return [*origin, *inverse], square_root(total)


def times_inside(rows: list[Lanes], planes: list[tuple[Lanes, Lanes]], scale: float = 1.0) -> Lanes:
    """Return how long rays are inside of their boxes, within their ranges; all numbers but 1/d are scaled.

    planes: of each axis, where rays enter, and where they leave.
    """

    def scaled(x: Lanes) -> Lanes:
        return x if scale == 1.0 else x * scale

    near, far = scaled(rows[T_MIN]), scaled(rows[T_MAX])
    for k, (first, last) in enumerate(planes):
        origin, inverse = scaled(rows[k]), rows[DIRECTION + k]
        # NaN, of a ray in a plane, constrains nothing
        near = greater((scaled(first) - origin) * inverse, near)
        far = lesser((scaled(last) - origin) * inverse, far)
    return far - near


@vector_code(void)
def _write_lengths(
    b: Builder, boxes: Fields, rays: Fields, pairs: Fields, span: Fields, lengths: Memory
) -> None:
    with loop(b, b.sub(span.end, span.begin), LANES) as at:
        place = b.add(span.begin, at)
        look_ahead(b, pairs, place, span.count, partial(prefetch_box, b, boxes))
        which, items = numbers(b, pairs.ray, place), numbers(b, pairs.item, place)
        rows = transposed([rays.rows.load(b.mul(r, I64(CROSSING_WORDS)), CROSSING_WORDS) for r in which])
        planes = []
        for (low, up), inverse in zip(load_boxes(b, boxes, items), rows[DIRECTION:T_MIN], strict=True):
            backward = inverse < 0.0
            planes.append((backward.choose(up, low), backward.choose(low, up)))
        speed = rays.speeds.gather(which)
        length = Register(b, (times_inside(rows, planes) * speed).value)
        finite = length.lanes.magnitude() < np.inf
        with b.if_then((~finite).any(), likely=False):
            again = times_inside(rows, planes, _SCALE) * speed * (1.0 / _SCALE)
            length.value = finite.choose(length.lanes, again).value
        # a touch may be below 0; of a ray without direction, 0 times inf is NaN
        lengths.store(greater(length.lanes, constant(b, F64, LANES, 0.0)), at)


@inlined
def write_lengths(
    boxes: BoxRows, rays: CrossingRays, pairs: Numbers, span: PairSpan, lengths: Floats
) -> None:
    """Write the lengths of a span of pairs, of rays and boxes that they hit.

    `pairs` and `lengths` have room for eight more.
    """
    _write_lengths(boxes, rays, pairs, span, lengths)
