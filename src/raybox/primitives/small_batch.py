"""A handful of pairs, by `raybox.exact.definition`: the same bits as the kernels', and Numba never loaded.

Both round the exact time once, so there is nothing for them to differ in. A primitive without a
line in the table here goes to the kernels, however few the pairs.
"""

import math
import sys
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from raybox.exact import definition, instance_definition
from raybox.exact.definition import Crossing, Ratio, Ray1, Vector
from raybox.geometry import BoxRows, InstanceRows, PlaneRows, RayRows, TriangleRows
from raybox.validation import Floats

FEW = 16  # pairs; about 10 us each
FEW_UNLOADED = 1000  # pairs while Numba is not loaded, which takes 300 ms (and seconds if it must compile)

_AXES = np.eye(3)
_NO_WEIGHTS = (np.nan, np.nan)


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


def moment(rows: Any, ray: Ray1, i: int) -> Ratio | None:
    """Return the exact time of the first contact with primitive i, or None."""
    if isinstance(rows, InstanceRows):
        local, corners = _seen(rows, ray, i)
        return _contact(rows.rows, local, corners)
    if isinstance(rows, PlaneRows):
        return definition.plane_time(ray, rows.normals[i].tolist(), float(rows.offsets[i]), rows.cull_back)
    return _contact(rows, ray, _corners(rows, i))


def in_order(one: tuple[Ratio, int], other: tuple[Ratio, int]) -> int:
    """Compare contacts by time, exactly, then by number."""
    return definition.order(one[0], other[0]) or one[1] - other[1]


def _corners(rows: BoxRows | TriangleRows, i: int) -> list[Vector]:
    """Return the points that box or triangle i is given by."""
    corners = (rows.lower[i], rows.upper[i]) if isinstance(rows, BoxRows) else rows.corners[i]
    return [tuple(corner.tolist()) for corner in corners]


def _contact(rows: BoxRows | TriangleRows, ray: Ray1, corners: list[Vector]) -> Ratio | None:
    """Return the exact time of the first contact with the box or triangle of these corners, or None."""
    if isinstance(rows, BoxRows):
        return definition.box_time(ray, *corners)
    a, b, c = corners
    return definition.triangle_time(ray, a, b, c, rows.cull_back)


def _seen(rows: InstanceRows, ray: Ray1, i: int) -> tuple[Ray1, list[Vector]]:
    """Return the ray as the copy sees it that primitive i is in, and the primitive's corners."""
    copy, row = divmod(int(i), rows.size)
    return instance_definition.to_local(ray, _matrix(rows, copy), _corners(rows.rows, row))


def _matrix(rows: InstanceRows, copy: int) -> instance_definition.Matrix:
    return tuple(map(tuple, rows.placed[copy].tolist()))


def _meet_box(rows: BoxRows, ray: Ray1, i: int) -> Met | None:
    crossing = definition.box(ray, *_corners(rows, i))
    return crossing and Met(crossing, _face(crossing, ray), _NO_WEIGHTS)


def _meet_plane(rows: PlaneRows, ray: Ray1, i: int) -> Met | None:
    crossing = definition.plane(ray, rows.normals[i].tolist(), float(rows.offsets[i]), rows.cull_back)
    return crossing and Met(crossing, _unit(rows.normals[i]), _NO_WEIGHTS)


def _meet_triangle(rows: TriangleRows, ray: Ray1, i: int) -> Met | None:
    a, b, c = _corners(rows, i)
    met = definition.triangle(ray, a, b, c, rows.cull_back)
    return met and Met(met[0], _square(rows, i), met[1:])


def _meet_copy(rows: InstanceRows, ray: Ray1, i: int) -> Met | None:
    local, corners = _seen(rows, ray, i)
    copy, row = divmod(int(i), rows.size)
    if isinstance(rows.rows, BoxRows):
        crossing = definition.box(local, *corners)
        return crossing and Met(crossing, _turned(rows, copy, _face(crossing, local)), _NO_WEIGHTS)
    a, b, c = corners
    met = definition.triangle(local, a, b, c, rows.rows.cull_back)
    return met and Met(met[0], _turned(rows, copy, _square(rows.rows, row)), met[1:])


_TABLE: dict[type, Any] = {
    BoxRows: _meet_box,
    PlaneRows: _meet_plane,
    TriangleRows: _meet_triangle,
    InstanceRows: _meet_copy,
}


def _face(crossing: Crossing, ray: Ray1) -> Floats:
    """Return the outward normal of the face that a box is entered by; zero where the ray starts inside."""
    if crossing.axis < 0:
        return np.zeros(3)
    outward = -1.0 if ray.direction[crossing.axis] > 0.0 else 1.0
    normal: Floats = outward * _AXES[crossing.axis] + 0.0
    return normal


def _square(rows: TriangleRows, i: int) -> Floats:
    """Return a triangle's unit normal."""
    a, b, c = rows.corners[i]
    # halved, differences of the largest floats do not overflow
    return _unit(_cross(_unit(0.5 * b - 0.5 * a), _unit(0.5 * c - 0.5 * a)))


def _turned(rows: InstanceRows, copy: int, normal: Floats) -> Floats:
    """Take a normal to the world: by the inverse, transposed."""
    x, y, z = normal.tolist()
    if not rows.tame[copy]:
        return _unit(np.array(instance_definition.world_normal((x, y, z), _matrix(rows, copy))))
    inverse = rows.high[copy]
    return _unit(x * inverse[0] + y * inverse[1] + z * inverse[2])


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
