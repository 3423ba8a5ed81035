"""Ratios of big integers, compared and rounded once: exact for all floats, and slow.

The last step of `raybox.exact.predicate` and of the primitives, after all filters.
"""

import math

import numpy as np

from raybox.compiler.decorators import allocating, apart, device
from raybox.exact import bigint
from raybox.exact.bigint import Big


@allocating
def ratio_order(num1: Big, den1: Big, num2: Big, den2: Big) -> int:
    """Return the exact order of num1/den1 and num2/den2: -1, 0 or 1."""
    difference = bigint.sub(bigint.mul(num1, den2), bigint.mul(num2, den1))
    return difference.sign * den1.sign * den2.sign


@allocating
def beyond(num: Big, den: Big, bound: float) -> int:
    """Return the exact order of num/den and a finite float: -1, 0 or 1."""
    return ratio_order(num, den, bigint.from_float(bound), bigint.from_float(1.0))


@allocating
def ratio(num: Big, den: Big) -> float:
    """Return num/den rounded to the nearest float, ties to even, or infinite."""
    if num.sign == 0:
        return 0.0
    top, top_exponent = bigint.leading(num)
    bottom, bottom_exponent = bigint.leading(den)
    num = Big(1, num.limbs, num.exponent)
    den = Big(1, den.limbs, den.exponent)
    q = min(math.ldexp(abs(top / bottom), top_exponent - bottom_exponent), 1.7976931348623157e308)
    while True:  # q is at most a few units in the last place off
        above = np.nextafter(q, np.inf)
        side = _beside_middle(num, den, q, above)
        if side > 0 and not math.isinf(above):
            q = above
        elif side >= 0:
            q = np.inf if math.isinf(above) else _even(q, above)
            break
        elif q > 0.0 and _beside_middle(num, den, np.nextafter(q, 0.0), q) <= 0:
            below = np.nextafter(q, 0.0)
            if _beside_middle(num, den, below, q) == 0:
                q = _even(below, q)
                break
            q = below
        else:
            break
    return q if top * bottom > 0.0 else -q + 0.0


@device
def _even(low: float, high: float) -> float:
    """Return the one of two neighbours whose last bit is 0.

    It is their middle, rounded.
    """
    return low * 0.5 + high * 0.5 if high > 1e300 else (low + high) * 0.5


@allocating
def _beside_middle(num: Big, den: Big, low: float, high: float) -> int:
    """Return the order of num/den (both positive) and the middle of two neighbours."""
    if math.isinf(high):
        gap = low - np.nextafter(low, 0.0)
        twice = bigint.add(bigint.add(bigint.from_float(low), bigint.from_float(low)), bigint.from_float(gap))
    else:
        twice = bigint.add(bigint.from_float(low), bigint.from_float(high))
    middle = Big(twice.sign, twice.limbs, twice.exponent - 1)
    return bigint.sub(num, bigint.mul(middle, den)).sign


@apart("int64(float64, float64, float64, float64, float64, float64)")
def big_order(p1: float, o1: float, d1: float, p2: float, o2: float, d2: float) -> int:
    """Return the order of (p1 - o1)/d1 and (p2 - o2)/d2: -1, 0 or 1. All finite, d not 0."""
    one = bigint.difference(p1, o1), bigint.from_float(d1)
    other = bigint.difference(p2, o2), bigint.from_float(d2)
    return ratio_order(one[0], one[1], other[0], other[1])


@apart("float64(float64, float64, float64)")
def big_time(p: float, o: float, d: float) -> float:
    """Return (p - o)/d rounded once. All finite, d not 0."""
    return ratio(bigint.difference(p, o), bigint.from_float(d))
