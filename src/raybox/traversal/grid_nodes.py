"""The test of a ray against the children of a node of a `CellTree`, as bits of one integer.

All masks here are in the order of travel, and places of planes, too (`raybox.bvh.cell_tree`): so a child's
near plane is the one at its place, and its far plane the next.

**Why no cell is lost.** A plane at p is crossed at the exact time (p - o)/d, computed as a product with 1/d:
off by less than 2^-51 of itself, and by 2^-1073 where it underflows (of rays that are not tame, as a
quotient, which is closer). Let x <= y be exact times, and X, Y what is computed of them. Then X is at most
`later` (Y), which adds 2^-50 of Y and 2^-1022: where x and y have one sign, twice the error of Y is more than
both errors; where they have not, X <= 0 <= Y. A ray hits a box if and only if no near time, nor t_min,
is later than a far time, or t_max. So with far times and the end of the range moved by `later`, no child
that it hits is dropped. On axes where the direction is 0, the comparisons of o with the planes are exact.

**Why float32 is enough.** Rounding is monotone: what is no later in float64 is no later in float32. For rays
of kind `NEAR`, far times are products with `LONGER_BY`/d instead: t_min is not negative, nor are the far
times of what they hit, and 2^-49 of them is more than both errors; what underflows is 0 in float32. Where
the direction is 0, 1/d is +inf: faces on either side are at -inf and +inf, faces beyond at the same infinity,
and a face through the origin at NaN, which constrains nothing.
"""

import numpy as np

from raybox.compiler.decorators import device
from raybox.compiler.intrinsics import int64, vector_code
from raybox.compiler.simd import (
    F32,
    F64,
    I64,
    Builder,
    Lanes,
    Scalar,
    constant,
    greater,
    joined,
    lesser,
    splat,
)
from raybox.compiler.simd_arrays import Memory
from raybox.traversal.grid_rays import DIRECTION, END, INVERSE, LONGER, NUMBERS, ORIGIN, START, later
from raybox.validation import Floats

_LARGEST = 1.7976931348623157e308
_PAD = 2.0**-50
_UNDERFLOW = 2.0**-1022

Axis = tuple[Lanes, Lanes]  # near and far times of four children


def _later(times: Lanes) -> Lanes:
    return times + (times.magnitude() * _PAD + _UNDERFLOW)


class _Node:
    """A node, and the numbers of a ray."""

    def __init__(
        self, b: Builder, planes: Memory, places: list[Scalar], numbers: Memory, turn: Scalar
    ) -> None:
        self.b, self.planes, self.places, self.numbers = b, planes, places, numbers
        self.row = b.mul(turn, I64(NUMBERS))

    def number(self, word: int, count: int = 4) -> Lanes:
        """Return a number of the ray in all lanes."""
        return splat(self.b, self.numbers.get(self.b.add(self.row, I64(word))), count)

    def ways(self, axis: int) -> Axis:
        """Return the way to the near and to the far planes of four children."""
        place, origin = self.places[axis], self.number(ORIGIN + axis)
        low, high = (self.planes.load(self.b.add(place, I64(k)), 4) for k in (0, 1))
        return low - origin, high - origin

    def times(self, axis: int) -> Axis:
        """Return near and far times, in float64."""
        b, (low, high), inverse = self.b, self.ways(axis), self.number(INVERSE + axis)
        still = b.fcmp_ordered("==", self.direction(axis), F64(0.0))
        within = (low <= 0.0) & (high >= 0.0)
        last, first = constant(b, F64, 4, np.inf), constant(b, F64, 4, -np.inf)
        near = Lanes(b, b.select(still, within.choose(first, last).value, (low * inverse).value))
        return near, Lanes(b, b.select(still, within.choose(last, first).value, _later(high * inverse).value))

    def direction(self, axis: int) -> Scalar:
        return self.numbers.get(self.b.add(self.row, I64(DIRECTION + axis)))

    def times32(self, axis: int) -> Axis:
        """Return near and far times in float32; NaN where a face holds a ray that does not move."""
        low, high = self.ways(axis)
        near, far = low * self.number(INVERSE + axis), high * self.number(LONGER + axis)
        return near.to(F32), far.to(F32)


def _hit_bits(times: list[Axis], count: int) -> list[Lanes]:
    """Return masks, in order, of 4 x 4 x 4 children between whose near and far times there is a time.

    count: lanes of a mask.
    """
    (near_x, far_x), (near_y, far_y), (near_z, far_z) = times
    rows = count // 4
    all_z = [0, 1, 2, 3] * rows
    near_yz, far_yz = [], []
    for first in range(0, 4, rows):
        picks = [first + k // 4 for k in range(count)]
        near_yz.append(greater(near_z.permuted(all_z), near_y.permuted(picks)))
        far_yz.append(lesser(far_z.permuted(all_z), far_y.permuted(picks)))
    masks = []
    for k in range(4):
        near, far = near_x.permuted([k] * count), far_x.permuted([k] * count)
        masks += [greater(n, near) <= lesser(f, far) for n, f in zip(near_yz, far_yz, strict=True)]
    return masks


def emit_hit_near(b: Builder, planes: Memory, places: list[Scalar], numbers: Memory, turn: Scalar) -> Scalar:
    """Return a bit for each of a node's children that a ray of kind `NEAR` may hit."""
    node = _Node(b, planes, places, numbers, turn)
    start, end = node.number(START).to(F32), node.number(END).to(F32)
    x, y, z = (node.times32(axis) for axis in range(3))
    x, y = ((greater(near, start), lesser(far, end)) for near, far in (x, y))
    found = None
    for k, mask in enumerate(_hit_bits([x, y, z], 8)):
        bits = b.shl(mask.mask(), I64(8 * k))
        found = bits if found is None else b.or_(found, bits)
    return found


@vector_code(int64)
def hit_tame(b: Builder, planes: Memory, places: list[Scalar], numbers: Memory, turn: Scalar) -> Scalar:
    """Return a bit for each of a node's children that a tame ray may hit.

    places: where the planes of the first child are, on each axis.
    """
    node = _Node(b, planes, places, numbers, turn)
    (near, far), y, z = (node.times(axis) for axis in range(3))
    x = greater(near, node.number(START)), lesser(far, node.number(END))
    # one by one, LLVM would join them by slow instructions
    return b.bitcast(joined(_hit_bits([x, y, z], 16)).value, I64)


# Other rays: quotients that may overflow.


@device
def wild_times(plane: float, o: float, d: float) -> tuple[float, float]:
    """Return the computed time of a plane as a near and as a far one, also where numbers overflow."""
    way = plane - o
    low, high = min(way, _LARGEST), max(way, -_LARGEST)
    near, far = (low / d, high / d) if d > 0.0 else (high / d, low / d)
    return min(near, _LARGEST), max(far, -_LARGEST)


@device
def _wild_axis(planes: Floats, place: int, o: float, d: float) -> tuple[float, float]:
    """Return the near and the far time of one child on one axis."""
    low, high = planes[place], planes[place + 1]
    if d == 0.0:
        return (-np.inf, np.inf) if low <= o <= high else (np.inf, -np.inf)
    return wild_times(low, o, d)[0], later(wild_times(high, o, d)[1])


@device
def hit_wild(planes: Floats, places: tuple[int, int, int], numbers: Floats, turn: int) -> int:
    """Return `hit_tame` of any ray."""
    found = 0
    for child in range(64):
        near, far = numbers[turn, START], numbers[turn, END]
        for axis in range(3):
            place = places[axis] + (child >> (4 - 2 * axis) & 3)
            o, d = numbers[turn, ORIGIN + axis], numbers[turn, DIRECTION + axis]
            first, last = _wild_axis(planes, place, o, d)
            near, far = max(near, first), min(far, last)
        if near <= far:
            found |= 1 << child
    return found
