"""Powers of two from their bits: exact, and cheaper than library calls."""

import math
from typing import Any

from numba import types

from raybox.compiler.decorators import device
from raybox.compiler.intrinsics import vector_code
from raybox.compiler.simd import F64, I64


@vector_code(types.float64)
def power_of_two(b: Any, exponent: Any) -> Any:
    """Return 2^exponent, a normal float."""
    return b.bitcast(b.shl(b.add(exponent, I64(1023)), I64(52)), F64)


@vector_code(types.int64)
def _bits_of(b: Any, x: Any) -> Any:
    return b.bitcast(x, I64)


@device
def exponent_of(x: float) -> int:
    """Return e with x = f * 2^e and 1/2 <= f < 1, for x >= 0 and finite; 0 for 0."""
    biased = _bits_of(x) >> 52
    return int(biased - 1022) if biased > 0 else math.frexp(x)[1]


@device
def scaled(x: float, exponent: int) -> float:
    """Return x * 2^exponent, infinite where that overflows."""
    if -1000 < exponent < 1000:
        return x * power_of_two(exponent)
    return math.ldexp(x, exponent)
