"""Planes n . p = offset: one crossing time (offset - n . o) / (n . d), rounded once.

A ray along a plane (n . d = 0 exactly) has no single crossing and misses, even inside it. The
sums are computed in double-double with an error bound; if that leaves the last bit undecided, in
integers.
"""

import numpy as np

from raybox.compiler.decorators import allocating, device
from raybox.exact import bigint, double_double
from raybox.exact.bigint import Big, beyond, ratio, ratio_order
from raybox.exact.double_double import Vector3
from raybox.geometry import PlaneRows
from raybox.primitives.ray import Ray
from raybox.validation import Floats


def bounds(planes: PlaneRows) -> tuple[Floats, Floats]:
    """Return the bounds of the planes: infinite, but flat where a plane is perpendicular to an axis."""
    lower, upper = np.full(planes.normals.shape, -np.inf), np.full(planes.normals.shape, np.inf)
    rows, axes = np.nonzero(planes.normals)
    is_only = np.bincount(rows, minlength=len(lower))[rows] == 1
    rows, axes = rows[is_only], axes[is_only]
    with np.errstate(over="ignore", under="ignore"):
        height = planes.offsets[rows] / planes.normals[rows, axes]
    lower[rows, axes], upper[rows, axes] = np.nextafter(height, -np.inf), np.nextafter(height, np.inf)
    lower.flags.writeable = upper.flags.writeable = False
    return lower, upper


@allocating
def _ratio(planes: PlaneRows, ray: Ray, i: int) -> tuple[Big, Big]:
    """Return the crossing time as a numerator and a denominator, exactly."""
    num = bigint.from_float(planes.offsets[i])
    den = bigint.from_float(0.0)
    for k in range(3):
        n = bigint.from_float(planes.normals[i, k])
        num = bigint.sub(num, bigint.mul(n, bigint.from_float(ray.origin[k])))
        den = bigint.add(den, bigint.mul(n, bigint.from_float(ray.direction[k])))
    return num, den


@allocating
def _crossing(planes: PlaneRows, ray: Ray, i: int) -> tuple[int, float]:
    """Return (sign of n . d, time of the crossing), the time NaN for sign 0."""
    offset = planes.offsets[i]
    n = (planes.normals[i, 0], planes.normals[i, 1], planes.normals[i, 2])
    if (
        double_double.tame(offset)
        and double_double.tame3(n)
        and double_double.tame3(ray.origin)
        and double_double.tame3(ray.direction)
    ):
        den = double_double.dot(n, ray.direction)
        num = double_double.sub(double_double.lift(offset), double_double.dot(n, ray.origin))
        t = double_double.divide(num, den)
        if t == t and double_double.certain(den):
            return (1 if den.head > 0.0 else -1), t
    exact_num, exact_den = _ratio(planes, ray, i)
    if exact_den.sign == 0:
        return 0, np.nan
    return exact_den.sign, ratio(exact_num, exact_den)


@allocating
def _in_range(planes: PlaneRows, ray: Ray, i: int, t: float) -> bool:
    """Return whether t_min <= t <= t_max, exactly, given t rounded once."""
    if ray.t_min < t < ray.t_max:
        return True
    if t < ray.t_min or t > ray.t_max:
        return False
    num, den = _ratio(planes, ray, i)
    if t == ray.t_min and np.isfinite(t) and beyond(num, den, ray.t_min) < 0:
        return False
    return not (t == ray.t_max and np.isfinite(t) and beyond(num, den, ray.t_max) > 0)


@device
def intersect(planes: PlaneRows, ray: Ray, i: int) -> tuple[bool, float]:
    """Return (hit, time rounded once) of plane i; the ray's range is not empty."""
    side, t = _crossing(planes, ray, i)
    if side == 0 or (planes.cull_back and side > 0) or not _in_range(planes, ray, i, t):
        return False, np.inf
    return True, t


@device
def tie(planes: PlaneRows, ray: Ray, i: int, j: int) -> int:
    """Compare the crossings of planes i and j exactly: -1, 0 or 1."""
    return _tie_exact(planes, ray, i, j)


@allocating
def _tie_exact(planes: PlaneRows, ray: Ray, i: int, j: int) -> int:
    num_i, den_i = _ratio(planes, ray, i)
    num_j, den_j = _ratio(planes, ray, j)
    return ratio_order(num_i, den_i, num_j, den_j)


@device
def span(planes: PlaneRows, ray: Ray, i: int) -> tuple[float, float]:
    """Return the crossing time twice: a plane has no inside."""
    t = _crossing(planes, ray, i)[1]
    return t, t


@device
def normal(planes: PlaneRows, _ray: Ray, i: int) -> Vector3:
    """Return the plane's normal, of length 1."""
    return double_double.unit((planes.normals[i, 0], planes.normals[i, 1], planes.normals[i, 2]))


@device
def weights(_planes: PlaneRows, _ray: Ray, _i: int) -> tuple[float, float]:
    """Return NaN: a plane has no barycentric coordinates."""
    return np.nan, np.nan
