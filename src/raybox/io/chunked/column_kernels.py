"""Loops over columns of rays and results: one pass over memory each, the GIL released."""

import numpy as np
from numpy.typing import NDArray

from raybox.compiler.decorators import entry, inlined
from raybox.compiler.intrinsics import put_past
from raybox.validation import Bools, Floats

Words = NDArray[np.uint64]
_PRIME = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no change of a word is lost
_LEFT, _RIGHT = np.uint64(31), np.uint64(33)
_EXPONENT = np.uint64(0x7FF0000000000000)  # all ones in NaN and infinities


@entry
def interleave(columns: tuple[Words, ...], rows: Words, checksum: np.uint64) -> tuple[bool, np.uint64]:
    """Write columns as rows.

    Return whether all is finite, and the checksum with the rows added.

    Floats are passed as words of 64 bits. Every bit of a row and the order of the rows change the checksum.
    The checksum and the test are free: the loop waits for memory.
    """
    finite = True
    for i in range(rows.shape[0]):
        row = _PRIME
        for k in range(len(columns)):
            word = columns[k][i]
            put_past(rows, i * len(columns) + k, word)
            finite &= (word & _EXPONENT) != _EXPONENT
            row = _mix(row, word)
        checksum = _mix(checksum, row)
    return finite, checksum


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
