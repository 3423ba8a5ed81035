"""Which closed boxes share a point with a convex region: in float64 with proven margins, then exactly.

    outside    the whole box is outside of a plane of the region, or of one of `raybox.spatial.region_edges`
    inside     all of the box is, or a point of it: the middle of what both share
    undecided  integers of any length decide whether the inequalities of both have a solution

The margins are those of `raybox.exact.half_spaces`. Of n . p, the least in a box is at its lower bounds where
n > 0 and at its upper bounds where n < 0, so one point of the box decides for all of it.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox.exact.feasibility import Inequality, is_feasible
from raybox.exact.half_spaces import Excess, Plane, are_inside, excess, planes_of
from raybox.exact.plane_signs import integers
from raybox.geometry import BoxRows, Region
from raybox.geometry.rows import in_space
from raybox.spatial.region_edges import Edges, OuterPlanes, edges_of, outer_planes
from raybox.validation import Bools, Floats, Ints

_BOXES = 2**14  # boxes at a time: their columns stay in the cache
_AXES = range(3)

Columns: TypeAlias = Sequence[Floats]
"""Coordinates axis by axis, (N,) each"""


Chosen: TypeAlias = "Bools | NDArray[np.intp] | slice[int, int | None, None]"
"""Rows of an array"""


class BoxColumns(NamedTuple):
    """The bounds of boxes, axis by axis, (N,) each."""

    lower: Columns
    upper: Columns

    def of(self, rows: Chosen) -> "BoxColumns":
        """Return some of the boxes."""
        return BoxColumns([x[rows] for x in self.lower], [x[rows] for x in self.upper])


class RegionPlanes(NamedTuple):
    """A region, with all that tests of boxes need; in 2D the third coordinate has no weight."""

    normals: Floats
    """(M, 3)"""
    offsets: Floats
    """(M,)"""
    planes: list[Plane]
    """the same"""
    exact: list[Inequality]
    """the planes in integers"""
    edges: Edges
    outer: OuterPlanes
    is_empty: bool


class Sides(NamedTuple):
    """Which boxes are certainly outside of one plane, and which certainly inside of all; (N,) each."""

    outside: Bools
    inside: Bools


def region_planes(region: Region) -> RegionPlanes:
    """Return what tests of boxes need of a region."""
    normals, offsets = in_space(region.normals), region.offsets
    exact = [tuple(row) for row in integers(np.column_stack([normals, offsets])).tolist()]
    edges = edges_of(normals, offsets)
    outer, is_empty = outer_planes(edges, exact), not is_feasible(exact, 3)
    return RegionPlanes(normals, offsets, planes_of(normals, offsets), exact, edges, outer, is_empty)


def columns_of(boxes: BoxRows, rows: Ints) -> BoxColumns:
    """Return the bounds of some boxes, axis by axis."""
    return BoxColumns(*([bounds[:, axis][rows] for axis in _AXES] for bounds in boxes))


def hold_points(boxes: BoxColumns) -> Bools:
    """Return which boxes hold a point: not those from +inf to +inf, or from -inf to -inf."""
    found = np.ones(len(boxes.lower[0]), np.bool_)
    for low, high in zip(*boxes, strict=True):
        found &= (low < np.inf) & (high > -np.inf)
    return found


def sides_of(region: RegionPlanes, boxes: BoxColumns) -> Sides:
    """Return on which side of the region's planes and bounds boxes certainly are."""
    outside = _are_outside([*region.planes, *region.outer.along_axes], boxes)
    inside = ~outside
    for plane in region.planes:
        inside &= _most(plane, boxes).is_inside
    return Sides(outside, inside)


def share_a_point(region: RegionPlanes, boxes: BoxColumns) -> Bools:
    """Return which boxes share a point with the region: exactly."""
    count = len(boxes.lower[0])
    found = np.zeros(count, np.bool_)
    if region.is_empty:
        return found
    for begin in range(0, count, _BOXES):
        rows = slice(begin, begin + _BOXES)
        found[rows] = _share_a_point(region, boxes.of(rows))
    return found


def _share_a_point(region: RegionPlanes, boxes: BoxColumns) -> Bools:
    """Return which boxes share a point with a region that is not empty."""
    outside, inside = sides_of(region, boxes)
    outside |= ~hold_points(boxes)
    inside &= ~outside
    rest = np.flatnonzero(~(outside | inside))
    found = _have_middle_inside(region, boxes.of(rest))
    inside[rest[found]] = True
    rest = rest[~found]
    rest = rest[~_are_outside(region.outer.at_edges, boxes.of(rest))]
    inside[rest] = _share_a_point_exactly(region, boxes.of(rest))
    return inside


def _are_outside(planes: list[Plane], boxes: BoxColumns) -> Bools:
    """Return which boxes are certainly outside of one of some planes."""
    outside = np.zeros(len(boxes.lower[0]), np.bool_)
    for plane in planes:
        outside |= _least(plane, boxes).is_outside
    return outside


def _least(plane: Plane, boxes: BoxColumns) -> Excess:
    """Return n . p - k at the corner of each box where it is least."""
    return excess(plane, [x[n < 0.0] for n, x in zip(plane.normal, zip(*boxes, strict=True), strict=True)])


def _most(plane: Plane, boxes: BoxColumns) -> Excess:
    """Return n . p - k at the corner of each box where it is greatest."""
    return excess(plane, [x[n > 0.0] for n, x in zip(plane.normal, zip(*boxes, strict=True), strict=True)])


def _have_middle_inside(region: RegionPlanes, boxes: BoxColumns) -> Bools:
    """Return of which boxes a point is found in the region: the mean of edges that both share.

    Each corner of what a box and a region share ends a part of an edge of one that is in the other, so the
    mean of the middles of these parts is not on a plane, unless all that they share is. It is computed in
    float64, and then tested exactly.
    """
    with np.errstate(all="ignore"):
        finite = _finite_boxes(region.edges, boxes)
        sums = np.zeros((4, len(boxes.lower[0])))
        _add_box_edges(region.planes, finite, sums)
        _add_region_edges(region.edges, finite, sums)
        middles = sums[:3] / sums[3]
        points = np.clip(middles, boxes.lower, boxes.upper).T
    found: Bools = np.isfinite(points).all(axis=1)
    found[found] = are_inside(region.normals, region.offsets, points[found])
    return found


def _finite_boxes(edges: Edges, boxes: BoxColumns) -> BoxColumns:
    """Return boxes whose infinite bounds are beyond the corners of the region."""
    ends = np.stack([edges.points + t[:, None] * edges.directions for t in (edges.begin, edges.end)])
    reach = np.abs(ends[np.isfinite(ends)]).max(initial=1.0)
    for x in (*boxes.lower, *boxes.upper):
        reach = np.maximum(reach, np.where(np.isfinite(x), np.abs(x), 0.0))
    lower = [np.where(np.isfinite(x), x, -2.0 * reach) for x in boxes.lower]
    return BoxColumns(lower, [np.where(np.isfinite(x), x, 2.0 * reach) for x in boxes.upper])


def _add_box_edges(planes: list[Plane], boxes: BoxColumns, sums: Floats) -> None:
    """Add the middle of each part of a box's edges that is inside of all planes, and their number."""
    for axis, *sides in product(_AXES, (0, 1), (0, 1)):
        others = [other for other in _AXES if other != axis]
        fixed = {other: boxes[side][other] for other, side in zip(others, sides, strict=True)}
        begin, end = boxes.lower[axis], boxes.upper[axis]
        for normal, offset in planes:
            room = offset - sum((normal[other] * x for other, x in fixed.items()), np.zeros_like(begin))
            begin, end = _clipped(begin, end, normal[axis], room)
        fixed[axis] = begin / 2 + end / 2
        _add_points([fixed[k] for k in _AXES], begin <= end, sums)


def _clipped(begin: Floats, end: Floats, rate: float, room: Floats) -> tuple[Floats, Floats]:
    """Return the parts of spans of t in which rate * t <= room."""
    if rate == 0.0:
        return np.where(room >= 0.0, begin, np.inf), end
    return (begin, np.minimum(end, room / rate)) if rate > 0.0 else (np.maximum(begin, room / rate), end)


def _add_region_edges(edges: Edges, boxes: BoxColumns, sums: Floats) -> None:
    """Add the middle of each part of the region's edges that is in a box, and their number."""
    for point, direction, first, last in zip(*edges[:4], strict=True):
        begin, end = np.full_like(sums[3], first), np.full_like(sums[3], last)
        for axis in _AXES:
            begin, end = _clipped(begin, end, direction[axis], boxes.upper[axis] - point[axis])
            begin, end = _clipped(begin, end, -direction[axis], point[axis] - boxes.lower[axis])
        middle = begin / 2 + end / 2
        _add_points([point[axis] + middle * direction[axis] for axis in _AXES], begin <= end, sums)


def _add_points(points: Columns, chosen: Bools, sums: Floats) -> None:
    for axis in _AXES:
        sums[axis] += np.where(chosen, points[axis], 0.0)
    sums[3] += chosen


def _share_a_point_exactly(region: RegionPlanes, boxes: BoxColumns) -> Bools:
    """Return which boxes share a point with the region, by inequalities in integers.

    Planes of which a box is certainly inside are left out, as its bounds imply them.
    """
    count = len(boxes.lower[0])
    needed = [~_most(plane, boxes).is_inside for plane in region.planes]
    bounds = zip(*(x.tolist() for x in (*boxes.lower, *boxes.upper)), strict=True)
    found = np.empty(count, np.bool_)
    for row, numbers in zip(range(count), bounds, strict=True):
        planes = [exact for exact, chosen in zip(region.exact, needed, strict=True) if chosen[row]]
        found[row] = is_feasible([*planes, *_inequalities(numbers[:3], numbers[3:])], 3)
    return found


def _inequalities(lower: Sequence[float], upper: Sequence[float]) -> list[Inequality]:
    """Return the finite bounds of a box as -x <= -lower and x <= upper."""
    found = []
    for axis, (low, high) in enumerate(zip(lower, upper, strict=True)):
        for sign, bound in ((-1, low), (1, high)):
            if np.isfinite(bound):
                numerator, denominator = bound.as_integer_ratio()
                weights = [0, 0, 0]
                weights[axis] = sign * denominator
                found.append((*weights, sign * numerator))
    return found
