"""Rows of boxes: planes rounded outward to float32."""

from fractions import Fraction

import numpy as np
import pytest

from loops import loop
from raybox.bvh.node import FAR
from raybox.bvh.sah_rows import outward, store

# Moved by their own magnitudes, these neighbours would swap: see `outward`.
SWAPPED = [float.fromhex("0x1.21e1e1c3c3c3cp-101"), float.fromhex("0x1.21e1e1c3c3c3dp-101")]


@loop
def write_rows(lower, upper, center, scale, rows):
    for k in range(lower.shape[0]):
        store(rows, k, outward(lower, upper, k, center, scale))


def rounded(planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return planes rounded down, as lower bounds, and up, as upper bounds."""
    boxes, rows = np.repeat(planes[:, None], 3, axis=1), np.empty((len(planes), 8), np.float32)
    write_rows(boxes, boxes, np.zeros(3), 1.0, rows)
    assert all((rows[:, [k, 4 + k]] == rows[:, [0, 4]]).all() for k in (1, 2))
    return -rows[:, 0], rows[:, 4]


@pytest.mark.parametrize("size", [2.0**-1050, 2.0**-150, 2.0**-101, 2.0**-76, 1.0, 1e6, 2.0**60])
def test_planes_in_order_stay_in_order(size):
    rng = np.random.default_rng(340)
    planes = size * rng.uniform(0.25, 4.0, 4000) * rng.choice([-1.0, 1.0], 4000)
    for _ in range(3):  # neighbours, and planes a few ulps apart
        planes = np.concatenate([planes, np.nextafter(planes[:4000], rng.choice([-np.inf, np.inf], 4000))])
    others = [*SWAPPED, *np.negative(SWAPPED), -np.inf, -0.0, 5e-324, np.inf]
    planes = np.unique(np.concatenate([planes, others]))
    down, up = rounded(planes)
    for moved, beyond in ((down, np.greater), (up, np.less)):
        assert (moved[1:] >= moved[:-1]).all()
        assert not beyond(moved.astype(float), planes).any()
    within = np.abs(planes) <= FAR
    for plane, low, high in list(zip(planes[within], down[within], up[within], strict=True))[::50]:
        most = abs(Fraction(plane)) / 2**21 + Fraction(2) ** -98
        assert max(Fraction(plane) - Fraction(float(low)), Fraction(float(high)) - Fraction(plane)) <= most
