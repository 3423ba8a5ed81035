"""Whether points lie in the plane of three others: exact, in integers of fixed width.

On each axis, coordinates are multiplied by the power of two that takes the largest one below 2^60. What is
left of the point is a second limb::

    x = (X + Y 2^-60) 2^s,    X, Y integers,    |X|, |Y| < 2^60
    n = (b - a) x (c - a),    p is in the plane of a, b and c  <=>  n . (p - a) = 0

A power of two for each axis multiplies the volume n . (p - a), so it does not change whether that is 0. Parts
of differences are below 2^61, so those of n are below 2^124 (at most four products), and the six products of
a digit of n . (p - a) below 2^188: nothing overflows in 128 and 192 bits.

Y is 0 in all but a few places: coordinates of one axis of two triangles differ by a factor of less than 2^7,
or are short. Coordinates that need a third limb (a factor of more than 2^67) leave the answer open.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from raybox.compiler.llvm_ir import ir
from raybox.compiler.simd import F64, I1, I64, Builder, Lanes, Scalar, truncated
from raybox.compiler.simd_arrays import Register

_I128, _I192 = ir.IntType(128), ir.IntType(192)
_LIMB = 60  # bits
_BIAS = 1022  # of an exponent, in a float's bits: a number is below 2^(exponent - _BIAS)
_GREATEST = 2045  # exponent of a scale, whose inverse then is a normal number
_MANTISSA = 52  # bits
_AXES = 0b111  # of four lanes

Limbs: TypeAlias = list[Scalar]  # from the lowest on


class _Scaled(NamedTuple):
    """Points in fixed point: X and Y of `raybox.exact.coplanar`, as floats."""

    high: list[Lanes]
    low: list[Lanes]
    is_short: Scalar  # whether all Y are 0
    is_exact: Scalar


def are_coplanar(b: Builder, points: Sequence[Lanes]) -> Scalar:
    """Return whether points lie in the plane of the first three, for certain.

    points: x, y, z and anything in a fourth lane; finite. Every point is in the plane of three on a line.
    """
    scaled = _scaled(b, points)
    coplanar = Register(b, I1(0))
    with b.if_else(scaled.is_short) as (short, long):
        with short:
            coplanar.value = _all_in_plane(b, _limbs(b, [scaled.high]))
        with long:
            coplanar.value = _all_in_plane(b, _limbs(b, [scaled.low, scaled.high]))
    return b.and_(scaled.is_exact, coplanar.value)


def _scaled(b: Builder, points: Sequence[Lanes]) -> _Scaled:
    """Return points in fixed point."""
    sizes = [point.magnitude().bits(I64) for point in points]  # bits are in the order of the numbers
    largest = sizes[0]
    for size in sizes[1:]:
        largest = (size > largest).choose(size, largest)
    exponent = -(largest >> _MANTISSA) + (1023 + _LIMB + _BIAS)
    exponent = (exponent > _GREATEST).choose(_GREATEST, exponent)
    scale, inverse = ((x << _MANTISSA).bits(F64) for x in (exponent, -exponent + 2046))
    scaled = [point * scale for point in points]
    high = [truncated(x) for x in scaled]
    rest = [(x - y) * 2.0**_LIMB for x, y in zip(scaled, high, strict=True)]
    low = [truncated(x) for x in rest]
    restored = [(x * inverse).equals(point) for x, point in zip(scaled, points, strict=True)]
    exact = [*restored, *(x.equals(y) for x, y in zip(rest, low, strict=True))]
    return _Scaled(high, low, _all(b, [x.equals(0.0) for x in rest]), _all(b, exact))


def _all(b: Builder, masks: Sequence[Lanes]) -> Scalar:
    """Return whether masks are true on all axes."""
    both = masks[0]
    for mask in masks[1:]:
        both = both & mask
    return b.icmp_unsigned("==", b.and_(both.mask(), I64(_AXES)), I64(_AXES))


def _limbs(b: Builder, points: Sequence[Sequence[Lanes]]) -> list[list[Limbs]]:
    """Return the limbs of each point on each axis. points: the lowest limbs of all points first."""
    return [
        [[b.fptosi(limb.lane(axis), I64) for limb in limbs] for axis in range(3)]
        for limbs in zip(*points, strict=True)
    ]


def _all_in_plane(b: Builder, points: list[list[Limbs]]) -> Scalar:
    """Return whether all points after the first three lie in the plane of these."""
    edges = [
        [
            [b.sub(x, y) for x, y in zip(part, start, strict=True)]
            for part, start in zip(point, points[0], strict=True)
        ]
        for point in points[1:]
    ]
    normal = [_cross_part(b, edges[0], edges[1], k) for k in range(3)]
    flat = I1(1)
    for edge in edges[2:]:
        flat = b.and_(flat, _is_zero(b, _volume(b, normal, edge)))
    return flat


def _cross_part(b: Builder, p: list[Limbs], q: list[Limbs], axis: int) -> Limbs:
    """Return one part of p x q: its digits in base 2^60, of 128 bits and either sign."""
    one, other = (_products(b, p[axis - k], q[axis - 3 + k]) for k in (2, 1))
    return [b.sub(x, y) for x, y in zip(one, other, strict=True)]


def _products(b: Builder, x: Limbs, y: Limbs) -> Limbs:
    """Return the digits of x y in base 2^60, in 128 bits."""
    digits: Limbs = []
    for k in range(len(x) + len(y) - 1):
        terms = [
            b.mul(b.sext(x[i], _I128), b.sext(y[k - i], _I128)) for i in range(len(x)) if 0 <= k - i < len(y)
        ]
        digits.append(_sum(b, terms))
    return digits


def _sum(b: Builder, terms: Sequence[Scalar]) -> Scalar:
    total = terms[0]
    for term in terms[1:]:
        total = b.add(total, term)
    return total


def _volume(b: Builder, normal: list[Limbs], edge: list[Limbs]) -> Limbs:
    """Return the digits of normal . edge in base 2^60, in 192 bits."""
    size, width = len(normal[0]), len(edge[0])
    digits: Limbs = []
    for k in range(size + width - 1):
        pairs = [(i, k - i) for i in range(size) if 0 <= k - i < width]
        terms = [_dot(b, [part[i] for part in normal], [part[j] for part in edge]) for i, j in pairs]
        digits.append(_sum(b, terms))
    return digits


def _dot(b: Builder, normal: list[Scalar], edge: list[Scalar]) -> Scalar:
    """Return the scalar product of digits of 128 bits and limbs, in 192 bits."""
    low: list[Scalar] = []
    high: list[Scalar] = []
    for digit, limb in zip(normal, edge, strict=True):
        upper, lower = b.trunc(b.ashr(digit, _I128(64)), I64), b.trunc(digit, I64)
        wide = b.sext(limb, _I128)
        low.append(b.mul(b.zext(lower, _I128), wide))
        high.append(b.mul(b.sext(upper, _I128), wide))
    return b.add(b.sext(_sum(b, low), _I192), b.shl(b.sext(_sum(b, high), _I192), _I192(64)))


def _is_zero(b: Builder, digits: Limbs) -> Scalar:
    """Return whether a number is 0, from its digits in base 2^60."""
    zero, carry = I1(1), digits[0]
    for digit in digits[1:]:
        low = b.trunc(carry, I64)
        zero = b.and_(zero, b.icmp_unsigned("==", b.and_(low, I64((1 << _LIMB) - 1)), I64(0)))
        carry = b.add(b.ashr(carry, _I192(_LIMB)), digit)
    return b.and_(zero, b.icmp_unsigned("==", carry, _I192(0)))
