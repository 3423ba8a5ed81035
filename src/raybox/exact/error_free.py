"""Error-free transformations: sums and products of two floats as exact sums of two floats.

Source: Dekker 1971; Shewchuk 1997, "Adaptive Precision Floating-Point Arithmetic and Fast
Robust Geometric Predicates", section 2. Neither must overflow, and products must not underflow: factors must
be `tame`.
"""

from raybox.compiler.decorators import device

_SPLITTER = 134217729.0  # 2^27 + 1
_TAME_LOW = 2.0**-300
_TAME_HIGH = 2.0**300


@device
def tame(x: float) -> bool:
    """Return whether products of up to three such values neither over- nor underflow.

    Their tails included.
    """
    return x == 0.0 or _TAME_LOW < abs(x) < _TAME_HIGH


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
    c = _SPLITTER * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = _SPLITTER * b
    b_high = c - (c - b)
    b_low = b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low
