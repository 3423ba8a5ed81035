"""Rays in a grid: what its traversal stores of several rays that take turns, and how they begin."""

from typing import NamedTuple

import numpy as np

from raybox.bvh.cell_tree import MAX_LEVELS
from raybox.compiler.decorators import device, inlined
from raybox.geometry import GridRows
from raybox.primitives.ray import Ray
from raybox.validation import Floats, Ints

TURNS = 4  # rays that take turns

# Words of a row of `GridScratch.numbers`.
ORIGIN, DIRECTION, INVERSE, LONGER = 0, 3, 6, 9  # three each; the last two: 1/d, and no less
START, END = 12, 13  # t_min, and no less than the time after which no hit matters
LIMIT = 14  # that time, rounded; +inf before any hit
NUMBERS = 16

# Words of a row of `GridScratch.marks`.
RAY, KIND = 0, 1
MOVES = 2  # whether the ray moves on every axis
FLIP, OCTANT = 3, 4  # see `raybox.compiler.mask_flips`
DEPTH = 5  # nodes in the stack
LEVEL, PLACE = 6, 7  # of the node entered last: the level of its children, and the place of the first; three
STARTS = 10  # three: the place of an axis and a direction among those of a level in `CellTree.starts`
EXCLUDED = 13  # the cell that the ray does not hit
MARKS = 16

# Words of a node in `GridScratch.stack`.
LEFT = 0  # bits of children left to enter, in the order of travel
NODE_LEVEL, NODE_MASK, NODE_FIRST = 1, 2, 3  # the level of its children, and its row of `CellTree.nodes`
ENTRY = 4
STACK = (
    MAX_LEVELS + 2
)  # nodes: of every level, the one above the root, and one that is written but not counted

NEAR, TAME, WILD = 0, 1, 2  # kinds of rays, by the test of nodes: in float32, float64, without overflows

_TAME_LOW, _TAME_HIGH = 2.0**-500, 2.0**500
_SLOW, _FAST, _SMALL, _FAR = 2.0**-60, 2.0**60, 2.0**-40, 2.0**60  # of rays and grids for float32
_RESOLVED = 2.0**20  # cells from the origin to the far side of the grid, at most, for float32
LONGER_BY = 1.0 + 2.0**-49
_PAD = 2.0**-50
_UNDERFLOW = 2.0**-1022  # more than underflow loses; sums with denormals are slow


class GridScratch(NamedTuple):
    """Memory of rays that take turns, a row for each."""

    numbers: Floats  # (TURNS, NUMBERS)
    marks: Ints  # (TURNS, MARKS)
    stack: Ints  # (TURNS, STACK, ENTRY): nodes with children left to enter, those of the last one nearest


def make_grid_scratch() -> GridScratch:
    """Return the memory of rays that take turns."""
    return GridScratch(
        np.zeros((TURNS, NUMBERS)),
        np.zeros((TURNS, MARKS), np.int64),
        np.zeros((TURNS, STACK, ENTRY), np.int64),
    )


@device
def later(t: float) -> float:
    """Return a time such that no exact time up to that of t is computed later; see `grid_nodes`."""
    return t + (abs(t) * _PAD + _UNDERFLOW) if t > -np.inf else t


@device
def is_tame_grid(rows: GridRows) -> bool:
    """Return whether products with 1/d are accurate for all planes of a grid, if the ray is tame."""
    size = 0.0
    for axis in range(3):
        edges = rows.x_edges if axis == 0 else (rows.y_edges if axis == 1 else rows.z_edges)
        size = max(size, abs(edges[0]), abs(edges[-1]))
    return size < _TAME_HIGH


@device
def is_tame_ray(ray: Ray) -> bool:
    """Return whether products with 1/d are accurate for all planes of a tame grid."""
    for axis in range(3):
        d = abs(ray.direction[axis])
        if (d != 0.0 and not _TAME_LOW < d < _TAME_HIGH) or not abs(ray.origin[axis]) < _TAME_HIGH:
            return False
    return True


@device
def is_tame(rows: GridRows, ray: Ray) -> bool:
    """Return whether products with 1/d are accurate for all planes of a grid.

    Then neither differences nor products over- or underflow, other than to 2^-1074.
    """
    return is_tame_grid(rows) and is_tame_ray(ray)


@inlined
def is_near(rows: GridRows, ray: Ray) -> bool:
    """Return whether a ray may be of kind `NEAR`: all times it needs are finite and not 0 in float32.

    And most planes have times of their own: of others, float32 would find too many children.
    """
    near, moves = ray.t_min >= 0.0, False
    for axis in range(3):
        edges = rows.x_edges if axis == 0 else (rows.y_edges if axis == 1 else rows.z_edges)
        o, d, last = ray.origin[axis], abs(ray.direction[axis]), edges.size - 1
        size, reach = edges[last] - edges[0], max(abs(o - edges[0]), abs(o - edges[last]))
        fits = _SLOW < d < _FAST and size > _SMALL
        near = near and (fits or d == 0.0) and reach < _FAR and reach * last <= _RESOLVED * size
        moves = moves or d != 0.0
    return near and moves


@inlined
def put_ray(scratch: GridScratch, turn: int, rows: GridRows, levels: int, ray: Ray) -> None:
    """Begin with a ray at a node above the root, whose only child is the root."""
    numbers, marks, entry = scratch.numbers[turn], scratch.marks[turn], scratch.stack[turn, 0]
    kind = NEAR if is_near(rows, ray) else (TAME if is_tame(rows, ray) else WILD)
    moves, flip, octant = 1, 0, 0
    for axis in range(3):
        d = ray.direction[axis]
        down = 1 if d < 0.0 else 0
        still = np.inf if kind == NEAR else 0.0
        inverse = 1.0 / d if d != 0.0 else still
        moves &= d != 0.0
        flip, octant = flip << 2 | 3 * down, octant << 1 | down
        numbers[ORIGIN + axis], numbers[DIRECTION + axis] = ray.origin[axis], d
        numbers[INVERSE + axis], numbers[LONGER + axis] = inverse, inverse * LONGER_BY
        marks[PLACE + axis], marks[STARTS + axis] = 0, 2 * axis + down
    numbers[START], numbers[END], numbers[LIMIT] = ray.t_min, later(later(ray.t_max)), np.inf
    marks[KIND], marks[MOVES], marks[FLIP], marks[OCTANT] = kind, moves, flip, octant
    marks[DEPTH], marks[LEVEL] = 1, levels
    entry[LEFT], entry[NODE_LEVEL], entry[NODE_MASK], entry[NODE_FIRST] = 1, levels, 0, 0
