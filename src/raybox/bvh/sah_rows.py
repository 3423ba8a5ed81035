"""Boxes as rows of eight float32, one register each, and the slots of nodes.

A *row* is ``(-low x, -low y, -low z, number, up x, up y, up z, count)``. With lower bounds negated the
union of two boxes is one maximum, and outward is up everywhere. Lanes 3 and 7 are int32: the box's
number in the row of a box, the number of boxes in the row of a bin.
"""

import numpy as np

from raybox.bvh.node import CHILD, EMPTY, FAR, NUDGE, ROW, ULP, WIDTH
from raybox.compiler.intrinsics import LanesType, float32, int64, vector_code, void
from raybox.compiler.simd import (
    F32,
    F64,
    I1,
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
from raybox.compiler.simd_arrays import Memory
from raybox.compiler.simd_transpose import transposed

CLAMP = 2.0**20  # bounds in costs: an infinite box must not make costs infinite
ROW_OF = 31  # low bits of a key: the row of a box (see `raybox.bvh.hilbert_build`)
LOW, UP = range(4), range(4, 8)
ROW_TYPE = LanesType(F32, 8)
_SLACK = ULP + 2.0**-50  # float32's rounding, and that of the subtraction before it
_UPPER_CLAMP = 2 * [CLAMP, CLAMP, CLAMP, 0.0]  # numbers in lanes 3 and 7 become 0
_LOWER_CLAMP = 2 * [-CLAMP, -CLAMP, -CLAMP, 0.0]


def flat_index(b: Builder, index: Scalar, stride: int, offset: int = 0) -> Scalar:
    """Return index * stride + offset."""
    return b.add(b.mul(index, I64(stride)), I64(offset))


def row_at(b: Builder, rows: Memory, i: Scalar) -> Lanes:
    """Return row i of an array of 4-byte items."""
    return rows.as_items(F32).load(flat_index(b, i, 8), 8)


@vector_code(ROW_TYPE)
def load(b: Builder, rows: Memory, i: Scalar) -> Lanes:
    """Return row i of an array of 4-byte items."""
    return row_at(b, rows, i)


@vector_code(void)
def store(b: Builder, rows: Memory, i: Scalar, row: Lanes) -> None:
    """Store row i of an array of 4-byte items."""
    rows.as_items(F32).store(row, flat_index(b, i, 8))


@vector_code(ROW_TYPE)
def nothing(b: Builder) -> Lanes:
    """Return the bounds of no box."""
    return constant(b, F32, 8, -np.inf)


@vector_code(ROW_TYPE)
def union(_b: Builder, one: Lanes, other: Lanes) -> Lanes:
    """Return the bounds of both."""
    return greater(one, other)


@vector_code(ROW_TYPE)
def union_if(b: Builder, one: Lanes, other: Lanes, wanted: Scalar) -> Scalar:
    """Return the bounds of both where wanted is 1, of the first where it is 0."""
    return b.select(b.trunc(wanted, I1), greater(one, other).value, one.value)


def half_area(row: Lanes) -> Lanes:
    """Return (xy, yz, zx, _) of a row's bounds, clamped to finite sizes."""
    planes = lesser(greater(row, _LOWER_CLAMP), _UPPER_CLAMP)
    size = greater(planes.permuted(LOW) + planes.permuted(UP), 0.0)
    return size * size.permuted([1, 2, 0, 3])


def _sum_of_three(b: Builder, parts: Lanes) -> Scalar:
    return b.fadd(b.fadd(parts.lane(0), parts.lane(1)), parts.lane(2))


@vector_code(float32)
def area(b: Builder, row: Lanes) -> Scalar:
    """Return half the surface area of a row's bounds, clamped to finite sizes."""
    return _sum_of_three(b, half_area(row))


@vector_code(float32)
def area_within(b: Builder, row: Lanes, limits: Lanes) -> Scalar:
    """Return half the surface area of the intersection of two rows' bounds, clamped to finite sizes."""
    return _sum_of_three(b, half_area(lesser(row, limits)))


@vector_code(int64)
def number_of(b: Builder, row: Lanes) -> Scalar:
    """Return the box number of a row."""
    return b.sext(row.bits(I32).lane(3), I64)


@vector_code(ROW_TYPE)
def outward(b: Builder, lower: Memory, upper: Memory, i: Scalar, center: Memory, scale: Scalar) -> Lanes:
    """Return box i in tree coordinates, rounded outward: planes that are in order stay in order."""
    zero = [F64(0.0)]

    def corner(array: Memory, at: Scalar) -> list[Scalar]:
        return [array.get(flat_index(b, at, 3, k)) for k in range(3)] + zero

    # As `raybox.bvh.node.to_tree`: numbers are scaled down before they are subtracted.
    whole = splat(b, scale, 8)
    down = lesser(whole, 1.0)
    away = -(lined_up(b, corner(center, I64(0)) * 2) * down)
    planes = multiply_add(lined_up(b, corner(lower, i) + corner(upper, i)), down, away)
    shifted = (-planes.permuted(LOW)).shuffled(planes.permuted(UP), range(8)) * greater(whole, 1.0)

    # Round up, which is outward on every lane. A product and a sum with constants keep planes in order, as
    # rounding does: `raybox.queries.nearest.packet` relies on it. `x + (abs(x) * _SLACK + NUDGE)` would not.
    # From abs(x) = 2^-98 on neighbours are further apart than the bracket is off, but below that the bracket,
    # rounded to multiples of 2^-152, falls by more than x rises: the float32 planes of two neighbours near
    # -0x1.21e1e1c3c3c3dp-101 would swap (`tests/bvh/test_rows.py`).
    moved = shifted * (shifted < 0.0).choose(constant(b, F64, 8, 1.0 - _SLACK), 1.0 + _SLACK) + NUDGE
    moved = (shifted > FAR).choose(np.inf, (shifted < -FAR).choose(-FAR, moved))
    row = moved.to(F32).bits(I32)
    return row.with_lane(3, b.trunc(i, I32)).with_lane(7, I32(0)).bits(F32)


@vector_code(void)
def write_slot(b: Builder, nodes: Memory, node: Scalar, slot: Scalar, row: Lanes, child: Scalar) -> None:
    """Write a slot of a node: six planes, and its child."""
    planes, negated = nodes.as_items(F32), -row
    values = [negated.lane(k) for k in range(3)] + [row.lane(k) for k in range(4, 7)]
    for k, value in enumerate(values):
        planes.put(value, b.add(flat_index(b, node, ROW, WIDTH * k), slot))
    nodes.put(b.trunc(child, I32), b.add(flat_index(b, node, ROW, CHILD), slot))


@vector_code(ROW_TYPE)
def write_leaf(b: Builder, nodes: Memory, node: Scalar, rows: Memory, keys: Memory, at: Scalar) -> Lanes:
    """Write a node of eight boxes, whose rows are the low bits of keys[at:at + 8]; return its bounds."""
    numbers = [b.and_(keys.get(b.add(at, I64(k))), I64((1 << ROW_OF) - 1)) for k in range(WIDTH)]
    boxes = [row_at(b, rows, number) for number in numbers]
    sides = transposed(boxes)
    children = (~sides[3].bits(I32)).bits(F32)
    for k, side in enumerate([-sides[0], -sides[1], -sides[2], *sides[4:7], children]):
        nodes.as_items(F32).store(side, flat_index(b, node, ROW, WIDTH * k))
    while len(boxes) > 1:
        boxes = [greater(one, other) for one, other in zip(boxes[::2], boxes[1::2], strict=True)]
    return boxes[0]


@vector_code(ROW_TYPE)
def node_bounds(b: Builder, nodes: Memory, node: Scalar) -> Lanes:
    """Return the bounds of a node's eight slots as a row."""
    planes = []
    for k in range(6):
        plane = nodes.as_items(F32).load(flat_index(b, node, ROW, WIDTH * k), WIDTH)
        planes.append((plane if k >= 3 else -plane).greatest().lane(0))
    zero = [F32(0.0)]
    return lined_up(b, planes[:3] + zero + planes[3:] + zero)


@vector_code(void)
def fetch_boxes(b: Builder, lower: Memory, upper: Memory, nodes: Memory, node: Scalar) -> None:
    """Prefetch the boxes in a node's slots."""
    for slot in range(WIDTH):
        child = nodes.get(flat_index(b, node, ROW, CHILD + slot))
        is_box = b.and_(b.icmp_signed("<", child, I32(0)), b.icmp_signed("!=", child, I32(EMPTY)))
        start = flat_index(b, b.sext(b.select(is_box, b.not_(child), I32(0)), I64), 3)
        for array in (lower, upper):
            array.prefetch(start)
