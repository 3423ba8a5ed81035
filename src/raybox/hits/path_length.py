"""The length of a path inside of a box, from additions, products, quotients and square roots alone.

IEEE 754 defines these to the last bit; functions of the platform's mathematical library differ by machine.
"""

from math import inf, sqrt

from raybox.exact.splitter import SPLITTER

# Between these limits squares and products, their last bits included, neither over- nor underflow.
LOW, HIGH = 2.0**-400, 2.0**500
NEAR_OVERFLOW = 2.0**1000
_UP, _DOWN = 2.0**600, 2.0**-600
# Directions up to here make lengths less than 2^-1000 of what underflow takes from times.
MODERATE = 2.0**60
NORMAL = 2.0**-1022


def path_length(near: float, far: float, direction: tuple[float, float, float]) -> float:
    """Return (far - near) * |direction|, rounded; 0 where far < near.

    Infinite or NaN where far - near is, except for a zero direction. Python and compiled code return the
    same bits. The difference and the length of the direction are sums of two floats, accurate to 2^-100, as
    is their product: one rounding is left, and another one below the normal floats.
    """
    x, y, z = direction
    largest = max(abs(x), abs(y), abs(z))
    if largest == 0.0 or far < near:
        return 0.0
    if abs(near) == inf or abs(far) == inf or near != near or far != far:
        return far - near
    scale = _DOWN if largest > HIGH else _UP if largest < LOW else 1.0
    x, y, z = x * scale, y * scale, z * scale
    root = sqrt(x * x + y * y + z * z)
    # x^2 + y^2 + z^2 - root^2 as total + rest: each square is a float and its tail
    total = rest = 0.0
    for factor, sign in ((root, -1.0), (x, 1.0), (y, 1.0), (z, 1.0)):
        high = SPLITTER * factor
        high = high - (high - factor)
        low = factor - high
        square = factor * factor
        tail = ((high * high - square) + 2.0 * (high * low)) + low * low
        added = total + sign * square
        part = added - total
        rest += ((total - (added - part)) + (sign * square - part)) + sign * tail
        total = added
    correction = (total + rest) / (2.0 * root)
    # the difference as span + tail
    shrink = _DOWN if max(abs(near), abs(far)) > NEAR_OVERFLOW else 1.0
    near, far = near * shrink, far * shrink
    span = far - near
    part = span - far
    tail = (far - (span - part)) - (near + part)
    grow = _DOWN if span > HIGH else _UP if span < LOW else 1.0
    span, tail = span * grow, tail * grow
    # their product
    high, root_high = SPLITTER * span, SPLITTER * root
    high, root_high = high - (high - span), root_high - (root_high - root)
    low, root_low = span - high, root - root_high
    length = span * root
    lost = ((high * root_high - length) + high * root_low + low * root_high) + low * root_low
    length += lost + (span * correction + tail * root)
    grow *= shrink  # one of them is 1
    return length if scale * grow == 1.0 else length / scale / grow
