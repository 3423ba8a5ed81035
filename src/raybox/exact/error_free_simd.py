"""Error-free products and remainders of float64 vectors: fused, or by Dekker's products of halves.

Both forms are exact for factors below 2^900 whose product is 0 or from 2^-900 to 2^900: split factors do not
overflow, and products of halves do not underflow. Of smaller products, less than 2^-1071 underflows.

Source: Dekker 1971, "A floating-point technique for extending the available precision".
"""

from raybox.compiler.simd import Lanes, multiply_add
from raybox.compiler.target import has
from raybox.exact.splitter import SPLITTER


def product_error(x: Lanes, y: Lanes, product: Lanes) -> Lanes:
    """Return x * y - product, exactly. product: x * y, rounded once."""
    if has("fma"):
        return multiply_add(x, y, product * -1.0)
    (x_high, x_low), (y_high, y_low) = halves(x), halves(y)
    return (x_high * y_high - product + x_high * y_low + x_low * y_high) + x_low * y_low


def remainder(s: Lanes, q: Lanes, d: Lanes) -> Lanes:
    """Return s - q * d, which is a float, exactly. q: s / d, rounded once."""
    if has("fma"):
        return multiply_add(q * -1.0, d, s)
    product = q * d  # at most one unit in the last place away from s: their difference is exact, too
    return (s - product) - product_error(q, d, product)


def halves(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return two numbers of 26 bits whose sum is x."""
    c = x * SPLITTER
    high = c - (c - x)
    return high, x - high
