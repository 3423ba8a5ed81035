"""Double-double arithmetic with an error bound for each result, and inverses of matrices.

For planes and triangles, whose crossing times are ratios of longer sums than a box's. A value is head + tail,
at most `slack` away from the exact one; where the slack leaves a sign or a last bit undecided, callers use
`raybox.exact.bigint`. Inputs must pass `tame3`: then no product of three under- or overflows, and the bounds
hold. Instances multiply more factors: their inputs must pass `is_moderate`, and their sums get
`with_underflow`.

Source: Dekker 1971; error bounds after Joldes, Muller and Popescu 2017, "Tight and rigorous error
bounds for basic building blocks of double-word arithmetic" (2^-104 and less; 2^-100 is used).
"""

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox.compiler.decorators import device
from raybox.compiler.entry_points import entry
from raybox.exact.error_free import two_prod, two_sum

_EPS = 2.0**-100
_UP = 1.0 + 2.0**-48  # more than the rounding of a sum of slacks
_SMALL = 2.0**-900  # quotients below it, or above its inverse, may have lost bits
TAME_LOW = 2.0**-200
_PRODUCT_HIGH = 2.0**200  # exclusive limit of factors in products of three
TAME_HIGH = 2.0**60  # exclusive limit of rays and matrices, for the longer products of instances
_UNDERFLOW = 2.0**-700  # more than underflow can lose in sums of products of tame numbers


class DD(NamedTuple):
    """A number within `slack` of head + tail.

    It is exactly head + tail where the slack is 0.
    """

    head: float
    tail: float
    slack: float


Vector3: TypeAlias = tuple[float, float, float]
DDVector3: TypeAlias = tuple[DD, DD, DD]
_Floats: TypeAlias = NDArray[np.float64]


@device
def tame(x: float) -> bool:
    """Return whether products of up to three such numbers cannot under- or overflow."""
    return x == 0.0 or TAME_LOW < abs(x) < _PRODUCT_HIGH


@device
def tame3(v: Vector3) -> bool:
    """Return whether all three components of a vector are tame."""
    return tame(v[0]) and tame(v[1]) and tame(v[2])


@device
def is_small(v: Vector3) -> bool:
    """Return whether all components of a vector are below TAME_HIGH."""
    return abs(v[0]) < TAME_HIGH and abs(v[1]) < TAME_HIGH and abs(v[2]) < TAME_HIGH


@device
def is_moderate(v: Vector3) -> bool:
    """Return whether all components of a vector are tame, and below TAME_HIGH."""
    return tame3(v) and is_small(v)


@device
def with_underflow(a: DD) -> DD:
    """Return a number with the possible loss by underflow in its slack.

    For sums of products of tame numbers.
    """
    return DD(a.head, a.tail, a.slack + _UNDERFLOW)


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
def dot(a: Vector3, b: Vector3) -> DD:
    """Return the scalar product of two vectors of floats."""
    total = mul(lift(a[0]), lift(b[0]))
    total = add(total, mul(lift(a[1]), lift(b[1])))
    return add(total, mul(lift(a[2]), lift(b[2])))


@device
def lift3(v: Vector3) -> DDVector3:
    """Return a vector of floats as double-doubles."""
    return lift(v[0]), lift(v[1]), lift(v[2])


@device
def diff3(p: Vector3, o: Vector3) -> DDVector3:
    """Return p - o of two vectors of floats, exactly."""
    return diff(p[0], o[0]), diff(p[1], o[1]), diff(p[2], o[2])


@device
def cross(p: DDVector3, q: DDVector3) -> DDVector3:
    """Return the vector product."""
    return (
        sub(mul(p[1], q[2]), mul(p[2], q[1])),
        sub(mul(p[2], q[0]), mul(p[0], q[2])),
        sub(mul(p[0], q[1]), mul(p[1], q[0])),
    )


@device
def inner(p: DDVector3, q: DDVector3) -> DD:
    """Return the scalar product."""
    return add(add(mul(p[0], q[0]), mul(p[1], q[1])), mul(p[2], q[2]))


@device
def certain(a: DD) -> bool:
    """Return whether `head` has the sign of the exact number, which is not 0."""
    return abs(a.head) > 2.0 * a.slack


@device
def signed(a: DD) -> bool:
    """Return whether `head` has the sign of the exact number, which may be 0."""
    return certain(a) or a.slack == 0.0


@device
def rounded(a: DD) -> float:
    """Return the exact number rounded once.

    NaN where the slack leaves that undecided.
    """
    low = a.head + (a.tail - a.slack)
    return low + 0.0 if low == a.head + (a.tail + a.slack) else np.nan


@device
def divide(num: DD, den: DD) -> float:
    """Return num/den rounded once; NaN where the slack leaves that undecided."""
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
def unit(v: Vector3) -> Vector3:
    """Return a vector scaled to length 1, or the zero vector; parts that are 0 are +0.0."""
    largest = max(abs(v[0]), abs(v[1]), abs(v[2]))
    if largest == 0.0:
        return 0.0, 0.0, 0.0
    x, y, z = v[0] / largest, v[1] / largest, v[2] / largest
    length = math.sqrt(x * x + y * y + z * z)
    return x / length + 0.0, y / length + 0.0, z / length + 0.0


_TOLERANCE = 2.0**-92  # of an entry: less than the error that `raybox.primitives.instance_ray` allows


@device
def _write(num: DD, den: DD, high: _Floats, low: _Floats, place: tuple[int, int, int]) -> bool:
    """Write num/den as a sum of two floats.

    Return whether it is accurate.

    place: instance, row and column.
    """
    i, k, j = place
    if num.head == 0.0 and num.slack == 0.0:  # factors were zero
        high[i, k, j] = low[i, k, j] = 0.0
        return True
    num, den = with_underflow(num), with_underflow(den)
    head = divide(num, den)
    left = sub(num, mul(lift(head), den))
    high[i, k, j] = head
    low[i, k, j] = (left.head + left.tail) / den.head
    return head == head and left.slack < abs(head * den.head) * _TOLERANCE


@entry
def invert(placed: _Floats, high: _Floats, low: _Floats, accurate: NDArray[np.bool_]) -> None:
    """Write the inverse of each matrix's first three columns.

    placed: (M, 3, 4). high, low: (M, 3, 3), whose sum is the inverse. accurate: (M,) bool, whether the error
    of all entries is below 2^-92 of them.
    """
    for i in range(len(placed)):
        rows = (
            (placed[i, 0, 0], placed[i, 0, 1], placed[i, 0, 2]),
            (placed[i, 1, 0], placed[i, 1, 1], placed[i, 1, 2]),
            (placed[i, 2, 0], placed[i, 2, 1], placed[i, 2, 2]),
        )
        x, y, z = lift3(rows[0]), lift3(rows[1]), lift3(rows[2])
        a, b, c = cross(y, z), cross(z, x), cross(x, y)
        det = inner(x, a)
        moderate = is_moderate(rows[0]) and is_moderate(rows[1]) and is_moderate(rows[2])
        good = moderate and certain(det)
        for k in range(3):
            for j in range(3):
                column = a if j == 0 else (b if j == 1 else c)
                num = column[0] if k == 0 else (column[1] if k == 1 else column[2])
                good = _write(num, det, high, low, (i, k, j)) and good
        accurate[i] = good
