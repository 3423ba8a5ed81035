"""A handful of pairs, by `raybox.rational`: the same bits as the kernels', and Numba never loaded.

Both round the exact time once, so there is nothing for them to differ in. A primitive without a
line in the table here goes to the kernels, however few the pairs.
"""

import math
import sys
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from raybox import rational
from raybox.geometry import BoxRows, PlaneRows, RayRows, TriangleRows
from raybox.rational import Crossing, Ray1
from raybox.validate import Floats

FEW = 16  # pairs; about 10 us each
FEW_UNLOADED = 1000  # pairs while Numba is not loaded, which takes 300 ms (and seconds if it must compile)

_AXES = np.eye(3)


class Met(NamedTuple):
    """One contact: where, the unit normal there, and barycentric weights (NaN where there are none)."""

    crossing: Crossing
    normal: Floats
    weights: tuple[float, float]


def ray_at(rays: RayRows, i: int) -> Ray1:
    """Return one ray as plain numbers."""
    low = rays.t_min[i if rays.t_min.size > 1 else 0]
    high = rays.t_max[i if rays.t_max.size > 1 else 0]
    origin, direction = rays.origins[i].tolist(), rays.directions[i].tolist()
    return Ray1(tuple(origin), tuple(direction), float(low), float(high))


def serves(rows: Any, pairs: int) -> bool:
    """Tell whether this many pairs with these rows are for this module."""
    limit = FEW if "numba" in sys.modules else FEW_UNLOADED
    return pairs <= limit and type(rows) in _TABLE


def meet(rows: Any, ray: Ray1, i: int) -> Met | None:
    """Return the first contact of a ray with primitive i, or None."""
    met: Met | None = _TABLE[type(rows)](rows, ray, i)
    return met


def _meet_box(rows: BoxRows, ray: Ray1, i: int) -> Met | None:
    crossing = rational.box(ray, rows.lower[i].tolist(), rows.upper[i].tolist())
    if crossing is None:
        return None
    if crossing.axis < 0:
        return Met(crossing, np.zeros(3), (np.nan, np.nan))
    outward = -1.0 if ray.direction[crossing.axis] > 0.0 else 1.0
    return Met(crossing, outward * _AXES[crossing.axis] + 0.0, (np.nan, np.nan))


def _meet_plane(rows: PlaneRows, ray: Ray1, i: int) -> Met | None:
    crossing = rational.plane(ray, rows.normals[i].tolist(), float(rows.offsets[i]), rows.cull_back)
    return crossing and Met(crossing, _unit(rows.normals[i]), (np.nan, np.nan))


def _meet_triangle(rows: TriangleRows, ray: Ray1, i: int) -> Met | None:
    a, b, c = rows.corners[i]
    met = rational.triangle(ray, a.tolist(), b.tolist(), c.tolist(), rows.cull_back)
    if met is None:
        return None
    # halved, differences of the largest floats do not overflow
    normal = _unit(_cross(_unit(0.5 * b - 0.5 * a), _unit(0.5 * c - 0.5 * a)))
    return Met(met[0], normal, met[1:])


_TABLE: dict[type, Any] = {BoxRows: _meet_box, PlaneRows: _meet_plane, TriangleRows: _meet_triangle}


def _cross(p: Floats, q: Floats) -> Floats:
    """Return p x q, each part rounded once."""
    a, b, c = map(Fraction, p.tolist())
    x, y, z = map(Fraction, q.tolist())
    return np.array([float(b * z - c * y), float(c * x - a * z), float(a * y - b * x)])


def _unit(vector: Floats) -> Floats:
    """Return a vector scaled to length 1; the zero vector stays."""
    largest = np.abs(vector).max()
    if largest == 0.0:
        return vector
    x, y, z = (vector / largest).tolist()
    return np.array([x, y, z]) / math.sqrt(x * x + y * y + z * z)
