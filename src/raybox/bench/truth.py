"""The slow, independent answer for one ray: every box that it could meet, decided in rational arithmetic."""

from functools import cmp_to_key
from typing import NamedTuple

import numpy as np

from raybox.bench.data import BoxSet
from raybox.exact import definition
from raybox.validation import Floats, Ints

_SLACK = 1e-9  # far more than float64 loses in a subtraction and a division


class Contact(NamedTuple):
    """A box that is met, and where; ``surface`` is the first t of the ray on the box's surface."""

    box: int
    t: float
    surface: float
    crossings: int


def contacts(boxes: BoxSet, origin: Floats, direction: Floats) -> list[Contact]:
    """Return what a ray (t from 0) meets, by (t, index), exactly."""
    ray = definition.Ray1(tuple(origin.tolist()), tuple(direction.tolist()), 0.0, float("inf"))
    found = []
    for index in _candidates(boxes, origin, direction).tolist():
        met = definition.box(ray, *_corners(boxes, index))
        if met is not None:
            outside = met.t_enter >= 0.0
            surface = met.t_enter if outside else met.t_exit
            found.append(Contact(index, met.t, surface, 1 + outside))

    def order(a: Contact, b: Contact) -> int:
        if a.t == b.t and min(a.t, b.t) > 0.0:
            exactly = definition.box_order(ray, _corners(boxes, a.box), _corners(boxes, b.box))
            return exactly or a.box - b.box
        return (a.t > b.t) - (a.t < b.t) or a.box - b.box

    return sorted(found, key=cmp_to_key(order))


def _corners(boxes: BoxSet, index: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(boxes.lower[index].tolist()), tuple(boxes.upper[index].tolist())


def _candidates(boxes: BoxSet, origin: Floats, direction: Floats) -> Ints:
    """Return boxes that may be met: slabs in float64 with slack, and no verdict where a division has none."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        one, two = (boxes.lower - origin) / direction, (boxes.upper - origin) / direction
        near = np.where(np.isnan(one) | np.isnan(two), -np.inf, np.minimum(one, two)).max(axis=1)
        far = np.where(np.isnan(one) | np.isnan(two), np.inf, np.maximum(one, two)).min(axis=1)
        reach = _SLACK * (1.0 + np.where(np.isfinite(near), abs(near), 0.0))
        return np.flatnonzero(~((near > far + reach) | (far < -_SLACK)))
