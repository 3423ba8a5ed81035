"""Normals and areas of triangles: vector products of edges, exact but for their last roundings."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox.compiler.decorators import allocating, device
from raybox.compiler.entry_points import entry
from raybox.exact import bigint, double_double
from raybox.exact.bigint import Big, Big3, difference3, ratio
from raybox.exact.double_double import Vector3

_Floats: TypeAlias = NDArray[np.float64]
# Where normals need integers, here and in `raybox.primitives.exact_table` alike:
NEAR_OVERFLOW = 2.0**1000  # coordinates up to here have differences
EVEN = 2.0**-400  # the least share of an edge's largest part that any other may have
NARROW = 2.0**-40  # the sine of an angle that rounded edges leave a few digits of
_CERTAIN = 2.0**-60  # relative to a product's largest part: far less than the rounding of areas


@device
def unit_normal(a: Vector3, b: Vector3, c: Vector3) -> Vector3:
    """Return (b - a) x (c - a), of length 1; zero for a triangle without area."""
    factor = _edge_factor(a, b, c)
    ab, ac = _scaled_diff(b, a, factor), _scaled_diff(c, a, factor)
    if factor > 0.0 and _is_even(ab) and _is_even(ac):
        x, y, z = _cross(double_double.unit(ab), double_double.unit(ac))
        if max(abs(x), abs(y), abs(z)) > NARROW:
            return double_double.unit((x, y, z))
    return double_double.unit(_exact_normal(a, b, c)[0])


@device
def _corner(corners: _Floats, i: int, k: int) -> Vector3:
    return corners[i, k, 0], corners[i, k, 1], corners[i, k, 2]


@entry
def write_normals(corners: _Floats, normals: _Floats) -> None:
    """Write the unit normal of each triangle; zero without area. corners: (F, 3, 3)."""
    for i in range(len(corners)):
        normal = unit_normal(_corner(corners, i, 0), _corner(corners, i, 1), _corner(corners, i, 2))
        normals[i, 0], normals[i, 1], normals[i, 2] = normal


@entry
def write_products(corners: _Floats, products: _Floats, exponents: NDArray[np.int64]) -> None:
    """Write (b - a) x (c - a) of each triangle over a power of two, with its length within 2^-52.

    corners: (F, 3, 3). exponents: (F,), of the powers, so that products (F, 3) neither over- nor underflow.
    """
    for i in range(len(corners)):
        a, b, c = _corner(corners, i, 0), _corner(corners, i, 1), _corner(corners, i, 2)
        is_certain, product = _short_product(a, b, c)
        exponents[i] = 0
        if not is_certain:
            product, exponents[i] = _exact_normal(a, b, c)
        products[i, 0], products[i, 1], products[i, 2] = product


@device
def _short_product(a: Vector3, b: Vector3, c: Vector3) -> tuple[bool, Vector3]:
    """Return (b - a) x (c - a) by double-doubles, and whether its length is certain."""
    if not (double_double.tame3(a) and double_double.tame3(b) and double_double.tame3(c)):
        return False, a
    x, y, z = double_double.cross(double_double.diff3(b, a), double_double.diff3(c, a))
    slack = max(x.slack, y.slack, z.slack)
    return slack <= _CERTAIN * max(abs(x.head), abs(y.head), abs(z.head)), (x.head, y.head, z.head)


@device
def _cross(p: Vector3, q: Vector3) -> Vector3:
    """Return p x q, each part rounded once."""
    n = double_double.cross(double_double.lift3(p), double_double.lift3(q))
    x, y, z = double_double.rounded(n[0]), double_double.rounded(n[1]), double_double.rounded(n[2])
    return (x, y, z) if x == x and y == y and z == z else _exact_cross(p, q)


@allocating
def _big_cross(p: Big3, q: Big3) -> Big3:
    return (
        bigint.sub(bigint.mul(p[1], q[2]), bigint.mul(p[2], q[1])),
        bigint.sub(bigint.mul(p[2], q[0]), bigint.mul(p[0], q[2])),
        bigint.sub(bigint.mul(p[0], q[1]), bigint.mul(p[1], q[0])),
    )


@allocating
def _exact_cross(p: Vector3, q: Vector3) -> Vector3:
    zero, one = (0.0, 0.0, 0.0), bigint.from_float(1.0)
    x, y, z = _big_cross(difference3(p, zero), difference3(q, zero))
    return ratio(x, one), ratio(y, one), ratio(z, one)


@allocating
def _exact_normal(a: Vector3, b: Vector3, c: Vector3) -> tuple[Vector3, int]:
    """Return (b - a) x (c - a) over a power of two, rounded and at most 1, and its exponent."""
    x, y, z = _big_cross(difference3(b, a), difference3(c, a))
    one = bigint.from_float(1.0)
    top = max(bigint.power_above(x), bigint.power_above(y), bigint.power_above(z))
    scale = Big(1, one.limbs, one.exponent + top)
    return (ratio(x, scale), ratio(y, scale), ratio(z, scale)), top


@device
def _edge_factor(a: Vector3, b: Vector3, c: Vector3) -> float:
    """Return what corners are multiplied by, so that edges neither overflow nor lose bits; 0: nothing does.

    It is 1, or 1/2 near the largest float.
    """
    most, least = 0.0, np.inf
    for k in range(3):
        for x in (abs(a[k]), abs(b[k]), abs(c[k])):
            most, least = max(most, x), min(least, x if x > 0.0 else np.inf)
    if most < NEAR_OVERFLOW:
        return 1.0
    return 0.5 if least > 1.0 / NEAR_OVERFLOW else 0.0


@device
def _is_even(v: Vector3) -> bool:
    """Return whether neither quotients of its parts nor products of these underflow."""
    x, y, z = abs(v[0]), abs(v[1]), abs(v[2])
    limit = max(x, y, z) * EVEN
    return (x == 0.0 or x >= limit) and (y == 0.0 or y >= limit) and (z == 0.0 or z >= limit)


@device
def _scaled_diff(p: Vector3, o: Vector3, factor: float) -> Vector3:
    """Return factor (p - o)."""
    return factor * p[0] - factor * o[0], factor * p[1] - factor * o[1], factor * p[2] - factor * o[2]
