"""Big integers times a power of two, and their ratios, for compiled code.

The last step of `raybox.exact.predicate`: sums and products of floats without rounding, at all magnitudes
(1e308 beside a denormal included). An operation takes about a microsecond, and is reached only where the
floating-point filters leave a pair undecided.

A number is ``Big(sign, limbs, exponent)``: sign * sum(limbs[k] * 2^(32 k)) * 2^exponent, each limb below
2^32. Zero has sign 0, and its limbs are ignored. Ratios of them are compared and rounded once: exact for all
floats, and slow.
"""

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox.compiler.decorators import allocating, apart, device
from raybox.compiler.intrinsics import Signature, float64, int64
from raybox.compiler.runtime import zero_words
from raybox.exact.double_double import Vector3

Limbs: TypeAlias = NDArray[np.uint64]
_MASK = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_ONE = np.uint64(1)


class Big(NamedTuple):
    """A signed big number, as the module's docstring defines it."""

    sign: int
    limbs: Limbs
    exponent: int


Big3: TypeAlias = tuple[Big, Big, Big]


@allocating
def from_float(x: float) -> Big:
    """Return a finite float exactly."""
    limbs = zero_words(2)
    if x == 0.0:
        return Big(0, limbs, 0)
    fraction, exponent = math.frexp(abs(x))
    mantissa = np.uint64(np.int64(fraction * 9007199254740992.0))  # 2^53
    limbs[0] = mantissa & _MASK
    limbs[1] = mantissa >> _32
    return Big(1 if x > 0.0 else -1, limbs, int(exponent) - 53)


@allocating
def _shifted(limbs: Limbs, bits: int, size: int) -> Limbs:
    """Return limbs * 2^bits in a new array of `size` limbs.

    The size must be large enough.
    """
    out = zero_words(size)
    skip = bits // 32
    rest = np.uint64(bits % 32)
    for k in range(limbs.size):
        wide = limbs[k] << rest
        out[k + skip] += wide & _MASK
        out[k + skip + 1] += wide >> _32
    return out


@allocating
def _compare(a: Limbs, b: Limbs) -> int:
    """Return the order of two magnitudes of equal size: -1, 0 or 1."""
    for k in range(a.size - 1, -1, -1):
        if a[k] != b[k]:
            return 1 if a[k] > b[k] else -1
    return 0


@allocating
def _add_magnitude(a: Limbs, b: Limbs) -> None:
    """Add magnitude b to magnitude a in place.

    A is large enough for the carry.
    """
    carry = np.uint64(0)
    for k in range(a.size):
        total = a[k] + b[k] + carry
        a[k] = total & _MASK
        carry = total >> _32


@allocating
def _subtract_magnitude(a: Limbs, b: Limbs) -> None:
    """Subtract magnitude b from the greater magnitude a in place."""
    borrow = np.uint64(0)
    for k in range(a.size):
        subtrahend = b[k] + borrow
        borrow = np.uint64(1) if a[k] < subtrahend else np.uint64(0)
        a[k] = ((borrow << _32) + a[k] - subtrahend) & _MASK


@allocating
def add(x: Big, y: Big) -> Big:
    """Return x + y."""
    if x.sign == 0:
        return y
    if y.sign == 0:
        return x
    exponent = min(x.exponent, y.exponent)
    up_x = x.exponent - exponent
    up_y = y.exponent - exponent
    size = max(x.limbs.size + up_x // 32, y.limbs.size + up_y // 32) + 2
    a = _shifted(x.limbs, up_x, size)
    b = _shifted(y.limbs, up_y, size)
    if x.sign == y.sign:
        _add_magnitude(a, b)
        return Big(x.sign, a, exponent)
    order = _compare(a, b)
    if order == 0:
        return Big(0, a, 0)
    if order > 0:
        _subtract_magnitude(a, b)
        return Big(x.sign, a, exponent)
    _subtract_magnitude(b, a)
    return Big(y.sign, b, exponent)


@allocating
def negate(x: Big) -> Big:
    """Return -x."""
    return Big(-x.sign, x.limbs, x.exponent)


@allocating
def sub(x: Big, y: Big) -> Big:
    """Return x - y."""
    return add(x, negate(y))


@allocating
def mul(x: Big, y: Big) -> Big:
    """Return x * y."""
    out = zero_words(x.limbs.size + y.limbs.size)
    for i in range(x.limbs.size):
        carry = np.uint64(0)
        for j in range(y.limbs.size):
            total = out[i + j] + x.limbs[i] * y.limbs[j] + carry
            out[i + j] = total & _MASK
            carry = total >> _32
        out[i + y.limbs.size] = carry
    return Big(x.sign * y.sign, out, x.exponent + y.exponent)


@allocating
def difference(p: float, o: float) -> Big:
    """Return p - o of two finite floats exactly."""
    return sub(from_float(p), from_float(o))


@allocating
def difference3(p: Vector3, o: Vector3) -> Big3:
    """Return p - o of two vectors of finite floats, exactly."""
    return difference(p[0], o[0]), difference(p[1], o[1]), difference(p[2], o[2])


@allocating
def leading(x: Big) -> tuple[float, int]:
    """Return (m, e) with x = m * 2^e to 50 bits or more.

    2^30 <= abs(m) < 2^97; (0, 0) for zero.
    """
    if x.sign == 0:
        return 0.0, 0
    top = x.limbs.size - 1
    while x.limbs[top] == 0:
        top -= 1
    head = 0.0
    for k in range(top, top - 3, -1):
        head = head * 4294967296.0 + (np.float64(x.limbs[k]) if k >= 0 else 0.0)
    return x.sign * head, x.exponent + 32 * (top - 2)


@allocating
def power_above(x: Big) -> int:
    """Return the least n with abs(x) < 2^n; far below any other number's for zero."""
    if x.sign == 0:
        return -(1 << 30)
    top = x.limbs.size - 1
    while x.limbs[top] == 0:
        top -= 1
    bits, limb = 0, x.limbs[top]
    while limb > 0:
        bits, limb = bits + 1, limb >> _ONE
    return bits + x.exponent + 32 * top


@allocating
def ratio_order(num1: Big, den1: Big, num2: Big, den2: Big) -> int:
    """Return the exact order of num1/den1 and num2/den2: -1, 0 or 1."""
    difference = sub(mul(num1, den2), mul(num2, den1))
    return difference.sign * den1.sign * den2.sign


@allocating
def beyond(num: Big, den: Big, bound: float) -> int:
    """Return the exact order of num/den and a finite float: -1, 0 or 1."""
    return ratio_order(num, den, from_float(bound), from_float(1.0))


@allocating
def ratio(num: Big, den: Big) -> float:
    """Return num/den rounded to the nearest float, ties to even, or infinite."""
    if num.sign == 0:
        return 0.0
    top, top_exponent = leading(num)
    bottom, bottom_exponent = leading(den)
    num = Big(1, num.limbs, num.exponent)
    den = Big(1, den.limbs, den.exponent)
    q = min(math.ldexp(abs(top / bottom), top_exponent - bottom_exponent), 1.7976931348623157e308)
    while True:  # q is at most a few units in the last place off
        above = np.nextafter(q, np.inf)
        side = _beside_middle(num, den, q, above)
        if side > 0 and not math.isinf(above):
            q = above
        elif side >= 0:
            q = np.inf if math.isinf(above) else even(q, above)
            break
        elif q > 0.0 and _beside_middle(num, den, np.nextafter(q, 0.0), q) <= 0:
            below = np.nextafter(q, 0.0)
            if _beside_middle(num, den, below, q) == 0:
                q = even(below, q)
                break
            q = below
        else:
            break
    return q if top * bottom > 0.0 else -q + 0.0


@device
def even(low: float, high: float) -> float:
    """Return the one of two neighbours whose last bit is 0.

    It is their middle, rounded.
    """
    return low * 0.5 + high * 0.5 if high > 1e300 else (low + high) * 0.5


@allocating
def middle(low: float, high: float) -> Big:
    """Return the middle of two neighbours; beyond the largest float, of the one that would follow."""
    if math.isinf(high):
        gap = low - np.nextafter(low, 0.0)
        twice = add(add(from_float(low), from_float(low)), from_float(gap))
    else:
        twice = add(from_float(low), from_float(high))
    return Big(twice.sign, twice.limbs, twice.exponent - 1)


@allocating
def _beside_middle(num: Big, den: Big, low: float, high: float) -> int:
    """Return the order of num/den (both positive) and the middle of two neighbours."""
    return sub(num, mul(middle(low, high), den)).sign


@apart(Signature(int64, (float64,) * 6))
def big_order(p1: float, o1: float, d1: float, p2: float, o2: float, d2: float) -> int:
    """Return the order of (p1 - o1)/d1 and (p2 - o2)/d2: -1, 0 or 1. All finite, d not 0."""
    one = difference(p1, o1), from_float(d1)
    other = difference(p2, o2), from_float(d2)
    return ratio_order(one[0], one[1], other[0], other[1])


@apart(Signature(float64, (float64,) * 3))
def big_time(p: float, o: float, d: float) -> float:
    """Return (p - o)/d rounded once. All finite, d not 0."""
    return ratio(difference(p, o), from_float(d))
