"""Exact signs of turns and areas in the plane: float64 with error bounds, then integers of any length."""

from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Signs: TypeAlias = NDArray[np.int8]
Integers: TypeAlias = NDArray[np.object_]
T = TypeVar("T", np.float64, np.object_)

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
        signs = np.sign(left - right)
        decided = np.abs(left - right) > _ERROR * (np.abs(left) + np.abs(right)) + _UNDERFLOW
    at = np.flatnonzero(~decided)
    signs[at] = 0
    at = at[((x0[at] != 0) & (y1[at] != 0)) | ((y0[at] != 0) & (x1[at] != 0))]
    at = at[(b[at] != c[at]).any(axis=-1)]
    ax, ay, bx, by, cx, cy = integers(np.concatenate([a[at], b[at], c[at]], axis=-1)).T
    signs[at] = _signs_of((bx - ax) * (cy - ay) - (by - ay) * (cx - ax))
    return signs.astype(np.int8)


def area_signs(points: Floats, sizes: Ints) -> Signs:
    """Return the sign of the area of each ring in the plane: 1 if it runs counter-clockwise."""
    space = np.column_stack([np.zeros(len(points)), points])
    normals, decided = _normals(space, sizes)
    signs = np.sign(np.where(decided[0], normals[0], 0)).astype(np.int8)
    signs[~decided[0]] = _signs_of(_exact_normals(space, sizes, ~decided[0])[0])
    return signs


def largest_axes(points: Floats, sizes: Ints) -> Ints:
    """Return the axis of the largest component of each ring's normal; -1 if all are zero."""
    normals, decided = _normals(points, sizes)
    axes: Ints = np.argmax(np.nan_to_num(np.abs(normals), nan=np.inf), axis=0)
    rest = ~decided[axes, np.arange(len(sizes))]
    exact = np.abs(_exact_normals(points, sizes, rest))
    axes[rest] = np.where((exact != 0).any(axis=0), np.argmax(exact, axis=0), -1)
    return axes


def _normals(points: Floats, sizes: Ints) -> tuple[Floats, Bools]:
    """Return twice the areas (3, R) of projections of rings, and whether their signs are certain."""
    starts = np.cumsum(sizes) - sizes
    with np.errstate(all="ignore"):
        local = (points - np.repeat(points[starts], sizes, axis=0)).T.copy()
        normals = _cross_sums(local, sizes)
        largest = np.maximum.reduceat(np.abs(local).max(axis=0), starts)
        bounds = 2 * sizes * (sizes + 4) * largest * largest * _ERROR + _UNDERFLOW
        return normals, np.abs(normals) > bounds


def _exact_normals(points: Floats, sizes: Ints, chosen: Bools) -> Integers:
    """Return twice the areas (3, R) of projections of the chosen rings, times one number."""
    if not chosen.any():
        return np.zeros((3, 0), dtype=object)
    corners = points[np.repeat(chosen, sizes)]
    return _cross_sums(integers(corners.reshape(1, -1)).reshape(corners.shape).T, sizes[chosen])


def _cross_sums(rows: NDArray[T], sizes: Ints) -> NDArray[T]:
    """Return the sums (3, R) of the vector products of corners (3, N) and those after them."""
    then = rows[:, following(sizes)]
    starts = np.cumsum(sizes) - sizes
    products = (rows[k - 2] * then[k - 1] - rows[k - 1] * then[k - 2] for k in range(3))
    return np.stack([np.add.reduceat(product, starts) for product in products])


def _signs_of(numbers: Integers) -> Signs:
    return (numbers > 0).astype(np.int8) - (numbers < 0).astype(np.int8)
