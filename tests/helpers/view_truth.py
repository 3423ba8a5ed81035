"""Boxes hit by a ray, by definition and without raybox: NumPy rejects far boxes, Fractions decide."""

from fractions import Fraction

import numpy as np


def boxes_hit(lower, upper, origin, direction) -> list[tuple[Fraction, int]]:
    """Return (t, row) of every box hit at t >= 0, by t, then by row."""
    near = [
        (*time, row)
        for row in _near_rows(lower, upper, origin, direction)
        if (time := _time(lower[row], upper[row], origin, direction))
    ]
    return sorted(near)


def _time(low, high, origin, direction) -> tuple[Fraction] | None:
    enter, leave = Fraction(0), None
    for o, d, a, b in zip(
        *(map(Fraction, map(float, v)) for v in (origin, direction, low, high)), strict=True
    ):
        if d == 0:
            if not a <= o <= b:
                return None
            continue
        first, last = sorted(((a - o) / d, (b - o) / d))
        enter, leave = max(enter, first), last if leave is None else min(leave, last)
    return (enter,) if leave is None or enter <= leave else None


def _near_rows(lower, upper, origin, direction):
    """Return rows near the line: boxes are padded by far more than any rounding."""
    pad = 1e-6 * (1 + np.abs(np.asarray(origin)).max() + np.abs(upper).max())
    with np.errstate(all="ignore"):
        times = np.stack([(end - origin) / direction for end in (lower - pad, upper + pad)])
    times = np.where(np.isnan(times), np.array([-np.inf, np.inf])[:, None, None], times)
    return np.flatnonzero(times.min(axis=0).max(axis=1) <= times.max(axis=0).min(axis=1)).tolist()


def pixel_ray(eye, target, fov, size, pixel) -> np.ndarray:
    """Return the unit direction through a pixel of a pinhole camera with z up."""
    ahead = np.subtract(target, eye) / np.linalg.norm(np.subtract(target, eye))
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    half = np.tan(fov / 2)
    x = (2 * pixel[0] / size[0] - 1) * half * size[0] / size[1]
    y = (1 - 2 * pixel[1] / size[1]) * half
    direction = ahead + x * right + y * np.cross(right, ahead)
    return direction / np.linalg.norm(direction)
