"""A check of raybox's own way to compile: small functions, loaded or compiled, and run.

Stored code is found by the versions of Numba, llvmlite and Python, among others. So a probe that is loaded
proves that compiling and storing worked with these. Otherwise storing is checked as well, even where there is
no folder for it, and a function that allocates.
"""

from typing import Any

import numba
import numpy as np
from numba import types

from raybox.compiler.backend import Backend
from raybox.compiler.code_cache import reload
from raybox.compiler.decorators import FLAGS, SYMBOL_FLAGS
from raybox.compiler.linked_backend import LINKED, new_words

_VALUES = np.array([1.5, -2.25, 0.75])
_SUM_OF_SQUARES, _SUM_OF_WORDS = 7.875, 45


@numba.njit(**LINKED.callee_options(FLAGS | {"forceinline": True}))
def _square(x: float) -> float:
    return x * x


@numba.njit(**LINKED.callee_options(FLAGS))
def _sum_of_squares(values: Any) -> float:
    total = 0.0
    for k in range(values.size):
        total += _square(values[k])
    return total


def sum_of_squares(values: Any) -> float:
    """Return the sum by a callee, into which another is inlined."""
    return _sum_of_squares(values)


def sum_of_words(size: int) -> int:
    """Return 0 + 1 + ... + size - 1, by an array."""
    words = new_words(size)
    for k in range(size):
        words[k] = k
    total = 0
    for k in range(size):
        total += int(words[k])
    return total


def check() -> Backend:
    """Return raybox's own backend. Raises whatever fails."""
    compiled = LINKED.compile_entry(sum_of_squares, FLAGS)
    _compare(compiled(_VALUES), _SUM_OF_SQUARES)
    if not sum(compiled.stats.cache_hits.values()):
        (result,) = compiled.overloads.values()
        _compare(reload(result).entry_point(_VALUES), _SUM_OF_SQUARES)
        symbol = LINKED.compile_symbol(sum_of_words, types.int64(types.int64), SYMBOL_FLAGS)
        _compare(symbol.ctypes(10), _SUM_OF_WORDS)
    return LINKED


def _compare(computed: Any, expected: Any) -> None:
    if computed != expected:
        raise ArithmeticError(f"the probe computes {computed!r}, not {expected!r}")
