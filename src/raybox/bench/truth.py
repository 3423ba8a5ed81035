"""The exact hits of one ray: every box that it may hit, tested in rational arithmetic."""

from functools import cmp_to_key
from typing import NamedTuple

import numpy as np

from raybox.bench.data import BoxSet
from raybox.exact import definition
from raybox.validation import Floats, Ints

_SLACK = 1e-9  # far more than float64 loses in a subtraction and a division


class ExactHit(NamedTuple):
    """A box hit, and t; ``surface`` is the first t on the box's surface."""

    box: int
    t: float
    surface: float
    crossings: int


def exact_hits(boxes: BoxSet, origin: Floats, direction: Floats) -> list[ExactHit]:
    """Return the exact hits of a ray with t >= 0, by (t, index)."""
    ray = definition.Ray1(tuple(origin.tolist()), tuple(direction.tolist()), 0.0, float("inf"))
    found = []
    for index in _candidates(boxes, origin, direction).tolist():
        crossing = definition.box(ray, *_corners(boxes, index))
        if crossing is not None:
            outside = crossing.t_enter >= 0.0
            surface = crossing.t_enter if outside else crossing.t_exit
            found.append(ExactHit(index, crossing.t, surface, 1 + outside))

    def order(a: ExactHit, b: ExactHit) -> int:
        if a.t == b.t and min(a.t, b.t) > 0.0:
            exactly = definition.box_order(ray, _corners(boxes, a.box), _corners(boxes, b.box))
            return exactly or a.box - b.box
        return (a.t > b.t) - (a.t < b.t) or a.box - b.box

    return sorted(found, key=cmp_to_key(order))


def _corners(boxes: BoxSet, index: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(boxes.lower[index].tolist()), tuple(boxes.upper[index].tolist())


def _candidates(boxes: BoxSet, origin: Floats, direction: Floats) -> Ints:
    """Return boxes that may be hit: float64 slabs with slack; axes without a quotient pass."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        one, two = (boxes.lower - origin) / direction, (boxes.upper - origin) / direction
        near = np.where(np.isnan(one) | np.isnan(two), -np.inf, np.minimum(one, two)).max(axis=1)
        far = np.where(np.isnan(one) | np.isnan(two), np.inf, np.maximum(one, two)).min(axis=1)
        reach = _SLACK * (1.0 + np.where(np.isfinite(near), abs(near), 0.0))
        return np.flatnonzero(~((near > far + reach) | (far < -_SLACK)))
