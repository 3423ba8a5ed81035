"""Order statistics of a few thousand numbers.

Source: Hoare 1961, "Algorithm 65: Find"; pivots from a sorted sample, just past the wanted number: Floyd and
Rivest 1975, "Algorithm 489: SELECT".
"""

from raybox.compiler.decorators import device
from raybox.validation import Floats

_SAMPLE = 15  # numbers; random pivots take 1.7 times as long
_MULTIPLIER, _INCREMENT, _BITS = 1103515245, 12345, 2**31 - 1  # of pseudo-random places


@device
def smallest(values: Floats, count: int, k: int) -> float:
    """Return number k in the order of values[:count], none of which is NaN.

    Equals numpy.partition(values[:count], k)[k], and reorders values likewise.
    """
    begin, end, seed = 0, count, _INCREMENT
    while end - begin > _SAMPLE:
        seed = (seed * _MULTIPLIER + _INCREMENT) & _BITS
        pivot = _pivot(values, begin, end, k, seed >> 8)
        middle = _partition(values, begin, end, pivot, False)
        if k < middle:
            end = middle
        elif middle > begin:
            begin = middle
        else:  # the pivot is the least: separate its equals, or many of them would take a pass each
            begin = _partition(values, begin, end, pivot, True)
            if k < begin:
                return pivot
    for i in range(begin, end):
        _insert(values, begin, i)
    return values[k]


@device
def _pivot(values: Floats, begin: int, end: int, k: int, offset: int) -> float:
    """Return a number near number k, likely on the side of it where more numbers are."""
    stride = (end - begin) // _SAMPLE
    for j in range(_SAMPLE):
        i = begin + j * stride + (offset + j * j) % stride
        values[begin + j], values[i] = values[i], values[begin + j]
        _insert(values, begin, begin + j)
    rank = (k - begin) * _SAMPLE // (end - begin)
    rank += 1 if 2 * (k - begin) < end - begin else -1
    return values[begin + min(max(rank, 0), _SAMPLE - 1)]


@device
def _insert(values: Floats, begin: int, i: int) -> None:
    """Move number i to its place in the order of values[begin:i]."""
    value = values[i]
    while i > begin and values[i - 1] > value:
        values[i] = values[i - 1]
        i -= 1
    values[i] = value


@device
def _partition(values: Floats, begin: int, end: int, pivot: float, equal: bool) -> int:
    """Move the numbers below a pivot, or also its equals, to the front; return where the others begin."""
    middle = begin
    for i in range(begin, end):  # without a branch
        value = values[i]
        values[i] = values[middle]
        values[middle] = value
        middle += int((value < pivot) | (equal & (value == pivot)))
    return middle
