"""Triangles of instances: three signed volumes with bounds, in the instance's coordinates.

As in `raybox.primitives.triangle`, but the ray has errors e of its origin and f of its direction, see
`raybox.primitives.instance_ray`. They change a volume d . (p x q) by at most f |p| |q| + 2 |d| e (|p| + |q| +
3 e), with sums of absolute values for |p| and |q| and largest ones for the others.
"""

import numpy as np

from raybox.compiler.decorators import device
from raybox.exact import double_double
from raybox.exact.double_double import DD, DDVector3, Vector3, is_moderate, is_small, with_underflow
from raybox.exact.predicate import sign
from raybox.geometry import InstanceRows, TriangleRows
from raybox.primitives import triangle
from raybox.primitives.instance_ray import InstanceRay, order, twofold_ray
from raybox.primitives.status import HIT, MISS, UNDECIDED
from raybox.primitives.triangle_order import are_in_one_plane

_FILTER = 2.0**-48  # a volume has seven roundings: 2^-50 of the sum of its terms' sizes
_TINY = 1e-290  # more than underflow can lose in a product of two numbers
_UNCERTAIN = 2  # in place of a sign


@device
def _point(mesh: TriangleRows, i: int, k: int) -> Vector3:
    return mesh.corners[i, k, 0], mesh.corners[i, k, 1], mesh.corners[i, k, 2]


@device
def _minus(p: Vector3, o: Vector3) -> Vector3:
    return p[0] - o[0], p[1] - o[1], p[2] - o[2]


@device
def _length1(p: Vector3) -> float:
    return abs(p[0]) + abs(p[1]) + abs(p[2])


@device
def _largest(p: Vector3) -> float:
    return max(abs(p[0]), abs(p[1]), abs(p[2]))


@device
def _side(p: Vector3, q: Vector3, ray: InstanceRay) -> int:
    """Return the sign of d . (p x q), or `_UNCERTAIN`."""
    d = ray.local_direction
    value = (
        d[0] * (p[1] * q[2] - p[2] * q[1])
        + d[1] * (p[2] * q[0] - p[0] * q[2])
        + d[2] * (p[0] * q[1] - p[1] * q[0])
    )
    o_error, d_error = _largest(ray.origin_error), _largest(ray.direction_error)
    steep = _largest(d) + d_error
    length_p, length_q = _length1(p), _length1(q)
    slack = (_FILTER * steep + 1.1 * d_error) * length_p * length_q
    slack += 2.1 * steep * o_error * (length_p + length_q + 3.0 * o_error)
    slack += _TINY * max(1.0, steep)  # what a product has lost is multiplied by d
    return sign(value) if abs(value) > slack else _UNCERTAIN


@device
def _classify(mesh: TriangleRows, ray: InstanceRay, i: int) -> int:
    """Return the status of the line and the triangle, back faces culled or not."""
    a, b, c = _point(mesh, i, 0), _point(mesh, i, 1), _point(mesh, i, 2)
    if not (is_small(a) and is_small(b) and is_small(c)):
        return UNDECIDED
    a, b, c = _minus(a, ray.local_origin), _minus(b, ray.local_origin), _minus(c, ray.local_origin)
    u, v, w = _side(c, b, ray), _side(a, c, ray), _side(b, a, ray)
    ahead = u == 1 or v == 1 or w == 1
    behind = u == -1 or v == -1 or w == -1
    if behind and (ahead or mesh.cull_back):
        return MISS
    return UNDECIDED if u == _UNCERTAIN or v == _UNCERTAIN or w == _UNCERTAIN else HIT


@device
def _can_be_multiplied(a: Vector3, b: Vector3, c: Vector3) -> bool:
    """Return whether products of edges lose nothing by underflow: they are multiplied afterwards."""
    return is_moderate(a) and is_moderate(b) and is_moderate(c)


@device
def _ratio(mesh: TriangleRows, rows: InstanceRows, ray: InstanceRay, i: int) -> tuple[DD, DD]:
    """Return the crossing time as a numerator and a denominator, in double-double; NaN if out of range."""
    a, b, c = _point(mesh, i, 0), _point(mesh, i, 1), _point(mesh, i, 2)
    if not _can_be_multiplied(a, b, c):
        return double_double.lift(np.nan), double_double.lift(np.nan)
    n = double_double.cross(double_double.diff3(b, a), double_double.diff3(c, a))
    o, d = twofold_ray(rows, ray, ray.instance)
    return with_underflow(double_double.inner(_difference(a, o), n)), with_underflow(
        double_double.inner(d, n)
    )


@device
def _difference(p: Vector3, o: DDVector3) -> DDVector3:
    """Return p - o of floats and double-doubles."""
    return (
        double_double.sub(double_double.lift(p[0]), o[0]),
        double_double.sub(double_double.lift(p[1]), o[1]),
        double_double.sub(double_double.lift(p[2]), o[2]),
    )


@device
def _time(mesh: TriangleRows, rows: InstanceRows, ray: InstanceRay, i: int) -> float:
    num, den = _ratio(mesh, rows, ray, i)
    return double_double.divide(num, den)


@device
def decide(mesh: TriangleRows, rows: InstanceRows, ray: InstanceRay, i: int) -> tuple[int, float]:
    """Return (status, first contact rounded once)."""
    status = _classify(mesh, ray, i)
    if status != HIT:
        return status, np.inf
    t = _time(mesh, rows, ray, i)
    if ray.t_min < t < ray.t_max:
        return HIT, t
    return (MISS if t < ray.t_min or t > ray.t_max else UNDECIDED), np.inf


@device
def tie(
    mesh: TriangleRows, rows: InstanceRows, one: InstanceRay, i: int, other: InstanceRay, j: int
) -> tuple[bool, int]:
    """Return (certain, order of the first contacts with two triangles that are hit: -1, 0 or 1).

    A plane's image under a matrix is a plane: triangles of one plane tie in one instance.
    """
    if one.instance == other.instance and are_in_one_plane(mesh, i, j) == 1:
        return True, 0
    num_i, den_i = _ratio(mesh, rows, one, i)
    num_j, den_j = _ratio(mesh, rows, other, j)
    first = (
        order(num_i, den_i, num_j, den_j)
        if double_double.certain(den_i) and double_double.certain(den_j)
        else 0
    )
    return first != 0, first


@device
def span(mesh: TriangleRows, rows: InstanceRows, ray: InstanceRay, i: int) -> tuple[float, float]:
    """Return the crossing time twice: a triangle has no inside; NaN if undecided."""
    t = _time(mesh, rows, ray, i)
    return t, t


@device
def normal(mesh: TriangleRows, _rows: InstanceRows, _local: InstanceRay, i: int) -> Vector3:
    """Return the geometric normal, in the instance's coordinates."""
    return triangle.normal(mesh, _local, i)


@device
def weights(mesh: TriangleRows, rows: InstanceRows, ray: InstanceRay, i: int) -> tuple[float, float]:
    """Return the weights of the second and third corner, each rounded once; NaN if undecided."""
    corners = _point(mesh, i, 0), _point(mesh, i, 1), _point(mesh, i, 2)
    if not _can_be_multiplied(*corners):
        return np.nan, np.nan
    o, d = twofold_ray(rows, ray, ray.instance)
    a, b, c = _difference(corners[0], o), _difference(corners[1], o), _difference(corners[2], o)
    u, v, w = (
        double_double.inner(d, double_double.cross(c, b)),
        double_double.inner(d, double_double.cross(a, c)),
        double_double.inner(d, double_double.cross(b, a)),
    )
    total = with_underflow(double_double.add(double_double.add(u, v), w))
    return double_double.divide(with_underflow(v), total), double_double.divide(with_underflow(w), total)
