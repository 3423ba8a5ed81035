"""Powers of two by their bits: exact, and a fraction of the cost of a library call."""

import math

import numpy as np

from raybox.kernels.jit import device


@device
def exponent_of(x: float) -> int:
    """Return e with x = f * 2^e and 1/2 <= f < 1, for x >= 0 and finite; 0 for 0."""
    biased = np.float64(x).view(np.int64) >> 52
    return int(biased - 1022) if biased > 0 else math.frexp(x)[1]


@device
def scaled(x: float, exponent: int) -> float:
    """Return x * 2^exponent, infinite where that overflows."""
    if -1000 < exponent < 1000:
        return x * np.int64((exponent + 1023) << 52).view(np.float64)
    return math.ldexp(x, exponent)
