"""The test of a ray against the children of a node of a `CellTree`, as bits of one integer.

**Why no cell is lost.** A plane at p is crossed at the exact time (p - o)/d, computed as a product with 1/d:
off by less than 2^-51 of itself, and by 2^-1073 where it underflows (of rays that are not tame, as a
quotient, which is closer). Let x <= y be exact times, and X, Y what is computed of them. Then X is at most
`later` (Y), which adds 2^-50 of Y and 2^-1022: where x and y have one sign, twice the error of Y is more than
both errors; where they have not, X <= 0 <= Y. A ray hits a box if and only if no near time, nor t_min,
is later than a far time, or t_max. So with far times and the end of the range moved by `later`, no child
that it hits is dropped. On axes where the direction is 0, the comparisons of o with the planes are exact.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from raybox.compiler.decorators import device
from raybox.compiler.intrinsics import vector_code
from raybox.compiler.simd import F32, F64, I1, I8, I32, I64, Lanes, constant, greater, joined, lesser, splat
from raybox.traversal.grid_rays import (
    DEPTH,
    DIRECTION,
    END,
    ENTRY,
    FLIP,
    INVERSE,
    LEVEL,
    LONGER,
    MARKS,
    NUMBERS,
    OCTANT,
    ORIGIN,
    PLACE,
    STACK,
    START,
    STARTS,
    later,
)

_LARGEST = 1.7976931348623157e308
_PAD = 2.0**-50
_UNDERFLOW = 2.0**-1022

Axis = tuple[Lanes, Lanes]  # near and far times of four children


def _later(times: Lanes) -> Lanes:
    return times + (times.magnitude() * _PAD + _UNDERFLOW)


class _Node:
    """A node, and the numbers of a ray."""

    def __init__(self, b: Any, planes: Any, places: Any, numbers: Any, turn: Any) -> None:
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

    def direction(self, axis: int) -> Any:
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


def _hit_near(b: Any, planes: Any, places: Any, numbers: Any, turn: Any) -> Any:
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


@vector_code(types.int64)
def hit_near(b: Any, planes: Any, places: Any, numbers: Any, turn: Any) -> Any:
    """Return a bit for each of a node's children that a ray of kind `NEAR` may hit."""
    return _hit_near(b, planes, places, numbers, turn)


@vector_code(types.int64)
def enter_near(b: Any, tree: Any, grid: Any, turn: Any) -> Any:
    """Enter the nearest node left of the stack; return the bits of its cells that the ray may hit, if any.

    It goes to the stack itself if nodes are below it. Without branches that depend on what is hit.
    """
    row, base = b.mul(turn, I64(MARKS)), b.mul(turn, I64(STACK * ENTRY))
    mark = lambda word: grid.marks.get(b.add(row, I64(word)))
    put = lambda value, word: grid.marks.put(value, b.add(row, I64(word)))
    depth = b.sub(mark(DEPTH), I64(1))
    at = b.add(base, b.mul(depth, I64(ENTRY)))
    left, level, mask, first = (grid.stack.get(b.add(at, I64(k))) for k in range(ENTRY))
    up = b.shl(b.sub(level, mark(LEVEL)), I64(1))
    bit = b.cttz(left, I1(1))
    child = b.xor(bit, mark(FLIP))
    left = b.and_(left, b.sub(left, I64(1)))
    grid.stack.put(left, at)
    depth = b.add(depth, b.zext(b.icmp_signed("!=", left, I64(0)), I64))
    below = b.sub(level, I64(1))
    put(below, LEVEL)
    starts = b.mul(below, I64(6))
    places = []
    for axis in range(3):
        place = b.and_(b.ashr(mark(PLACE + axis), up), I64(-4))
        place = b.shl(b.or_(place, b.and_(b.lshr(bit, I64(4 - 2 * axis)), I64(3))), I64(2))
        put(place, PLACE + axis)
        places.append(b.add(place, tree.starts.get(b.add(starts, mark(STARTS + axis)))))
    before = b.and_(mask, b.sub(b.shl(I64(1), child), I64(1)))
    node = b.shl(b.add(first, b.ctpop(before)), I64(1))
    mask, first = tree.nodes.get(node), tree.nodes.get(b.add(node, I64(1)))
    found = b.and_(_hit_near(b, tree.planes, places, grid.numbers, turn), _flipped(b, mask, mark(OCTANT)))
    at = b.add(base, b.mul(depth, I64(ENTRY)))
    for k, value in enumerate((found, below, mask, first)):
        grid.stack.put(value, b.add(at, I64(k)))
    inner = b.icmp_signed("!=", below, I64(0))
    more = b.and_(inner, b.icmp_signed("!=", found, I64(0)))
    put(b.add(depth, b.zext(more, I64)), DEPTH)
    return b.select(inner, I64(0), found)


_TABLES = "raybox.flips"


def _flip_tables(module: Any) -> Any:
    """Return the address of three vectors of 16 bytes for each octant; see `_flipped`."""
    if _TABLES in module.globals:
        return module.globals[_TABLES]
    rows = []
    for octant in range(8):
        whole, half = octant >> 1, octant & 1
        middle = whole & 1
        order = (6 if whole >> 1 else 0) | middle
        turned = [int(f"{k:04b}"[::-1], 2) if half else k for k in range(16)]
        rows += [k ^ order for k in range(8)] + [0x80] * 8
        rows += [k << 4 * middle for k in turned]
        rows += [k << 4 * (1 - middle) for k in turned]
    kind = ir.ArrayType(I8, len(rows))
    table = ir.GlobalVariable(module, kind, _TABLES)
    table.linkage, table.global_constant = "internal", True
    table.initializer = ir.Constant(kind, bytearray(rows))
    return table


def _flipped(b: Any, mask: Any, octant: Any) -> Any:
    bytes16, words8 = ir.VectorType(I8, 16), ir.VectorType(ir.IntType(16), 8)
    shuffle = cgutils.get_or_insert_function(
        b.module, ir.FunctionType(bytes16, [bytes16, bytes16]), "llvm.x86.ssse3.pshuf.b.128"
    )
    table = b.bitcast(_flip_tables(b.module), I8.as_pointer())
    row = b.mul(octant, I64(48))
    order, low, high = (
        b.load(b.bitcast(b.gep(table, [b.add(row, I64(16 * k))]), bytes16.as_pointer()), align=1)
        for k in range(3)
    )
    both = ir.VectorType(I64, 2)
    vector = b.insert_element(ir.Constant(both, [0, 0]), mask, I32(0))
    vector = b.call(shuffle, [b.bitcast(vector, bytes16), order])
    nibble = ir.Constant(bytes16, [15] * 16)
    lows = b.and_(vector, nibble)
    highs = b.and_(b.bitcast(b.lshr(b.bitcast(vector, words8), ir.Constant(words8, [4] * 8)), bytes16), nibble)
    out = b.or_(b.call(shuffle, [low, lows]), b.call(shuffle, [high, highs]))
    return b.extract_element(b.bitcast(out, both), I32(0))


@vector_code(types.int64)
def hit_tame(b: Any, planes: Any, places: Any, numbers: Any, turn: Any) -> Any:
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
def _wild_axis(planes: Any, place: int, o: float, d: float) -> tuple[float, float]:
    """Return the near and the far time of one child on one axis."""
    low, high = planes[place], planes[place + 1]
    if d == 0.0:
        return (-np.inf, np.inf) if low <= o <= high else (np.inf, -np.inf)
    return wild_times(low, o, d)[0], later(wild_times(high, o, d)[1])


@device
def hit_wild(planes: Any, places: Any, numbers: Any, turn: int) -> int:
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
