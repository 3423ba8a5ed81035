"""A handful of pairs, by `raybox.rational`: the same bits as the kernels', and Numba never loaded.

Both round the exact time once, so there is nothing for them to differ in.
"""

from typing import Any

import numpy as np

from raybox import rational
from raybox.geometry import BoxRows, PlaneRows, RayRows, TriangleRows
from raybox.rational import Crossing, Ray1

FEW = 16  # pairs; about 30 us each, against 300 ms to load Numba

_AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def ray_at(rays: RayRows, i: int) -> Ray1:
    """Return one ray as plain numbers."""
    low = rays.t_min[i if rays.t_min.size > 1 else 0]
    high = rays.t_max[i if rays.t_max.size > 1 else 0]
    origin, direction = rays.origins[i].tolist(), rays.directions[i].tolist()
    return Ray1(tuple(origin), tuple(direction), float(low), float(high))


def crossing(rows: Any, ray: Ray1, i: int, cull_back: bool = False) -> Crossing | None:
    """Return where a ray meets primitive i of whatever rows, or None."""
    if isinstance(rows, BoxRows):
        return rational.box(ray, rows.lower[i].tolist(), rows.upper[i].tolist())
    if isinstance(rows, PlaneRows):
        return rational.plane(ray, rows.normals[i].tolist(), float(rows.offsets[i]), cull_back)
    met = _triangle(rows, ray, i)
    return met and met[0]


def _triangle(rows: TriangleRows, ray: Ray1, i: int) -> tuple[Crossing, float, float] | None:
    return rational.triangle(ray, rows.a[i].tolist(), rows.b[i].tolist(), rows.c[i].tolist())


def normal(rows: Any, ray: Ray1, i: int) -> Any:
    """Return the unit normal at the first contact with primitive i, which the ray meets."""
    if isinstance(rows, BoxRows):
        met = crossing(rows, ray, i)
        if met is None or met.axis < 0:
            return np.zeros(3)
        return np.array(_AXES[met.axis]) * (-1.0 if ray.direction[met.axis] > 0.0 else 1.0) + 0.0
    if isinstance(rows, PlaneRows):
        return _unit(rows.normals[i])
    a = 0.5 * rows.a[i]
    return _unit(_cross(_unit(0.5 * rows.b[i] - a), _unit(0.5 * rows.c[i] - a)))


def weights(rows: Any, ray: Ray1, i: int) -> tuple[float, float]:
    """Return the barycentric weights at the first contact with triangle i; NaN for other primitives."""
    met = _triangle(rows, ray, i) if isinstance(rows, TriangleRows) else None
    return (np.nan, np.nan) if met is None else met[1:]


def _cross(p: Any, q: Any) -> Any:
    """Return p x q, each part rounded once."""
    from fractions import Fraction

    a, b, c = map(Fraction, p.tolist())
    x, y, z = map(Fraction, q.tolist())
    return np.array([float(b * z - c * y), float(c * x - a * z), float(a * y - b * x)])


def _unit(vector: Any) -> Any:
    largest = np.abs(vector).max()
    if largest == 0.0:
        return vector
    scaled = vector / largest
    return scaled / np.sqrt(scaled[0] * scaled[0] + scaled[1] * scaled[1] + scaled[2] * scaled[2])
