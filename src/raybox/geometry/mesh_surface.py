"""Areas and normals of a mesh's triangles, and random points on them."""

from __future__ import annotations

from operator import index
from typing import NamedTuple, SupportsIndex, TypeAlias

import numpy as np

from raybox.errors import InvalidInput
from raybox.exact import triangle_normal
from raybox.validation import Floats, Ints, Ints32, freeze

Seed: TypeAlias = "int | np.random.Generator | None"
"""What `numpy.random.default_rng` makes random numbers of; None: others at each call."""
_HIGH = 2.0**1022  # coordinates below it have finite differences


class SurfaceSample(NamedTuple):
    """Points on a mesh, and the triangles that they are on. All arrays are read-only."""

    points: Floats
    """(n, 3)"""
    faces: Ints
    """(n,): indices of triangles"""


class _Areas(NamedTuple):
    """Areas as numbers of the range of 1, and the exponents of the powers of two that they count."""

    sizes: Floats
    exponents: Ints32


def areas(corners: Floats) -> Floats:
    """Return the area of each triangle, read-only; inf where float64 does not hold it. corners: (F, 3, 3)."""
    with np.errstate(over="ignore", under="ignore"):
        found: Floats = np.ldexp(*_scaled_areas(corners))
    freeze(found)
    return found


def normals(corners: Floats) -> Floats:
    """Return the unit normal of each triangle, read-only; NaN without area. corners: (F, 3, 3)."""
    found = np.empty((len(corners), 3))
    triangle_normal.write_normals(corners, found)
    found[~found.any(axis=1)] = np.nan
    freeze(found)
    return found


def sample(corners: Floats, n: SupportsIndex, seed: Seed) -> SurfaceSample:
    """Return n random points on triangles (F, 3, 3), uniform by area."""
    count, random = _count(n), _generator(seed)
    faces = _random_faces(_scaled_areas(corners), count, random)
    u, v = random.random((2, count))
    beyond = u + v > 1.0  # in the other half of the parallelogram
    u, v = (np.where(beyond, 1.0 - x, x)[:, None] for x in (u, v))
    scale = 1.0 if np.abs(corners).max(initial=0.0) < _HIGH else 0.25
    a, b, c = np.moveaxis(corners[faces] * scale, 1, 0)
    points = (a + (u * (b - a) + v * (c - a))) / scale
    freeze(points, faces)
    return SurfaceSample(points, faces)


def _scaled_areas(corners: Floats) -> _Areas:
    """Return the areas of triangles, whatever their magnitude."""
    products, exponents = np.empty((len(corners), 3)), np.empty(len(corners), np.int64)
    triangle_normal.write_products(corners, products, exponents)
    largest = np.abs(products).max(axis=1)
    unit = products / np.where(largest > 0.0, largest, 1.0)[:, None]
    x, y, z = unit.T
    sizes, powers = np.frexp(largest * np.sqrt(x * x + y * y + z * z))
    return _Areas(sizes, np.where(sizes > 0.0, powers + exponents - 1, 0).astype(np.int32))


def _random_faces(found: _Areas, count: int, random: np.random.Generator) -> Ints:
    """Return random triangles, each as likely as its share of the area."""
    positive = np.flatnonzero(found.sizes)
    if not count:
        return np.empty(0, np.int64)
    if not positive.size:
        raise InvalidInput(
            f"a mesh must have area to be sampled; got {len(found.sizes)} triangles without. "
            "Check its faces: mesh.face_areas."
        )
    with np.errstate(under="ignore"):
        weights = np.ldexp(found.sizes, found.exponents - found.exponents[positive].max())
    ends = np.cumsum(weights)
    chosen = np.searchsorted(ends, random.random(count) * ends[-1], side="right")
    return np.asarray(np.minimum(chosen, positive[-1]), np.int64)


def _count(n: SupportsIndex) -> int:
    try:
        count = index(n)
    except TypeError:
        count = -1
    if count < 0:
        raise InvalidInput(f"n must be a whole number of points, at least 0; got {n!r}. Pass an int.")
    return count


def _generator(seed: Seed) -> np.random.Generator:
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"seed must be None, an integer of at least 0 or a numpy.random.Generator; got {seed!r}."
        ) from error
