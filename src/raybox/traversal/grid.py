"""The traversal of a grid: from cell to cell, through the nodes of a `CellTree`, nearest first.

The children of a node that the ray may hit are bits of one integer, in the order of travel: x, then y, then z
number them, each axis from its near end. A ray that moves on every axis passes the children that it hits in
this very order, so the lowest bit is the nearest: nothing is sorted.

**Why no cell is lost.** A plane at p is crossed at the exact time T = (p - o)/d, computed as a product with
1/d: off by less than 2^-51 of T, and by 2^-1073 where it underflows (of rays that are not tame, by a
quotient, which is closer). Let x <= y be exact times and X, Y what is computed of them. Then X <= `later` (Y),
which adds 2^-50 of Y and 2^-1022: where x and y have one sign, twice the error of Y is more than both; where
they have not, X <= 0 <= Y. A ray hits a box if and only if no near plane's time, nor t_min, is later than a far
plane's, or t_max; so with far times and the end of the range moved by `later`, no child that it hits is
dropped. On axes where the direction is 0, the comparisons of o with the planes are exact.

**Why a ray may end.** After a hit at t (the exact time rounded once), cells matter only up to its exact
time. `end` is that time, moved by `later` twice. Let child X be among the bits and its near time later than
`end`; let Y be behind it in the order of travel, hit at a time y that matters. On the first axis on which they
differ, X ends where Y, or a child before it, begins: this far time of X is at most y, so computed and moved it
is at most `end`; and X's near time was not later. So there is no such Y, and the rest of the bits is dropped. Of
rays that do not move on some axis, two children may begin at one time in another order: only X is.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types

from raybox.bvh.cell_tree import CellTree
from raybox.compiler import simd_single
from raybox.compiler.decorators import device, inlined
from raybox.compiler.intrinsics import popcount, vector_code
from raybox.compiler.simd import F64, I64, Lanes, constant, greater, joined, lesser, splat
from raybox.geometry import GridRows
from raybox.primitives.ray import Ray
from raybox.traversal.protocol import resolve
from raybox.traversal.single import RAY_TRAVERSALS, Job, Scratch, is_allowed

LEFT, MASK, FIRST, PLACE = 0, 1, 2, 3  # columns of `Scratch.cells`: a node's children that are left, ...
_LARGEST = 1.7976931348623157e308
_TAME_LOW, _TAME_HIGH = 2.0**-500, 2.0**500
_PAD = 2.0**-50
_UNDERFLOW = 2.0**-1022  # more than underflow loses, and no denormal, whose sums are slow
_ROWS = (0, 0x1, 0x11, 0x111, 0x1111)  # so many rows of four bits
_SLICES = (0, 0x1, 0x10001, 0x100010001, 0x1000100010001)  # so many slices of sixteen bits


class GridRay(NamedTuple):
    """What the test of a node reads of a ray; tuples of three."""

    origin: Any
    direction: Any
    inverse: Any  # of the direction, of tame rays
    start: float  # t_min


@device
def later(t: float) -> float:
    """Return a time such that no exact time up to that of t is computed later; see the module."""
    return t + (abs(t) * _PAD + _UNDERFLOW) if t > -np.inf else t


# Tame rays, many children at a time.


def _axis(b: Any, planes: Any, place: Any, o: Any, d: Any, inverse: Any) -> tuple[Lanes, Lanes]:
    """Return near and far times of four children on one axis, in the order of travel."""
    five = planes.load(place, 8)
    times = (five - splat(b, o, 8)) * splat(b, inverse, 8)
    padded = times + (times.magnitude() * _PAD + _UNDERFLOW)
    backward = b.fcmp_ordered("<", d, F64(0.0))

    def in_order(values: Lanes, forward: list[int], reverse: list[int]) -> Any:
        ways = (values.shuffled(values, picks).value for picks in (reverse, forward))
        return b.select(backward, *ways)

    near = Lanes(b, in_order(times, [0, 1, 2, 3], [4, 3, 2, 1]))
    far = Lanes(b, in_order(padded, [1, 2, 3, 4], [3, 2, 1, 0]))
    low, high = (five.shuffled(five, picks) for picks in ([0, 1, 2, 3], [1, 2, 3, 4]))
    at = splat(b, o, 4)
    within = (low <= at) & (at <= high)
    still = b.fcmp_ordered("==", d, F64(0.0))
    one, none = constant(b, F64, 4, np.inf), constant(b, F64, 4, -np.inf)
    near = Lanes(b, b.select(still, within.choose(none, one).value, near.value))
    return near, Lanes(b, b.select(still, within.choose(one, none).value, far.value))


@vector_code(types.int64)
def hit_children(b: Any, planes: Any, places: Any, ray: Any, end: Any) -> Any:
    """Return a bit for each of 64 children that a tame ray may hit before `end`, in the order of travel.

    places: where the planes of the first child are, on each axis.
    """
    axes = [_axis(b, planes, *axis) for axis in zip(places, ray.origin, ray.direction, ray.inverse, strict=True)]
    (near_x, far_x), (near_y, far_y), (near_z, far_z) = axes
    start, stop = splat(b, ray.start, 4), splat(b, end, 4)
    near_x, far_x = greater(near_x, start), lesser(far_x, stop)
    rows = [[one.shuffled(one, [k] * 4) for k in range(4)] for one in (near_y, far_y)]
    near_yz = joined([greater(near_z, row) for row in rows[0]])
    far_yz = joined([lesser(far_z, row) for row in rows[1]])
    slices = []
    for k in range(4):
        near = greater(near_yz, near_x.shuffled(near_x, [k] * 16))
        slices.append(near <= lesser(far_yz, far_x.shuffled(far_x, [k] * 16)))
    return b.bitcast(joined(slices).value, I64)


# Other rays: quotients that may overflow.


@device
def wild_times(plane: float, o: float, d: float) -> tuple[float, float]:
    """Return the computed time of a plane as a near and as a far one, also where numbers overflow."""
    way = plane - o
    low, high = min(way, _LARGEST), max(way, -_LARGEST)
    near, far = (low / d, high / d) if d > 0.0 else (high / d, low / d)
    return min(near, _LARGEST), max(far, -_LARGEST)


@device
def _wild_axis(planes: Any, place: int, child: int, o: float, d: float) -> tuple[float, float]:
    """Return the near and the far time of one child on one axis."""
    low, high = planes[place + child], planes[place + child + 1]
    if d == 0.0:
        return (-np.inf, np.inf) if low <= o <= high else (np.inf, -np.inf)
    first, last = (low, high) if d > 0.0 else (high, low)
    return wild_times(first, o, d)[0], later(wild_times(last, o, d)[1])


@device
def hit_children_wild(planes: Any, places: Any, ray: GridRay, flip: int, end: float) -> int:
    """Return `hit_children` of any ray; flip: see `_flip_of`."""
    found = 0
    for bit in range(64):
        child = bit ^ flip
        near, far = ray.start, end
        for axis in range(3):
            of_axis = child >> (4 - 2 * axis) & 3
            first, last = _wild_axis(planes, places[axis], of_axis, ray.origin[axis], ray.direction[axis])
            near, far = max(near, first), min(far, last)
        if near <= far:
            found |= 1 << bit
    return found


# Nodes.


@device
def _flip_of(direction: Any) -> int:
    """Return the bits in which a child's number and its number in the order of travel differ."""
    x, y, z = direction
    return (48 if x < 0.0 else 0) | (12 if y < 0.0 else 0) | (3 if z < 0.0 else 0)


@device
def _swap(mask: int, low: int, shift: int) -> int:
    return (mask >> shift & low) | (mask & low) << shift


@device
def flipped(mask: int, flip: int) -> int:
    """Return a mask with each bit moved to its number xor `flip`, which has both bits of an axis or none."""
    if flip & 3:
        mask = _swap(_swap(mask, 0x5555555555555555, 1), 0x3333333333333333, 2)
    if flip & 12:
        mask = _swap(_swap(mask, 0x0F0F0F0F0F0F0F0F, 4), 0x00FF00FF00FF00FF, 8)
    if flip & 48:
        mask = _swap(_swap(mask, 0x0000FFFF0000FFFF, 16), 0x00000000FFFFFFFF, 32)
    return mask


@device
def _children_within(cells: int, level: int, first: int) -> int:
    """Return how many of a node's children on an axis of so many cells are in the grid."""
    return min(4, (cells + (1 << 2 * level) - 1 >> 2 * level) - first)


@device
def _mask_within(shape: Any, level: int, place: Any) -> int:
    """Return the mask of the children that are in the grid; place: of the first child on each axis."""
    a = _children_within(shape[0], level, place[0])
    b = _children_within(shape[1], level, place[1])
    c = _children_within(shape[2], level, place[2])
    return ((1 << c) - 1) * _ROWS[b] * _SLICES[a]


@inlined
def _enter(rows: Any, tree: CellTree, ray: Any, end: float, at: Any, stack: Any) -> None:
    """Write a node's children that the ray may hit before `end` to the stack.

    ray: a `GridRay`, its flip, whether it is tame; at: the level, the node, the place of its first child.
    """
    slabs, flip, tame = ray
    level, node, a, b, c = at
    starts = tree.starts
    places = starts[level, 0] + a, starts[level, 1] + b, starts[level, 2] + c
    if tree.masks.size > 0:
        mask = tree.masks[node]
        stack[level, FIRST] = tree.first[node]
    else:
        mask = _mask_within(rows.shape, level, (a, b, c))
        stack[level, FIRST] = 0
    if tame:
        found = hit_children(tree.planes, places, slabs, end)
    else:
        found = hit_children_wild(tree.planes, places, slabs, flip, end)
    stack[level, MASK] = mask
    stack[level, LEFT] = found & flipped(mask, flip)
    stack[level, PLACE], stack[level, PLACE + 1], stack[level, PLACE + 2] = a, b, c


@inlined
def _begins(tree: CellTree, slabs: GridRay, level: int, place: Any) -> float:
    """Return the computed near time of a child of this level, of a tame ray."""
    near = -np.inf
    for axis in range(3):
        d = slabs.direction[axis]
        if d != 0.0:
            plane = tree.planes[tree.starts[level, axis] + place[axis] + (1 if d < 0.0 else 0)]
            near = max(near, (plane - slabs.origin[axis]) * slabs.inverse[axis])
    return near


@device
def is_tame(rows: Any, ray: Any) -> bool:
    """Return whether differences and quotients neither over- nor underflow, other than to 2^-1074."""
    size = 0.0
    for axis in range(3):
        edges = rows.x_edges if axis == 0 else (rows.y_edges if axis == 1 else rows.z_edges)
        d = abs(ray.direction[axis])
        if d != 0.0 and not _TAME_LOW < d < _TAME_HIGH:
            return False
        size = max(size, abs(ray.origin[axis]), abs(edges[0]), abs(edges[-1]))
    return size < _TAME_HIGH


@device
def _inverse(d: float) -> float:
    return 1.0 / d if d != 0.0 else 0.0


@inlined
def traverse_grid(rows: Any, job: Job, ray: Ray, recorder: Any, scratch: Scratch) -> None:
    """Resolve every allowed cell that the ray may hit, nearest first, until none matters; each once."""
    tree, stack, shape = job.tree, scratch.cells, rows.shape
    d = ray.direction
    slabs = GridRay(ray.origin, d, (_inverse(d[0]), _inverse(d[1]), _inverse(d[2])), ray.t_min)
    flip, tame, moves = _flip_of(d), is_tame(rows, ray), d[0] != 0.0 and d[1] != 0.0 and d[2] != 0.0
    ray_setup = slabs, flip, tame
    limit, end, ended = np.inf, later(later(ray.t_max)), False
    level = top = tree.starts.shape[0] - 1
    scratch.visited[0] += 1
    _enter(rows, tree, ray_setup, end, (level, 0, 0, 0, 0), stack)
    while level <= top:
        # Choose the nearest child that is left; the ray may end before it by now.
        left = stack[level, LEFT]
        if left == 0:
            level += 1
            continue
        stack[level, LEFT] = left & (left - 1)
        child = simd_single.lowest_bit(left) ^ flip
        a = stack[level, PLACE] + (child >> 4)
        b = stack[level, PLACE + 1] + (child >> 2 & 3)
        c = stack[level, PLACE + 2] + (child & 3)
        if ended and tame and _begins(tree, slabs, level, (a, b, c)) > end:
            if moves:
                stack[level, LEFT] = 0
            continue

        # Enter a node; resolve a cell.
        if level > 0:
            node = stack[level, FIRST] + popcount(stack[level, MASK] & ((1 << child) - 1))
            scratch.visited[0] += 1
            level -= 1
            _enter(rows, tree, ray_setup, end, (level, node, 4 * a, 4 * b, 4 * c), stack)
            continue
        cell = (a * shape[1] + b) * shape[2] + c
        if not is_allowed(job.allowed, ~cell):
            continue
        scratch.visited[1] += 1
        time = resolve(recorder, rows, ray, job.base + cell)
        if math.isnan(time):
            return
        if time < limit:
            limit, ended = time, True
            end = min(end, later(later(time)))


RAY_TRAVERSALS[GridRows] = traverse_grid
