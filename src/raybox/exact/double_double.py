"""Sums and products of float64 in double-double, each with a bound on what it lost.

For planes and triangles, whose crossing times are ratios of longer sums than a box's. A value
is head + tail, at most `slack` away from the exact one; where the slack leaves a sign or a last
bit open, callers go to `raybox.exact.bigint`. Inputs must pass `tame3`: then no product of
three under- or overflows, and the bounds hold.

Source: Dekker 1971; error bounds after Joldes, Muller and Popescu 2017, "Tight and rigorous error
bounds for basic building blocks of double-word arithmetic" (2^-104 and less; 2^-100 is taken).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from raybox.compiler.decorators import device
from raybox.exact.error_free import two_prod, two_sum

_EPS = 2.0**-100
_UP = 1.0 + 2.0**-48  # more than sums of slacks are rounded
_SMALL = 2.0**-900  # quotients below (and above its inverse) may have lost bits
TAME_LOW = 2.0**-200
_TAME_HIGH = 2.0**200


class DD(NamedTuple):
    """A number known to be within `slack` of head + tail; it is head + tail where the slack is 0."""

    head: float
    tail: float
    slack: float


@device
def tame(x: float) -> bool:
    """Tell whether products of up to three such numbers are safe from under- and overflow."""
    return x == 0.0 or TAME_LOW < abs(x) < _TAME_HIGH


@device
def tame3(v: Any) -> bool:
    """Tell whether all three parts of a vector are tame."""
    return tame(v[0]) and tame(v[1]) and tame(v[2])


@device
def lift(x: float) -> DD:
    """Return a float as a double-double."""
    return DD(x, 0.0, 0.0)


@device
def diff(a: float, b: float) -> DD:
    """Return a - b, exactly."""
    s, e = two_sum(a, -b)
    return DD(s, e, 0.0)


@device
def add(a: DD, b: DD) -> DD:
    """Return a + b."""
    s, e = two_sum(a.head, b.head)
    t, f = two_sum(a.tail, b.tail)
    u, v = two_sum(e, t)
    s, e = two_sum(s, u)
    if v == 0.0 and f == 0.0:
        return DD(s, e, (a.slack + b.slack) * _UP)  # nothing was rounded
    s, e = two_sum(s, e + (v + f))
    return DD(s, e, a.slack + b.slack + _EPS * (abs(a.head) + abs(b.head)))


@device
def neg(a: DD) -> DD:
    """Return -a."""
    return DD(-a.head, -a.tail, a.slack)


@device
def sub(a: DD, b: DD) -> DD:
    """Return a - b."""
    return add(a, neg(b))


@device
def mul(a: DD, b: DD) -> DD:
    """Return a * b."""
    p, e = two_prod(a.head, b.head)
    size_a = abs(a.head)
    size_b = abs(b.head)
    lost = 1.01 * (size_a * b.slack + size_b * a.slack) + a.slack * b.slack
    if a.tail == 0.0 or b.tail == 0.0:
        x, y = two_prod(a.head, b.tail) if a.tail == 0.0 else two_prod(a.tail, b.head)
        u, v = two_sum(e, x)
        if v == 0.0 and y == 0.0:
            s, e = two_sum(p, u)
            return DD(s, e, lost * _UP)  # nothing was rounded
    s, e = two_sum(p, e + (a.head * b.tail + a.tail * b.head))
    return DD(s, e, lost + _EPS * (size_a * size_b))


@device
def dot(a: Any, b: Any) -> DD:
    """Return the scalar product of two tuples of three floats."""
    total = mul(lift(a[0]), lift(b[0]))
    total = add(total, mul(lift(a[1]), lift(b[1])))
    return add(total, mul(lift(a[2]), lift(b[2])))


@device
def lift3(v: Any) -> tuple[DD, DD, DD]:
    """Return a vector of floats in double-doubles."""
    return lift(v[0]), lift(v[1]), lift(v[2])


@device
def diff3(p: Any, o: Any) -> tuple[DD, DD, DD]:
    """Return p - o of two vectors of floats, exactly."""
    return diff(p[0], o[0]), diff(p[1], o[1]), diff(p[2], o[2])


@device
def cross(p: Any, q: Any) -> tuple[DD, DD, DD]:
    """Return the vector product."""
    return (
        sub(mul(p[1], q[2]), mul(p[2], q[1])),
        sub(mul(p[2], q[0]), mul(p[0], q[2])),
        sub(mul(p[0], q[1]), mul(p[1], q[0])),
    )


@device
def inner(p: Any, q: Any) -> DD:
    """Return the scalar product."""
    return add(add(mul(p[0], q[0]), mul(p[1], q[1])), mul(p[2], q[2]))


@device
def certain(a: DD) -> bool:
    """Tell whether the sign of `head` is the sign of the exact number, which is not 0."""
    return abs(a.head) > 2.0 * a.slack


@device
def signed(a: DD) -> bool:
    """Tell whether the sign of `head` is the sign of the exact number, which may be 0."""
    return certain(a) or a.slack == 0.0


@device
def rounded(a: DD) -> float:
    """Return the exact number rounded once, or NaN where the slack leaves the last bit open."""
    low = a.head + (a.tail - a.slack)
    return low + 0.0 if low == a.head + (a.tail + a.slack) else np.nan


@device
def divide(num: DD, den: DD) -> float:
    """Return num/den rounded once, or NaN where the slack leaves the last bit open."""
    if not certain(den):
        return np.nan
    q = num.head / den.head
    if not (q == 0.0 or _SMALL < abs(q) < 1.0 / _SMALL):
        return np.nan
    head, tail = two_prod(q, den.head)
    correction = ((((num.head - head) - tail) + num.tail) - q * den.tail) / den.head
    slack = (
        1.01 * (num.slack + abs(q) * den.slack) / abs(den.head) + abs(correction) * 2.0**-48 + abs(q) * _EPS
    )
    low = q + (correction - slack)
    return low + 0.0 if low == q + (correction + slack) else np.nan


@device
def unit(v: Any) -> tuple[float, float, float]:
    """Return a vector scaled to length 1; the zero vector stays."""
    largest = max(abs(v[0]), abs(v[1]), abs(v[2]))
    if largest == 0.0:
        return 0.0, 0.0, 0.0
    x, y, z = v[0] / largest, v[1] / largest, v[2] / largest
    length = math.sqrt(x * x + y * y + z * z)
    return x / length, y / length, z / length
