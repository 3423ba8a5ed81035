"""The edges of a convex region, and half-spaces around it whose planes are parallel to an axis.

A region and a box without a common point have a separating plane: one of the region, one of the box, or one
that contains an edge of the region and is parallel to an edge of the box (Gottschalk et al. 1996). By Farkas'
lemma, the half-space of the region's side is a sum of its planes with weights that are not negative:

    one plane                               n . p <= k
    two, without one coordinate             |n'_x| (n . p <= k) + |n_x| (n' . p <= k')       n_x n'_x < 0
    three, with one coordinate only         weights n x n', n' x n'', n'' x n, along an axis, of one sign

Edges are found in float64, and may be missed. The sums are those of integers, so each contains the region;
then each number is rounded once.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from raybox.exact.definition import cross
from raybox.exact.feasibility import Inequality
from raybox.exact.half_spaces import Plane
from raybox.validation import Floats, Ints

MAX_PLANES = 128  # of a region whose edges are searched: the cube of it are the steps
_NEAR = 1e-9  # relative: edges may end so far outside of a plane
_PARALLEL = 1e-12
_SMALLEST = 2.0**-900  # numbers below it would not be rounded by a factor


class Edges(NamedTuple):
    """Edges of a region: the points p + t d, begin <= t <= end, in float64."""

    points: Floats
    """(E, 3)"""
    directions: Floats
    """(E, 3)"""
    begin: Floats
    """(E,): -inf without an end"""
    end: Floats
    """(E,)"""
    planes: Ints
    """(E, 4): the two that meet, and those that end the edge; -1 without an end"""


class OuterPlanes(NamedTuple):
    """Half-spaces that contain a region, besides its own."""

    along_axes: list[Plane]
    """its bounds: each has one coordinate"""
    at_edges: list[Plane]
    """each has two"""


def edges_of(normals: Floats, offsets: Floats) -> Edges:
    """Return the edges of the region inside of planes (M, 3), as far as float64 finds them."""
    found = []
    if len(normals) <= MAX_PLANES:
        with np.errstate(all="ignore"):
            scale = np.sqrt((normals * normals).sum(axis=1))
            unit = normals / scale[:, None], offsets / scale
            found = [_edges_with(*unit, first) for first in range(len(normals) - 1)]
    empty = Edges(np.empty((0, 3)), np.empty((0, 3)), np.empty(0), np.empty(0), np.empty((0, 4), np.int64))
    return Edges(*map(np.concatenate, zip(empty, *found, strict=True)))


def _edges_with(normals: Floats, offsets: Floats, first: int) -> Edges:
    """Return the edges of one plane and those after it; normals are of length 1."""
    n, k = normals[first], offsets[first]
    others, bounds = normals[first + 1 :], offsets[first + 1 :]
    directions = np.cross(n, others)
    sines = np.sqrt((directions * directions).sum(axis=1))
    directions /= sines[:, None]
    points = (k * np.cross(others, directions) + bounds[:, None] * np.cross(directions, n)) / sines[:, None]
    rates, rooms = directions @ normals.T, offsets - points @ normals.T

    # A plane that is parallel to the line ends none of it, or all.
    slack = _NEAR * (np.abs(offsets) + np.abs(points).max(axis=1, keepdims=True))
    is_outside = ((np.abs(rates) <= _PARALLEL) & (rooms < -slack)).any(axis=1)
    upward = np.where(rates > _PARALLEL, rooms / rates, np.inf)
    downward = np.where(rates < -_PARALLEL, rooms / rates, -np.inf)
    rows = np.arange(len(others))
    stop, start = upward.argmin(axis=1), downward.argmax(axis=1)
    end, begin = upward[rows, stop], downward[rows, start]
    stop, start = np.where(end < np.inf, stop, -1), np.where(begin > -np.inf, start, -1)
    valid = ~is_outside & (begin <= end + slack.max(axis=1)) & np.isfinite(points).all(axis=1)
    planes = np.column_stack([np.full(len(others), first), first + 1 + rows, start, stop])
    return Edges(points[valid], directions[valid], begin[valid], end[valid], planes[valid])


def outer_planes(edges: Edges, planes: list[Inequality]) -> OuterPlanes:
    """Return half-spaces around a region of these planes in integers, n . p <= k."""
    along: dict[tuple[float, ...], Plane] = {}
    at_edges = []
    for sum_of in _sums(edges, planes):
        plane = _rounded(sum_of)
        if plane is None:
            continue
        weights = [weight for weight in plane.normal if weight]
        if len(weights) > 1:
            at_edges.append(plane)
            continue
        unit = tuple(float(np.sign(weight)) for weight in plane.normal)
        bound = plane.offset / abs(weights[0])
        if unit not in along or bound < along[unit].offset / max(map(abs, along[unit].normal)):
            along[unit] = plane
    return OuterPlanes([*along.values()], at_edges)


def _sums(edges: Edges, planes: list[Inequality]) -> Iterator[Inequality]:
    """Yield sums of the planes at edges and at corners, with one or two coordinates."""
    rows = edges.planes.tolist()
    for first, second in {(row[0], row[1]) for row in rows}:
        one, other = planes[first], planes[second]
        for axis in range(3):
            if one[axis] * other[axis] < 0:
                yield _sum_of([one, other], [abs(other[axis]), abs(one[axis])])
    corners = {tuple(sorted((*row[:2], third))) for row in rows for third in row[2:] if third >= 0}
    for corner in corners:
        yield from _bounds_at([planes[row] for row in corner])


def _bounds_at(corner: list[Inequality]) -> Iterator[Inequality]:
    """Yield the sums of three planes that have one coordinate."""
    a, b, c = (plane[:3] for plane in corner)
    columns = zip(cross(b, c), cross(c, a), cross(a, b), strict=True)
    for weights in columns:
        if min(weights) >= 0 or max(weights) <= 0:
            yield _sum_of(corner, [abs(weight) for weight in weights])


def _sum_of(planes: list[Inequality], weights: list[int]) -> Inequality:
    columns = zip(*planes, strict=True)
    return tuple(sum(w * x for w, x in zip(weights, column, strict=True)) for column in columns)


def _rounded(plane: Inequality) -> Plane | None:
    """Return a plane in float64, each number rounded once.

    None of one without coordinates, and of one whose numbers differ too much.
    """
    if not any(plane[:3]):
        return None
    scale = 1 << max(x.bit_length() for x in plane)
    *normal, offset = (x / scale for x in plane)
    if any(x and abs(value) < _SMALLEST for x, value in zip(plane, (*normal, offset), strict=True)):
        return None
    return Plane(tuple(normal), offset)
