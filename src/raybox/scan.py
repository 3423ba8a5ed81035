"""One ray against many boxes without a tree: what a single pick needs.

A tree pays from some hundred rays on; one ray is answered sooner by a look at every box: NumPy
drops the boxes that are surely missed, `raybox.rational` decides the rest. Nothing is compiled.
"""

from functools import cmp_to_key

import numpy as np

from raybox import few, rational
from raybox.geometry import Boxes, Rays
from raybox.hits import AllHits, Source
from raybox.rational import Ray1
from raybox.validate import Bools, Floats, Ints

_SLACK = 1e-12  # of a time: thousands of times what rounding can move it
_HUGE = 1e300  # times from here on may have overflowed: no bound holds for them


def scan(ray: Rays, boxes: Boxes) -> AllHits:
    """Return every box that one ray meets, sorted by (t, index), exactly as `Scene.all` does.

    Examples
    --------
    >>> import raybox as rb
    >>> scan(rb.Rays([0, 0], [1, 0]), rb.Boxes([[5, -1], [2, -1]], [[6, 1], [4, 1]])).index
    array([1, 0])
    """
    one = few.ray_at(ray.rows(), 0)
    met: list[tuple[int, float]] = []
    if one.t_min <= one.t_max:
        rows = boxes.rows()
        for i in _candidates(one, rows.lower, rows.upper).tolist():
            crossing = rational.box(one, rows.lower[i].tolist(), rows.upper[i].tolist())
            if crossing is not None:
                met.append((i, crossing.t))
    index, t = _sorted(one, boxes, met)
    return AllHits(np.array([0, index.size]), index, t, Source(ray.reshape(1), boxes))


def _candidates(ray: Ray1, lower: Floats, upper: Floats) -> Ints:
    """Return the boxes that float64 is not sure the ray misses."""
    start = np.full(len(lower), ray.t_min)
    stop = np.full(len(lower), ray.t_max)
    unsure: Bools = np.zeros(len(lower), np.bool_)
    inside: Bools = np.ones(len(lower), np.bool_)
    for k, (o, d) in enumerate(zip(ray.origin, ray.direction, strict=True)):
        low, up = lower[:, k], upper[:, k]
        if d == 0.0:
            inside &= (low <= o) & (o <= up)
            continue
        near, far = (low, up) if d > 0.0 else (up, low)
        with np.errstate(over="ignore", invalid="ignore"):
            enter, leave = (near - o) / d, (far - o) / d
        unsure |= ~((np.abs(enter) < _HUGE) & (np.abs(leave) < _HUGE))
        start, stop = np.maximum(start, enter), np.minimum(stop, leave)
    with np.errstate(over="ignore", invalid="ignore"):
        missed = start - np.abs(start) * _SLACK > stop + np.abs(stop) * _SLACK + 1 / _HUGE
    return np.flatnonzero(inside & (unsure | ~missed))


def _sorted(ray: Ray1, boxes: Boxes, met: list[tuple[int, float]]) -> tuple[Ints, Floats]:
    """Sort contacts by (t, index); equal floats are told apart exactly."""

    def box(i: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
        rows = boxes.rows()
        return tuple(rows.lower[i].tolist()), tuple(rows.upper[i].tolist())

    def order(one: tuple[int, float], other: tuple[int, float]) -> int:
        if one[1] != other[1]:
            return -1 if one[1] < other[1] else 1
        return rational.box_order(ray, box(one[0]), box(other[0])) or one[0] - other[0]

    met = sorted(met, key=cmp_to_key(order))
    return np.array([i for i, _ in met], np.int64), np.array([t for _, t in met], np.float64)
