"""Times as integers that order alike, and the stretches of a ray, by such keys."""

from typing import NamedTuple

from raybox.compiler.intrinsics import float64, int64, vector_code, void
from raybox.compiler.simd import F64, I64, Builder, Lanes, Scalar
from raybox.compiler.simd_arrays import Memory
from raybox.validation import Ints

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
PADDING = 3


class Stretches(NamedTuple):
    """A ray's stretches in cells, each from one time to the next.

    `PADDING` more follow, of length zero in the last cell, so that loops may take four at a time.
    """

    keys: Ints  # of the times at which they begin, and of that at which the last one ends
    cells: Ints
    cell_count: int


@vector_code(int64)
def key_of(b: Builder, t: Scalar) -> Scalar:
    """Return the key of a time; -0.0 is before 0.0."""
    bits = b.bitcast(t, I64)
    return b.xor(bits, b.and_(b.ashr(bits, I64(63)), I64(HIGHEST)))


@vector_code(float64)
def time_of(b: Builder, key: Scalar) -> Scalar:
    """Return the time of a key."""
    return b.bitcast(b.xor(key, b.and_(b.ashr(key, I64(63)), I64(HIGHEST))), F64)


def keys_of(times: Lanes) -> Lanes:
    """Return the keys of several times."""
    bits = times.bits(I64)
    return (bits < 0).choose(bits ^ HIGHEST, bits)


def times_of(keys: Lanes) -> Lanes:
    """Return the times of several keys."""
    return (keys < 0).choose(keys ^ HIGHEST, keys).bits(F64)


@vector_code(int64)
def get(_b: Builder, array: Memory, place: Scalar) -> Scalar:
    """Return an integer by its flat index; by others Numba would test whether it is negative."""
    return array.get(place)


@vector_code(void)
def put(_b: Builder, array: Memory, place: Scalar, value: Scalar) -> None:
    """Store an integer by its flat index, as `get`."""
    array.put(value, place)
