"""The order of the crossings of one ray with two triangles that it hits, for certain.

Three steps, each taken only where the one before leaves the order open:

1. *Planes across an axis*: these compare as floats do. So do triangles of the same corners.
2. *One plane*, as of walls between two houses: `raybox.exact.coplanar` decides; the times are equal.
3. *Times in double-double*, as of quads that were turned by a matrix, 2^-53 apart.

With the bounds E_N and E_D of the errors of a numerator N and of a denominator D (`triangle_simd`), computed
as N' and D', the difference N_i D_j - N_j D_i is off by at most

    |N'_i| E_D + |D'_j| E_N + E_N E_D + 2^-98 |N'_i D'_j|      and as much with i and j exchanged,

of which the last term is for the roundings of the product and the difference. A difference beyond that has
its sign for certain, and so has a denominator beyond E_D: their product is the order of N_i / D_i and
N_j / D_j. Where the lengths M, e and those of the direction are from 2^-100 to 2^100, products are between
2^-790 and 2^610, so that nothing overflows, and what underflows is far below the bounds.
"""

from raybox.compiler.decorators import device
from raybox.compiler.intrinsics import Fields, int64, vector_code
from raybox.compiler.simd import I64, Builder, Lanes, Scalar, splat
from raybox.compiler.simd_arrays import Memory
from raybox.exact.coplanar import are_coplanar
from raybox.exact.double_double import Vector3
from raybox.exact.double_double_simd import Twofold, negative, plus, times
from raybox.exact.error_free import order_of
from raybox.geometry import TriangleRows
from raybox.primitives.ray import DIRECTION
from raybox.primitives.status import UNKNOWN_ORDER
from raybox.primitives.triangle_simd import crossing_of, largest
from raybox.validation import Floats

_NUMBERS = 9  # of a triangle
_SMALL, _LARGE = 2.0**-100, 2.0**100
_PRODUCT = 2.0**-98


@device
def certain_order(mesh: TriangleRows, exact: Floats, r: int, i: int, j: int) -> int:
    """Return the order of the first contacts with triangles i and j, both hit, or `UNKNOWN_ORDER`."""
    o = exact[r, 0], exact[r, 1], exact[r, 2]
    d = exact[r, DIRECTION], exact[r, DIRECTION + 1], exact[r, DIRECTION + 2]
    return crossing_order(mesh, i, j, o, d)


@device
def crossing_order(mesh: TriangleRows, i: int, j: int, o: Vector3, d: Vector3) -> int:
    """Return the order of the crossings of the ray o + t d with triangles i and j, or `UNKNOWN_ORDER`."""
    order = _axis_order(mesh, d, i, j)
    if order == UNKNOWN_ORDER and are_in_one_plane(mesh, i, j) == 1:
        return 0
    return _time_order(mesh, i, j, o, d) if order == UNKNOWN_ORDER else order


@device
def _axis_order(mesh: TriangleRows, d: Vector3, i: int, j: int) -> int:
    """Return the order of times if both planes are across one axis, or all corners are the same."""
    same = True
    for k in range(3):
        for axis in range(3):
            same = same and mesh.corners[i, k, axis] == mesh.corners[j, k, axis]
    if same:
        return 0
    for axis in range(3):
        p, q, across = mesh.corners[i, 0, axis], mesh.corners[j, 0, axis], d[axis] != 0.0
        for k in range(1, 3):
            across = across and mesh.corners[i, k, axis] == p and mesh.corners[j, k, axis] == q
        if across:
            return order_of(p, q) if d[axis] > 0.0 else order_of(q, p)
    return UNKNOWN_ORDER


@vector_code(int64)
def are_in_one_plane(b: Builder, mesh: Fields, i: Scalar, j: Scalar) -> Scalar:
    """Return 1 if the corners of triangle j are in the plane of triangle i, for certain; else 0."""
    points = [point for triangle in (i, j) for point in _points(b, mesh.corners, triangle)]
    return b.zext(are_coplanar(b, points), I64)


def _points(b: Builder, corners: Memory, triangle: Scalar) -> list[Lanes]:
    """Return the corners of a triangle, in the first three of four lanes."""
    first = b.mul(triangle, I64(_NUMBERS))
    *points, last = (corners.load(b.add(first, I64(k)), 4) for k in (0, 3, 5))
    return [*points, last.permuted([1, 2, 3, 3])]


@vector_code(int64)
def _time_order(b: Builder, mesh: Fields, i: Scalar, j: Scalar, o: list[Scalar], d: list[Scalar]) -> Scalar:
    """Return the order of the crossings in double-double, or `UNKNOWN_ORDER`."""
    firsts = [b.mul(triangle, I64(_NUMBERS)) for triangle in (i, j)]
    numbers = [mesh.corners.gather([b.add(first, I64(k)) for first in firsts]) for k in range(_NUMBERS)]
    corners = [numbers[3 * k : 3 * k + 3] for k in range(3)]
    origin, direction = ([splat(b, x, 2) for x in vector] for vector in (o, d))
    num, den, num_error, den_error, size, side = crossing_of(origin, direction, corners)
    width, other_error = (x.permuted([1, 0]) for x in (den.head.magnitude(), den_error))
    product = times(num, Twofold(den.head.permuted([1, 0]), den.tail.permuted([1, 0])))
    slack = num.head.magnitude() * other_error + width * num_error + num_error * other_error
    slack = slack + product.head.magnitude() * _PRODUCT
    ours, others = (Twofold(product.head.permuted([k]), product.tail.permuted([k])) for k in (0, 1))
    left = plus(ours, negative(others)).head
    bound = (slack.permuted([0]) + slack.permuted([1])) * 1.01
    tame = _is_tame(size) & _is_tame(side) & _is_tame(largest(*direction))
    certain = tame & (den.head.magnitude() > den_error) & (left.magnitude() > bound).permuted([0, 0])
    backward = (den.head < 0.0).mask()
    later = b.xor((left > 0.0).mask(), b.xor(b.lshr(backward, I64(1)), b.and_(backward, I64(1))))
    order = b.sub(b.shl(later, I64(1)), I64(1))
    return b.select(b.icmp_unsigned("==", certain.mask(), I64(3)), order, I64(UNKNOWN_ORDER))


def _is_tame(size: Lanes) -> Lanes:
    return (size > _SMALL) & (size < _LARGE)
