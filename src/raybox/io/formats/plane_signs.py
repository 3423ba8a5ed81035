"""Exact signs of turns and areas in the plane: float64 with error bounds, then integers of any length."""

import numpy as np
from numpy.typing import NDArray

from raybox.validation import Bools, Floats, Ints

Signs = NDArray[np.int8]
Integers = NDArray[np.object_]

# A sum or product of float64 is off by a factor of at most 1 + 2**-53; products may underflow besides.
_ERROR = 2.0**-51
_UNDERFLOW = 1e-300


def following(sizes: Ints) -> Ints:
    """Return the position of the corner after each corner, in rings of these sizes."""
    after = np.arange(1, sizes.sum() + 1)
    ends = np.cumsum(sizes)
    after[ends[sizes > 0] - 1] = (ends - sizes)[sizes > 0]
    return after


def project(points: Floats, axes: Ints) -> Floats:
    """Return points (N, 3) without one coordinate each: the two after it, in cyclic order."""
    row = 3 * np.arange(len(points))
    flat = points.ravel()
    return np.stack([flat[row + (axes + 1) % 3], flat[row + (axes + 2) % 3]], axis=-1)


def integers(values: Floats) -> Integers:
    """Return the rows of an array as integers: each row times a power of two of its own."""
    mantissas, exponents = np.frexp(values)
    exponents = np.where(mantissas == 0, np.iinfo(exponents.dtype).max, exponents)
    shifts = np.where(mantissas == 0, 0, exponents - exponents.min(axis=-1, keepdims=True))
    whole: Integers = (mantissas * 2.0**53).astype(np.int64).astype(object) << shifts.astype(object)
    return whole


def turn_signs(a: Floats, b: Floats, c: Floats) -> Signs:
    """Return 1 where a, b, c (N, 2) turn to the left, -1 to the right, 0 on a line."""
    with np.errstate(all="ignore"):
        x0, y0 = b[:, 0] - a[:, 0], b[:, 1] - a[:, 1]
        x1, y1 = c[:, 0] - a[:, 0], c[:, 1] - a[:, 1]
        left, right = x0 * y1, y0 * x1
        area = left - right
        signs = np.sign(area)
        decided = np.abs(area) > _ERROR * (np.abs(left) + np.abs(right)) + _UNDERFLOW
    at = np.flatnonzero(~decided)
    signs[at] = 0
    at = at[((x0[at] != 0) & (y1[at] != 0)) | ((y0[at] != 0) & (x1[at] != 0))]
    at = at[(b[at] != c[at]).any(axis=-1)]
    ax, ay, bx, by, cx, cy = integers(np.concatenate([a[at], b[at], c[at]], axis=-1)).T
    signs[at] = _signs_of((bx - ax) * (cy - ay) - (by - ay) * (cx - ax))
    return signs.astype(np.int8)


def area_signs(points: Floats, sizes: Ints) -> Signs:
    """Return the sign of the area of each ring in the plane: 1 if it runs counter-clockwise."""
    space = np.zeros((len(points), 3))
    space[:, 1:] = points
    areas, decided = _areas(space, sizes)
    signs = np.where(decided[0], np.sign(areas[0]), 0).astype(np.int8)
    starts = np.cumsum(sizes) - sizes
    for ring in np.flatnonzero(~decided[0]):
        signs[ring] = _signs_of(_exact_areas(space[starts[ring] :][: sizes[ring]]))[0]
    return signs


def largest_axes(points: Floats, sizes: Ints) -> Ints:
    """Return the axis of the largest component of each ring's normal; -1 if all are zero."""
    areas, decided = _areas(points, sizes)
    axes: Ints = np.argmax(np.nan_to_num(np.abs(areas), nan=np.inf), axis=0)
    starts = np.cumsum(sizes) - sizes
    for ring in np.flatnonzero(~decided[axes, np.arange(len(sizes))]):
        exact = np.abs(_exact_areas(points[starts[ring] :][: sizes[ring]]))
        axes[ring] = np.argmax(exact) if exact.any() else -1
    return axes


def _areas(points: Floats, sizes: Ints) -> tuple[Floats, Bools]:
    """Return twice the areas (3, R) of projections of rings, and whether their signs are certain."""
    if not len(sizes):
        return np.zeros((3, 0)), np.zeros((3, 0), dtype=bool)
    starts = np.cumsum(sizes) - sizes
    with np.errstate(all="ignore"):
        local = (points - np.repeat(points[starts], sizes, axis=0)).T.copy()
        then = local[:, following(sizes)]
        areas = np.stack(
            [
                np.add.reduceat(local[k - 2] * then[k - 1] - local[k - 1] * then[k - 2], starts)
                for k in range(3)
            ]
        )
        largest = np.maximum.reduceat(np.abs(local).max(axis=0), starts)
        bounds = 2 * sizes * (sizes + 4) * largest * largest * _ERROR + _UNDERFLOW
        return areas, np.abs(areas) > bounds


def _exact_areas(points: Floats) -> Integers:
    """Return twice the areas of the projections of a ring (3,), all times the same number."""
    rows = integers(points.reshape(1, -1)).reshape(points.shape)
    then = np.roll(rows, -1, axis=0)
    left = np.roll(rows, -1, axis=1) * np.roll(then, -2, axis=1)
    areas: Integers = (left - np.roll(rows, -2, axis=1) * np.roll(then, -1, axis=1)).sum(axis=0)
    return areas


def _signs_of(numbers: Integers) -> Signs:
    return (numbers > 0).astype(np.int8) - (numbers < 0).astype(np.int8)
