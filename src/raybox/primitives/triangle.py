"""Triangles, watertight and exact: three signed volumes decide, a ratio of two more is the time.

A, B, C are the corners less the ray's origin. The volumes U = d . (C x B), V = d . (A x C) and
W = d . (B x A) have one sign exactly if the line passes through the closed triangle. Triangles
that share an edge share its volume, so no ray passes between them. Divided by their sum, the
volumes are the barycentric weights. U = V = W = 0 (the line lies in the plane, or the triangle has
no area) is a miss: there is no single crossing. Their sum is -d . n: negative for rays from behind.

Source: signed volumes as in Moller and Trumbore 1997; edge tests per Woop, Benthin and Wald 2013,
here with exact signs in place of a float32 fallback.
"""

import numpy as np

from raybox.compiler.decorators import allocating, device
from raybox.compiler.intrinsics import prefetch
from raybox.exact import bigint, double_double, triangle_normal
from raybox.exact.bigint import Big, Big3, beyond, difference3, ratio, ratio_order
from raybox.exact.double_double import DD, Vector3
from raybox.exact.predicate import sign
from raybox.geometry import TriangleRows
from raybox.primitives.instance_ray import InstanceRay
from raybox.primitives.ray import Ray
from raybox.primitives.status import UNKNOWN_ORDER
from raybox.primitives.triangle_order import certain_order, crossing_order
from raybox.primitives.triangle_simd import classify, first_contacts
from raybox.validation import Floats


@device
def _corner(mesh: TriangleRows, i: int, k: int) -> Vector3:
    return mesh.corners[i, k, 0], mesh.corners[i, k, 1], mesh.corners[i, k, 2]


@device
def normal(mesh: TriangleRows, _ray: Ray | InstanceRay, i: int) -> Vector3:
    """Return the geometric normal (b - a) x (c - a), of length 1."""
    return triangle_normal.unit_normal(_corner(mesh, i, 0), _corner(mesh, i, 1), _corner(mesh, i, 2))


__all__ = [
    "bounds",
    "certain_order",
    "classify",
    "first_contacts",
    "intersect",
    "normal",
    "prefetch_rows",
    "span",
    "tie",
    "weights",
]

FILLS_BOXES = False
VOLUMES = True  # rays are tested by `triangle_slots`
_UNCERTAIN = 2  # in place of a sign
_FILTER = 2.0**-48  # a volume has seven roundings: 2^-50 of the sum of its terms' sizes


def bounds(mesh: TriangleRows) -> tuple[Floats, Floats]:
    """Return the bounds of the triangles."""
    a, b, c = mesh.corners.transpose(1, 0, 2)
    lower, upper = np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c)
    lower.flags.writeable = upper.flags.writeable = False
    return lower, upper


@device
def prefetch_rows(mesh: TriangleRows, i: int) -> None:
    """Prefetch the corners of triangle i."""
    prefetch(mesh.corners, 9 * i)
    prefetch(mesh.corners, 9 * i + 8)


@device
def _volume_sign(p: Vector3, q: Vector3, o: Vector3, d: Vector3) -> int:
    """Return the sign of d . ((p - o) x (q - o)) or `_UNCERTAIN`."""
    px, py, pz = p[0] - o[0], p[1] - o[1], p[2] - o[2]
    qx, qy, qz = q[0] - o[0], q[1] - o[1], q[2] - o[2]
    value = d[0] * (py * qz - pz * qy) + d[1] * (pz * qx - px * qz) + d[2] * (px * qy - py * qx)
    size = (
        abs(d[0]) * (abs(py * qz) + abs(pz * qy))
        + abs(d[1]) * (abs(pz * qx) + abs(px * qz))
        + abs(d[2]) * (abs(px * qy) + abs(py * qx))
    )
    return sign(value) if abs(value) > size * _FILTER + 1e-300 else _UNCERTAIN


@allocating
def _big_dot_cross(d: Big3, p: Big3, q: Big3) -> Big:
    """Return d . (p x q) of three tuples of integers."""
    total = bigint.mul(d[0], bigint.sub(bigint.mul(p[1], q[2]), bigint.mul(p[2], q[1])))
    total = bigint.add(total, bigint.mul(d[1], bigint.sub(bigint.mul(p[2], q[0]), bigint.mul(p[0], q[2]))))
    return bigint.add(total, bigint.mul(d[2], bigint.sub(bigint.mul(p[0], q[1]), bigint.mul(p[1], q[0]))))


@allocating
def _big_volume(p: Vector3, q: Vector3, ray: Ray) -> Big:
    """Return d . ((p - o) x (q - o)), exactly."""
    d = ray.direction
    direction = (bigint.from_float(d[0]), bigint.from_float(d[1]), bigint.from_float(d[2]))
    return _big_dot_cross(direction, difference3(p, ray.origin), difference3(q, ray.origin))


@allocating
def _side(p: Vector3, q: Vector3, ray: Ray, safe: bool) -> int:
    """Return the sign of d . ((p - o) x (q - o)), exactly."""
    filtered = _volume_sign(p, q, ray.origin, ray.direction)
    if filtered != _UNCERTAIN and safe:
        return filtered
    if safe:
        cross = double_double.cross(double_double.diff3(p, ray.origin), double_double.diff3(q, ray.origin))
        value = double_double.inner(double_double.lift3(ray.direction), cross)
        if double_double.signed(value):
            return sign(value.head)
    return _big_volume(p, q, ray).sign


@device
def _point(mesh: TriangleRows, i: int, k: int) -> Vector3:
    return mesh.corners[i, k, 0], mesh.corners[i, k, 1], mesh.corners[i, k, 2]


@device
def _safe(a: Vector3, b: Vector3, c: Vector3, ray: Ray) -> bool:
    corners = double_double.tame3(a) and double_double.is_moderate(b) and double_double.is_moderate(c)
    return corners and double_double.tame3(ray.origin) and double_double.is_moderate(ray.direction)


@allocating
def _ratio(a: Vector3, b: Vector3, c: Vector3, ray: Ray) -> tuple[Big, Big]:
    """Return the crossing time as a numerator and a denominator, exactly."""
    d = ray.direction
    direction = (bigint.from_float(d[0]), bigint.from_float(d[1]), bigint.from_float(d[2]))
    ab = difference3(b, a)
    ac = difference3(c, a)
    return _big_dot_cross(difference3(a, ray.origin), ab, ac), _big_dot_cross(direction, ab, ac)


@device
def _dd_ratio(a: Vector3, b: Vector3, c: Vector3, ray: Ray) -> tuple[DD, DD]:
    """Return the crossing time as a numerator and a denominator."""
    n = double_double.cross(double_double.diff3(b, a), double_double.diff3(c, a))
    return double_double.inner(double_double.diff3(a, ray.origin), n), double_double.inner(
        double_double.lift3(ray.direction), n
    )


@device
def _is_time(a: Vector3, b: Vector3, c: Vector3, ray: Ray, t: float) -> bool:
    """Return whether the crossing time is t exactly, for certain in double-double."""
    if not (_safe(a, b, c, ray) and double_double.tame(t)):
        return False
    num, den = _dd_ratio(a, b, c, ray)
    rest = double_double.sub(num, double_double.mul(den, double_double.lift(t)))
    return rest.head == 0.0 and rest.slack == 0.0


@allocating
def _crossing(a: Vector3, b: Vector3, c: Vector3, ray: Ray, safe: bool) -> float:
    """Return the time of the crossing with the triangle's plane, rounded once."""
    if safe:
        t = double_double.divide(*_dd_ratio(a, b, c, ray))
        if t == t:
            return t
    num, den = _ratio(a, b, c, ray)
    return ratio(num, den)


@device
def intersect(mesh: TriangleRows, ray: Ray, i: int) -> tuple[bool, float]:
    """Return (hit, time rounded once) of triangle i; the ray's range is not empty."""
    a = _point(mesh, i, 0)
    b = _point(mesh, i, 1)
    c = _point(mesh, i, 2)
    safe = _safe(a, b, c, ray)
    u = _side(c, b, ray, safe)
    v = _side(a, c, ray, safe)
    if u * v < 0 or (mesh.cull_back and (u < 0 or v < 0)):
        return False, np.inf
    w = _side(b, a, ray, safe)
    if u * w < 0 or v * w < 0 or (u == 0 and v == 0 and w == 0) or (mesh.cull_back and w < 0):
        return False, np.inf
    t = _crossing(a, b, c, ray, safe)
    if t < ray.t_min or t > ray.t_max:
        return False, np.inf
    at_end = (t == ray.t_min or t == ray.t_max) and np.isfinite(t)
    if at_end and not _in_range(a, b, c, ray, t):
        return False, np.inf
    return True, t


@allocating
def _in_range(a: Vector3, b: Vector3, c: Vector3, ray: Ray, t: float) -> bool:
    """Return whether t_min <= t <= t_max, exactly; t rounded once equals one of them."""
    if _is_time(a, b, c, ray, t):
        return True
    num, den = _ratio(a, b, c, ray)
    early = t == ray.t_min and beyond(num, den, t) < 0
    late = t == ray.t_max and beyond(num, den, t) > 0
    return not (early or late)


@device
def _is_time_of(mesh: TriangleRows, ray: Ray, i: int, t: float) -> bool:
    return _is_time(_point(mesh, i, 0), _point(mesh, i, 1), _point(mesh, i, 2), ray, t)


@device
def tie(mesh: TriangleRows, ray: Ray, i: int, j: int) -> int:
    """Compare the crossings of triangles i and j, both hit, exactly: -1, 0 or 1."""
    order = crossing_order(mesh, i, j, ray.origin, ray.direction)
    return _tie_exact(mesh, ray, i, j) if order == UNKNOWN_ORDER else order


@allocating
def _tie_exact(mesh: TriangleRows, ray: Ray, i: int, j: int) -> int:
    t = span(mesh, ray, i)[0]
    if _is_time_of(mesh, ray, i, t) and _is_time_of(mesh, ray, j, t):
        return 0
    num_i, den_i = _ratio(_point(mesh, i, 0), _point(mesh, i, 1), _point(mesh, i, 2), ray)
    num_j, den_j = _ratio(_point(mesh, j, 0), _point(mesh, j, 1), _point(mesh, j, 2), ray)
    return ratio_order(num_i, den_i, num_j, den_j)


@device
def span(mesh: TriangleRows, ray: Ray, i: int) -> tuple[float, float]:
    """Return the crossing time twice: a triangle has no inside."""
    a = _point(mesh, i, 0)
    b = _point(mesh, i, 1)
    c = _point(mesh, i, 2)
    t = _crossing(a, b, c, ray, _safe(a, b, c, ray))
    return t, t


@device
def weights(mesh: TriangleRows, ray: Ray, i: int) -> tuple[float, float]:
    """Return the barycentric weights of the second and third corner, each rounded once."""
    return _weights_exact(mesh, ray, i)


@allocating
def _weights_exact(mesh: TriangleRows, ray: Ray, i: int) -> tuple[float, float]:
    a = _point(mesh, i, 0)
    b = _point(mesh, i, 1)
    c = _point(mesh, i, 2)
    v = _big_volume(a, c, ray)
    w = _big_volume(b, a, ray)
    total = bigint.add(bigint.add(_big_volume(c, b, ray), v), w)
    return ratio(v, total), ratio(w, total)
