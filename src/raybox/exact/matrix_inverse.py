"""The inverses of many matrices as sums of two floats each, in double-double."""

from typing import Any

from raybox.compiler.decorators import device, entry
from raybox.exact import double_double
from raybox.exact.double_double import DD
from raybox.primitives.instance_ray import loosened, tame3

_ENOUGH = 2.0**-92  # of an entry: less than the kernels allow, see `raybox.primitives.instance_ray`


@device
def _write(num: DD, den: DD, high: Any, low: Any, place: Any) -> bool:
    """Write num/den as a sum of two floats; return whether it is as good as it should be."""
    i, k, j = place
    if num.head == 0.0 and num.slack == 0.0:  # factors were zero
        high[i, k, j] = low[i, k, j] = 0.0
        return True
    num, den = loosened(num), loosened(den)
    head = double_double.divide(num, den)
    left = double_double.sub(num, double_double.mul(double_double.lift(head), den))
    high[i, k, j] = head
    low[i, k, j] = (left.head + left.tail) / den.head
    return head == head and left.slack < abs(head * den.head) * _ENOUGH


@entry
def invert(placed: Any, high: Any, low: Any, sure: Any) -> None:
    """Write the inverse of each matrix's first three columns; sure: is it as good as it should be."""
    for i in range(len(placed)):
        rows = (
            (placed[i, 0, 0], placed[i, 0, 1], placed[i, 0, 2]),
            (placed[i, 1, 0], placed[i, 1, 1], placed[i, 1, 2]),
            (placed[i, 2, 0], placed[i, 2, 1], placed[i, 2, 2]),
        )
        x, y, z = double_double.lift3(rows[0]), double_double.lift3(rows[1]), double_double.lift3(rows[2])
        a, b, c = double_double.cross(y, z), double_double.cross(z, x), double_double.cross(x, y)
        det = double_double.inner(x, a)
        good = tame3(rows[0]) and tame3(rows[1]) and tame3(rows[2]) and double_double.certain(det)
        for k in range(3):
            for j in range(3):
                column = a if j == 0 else (b if j == 1 else c)
                num = column[0] if k == 0 else (column[1] if k == 1 else column[2])
                good = _write(num, det, high, low, (i, k, j)) and good
        sure[i] = good
