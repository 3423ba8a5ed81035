"""Rays in a grid: what its traversal reads and writes of several rays that take turns, in memory."""

from typing import Any, NamedTuple

import numpy as np

from raybox.bvh.cell_tree import MAX_LEVELS
from raybox.compiler.decorators import device, inlined
from raybox.primitives.ray import Ray
from raybox.validation import Floats, Ints

TURNS = 4  # rays that take turns: while one waits for memory or results, the processor computes for others

# Numbers of a ray: float64.
ORIGIN, DIRECTION, INVERSE, LONGER = 0, 3, 6, 9  # of three each
START, END, LIMIT = 12, 13, 14
NUMBERS = 16

# Marks of a ray: int64.
RAY, KIND, MOVES, FLIP = 0, 1, 2, 3
DEPTH, LEVEL, PLACE = 4, 5, 6  # PLACE: three
STARTS, OCTANT = 9, 12  # STARTS: three, the place of an axis and a direction in a row of `CellTree.starts`
MARKS = 16

# An entry of a stack.
LEFT, NODE_LEVEL, NODE_MASK, NODE_FIRST = 0, 1, 2, 3
ENTRY = 4
STACK = MAX_LEVELS + 2

NEAR, TAME, WILD = 0, 1, 2  # kinds of rays
_TAME_LOW, _TAME_HIGH = 2.0**-500, 2.0**500
_RESOLVED = 2.0**20  # cells between a ray's origin and the far side of the grid, at most, for float32
LONGER_BY = 1.0 + 2.0**-49
_PAD = 2.0**-50
_UNDERFLOW = 2.0**-1022  # more than underflow loses; sums with denormals are slow


class GridScratch(NamedTuple):
    """Memory of rays that take turns in a grid."""

    numbers: Floats  # (TURNS, 16)
    marks: Ints  # (TURNS, 16)
    stack: Ints  # (TURNS, levels, 4): nodes with children left to enter


def make_grid_scratch() -> GridScratch:
    """Return the memory of rays that take turns."""
    return GridScratch(
        np.zeros((TURNS, NUMBERS)),
        np.zeros((TURNS, MARKS), np.int64),
        np.zeros((TURNS, STACK, ENTRY), np.int64),
    )


@inlined
def later(t: float) -> float:
    """Return a time such that no exact time up to that of t is computed later; see `grid_nodes`."""
    return t + (abs(t) * _PAD + _UNDERFLOW) if t > -np.inf else t


@device
def is_tame(rows: Any, ray: Any) -> bool:
    """Return whether products with 1/d are accurate for all planes of a grid: none over- or underflows.

    Other than to 2^-1074.
    """
    size = 0.0
    for axis in range(3):
        edges = rows.x_edges if axis == 0 else (rows.y_edges if axis == 1 else rows.z_edges)
        d = abs(ray.direction[axis])
        if d != 0.0 and not _TAME_LOW < d < _TAME_HIGH:
            return False
        size = max(size, abs(ray.origin[axis]), abs(edges[0]), abs(edges[-1]))
    return size < _TAME_HIGH


@inlined
def _is_near(rows: Any, ray: Ray) -> bool:
    """Return whether float32 tells the times of most planes apart, of a ray whose range begins at 0 or later."""
    near = ray.t_min >= 0.0
    for axis in range(3):
        edges = rows.x_edges if axis == 0 else (rows.y_edges if axis == 1 else rows.z_edges)
        o, last = ray.origin[axis], edges.size - 1
        reach = max(abs(o - edges[0]), abs(o - edges[last]))
        near = near and reach * last <= _RESOLVED * (edges[last] - edges[0])
    return near


@inlined
def put_ray(scratch: GridScratch, turn: int, rows: Any, levels: int, ray: Ray) -> None:
    """Begin with a ray above the root."""
    numbers, marks = scratch.numbers[turn], scratch.marks[turn]
    kind = (NEAR if _is_near(rows, ray) else TAME) if is_tame(rows, ray) else WILD
    moves, flip, octant = 1, 0, 0
    for axis in range(3):
        d = ray.direction[axis]
        numbers[ORIGIN + axis], numbers[DIRECTION + axis] = ray.origin[axis], d
        if d == 0.0:
            moves = 0
            inverse = np.inf if kind == NEAR else 0.0
        else:
            inverse = 1.0 / d
        down = 1 if d < 0.0 else 0
        flip |= 3 * down << (4 - 2 * axis)
        octant |= down << (2 - axis)
        marks[STARTS + axis] = 2 * axis + down
        numbers[INVERSE + axis], numbers[LONGER + axis] = inverse, inverse * LONGER_BY
        marks[PLACE + axis] = 0
    numbers[START], numbers[END], numbers[LIMIT] = ray.t_min, later(later(ray.t_max)), np.inf
    marks[KIND], marks[MOVES], marks[FLIP], marks[LEVEL], marks[DEPTH] = kind, moves, flip, levels, 1
    marks[OCTANT] = octant
    entry = scratch.stack[turn, 0]
    entry[LEFT], entry[NODE_LEVEL], entry[NODE_MASK], entry[NODE_FIRST] = 1, levels, 0, 0
