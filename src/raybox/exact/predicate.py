"""The exact predicate: the order of two crossing times, and a crossing time rounded once.

A crossing time is ``(p - o) / d``: the t at which the line ``o + t d`` crosses the plane at ``p``, on one
axis. Every decision about boxes is `order` of two of them; a limit of the ray's range is the time ``(t_min -
0) / 1``. Times of planes and triangles are ratios of longer sums; their files filter them, and
`raybox.exact.bigint` decides what the filters leave undecided.

Three steps, each taken only where the one before leaves the order undecided:

1. *Filter*. ``q = fl(fl(p - o) / d)`` carries two roundings: relative error below 2^-52, and
   2^-1074 where it underflows. Times whose difference exceeds both errors are ordered as their q.
2. *Products*. Where p - o is exact, (p1 - o1) d2 against (p2 - o2) d1 is one comparison of two
   exact products, head first (rounding is monotone), then tail. Elsewhere the sign of their difference
   in double-double, if its bound proves it or nothing was rounded.
3. *Big integers* (`raybox.exact.bigint`): exact for all floats.

Reported times are the exact ones rounded once, to the nearest float, ties to even. Rounding is monotone:
reported times are never out of the exact order, and need an exact comparison only where two are equal.
"""

import math

from raybox.compiler.decorators import device
from raybox.exact.bigint import big_order, big_time
from raybox.exact.double_double import DD, lift, mul, signed, sub, tame3
from raybox.exact.error_free import tame, two_prod, two_sum

_FILTER = 2.0**-51  # twice the relative error of a quotient
_UNDERFLOW = 1e-300  # far more than an underflow loses; closer times go to the next step
_ZIV = 2.0**-49  # eight times the relative error of a quotient's correction


@device
def sign(x: float) -> int:
    """Return -1, 0 or 1."""
    return (x > 0.0) - (x < 0.0)


@device
def order(p1: float, o1: float, d1: float, p2: float, o2: float, d2: float) -> int:
    """Return the exact order of two crossing times: -1, 0 or 1.

    They are (p1 - o1)/d1 and (p2 - o2)/d2.

    Only p1 and p2 may be infinite; d1 and d2 are not 0.
    """
    if o1 == o2 and d1 == d2:
        return sign(d1) * ((p1 > p2) - (p1 < p2))
    if math.isinf(p1) or math.isinf(p2):
        a = p1 * sign(d1) if math.isinf(p1) else 0.0
        b = p2 * sign(d2) if math.isinf(p2) else 0.0
        return (a > b) - (a < b)
    q1 = (p1 - o1) / d1
    q2 = (p2 - o2) / d2
    if abs(q1 - q2) > (abs(q1) + abs(q2)) * _FILTER + _UNDERFLOW:
        return sign(q1 - q2)
    return _order_exact(p1, o1, d1, p2, o2, d2)


@device
def _order_exact(p1: float, o1: float, d1: float, p2: float, o2: float, d2: float) -> int:
    """Return `order` of finite numbers, without rounding."""
    s1, e1 = two_sum(p1, -o1)
    s2, e2 = two_sum(p2, -o2)
    if e1 == 0.0 and e2 == 0.0 and tame(s1) and tame(d1) and tame(s2) and tame(d2):
        head1, tail1 = two_prod(s1, d2)
        head2, tail2 = two_prod(s2, d1)
        difference = sign(head1 - head2) if head1 != head2 else sign(tail1 - tail2)
        return difference * sign(d1) * sign(d2)
    if tame3((p1, o1, d1)) and tame3((p2, o2, d2)):
        rest = sub(mul(DD(s1, e1, 0.0), lift(d2)), mul(DD(s2, e2, 0.0), lift(d1)))
        if signed(rest):
            return sign(rest.head) * sign(d1) * sign(d2)
    return big_order(p1, o1, d1, p2, o2, d2)


@device
def time(p: float, o: float, d: float) -> float:
    """Return (p - o)/d rounded once. Only p may be infinite.

    D is not 0.
    """
    t = quick_time(p, o, d)
    return big_time(p, o, d) if math.isnan(t) else t


@device
def quick_time(p: float, o: float, d: float) -> float:
    """Return `time`, or NaN where its rounding is undecided in floats."""
    if math.isinf(p):
        return p * sign(d)
    s, e = two_sum(p, -o)
    if tame(s) and tame(d):
        q = s / d
        head, tail = two_prod(q, d)
        # s - q d is a float (the remainder of a division), so only + e and / d round here
        correction = (((s - head) - tail) + e) / d
        slack = abs(correction) * _ZIV
        low = q + (correction - slack)
        if low == q + (correction + slack):
            return low + 0.0  # -0.0 becomes 0.0
    return math.nan
