"""Inverses of many matrices in double-double, each entry a sum of two floats."""

from typing import Any

from raybox.compiler.decorators import device, entry
from raybox.exact import double_double
from raybox.exact.double_double import DD, is_moderate, with_underflow

_TOLERANCE = 2.0**-92  # of an entry: less than the error that `raybox.primitives.instance_ray` allows


@device
def _write(num: DD, den: DD, high: Any, low: Any, place: Any) -> bool:
    """Write num/den as a sum of two floats.

    Return whether it is accurate.

    place: instance, row and column.
    """
    i, k, j = place
    if num.head == 0.0 and num.slack == 0.0:  # factors were zero
        high[i, k, j] = low[i, k, j] = 0.0
        return True
    num, den = with_underflow(num), with_underflow(den)
    head = double_double.divide(num, den)
    left = double_double.sub(num, double_double.mul(double_double.lift(head), den))
    high[i, k, j] = head
    low[i, k, j] = (left.head + left.tail) / den.head
    return head == head and left.slack < abs(head * den.head) * _TOLERANCE


@entry
def invert(placed: Any, high: Any, low: Any, accurate: Any) -> None:
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
        x, y, z = double_double.lift3(rows[0]), double_double.lift3(rows[1]), double_double.lift3(rows[2])
        a, b, c = double_double.cross(y, z), double_double.cross(z, x), double_double.cross(x, y)
        det = double_double.inner(x, a)
        moderate = is_moderate(rows[0]) and is_moderate(rows[1]) and is_moderate(rows[2])
        good = moderate and double_double.certain(det)
        for k in range(3):
            for j in range(3):
                column = a if j == 0 else (b if j == 1 else c)
                num = column[0] if k == 0 else (column[1] if k == 1 else column[2])
                good = _write(num, det, high, low, (i, k, j)) and good
        accurate[i] = good
