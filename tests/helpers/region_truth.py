"""The independent truth: whether a box and a convex region share a point, by the corners of what they share.

Nothing here imports raybox. A polytope that is not empty has a corner: a point in which D of its planes meet
and which all others contain. All D-tuples of planes are intersected, in integers. Where there is no bound,
one is added so far away that no corner lies beyond it (Cramer's rule), so that what is shared has corners.
Before that, a plane with the whole box outside, or a corner of the box inside of all planes, decides.
"""

import math
from itertools import combinations, product
from typing import NamedTuple

import numpy as np


class Shared(NamedTuple):
    """What a box and a region share."""

    found: bool
    touch: bool  # all of it lies on one plane of the region
    passes: bool  # the box is outside of no plane of the region alone


def in_integers(numbers):
    """Return rational numbers times a common denominator."""
    ratios = [x.as_integer_ratio() for x in numbers]
    scale = math.lcm(*(below for _, below in ratios))
    return [above * (scale // below) for above, below in ratios]


def box_planes(lower, upper, far):
    """Return the bounds of a box as planes (normal and offset, in integers)."""
    dim, found = len(lower), []
    for axis in range(dim):
        for sign, bound in ((-1, lower[axis]), (1, upper[axis])):
            unit = [0] * dim
            unit[axis] = sign
            found.append(in_integers([*unit, sign * bound]) if math.isfinite(bound) else [*unit, far])
    return found


def determinant(rows):
    if len(rows) == 2:
        (a, b), (c, d) = rows
        return a * d - b * c
    (a, b, c), (d, e, f), (g, h, i) = rows
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


def corner(planes):
    """Return the point in which D planes meet, as integers over a positive one; None without one."""
    normals, offsets = [plane[:-1] for plane in planes], [plane[-1] for plane in planes]
    below = determinant(normals)
    if below == 0:
        return None
    point = []
    for axis in range(len(planes)):
        replaced = [[*n[:axis], k, *n[axis + 1 :]] for n, k in zip(normals, offsets, strict=True)]
        point.append(determinant(replaced))
    return ([-x for x in point], -below) if below < 0 else (point, below)


def excess(plane, point, below):
    """Return n . p - k, times a positive number."""
    return sum(a * x for a, x in zip(plane, point, strict=False)) - plane[-1] * below


def region_planes(normals, offsets):
    """Return planes in integers."""
    rows = zip(np.asarray(normals).tolist(), np.asarray(offsets).tolist(), strict=True)
    return [in_integers([*normal, offset]) for normal, offset in rows]


def shared(region, lower, upper):
    """Return what one box and the region of these planes in integers share."""
    lower, upper = [float(x) for x in lower], [float(x) for x in upper]
    if math.inf in lower or -math.inf in upper:
        return Shared(False, False, False)
    *numbers, below = in_integers([x if math.isfinite(x) else 0.0 for x in (*lower, *upper)] + [1])
    bounds = [
        (low if math.isfinite(a) else None, high if math.isfinite(b) else None)
        for low, high, a, b in zip(numbers[: len(lower)], numbers[len(lower) :], lower, upper, strict=True)
    ]
    if not passes_planes(region, bounds, below):
        return Shared(False, False, False)
    if has_corner_inside(region, bounds, below):
        return Shared(True, False, True)
    finite = box_planes(lower, upper, 1)
    far = 6 * max(abs(x) for plane in [*region, *finite] for x in plane) ** len(lower) + 1
    planes = [*region, *box_planes(lower, upper, far)]
    met = (corner(chosen) for chosen in combinations(planes, len(lower)))
    corners = [one for one in met if one and all(excess(plane, *one) <= 0 for plane in planes)]
    touch = any(all(excess(plane, *one) == 0 for one in corners) for plane in region)
    return Shared(bool(corners), touch and bool(corners), True)


def has_corner_inside(region, bounds, below):
    """Return whether a corner of a box is inside of all planes, and on none; bounds are over `below`."""
    corners = [one for one in product(*bounds) if None not in one]
    return any(all(excess(plane, one, below) < 0 for plane in region) for one in corners)


def passes_planes(region, bounds, below):
    """Return whether a box is outside of no plane alone; bounds are over `below`, None without one."""
    for plane in region:
        ends = [(low if a > 0 else high) if a else 0 for a, (low, high) in zip(plane, bounds, strict=False)]
        if None not in ends and excess(plane, ends, below) > 0:
            return False
    return True
