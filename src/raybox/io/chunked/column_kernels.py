"""Loops over columns of rays and results: one pass over memory each, the GIL released."""

import numpy as np
from numpy.typing import NDArray

from raybox.compiler.decorators import inlined
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import int64, put_past, vector_code
from raybox.compiler.simd import I64, Builder, Scalar
from raybox.validation import Bools, Floats, Ints

Words = NDArray[np.uint64]
_PRIME = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no change of a word is lost
_LEFT, _RIGHT = np.uint64(31), np.uint64(33)
_EXPONENT = np.uint64(0x7FF0000000000000)  # all ones in NaN and infinities


@entry
def interleave(columns: Ints, rows: Words, checksum: Words) -> bool:
    """Write one to three columns as rows, and add them to a checksum; return whether all is finite.

    columns: the address of each one's first number, and how many bytes the next is from it. Floats are
    passed as words of 64 bits. Every bit of a row and the order of the rows change the checksum.
    The checksum and the test are free: the loop waits for memory.
    """
    x, steps = columns[0, 0], columns[:, 1]
    if columns.shape[0] == 1:
        return _interleave((x,), (steps[0],), rows, checksum)
    if columns.shape[0] == 2:
        return _interleave((x, columns[1, 0]), (steps[0], steps[1]), rows, checksum)
    places = x, columns[1, 0], columns[2, 0]
    return _interleave(places, (steps[0], steps[1], steps[2]), rows, checksum)


@inlined
def _interleave(places: tuple[int, ...], steps: tuple[int, ...], rows: Words, checksum: Words) -> bool:
    """Write columns as rows; the loop over tuples is unrolled, which takes two thirds of the time."""
    finite, total = True, checksum[0]
    for i in range(rows.shape[0]):
        row = _PRIME
        for k in range(len(places)):
            word = np.uint64(_word_at(places[k] + i * steps[k]))
            put_past(rows, i * len(places) + k, word)
            finite &= (word & _EXPONENT) != _EXPONENT
            row = _mix(row, word)
        total = _mix(total, row)
    checksum[0] = total
    return finite


@vector_code(int64)
def _word_at(b: Builder, address: Scalar) -> Scalar:
    """Return the word at an address, which may be unaligned: columns are of any file."""
    return b.load(b.inttoptr(address, I64.as_pointer()), align=1)


@inlined
def _mix(checksum: np.uint64, word: np.uint64) -> np.uint64:
    mixed = checksum ^ word
    return ((mixed << _LEFT) | (mixed >> _RIGHT)) * _PRIME


@entry
def expand_sparse(there: Bools, numbers: Floats, out: Floats) -> None:
    """Write the numbers of a sparse column to `out`, NaN where there is none."""
    at, last = 0, numbers.size - 1
    for i in range(there.size):
        number = numbers[min(at, last)] if last >= 0 else np.nan  # read in any case: no branch to mispredict
        out[i] = number if there[i] else np.nan
        at += there[i]


@entry
def add_to_checksums(words: Words, checksums: Words) -> None:
    """Add words to checksums side by side, which do not wait for each other.

    Every bit of the words and their order change the checksums.
    """
    lanes = checksums.size
    for start in range(0, words.size - words.size % lanes, lanes):
        for k in range(lanes):
            checksums[k] = _mix(checksums[k], words[start + k])
    for k in range(words.size % lanes):
        checksums[k] = _mix(checksums[k], words[words.size - words.size % lanes + k])
