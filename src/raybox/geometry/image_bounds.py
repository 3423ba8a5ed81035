"""Bounds of the images of boxes under affine maps, rounded outwards unless exact."""

from typing import Any

import numpy as np

from raybox.validation import Floats

_LARGEST = np.finfo(float).max
_SLACK = 2.0**-50  # relative to the sum of absolute terms: more than the rounding errors
_SMALLEST = 1e-290  # products below may have lost bits
_SPLITTER = 134217729.0  # 2^27 + 1


def around(placed: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Return bounds of the images of all boxes under each map.

    lower, upper: (K, 3). placed: maps, (M, 3, 4). Returns lower and upper bounds, (M, 3) each.
    """
    low, up = np.full((len(placed), 3), np.inf), np.full((len(placed), 3), -np.inf)
    linear, shift = placed[:, :, :3], placed[:, :, 3]
    with np.errstate(all="ignore"):
        for one, other in zip(lower, upper, strict=True):
            backward = linear < 0.0
            begin = _summed(shift, linear, np.where(backward, other, one), -1.0)
            end = _summed(shift, linear, np.where(backward, one, other), 1.0)
            # overflow is rounded outwards, too
            low = np.minimum(low, np.where(np.isnan(begin), -np.inf, np.minimum(begin, _LARGEST)))
            up = np.maximum(up, np.where(np.isnan(end), np.inf, np.maximum(end, -_LARGEST)))
    return low, up


def _summed(shift: Floats, linear: Floats, corner: Floats, outward: float) -> Floats:
    """Return shift + sum(linear * corner) on the last axis, rounded outward unless exact."""
    total, size, lost = shift, np.abs(shift), np.zeros(shift.shape, np.bool_)
    for k in range(3):
        product = linear[:, :, k] * corner[:, :, k]
        size = size + np.abs(product)
        lost |= ~_is_exact(linear[:, :, k], corner[:, :, k], product)
        longer = total + product
        part = longer - total
        lost |= (total - (longer - part)) + (product - part) != 0.0
        total = longer
    return np.where(lost, total + outward * (size * _SLACK + _SMALLEST), total)


def _is_exact(a: Floats, b: Floats, product: Floats) -> Any:
    """Return where a * b is certainly exact (Dekker 1971)."""
    c, d = _SPLITTER * a, _SPLITTER * b
    a_high, b_high = c - (c - a), d - (d - b)
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return ((error == 0.0) & (np.abs(product) > _SMALLEST)) | (a == 0.0) | (b == 0.0)
