"""Loops over rays that pass from file to file: one pass over memory each, the GIL released."""

from typing import Any

import numpy as np

from raybox.compiler.decorators import entry, inlined
from raybox.compiler.intrinsics import put_past

_PRIME = np.uint64(0x9E3779B97F4A7C15)  # odd: no word's change is lost
_LEFT, _RIGHT = np.uint64(31), np.uint64(33)
_EXPONENT = np.uint64(0x7FF0000000000000)  # all ones in NaN and infinities


@entry
def weave(columns: Any, rows: Any, total: Any) -> Any:
    """Write columns side by side; return whether all is finite, and the sum with that of the rows added.

    All are floats, seen as words of 64 bits. Every bit of a row, and its place among the rows, changes the
    sum. What memory takes hides what the sum and the test take (measured).
    """
    finite = True
    for i in range(rows.shape[0]):
        row = _PRIME
        for k in range(len(columns)):
            word = columns[k][i]
            put_past(rows, i * len(columns) + k, word)
            finite &= (word & _EXPONENT) != _EXPONENT
            row = _stirred(row, word)
        total = _stirred(total, row)
    return finite, total


@inlined
def _stirred(total: Any, word: Any) -> Any:
    mixed = total ^ word
    return ((mixed << _LEFT) | (mixed >> _RIGHT)) * _PRIME


@entry
def spread(there: Any, numbers: Any, out: Any) -> None:
    """Write numbers where they belong, and NaN in between."""
    at, last = 0, numbers.size - 1
    for i in range(there.size):
        number = numbers[min(at, last)] if last >= 0 else np.nan  # read at any rate: no branch goes wrong
        out[i] = number if there[i] else np.nan
        at += there[i]


@entry
def fold(words: Any, sums: Any) -> None:
    """Add words to sums that their order, and every bit of them, changes; sums side by side do not wait."""
    lanes = sums.size
    for start in range(0, words.size - words.size % lanes, lanes):
        for k in range(lanes):
            sums[k] = _stirred(sums[k], words[start + k])
    for k in range(words.size % lanes):
        sums[k] = _stirred(sums[k], words[words.size - words.size % lanes + k])
