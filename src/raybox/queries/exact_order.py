"""The exact order of two hits of one ray: by time, then by index."""

from typing import Any, NamedTuple

from raybox.compiler.decorators import device
from raybox.primitives.ray import Ray
from raybox.primitives.table import tie
from raybox.queries.hit_sorting import ORDERS


class Exactly(NamedTuple):
    """Order one ray's hits by exact time, then by index."""

    rows: Any
    ray: Ray


@device
def is_before(rows: Any, ray: Ray, one: tuple[int, float], other: tuple[int, float]) -> bool:
    """Return whether the first of two hits (index, t) comes first: exactly, by index where they tie."""
    i, t_i = one
    j, t_j = other
    if t_i != t_j:
        return t_i < t_j
    order = tie(rows, ray, i, j)
    return order < 0 or (order == 0 and i < j)


@device
def _is_before_exactly(how: Exactly, one: tuple[int, float], other: tuple[int, float]) -> bool:
    return is_before(how.rows, how.ray, one, other)


ORDERS[Exactly] = _is_before_exactly
