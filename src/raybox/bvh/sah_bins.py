"""Bins of boxes on three axes at once, and the cut of least cost between two bins."""

from typing import Any

from numba import types

from raybox.bvh.node import WIDTH
from raybox.bvh.sah_rows import columns, half_area
from raybox.compiler.simd_arrays import Register, loop
from raybox.compiler.vector_build import (
    BITS8,
    CELL4,
    F32,
    I32,
    I64,
    INF,
    LOW,
    ROW8,
    UP,
    Code,
    V,
    cell_type,
    constant,
    corners,
    op,
    row_type,
    vector_of,
)

BINS = 16
_SIDE = 4  # the constant part of the work of a side
_FOUR = vector_of(F32, 4)
_BITS16 = vector_of(I32, 16)
_EMPTY = constant(ROW8, [-INF] * 7 + [0.0])
_NO_BOXES = constant(CELL4, [0] * 4)
_NONE = constant(CELL4, [-1] * 4)


def _middle2(low: V, up: V) -> V:
    """Return twice the middle of bounds; where one is infinite, the finite one."""
    one = (low > -INF).then(low, up)
    other = (up < INF).then(up, low)
    both = one + other
    return V(low.b, low.b.fcmp_ordered("ord", both.value, both.value)).then(both, 0.0)


def _center2(row: V) -> V:
    """Return twice the centre of a row's bounds."""
    low, up = corners(row)
    return _middle2(-low, up)


@op(row_type, row_type)
def center(code: Code, row: Any) -> Any:
    """Return twice the centre of a box as a row: the bounds of a point."""
    middle = _center2(code.v(row))
    return (-middle).shuffle(range(8), middle).value


@op(row_type, row_type)
def grid_over(code: Code, centers: Any) -> Any:
    """Return (low x, y, z, _, bins per length x, y, z, _) for the bounds of doubled centres.

    An axis on which all centres (nearly) coincide has no bins: its ratio is 0.
    """
    bounds = code.v(centers)
    low = -bounds.shuffle(LOW)
    length = bounds.shuffle(UP) - low
    ratio = code.v(code.b.fdiv(constant(_FOUR, [float(BINS)] * 4), length.value))
    fits = code.v(code.b.and_((ratio > 0.0).value, (ratio < INF).value))
    return low.shuffle(range(8), fits.then(ratio, 0.0)).value


@op(cell_type, row_type, row_type)
def cell(code: Code, row: Any, grid: Any) -> Any:
    """Return the bin of a box on each of three axes."""
    grid = code.v(grid)
    place = (_center2(code.v(row)) - grid.shuffle(LOW)) * grid.shuffle(UP)
    return code.b.fptosi(place.max(0.0).min(BINS - 1.0).value, CELL4)


@op(types.void, None, cell_type, row_type)
def add(code: Code, bins: Any, cells: Any, row: Any) -> None:
    """Count a box in its bin of each axis, and extend the bins' bounds; bins are rows (16, 3)."""
    b, one = code.b, constant(BITS8, [0] * 7 + [1])
    for axis in range(3):
        place = code.at(b.zext(code.v(cells).lane(axis), I64), 24, 8 * axis)
        old = code.v(code.load(0, bins, place, ROW8))
        counted = code.v(b.add(old.bits(BITS8).value, one)).bits(ROW8)
        wider = old.max(code.v(row)).shuffle([0, 1, 2, 3, 4, 5, 6, 15], counted)
        code.store(wider.value, 0, bins, place)


@op(types.void, None)
def clear(code: Code, bins: Any) -> None:
    """Empty all bins."""
    for k in range(3 * BINS):
        code.store(_EMPTY, 0, bins, I64(8 * k))


@op(cell_type, types.int64)
def limits(code: Code, cut: Any) -> Any:
    """Return the last bin of the left side on the axis of a cut (axis * 16 + bin), -1 on others."""
    axis, last = code.b.lshr(cut, I64(4)), code.b.trunc(code.b.and_(cut, I64(15)), I32)
    lasts = [code.b.select(code.b.icmp_signed("==", axis, I64(k)), last, I32(-1)) for k in range(3)]
    return code.vector(I32, [*lasts, I32(-1)]).value


@op(types.int64, cell_type, cell_type)
def is_left(code: Code, cells: Any, last: Any) -> Any:
    """Return 1 for a box of the left side, else 0."""
    return code.b.zext(code.v(code.b.icmp_signed("<=", cells, last)).any(), I64)


class _Sweep:
    """Bounds and counts of the bins from one end on, for three axes, in memory that becomes registers."""

    def __init__(self, code: Code, bins: Any) -> None:
        self.code, self.bins = code, bins
        self.bounds = [Register(code.b, _EMPTY) for _ in range(3)]
        self.count = Register(code.b, _NO_BOXES)

    def reset(self) -> None:
        for bounds in self.bounds:
            bounds.value = _EMPTY
        self.count.value = _NO_BOXES

    def add(self, which: Any) -> V:
        """Add a bin of each axis; return the costs of these sides, infinite without boxes."""
        code, b = self.code, self.code.b
        areas, counts = [], []
        for axis in range(3):
            row = code.v(code.load(0, self.bins, code.at(which, 24, 8 * axis), ROW8))
            bounds = row.max(code.v(self.bounds[axis].value))
            self.bounds[axis].value = bounds.value
            areas.append(half_area(bounds))
            counts.append(row.bits(BITS8).lane(7))
        total = b.add(self.count.value, code.vector(I32, [*counts, I32(0)]).value)
        self.count.value = total
        sums = [code.vector(F32, [part.lane(k) for part in areas] + [F32(0.0)]) for k in range(3)]
        nodes = b.lshr(b.add(total, constant(CELL4, [WIDTH - 1] * 4)), constant(CELL4, [3] * 4))
        work = b.add(b.add(total, nodes), constant(CELL4, [_SIDE] * 4))
        price = (sums[0] + sums[1] + sums[2]) * code.v(b.sitofp(work, _FOUR))
        return code.v(b.icmp_signed(">", total, _NO_BOXES)).then(price, INF)


@op(types.int64, None, None)
def cheapest(code: Code, bins: Any, scratch: Any) -> Any:
    """Return the cut of least cost (axis * 16 + last bin of the left side), -1 where there is none.

    Cost: the sum over both sides of surface area times work, which is the number of boxes, plus that of nodes
    that they fill, plus 4. With the boxes alone trees take 5 % more memory. `scratch` has 16 x 4 floats.
    """
    b, sweep = code.b, _Sweep(code, bins)
    best, cut = Register(b, constant(_FOUR, [INF] * 4)), Register(b, _NONE)

    # Sweep from the right, storing the cost of each right side.
    sweep.reset()
    with loop(b, I64(BINS - 1)) as k:
        which = b.sub(I64(BINS - 1), k)
        code.store(sweep.add(which).value, 1, scratch, code.at(which, 4))

    # Sweep from the left for the cheapest pair of sides.
    sweep.reset()
    best.value, cut.value = constant(_FOUR, [INF] * 4), _NONE
    with loop(b, I64(BINS - 1)) as k:
        right = code.v(code.load(1, scratch, code.at(k, 4, 4), _FOUR))
        both, so_far = sweep.add(k) + right, code.v(best.value)
        better = both < so_far
        best.value = better.then(both, so_far).value
        here = code.vector(I32, [b.trunc(k, I32)] * 4)
        cut.value = better.then(here, code.v(cut.value)).value

    # Choose among the axes: of equal costs the first.
    costs, cuts = code.v(best.value), code.v(cut.value)
    price, choice = costs.lane(0), cuts.lane(0)
    for axis in (1, 2):
        wins = b.fcmp_ordered("<", costs.lane(axis), price)
        price = b.select(wins, costs.lane(axis), price)
        choice = b.select(wins, b.add(cuts.lane(axis), I32(BINS * axis)), choice)
    return b.sext(choice, I64)


def _cells(code: Code, rows: Any, grid: V) -> list[Any]:
    """Return the cells of the centres of 16 rows: one of 4096 on each axis."""
    pairs = [[code.v(code.load(0, rows, I64(8 * k), ROW8)) for k in (one, one + 8)] for one in range(8)]
    sides = columns([one.shuffle(range(16), other) for one, other in pairs])
    cells = []
    for axis in range(3):
        low, ratio = (grid.shuffle([axis + k] * 16) for k in (0, 4))
        place = (_middle2(-sides[axis], sides[4 + axis]) - low) * ratio
        cells.append(code.b.fptosi(place.max(0.0).min(4095.0).value, _BITS16))
    return cells


@op(types.void, None, row_type, None, None)
def along_curve(code: Code, rows: Any, grid: Any, table: Any, places: Any) -> None:
    """Write the places of the centres of 16 rows along a curve of 12 levels (`raybox.bvh.hilbert_curve`)."""
    b, cells = code.b, _cells(code, rows, code.v(grid))

    def all_of(number: int) -> Any:
        return constant(_BITS16, [number] * 16)

    # Two levels a step, two bits of each coordinate: the state gives the order of their cubes.
    state, halves = all_of(0), [all_of(0), all_of(0)]
    for turn in range(6):
        at = state
        for cell, to in zip(cells, (4, 2, 0), strict=True):
            two = b.and_(b.lshr(cell, all_of(10 - 2 * turn)), all_of(3))
            at = b.or_(at, b.shl(two, all_of(to)))
        indices = (b.zext(code.v(at).lane(k), I64) for k in range(16))
        found = code.vector(I32, [code.load(2, table, place, I32) for place in indices]).value
        halves[turn // 3] = b.or_(b.shl(halves[turn // 3], all_of(6)), b.and_(found, all_of(63)))
        state = b.and_(found, all_of(~63))
    wide = vector_of(I64, 16)
    high, low = (b.zext(half, wide) for half in halves)
    code.store(b.or_(b.shl(high, constant(wide, [18] * 16)), low), 3, places, I64(0))
