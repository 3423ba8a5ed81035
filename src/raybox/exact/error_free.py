"""Error-free transformations: exact sums and products of two floats; powers of two from their bits.

A sum or product is a sum of two floats. Powers of two are cheaper than library calls.

Source: Dekker 1971; Shewchuk 1997, "Adaptive Precision Floating-Point Arithmetic and Fast Robust Geometric
Predicates", section 2. Neither must overflow, and products must not underflow: factors must be `tame`.
"""

import math

from raybox.compiler.decorators import device
from raybox.compiler.intrinsics import float64, int64, vector_code
from raybox.compiler.simd import F64, I64, Builder, Scalar
from raybox.exact.splitter import SPLITTER

_TAME_LOW = 2.0**-300
_TAME_HIGH = 2.0**300


@device
def tame(x: float) -> bool:
    """Return whether products of up to three such values neither over- nor underflow.

    Nor do the tails of the products.
    """
    return x == 0.0 or _TAME_LOW < abs(x) < _TAME_HIGH


@device
def order_of(p: float, q: float) -> int:
    """Return the order of two floats: -1, 0 or 1."""
    return int(p > q) - int(p < q)


@device
def two_sum(a: float, b: float) -> tuple[float, float]:
    """Return (s, e) with s = fl(a + b) and s + e = a + b exactly."""
    s = a + b
    bb = s - a
    return s, (a - (s - bb)) + (b - bb)


@device
def two_prod(a: float, b: float) -> tuple[float, float]:
    """Return (p, e) with p = fl(a * b) and p + e = a * b exactly, for tame factors."""
    p = a * b
    c = SPLITTER * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = SPLITTER * b
    b_high = c - (c - b)
    b_low = b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@vector_code(float64)
def power_of_two(b: Builder, exponent: Scalar) -> Scalar:
    """Return 2^exponent, a normal float."""
    return b.bitcast(b.shl(b.add(exponent, I64(1023)), I64(52)), F64)


@vector_code(int64)
def _bits_of(b: Builder, x: Scalar) -> Scalar:
    return b.bitcast(x, I64)


@device
def exponent_of(x: float) -> int:
    """Return e with x = f * 2^e and 1/2 <= f < 1, for x >= 0 and finite; 0 for 0."""
    biased = _bits_of(x) >> 52
    return int(biased - 1022) if biased > 0 else math.frexp(x)[1]


@device
def scaled(x: float, exponent: int) -> float:
    """Return x * 2^exponent, infinite where that overflows."""
    if -1000 < exponent < 1000:
        return x * power_of_two(exponent)
    return math.ldexp(x, exponent)
