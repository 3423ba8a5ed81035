"""Bins of boxes on three axes at once, and the cut of least cost between two bins."""

import numpy as np

from raybox.bvh.node import WIDTH
from raybox.bvh.sah_rows import LOW, ROW_TYPE, UP, flat_index, half_area, row_at
from raybox.compiler.intrinsics import LanesType, int64, vector_code, void
from raybox.compiler.simd import (
    F32,
    I32,
    I64,
    Builder,
    Lanes,
    Scalar,
    constant,
    greater,
    lesser,
    lined_up,
    splat,
)
from raybox.compiler.simd_arrays import Memory, Register, loop
from raybox.compiler.simd_transpose import eight_columns

BINS = 16
_SIDE = 4  # the constant part of the work of a side
_GROUP = 16  # rows whose places along a curve are found together
_CELLS = LanesType(I32, 4)  # a box's bins on three axes; the last lane is unused


def _middle2(low: Lanes, up: Lanes) -> Lanes:
    """Return twice the middle of bounds; where one is infinite, the finite one."""
    both = (low > -np.inf).choose(low, up) + (up < np.inf).choose(up, low)
    return both.equals(both).choose(both, 0.0)


def _center2(row: Lanes) -> Lanes:
    """Return twice the centre of a row's bounds.

    The numbers of a row become 0: they are denormal as float32, and arithmetic on those is slow.
    """
    zeros = constant(row.b, F32, row.count, 0.0)
    return _middle2(-row.shuffled(zeros, [0, 1, 2, 8]), row.shuffled(zeros, [4, 5, 6, 8]))


@vector_code(ROW_TYPE)
def center(_b: Builder, row: Lanes) -> Lanes:
    """Return twice the centre of a box as a row: the bounds of a point."""
    middle = _center2(row)
    return (-middle).shuffled(middle, range(8))


@vector_code(ROW_TYPE)
def grid_over(b: Builder, centers: Lanes) -> Lanes:
    """Return (low x, y, z, _, bins per length x, y, z, _) for the bounds of doubled centres.

    An axis on which all centres (nearly) coincide has no bins: its ratio is 0.
    """
    low = -centers.permuted(LOW)
    ratio = constant(b, F32, 4, float(BINS)) / (centers.permuted(UP) - low)
    return low.shuffled(((ratio > 0.0) & (ratio < np.inf)).choose(ratio, 0.0), range(8))


@vector_code(_CELLS)
def cell(_b: Builder, row: Lanes, grid: Lanes) -> Lanes:
    """Return the bin of a box on each of three axes."""
    place = (_center2(row) - grid.permuted(LOW)) * grid.permuted(UP)
    return lesser(greater(place, 0.0), BINS - 1.0).to(I32)


@vector_code(void)
def add(b: Builder, bins: Memory, cells: Lanes, row: Lanes) -> None:
    """Count a box in its bin of each axis, and extend the bins' bounds; bins are rows (16, 3)."""
    for axis in range(3):
        place = flat_index(b, b.zext(cells.lane(axis), I64), 24, 8 * axis)
        old = bins.load(place, 8)
        counted = (old.bits(I32) + ([0] * 7 + [1])).bits(F32)
        bins.store(greater(old, row).shuffled(counted, [0, 1, 2, 3, 4, 5, 6, 15]), place)


def _empty(b: Builder) -> Lanes:
    """Return the bounds of an empty bin; its count is 0."""
    return constant(b, F32, 8, -np.inf).with_lane(7, F32(0.0))


@vector_code(void)
def clear(b: Builder, bins: Memory) -> None:
    """Empty all bins."""
    for k in range(3 * BINS):
        bins.store(_empty(b), 8 * k)


@vector_code(_CELLS)
def limits(b: Builder, cut: Scalar) -> Lanes:
    """Return the last bin of the left side on the axis of a cut (axis * 16 + bin), -1 on others."""
    axis, last = b.lshr(cut, I64(4)), b.trunc(b.and_(cut, I64(15)), I32)
    lasts = [b.select(b.icmp_signed("==", axis, I64(k)), last, I32(-1)) for k in range(3)]
    return lined_up(b, [*lasts, I32(-1)])


@vector_code(int64)
def is_left(b: Builder, cells: Lanes, last: Lanes) -> Scalar:
    """Return 1 for a box of the left side, else 0."""
    return b.zext((cells <= last).any(), I64)


class _Sweep:
    """Bounds and counts of the bins from one end on, for three axes, in memory that becomes registers."""

    def __init__(self, b: Builder, bins: Memory) -> None:
        self.b, self.bins = b, bins
        self.bounds = [Register(b, _empty(b).value) for _ in range(3)]
        self.count = Register(b, constant(b, I32, 4, 0).value)

    def add(self, which: Scalar) -> Lanes:
        """Add a bin of each axis; return the costs of these sides, infinite without boxes."""
        b, areas, counts = self.b, [], []
        for axis in range(3):
            row = self.bins.load(flat_index(b, which, 24, 8 * axis), 8)
            bounds = greater(row, self.bounds[axis].lanes)
            self.bounds[axis].value = bounds.value
            areas.append(half_area(bounds))
            counts.append(row.bits(I32).lane(7))
        total = self.count.lanes + lined_up(b, [*counts, I32(0)])
        self.count.value = total.value
        sums = [lined_up(b, [part.lane(k) for part in areas] + [F32(0.0)]) for k in range(3)]
        work = total + ((total + (WIDTH - 1)) >> 3) + _SIDE
        price = (sums[0] + sums[1] + sums[2]) * work.to(F32)
        return (total > 0).choose(price, np.inf)


@vector_code(int64)
def cheapest(b: Builder, bins: Memory, scratch: Memory) -> Scalar:
    """Return the cut of least cost (axis * 16 + last bin of the left side), -1 where there is none.

    Cost: the sum over both sides of surface area times work, which is the number of boxes, plus that of nodes
    that they fill, plus 4. With the boxes alone trees take 5 % more memory. `scratch` has 16 x 4 floats.
    """
    # Sweep from the right, storing the cost of each right side.
    sweep = _Sweep(b, bins)
    with loop(b, I64(BINS - 1)) as k:
        which = b.sub(I64(BINS - 1), k)
        scratch.store(sweep.add(which), flat_index(b, which, 4))

    # Sweep from the left for the cheapest pair of sides.
    sweep = _Sweep(b, bins)
    best = Register(b, constant(b, F32, 4, np.inf).value)
    cut = Register(b, constant(b, I32, 4, -1).value)
    with loop(b, I64(BINS - 1)) as k:
        both = sweep.add(k) + scratch.load(flat_index(b, k, 4, 4), 4)
        better = both < best.lanes
        best.value = better.choose(both, best.lanes).value
        cut.value = better.choose(splat(b, b.trunc(k, I32), 4), cut.lanes).value

    # Choose among the axes: of equal costs the first.
    price, choice = best.lanes.lane(0), cut.lanes.lane(0)
    for axis in (1, 2):
        wins = b.fcmp_ordered("<", best.lanes.lane(axis), price)
        price = b.select(wins, best.lanes.lane(axis), price)
        choice = b.select(wins, b.add(cut.lanes.lane(axis), I32(BINS * axis)), choice)
    return b.sext(choice, I64)


def _curve_cells(b: Builder, rows: Memory, grid: Lanes) -> list[Lanes]:
    """Return the cells of the centres of 16 rows: one of 4096 on each axis."""
    sides = eight_columns([row_at(b, rows, I64(k)) for k in range(_GROUP)])
    cells = []
    for axis in range(3):
        low, ratio = (grid.permuted([axis + k] * _GROUP) for k in (0, 4))
        place = (_middle2(-sides[axis], sides[4 + axis]) - low) * ratio
        cells.append(lesser(greater(place, 0.0), 4095.0).to(I32))
    return cells


@vector_code(void)
def along_curve(b: Builder, rows: Memory, grid: Lanes, table: Memory, places: Memory) -> None:
    """Write the places of the centres of 16 rows along a curve of 12 levels (`raybox.bvh.hilbert_curve`)."""
    cells = _curve_cells(b, rows, grid)

    # Two levels a step, two bits of each coordinate: the state gives the order of their cubes.
    state = constant(b, I32, _GROUP, 0)
    halves = [state, state]
    for turn in range(6):
        at = state
        for axis, to in enumerate((4, 2, 0)):
            at = at | ((cells[axis] >> (10 - 2 * turn)) & 3) << to
        found = table.gather([at.lane(k) for k in range(_GROUP)])
        halves[turn // 3] = (halves[turn // 3] << 6) | (found & 63)
        state = found & ~63
    high, low = (half.to(I64) for half in halves)
    places.store((high << 18) | low, 0)
