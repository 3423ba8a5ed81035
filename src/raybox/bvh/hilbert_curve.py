"""The places of boxes' centres along a Hilbert curve of 2048 cells an axis.

The curve is that of Hamilton, "Compact Hilbert Indices" (2006), section 2: in each cube of an octree a
state gives the order of its eight cubes. There are 24 states, so that one table of 24 x 64 entries serves
two levels at once.
"""

import itertools
from functools import cache
from typing import NamedTuple

import numpy as np

from raybox.bvh import sah_bins, sah_rows
from raybox.bvh.frame import SAMPLE, FramedBoxes
from raybox.compiler.entry_points import entry
from raybox.compiler.struct_ref import struct
from raybox.validation import Floats32, Ints, Ints32

BITS = 33  # of a place along the curve
_GROUP = 16  # boxes of one call of `along_curve`


def _turn(bits: int, by: int) -> int:
    """Rotate three bits to the left."""
    by %= 3
    return (bits << by | bits >> (3 - by)) & 7


class _Step(NamedTuple):
    """The place of an octant along the curve, and the corner and direction of its entry."""

    place: int
    corner: int
    way: int


def _step(entry_corner: int, way: int, octant: int) -> _Step:
    """Return the step into an octant of a cube."""
    gray = _turn(octant ^ entry_corner, -(way + 1))
    place = gray ^ gray >> 1 ^ gray >> 2
    before = 2 * ((place - 1) // 2)
    corner = before ^ before >> 1 if place else 0
    even = place - 1 if place % 2 == 0 else place
    ones = (~even & even + 1).bit_length() - 1 if place else 0
    return _Step(place, entry_corner ^ _turn(corner, way + 1), (way + ones + 1) % 3)


@cache
def make_table() -> Ints32:
    """Return next state * 64 + two digits of the place, for each state and two bits an axis."""
    table = np.empty((24, 64), np.int32)
    for state in range(24):
        for x, y, z in itertools.product(range(4), repeat=3):
            first, corner, way = _step(state // 3, state % 3, x >> 1 << 2 | y >> 1 << 1 | z >> 1)
            second, corner, way = _step(corner, way, (x & 1) << 2 | (y & 1) << 1 | z & 1)
            table[state, x << 4 | y << 2 | z] = (corner * 3 + way) * 64 + first * 8 + second
    table.flags.writeable = False
    return table.reshape(-1)


@struct
class CurveWorkspace(NamedTuple):
    """The grid and table of a curve, and memory for 16 boxes."""

    grid: Floats32
    table: Ints32
    rows: Floats32
    places: Ints


def make_curve_workspace(grid: Floats32) -> CurveWorkspace:
    """Return a workspace for one thread."""
    return CurveWorkspace(grid, make_table(), np.zeros((_GROUP, 8), np.float32), np.empty(_GROUP, np.int64))


@entry
def find_places(
    boxes: FramedBoxes,
    span: tuple[int, int],
    workspace: CurveWorkspace,
    shift: int,
    places: Ints,
    counts: Ints,
) -> None:
    """Write each box's place along the curve; count boxes by place >> shift."""
    over = sah_rows.load(workspace.grid, 0)
    for begin in range(span[0], span[1], _GROUP):
        stop = min(begin + _GROUP, span[1])
        for i in range(begin, stop):
            row = sah_rows.outward(boxes.lower, boxes.upper, i, boxes.center, boxes.scale)
            sah_rows.store(workspace.rows, i - begin, row)
        sah_bins.along_curve(workspace.rows, over, workspace.table, workspace.places)
        for i in range(begin, stop):
            place = workspace.places[i - begin] >> 3
            places[i] = place
            counts[place >> shift] += 1


def make_grid(boxes: FramedBoxes, reach: float) -> Floats32:
    """Return (low x, y, z, _, cells per length x, y, z, _) for doubled centres: cubes over the bulk.

    Boxes far from the bulk share the cells at its rim.
    """
    grid = np.zeros((1, 8), np.float32)
    _write_grid(boxes, reach, grid)
    return grid


@entry
def _write_grid(boxes: FramedBoxes, reach: float, grid: Floats32) -> None:
    furthest = 0.0
    for i in range(0, boxes.lower.shape[0], max(1, boxes.lower.shape[0] // SAMPLE)):
        for axis in range(3):
            away = abs(0.5 * boxes.lower[i, axis] + 0.5 * boxes.upper[i, axis] - boxes.center[axis])
            furthest = max(furthest, away if away < np.inf else 0.0)  # boxes may be unbounded
    half = min(furthest, 4.0 * reach) * boxes.scale
    length = 4.0 * half
    for axis in range(3):
        grid[0, axis] = max(-2.0 * half, -1e38)
        grid[0, 4 + axis] = 2.0**12 / length if 2.0**-100 < length < np.inf else 0.0
