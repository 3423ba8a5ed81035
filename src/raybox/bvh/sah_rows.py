"""Boxes as rows of eight float32, one register each, and the slots of nodes.

A *row* is ``(-low x, -low y, -low z, number, up x, up y, up z, count)``. With lower bounds negated the
union of two boxes is one maximum, and outward is up everywhere. Lanes 3 and 7 are int32: the box's
number in the row of a box, the number of boxes in the row of a bin.
"""

from typing import Any

from numba import types

from raybox.bvh.node import CHILD, EMPTY, FAR, NUDGE, ROW, ULP, WIDTH
from raybox.compiler.vector_build import (
    BITS8,
    F32,
    F64,
    I1,
    I32,
    I64,
    INF,
    LOW,
    ROW8,
    UP,
    Code,
    V,
    constant,
    op,
    row_type,
)

CLAMP = 2.0**20  # bounds in costs: an infinite box must not make costs infinite
ROW_OF = 31  # low bits of a key: the row of a box (see `raybox.bvh.hilbert_build`)
_SLACK = ULP + 2.0**-50  # float32's rounding, and that of the subtraction before it
# Numbers in lanes 3 and 7 become 0.
_UPPER_CLAMP = constant(ROW8, 2 * [CLAMP, CLAMP, CLAMP, 0.0])
_LOWER_CLAMP = constant(ROW8, 2 * [-CLAMP, -CLAMP, -CLAMP, 0.0])


@op(row_type, None, types.intp)
def load(code: Code, rows: Any, i: Any) -> Any:
    """Load row i of an array of 4-byte items."""
    return code.load(0, rows, code.at(i, 8), ROW8)


@op(types.void, None, types.intp, row_type)
def store(code: Code, rows: Any, i: Any, row: Any) -> None:
    """Store row i of an array of 4-byte items."""
    code.store(row, 0, rows, code.at(i, 8))


@op(row_type)
def nothing(code: Code) -> Any:
    """Return the bounds of no box."""
    return constant(ROW8, [-INF] * 8)


@op(row_type, row_type, row_type)
def union(code: Code, a: Any, b: Any) -> Any:
    """Return the bounds of both."""
    return code.v(a).max(code.v(b)).value


@op(row_type, row_type, row_type, types.int64)
def union_if(code: Code, a: Any, b: Any, wanted: Any) -> Any:
    """Return the bounds of both where wanted is 1, of a where it is 0."""
    wider = code.v(a).max(code.v(b)).value
    return code.b.select(code.b.trunc(wanted, I1), wider, a)


def half_area(row: V) -> V:
    """Return (xy, yz, zx, _) of a row's bounds, clamped to finite sizes."""
    planes = row.max(V(row.b, _LOWER_CLAMP)).min(V(row.b, _UPPER_CLAMP))
    size = (planes.shuffle(LOW) + planes.shuffle(UP)).max(0.0)
    return size * size.shuffle([1, 2, 0, 3])


def _sum3(code: Code, parts: V) -> Any:
    return code.b.fadd(code.b.fadd(parts.lane(0), parts.lane(1)), parts.lane(2))


@op(types.float32, row_type)
def area(code: Code, row: Any) -> Any:
    """Return half the surface area of a row's bounds, clamped to finite sizes."""
    return _sum3(code, half_area(code.v(row)))


@op(types.float32, row_type, row_type)
def area_within(code: Code, row: Any, limits: Any) -> Any:
    """Return half the surface area of the intersection of two rows' bounds, clamped to finite sizes."""
    return _sum3(code, half_area(code.v(row).min(code.v(limits))))


@op(types.int64, row_type)
def number_of(code: Code, row: Any) -> Any:
    """Return the box number of a row."""
    return code.b.sext(code.v(row).bits(BITS8).lane(3), I64)


@op(row_type, None, None, types.intp, None, types.float64)
def outward(code: Code, lower: Any, upper: Any, i: Any, center: Any, scale: Any) -> Any:
    """Return box i in tree coordinates, rounded outward as `raybox.bvh.node.outward_up` does."""
    b, zero = code.b, [F64(0.0)]

    def corner(which: int, array: Any, place: Any) -> list[Any]:
        return [b.load(code.address(which, array, code.at(place, 3, k), F64)) for k in range(3)]

    low, up, middle = corner(0, lower, i), corner(1, upper, i), corner(3, center, I64(0))
    planes = code.vector(F64, low + zero + up + zero) - code.vector(F64, (middle + zero) * 2)
    negated = -planes.shuffle(LOW)
    shifted = negated.shuffle(range(8), planes.shuffle(UP)) * code.vector(F64, [scale] * 8)

    # Round up, which is outward on every lane: an infinite size makes a NaN, replaced at once.
    size = (shifted < 0.0).then(-shifted, shifted)
    moved = shifted + (size * _SLACK + NUDGE)
    moved = (shifted > FAR).then(INF, (shifted < -FAR).then(-FAR, moved))
    row = code.v(b.fptrunc(moved.value, ROW8)).bits(BITS8)
    return row.with_lane(3, b.trunc(i, I32)).with_lane(7, I32(0)).bits(ROW8).value


def columns(rows: list[V]) -> list[V]:
    """Return the eight columns of eight rows; with 16 lanes, of two times eight rows."""
    lanes = range(rows[0].value.type.count)
    for step in (1, 2, 4):
        low = [k + len(lanes) - step if k & step else k for k in lanes]
        up = [k + len(lanes) if k & step else k + step for k in lanes]
        rows = [
            rows[k - step].shuffle(up, rows[k]) if k & step else rows[k].shuffle(low, rows[k + step])
            for k in range(8)
        ]
    return rows


@op(types.void, None, types.intp, types.intp, row_type, types.int64)
def write_slot(code: Code, nodes: Any, node: Any, slot: Any, row: Any, child: Any) -> None:
    """Write a slot of a node: six planes, and its child."""
    low, up = -code.v(row).shuffle(LOW), code.v(row).shuffle(UP)
    values = [low.lane(k) for k in range(3)] + [up.lane(k) for k in range(3)]
    for k, value in enumerate([*values, code.b.trunc(child, I32)]):
        code.store(value, 0, nodes, code.b.add(code.at(node, ROW, WIDTH * k), slot))


@op(row_type, None, types.intp, None, None, types.intp)
def write_leaf(code: Code, nodes: Any, node: Any, rows: Any, keys: Any, at: Any) -> Any:
    """Write a node of eight boxes, whose rows are the low bits of keys[at:at + 8]; return its bounds."""
    b = code.b
    places = [
        b.and_(code.load(3, keys, b.add(at, I64(k)), I64), I64((1 << ROW_OF) - 1)) for k in range(WIDTH)
    ]
    boxes = [code.v(code.load(2, rows, code.at(place, 8), ROW8)) for place in places]
    sides = columns(boxes)
    numbers = code.v(b.not_(sides[3].bits(BITS8).value)).bits(ROW8)
    for k, side in enumerate([-sides[0], -sides[1], -sides[2], *sides[4:7], numbers]):
        code.store(side.value, 0, nodes, code.at(node, ROW, WIDTH * k))
    while len(boxes) > 1:
        boxes = [one.max(other) for one, other in zip(boxes[::2], boxes[1::2], strict=True)]
    return boxes[0].value


@op(row_type, None, types.intp)
def node_bounds(code: Code, nodes: Any, node: Any) -> Any:
    """Return the bounds of a node's eight slots as a row."""
    planes = []
    for k in range(6):
        plane = code.v(code.load(0, nodes, code.at(node, ROW, WIDTH * k), ROW8))
        plane = plane if k >= 3 else -plane
        four = plane.shuffle(LOW).max(plane.shuffle(UP))
        two = four.max(four.shuffle([2, 3, 2, 3]))
        planes.append(two.max(two.shuffle([1, 1, 1, 1])).lane(0))
    zero = [F32(0.0)]
    return code.vector(F32, planes[:3] + zero + planes[3:] + zero).value


@op(types.void, None, None, None, types.intp)
def fetch_boxes(code: Code, lower: Any, upper: Any, nodes: Any, node: Any) -> None:
    """Prefetch the boxes in a node's slots."""
    b = code.b
    for slot in range(WIDTH):
        child = code.load(2, nodes, code.at(node, ROW, CHILD + slot), I32)
        is_box = b.and_(b.icmp_signed("<", child, I32(0)), b.icmp_signed("!=", child, I32(EMPTY)))
        start = code.at(b.sext(b.select(is_box, b.not_(child), I32(0)), I64), 3)
        for which, array in ((0, lower), (1, upper)):
            code.prefetch(which, array, start, F64)
