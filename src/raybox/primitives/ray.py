"""One ray, or one moving box, in compiled code: a tuple of numbers, in registers.

A box from `low` to `high` that moves hits a fixed one as a ray would with origin `high` for the fixed one's
lower planes, and `low` for its upper ones. So kernels of boxes use the `extent` of what moves: for a ray, its
origin twice.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, overload

import numpy as np

from raybox.compiler.decorators import declare, device, inlined
from raybox.exact.double_double import Vector3
from raybox.geometry import MovingBoxRows, RayRows
from raybox.validation import Ints32

DIRECTION, T_MIN, T_MAX = 3, 6, 7  # columns of rays in rows of eight numbers, the origin first


class Ray(NamedTuple):
    """The points o + t d with t_min <= t <= t_max; origin, direction: tuples of three."""

    origin: Vector3
    direction: Vector3
    t_min: float
    t_max: float


class Mover(NamedTuple):
    """The boxes from low + t d to high + t d with t_min <= t <= t_max; low, high: tuples of three."""

    low: Vector3
    high: Vector3
    direction: Vector3
    t_min: float
    t_max: float


@inlined
def origin_row(rays: RayRows, i: int) -> int:
    """Return the row of a ray's origin."""
    return i if rays.origins.shape[0] != 1 else 0


@device
def _get_ray(rays: RayRows, i: int) -> Ray:
    o = rays.origins
    d = rays.directions
    k = origin_row(rays, i)
    return Ray(
        (o[k, 0], o[k, 1], o[k, 2]),
        (d[i, 0], d[i, 1], d[i, 2]),
        rays.t_min[i if rays.t_min.size > 1 else 0] + 0.0,  # -0.0 becomes 0.0
        rays.t_max[i if rays.t_max.size > 1 else 0],
    )


@device
def _get_mover(movers: MovingBoxRows, i: int) -> Mover:
    low, high, d = movers.lower, movers.upper, movers.directions
    return Mover(
        (low[i, 0], low[i, 1], low[i, 2]),
        (high[i, 0], high[i, 1], high[i, 2]),
        (d[i, 0], d[i, 1], d[i, 2]),
        0.0,
        1.0,
    )


class GetRay(Protocol):
    """Return ray (or moving box) i of its rows; an array of one row is that of every ray."""

    @overload
    def __call__(self, rays: RayRows, i: int, /) -> Ray: ...

    @overload
    def __call__(self, rays: MovingBoxRows, i: int, /) -> Mover: ...


get_ray: GetRay = declare("get_ray", {RayRows: _get_ray, MovingBoxRows: _get_mover}.get)


@inlined
def start_row(starts: Ints32, i: int) -> int:
    """Return the row of `Tree.starts` of ray or query i, given those of all: one, one each, or none, 0."""
    return int(starts[i if starts.size > 1 else 0]) if starts.size > 0 else 0


@inlined
def _start_of_ray(rays: RayRows, i: int) -> int:
    return start_row(rays.starts, i)


@inlined
def _excluded_by_ray(rays: RayRows, i: int) -> int:
    excluded = rays.excluded
    return excluded[i if excluded.size > 1 else 0] if excluded.size > 0 else -1


@inlined
def _start_of_mover(_movers: MovingBoxRows, _i: int) -> int:
    return 0


@inlined
def _excluded_by_mover(_movers: MovingBoxRows, _i: int) -> int:
    return -1


start_of: Callable[[RayRows | MovingBoxRows, int], int]
start_of = declare("start_of", {RayRows: _start_of_ray, MovingBoxRows: _start_of_mover}.get, inline=True)
"""Return the row of `Tree.starts` at which ray i starts, beside row 0."""

excluded_by: Callable[[RayRows | MovingBoxRows, int], int]
excluded_by = declare(
    "excluded_by", {RayRows: _excluded_by_ray, MovingBoxRows: _excluded_by_mover}.get, inline=True
)
"""Return the number of what ray i does not hit, -1 for none: see `RayRows.excluded`."""


@device
def _of_ray(ray: Ray) -> tuple[Vector3, Vector3]:
    return ray.origin, ray.origin


@device
def _of_mover(mover: Mover) -> tuple[Vector3, Vector3]:
    return mover.low, mover.high


extent: Callable[[Ray | Mover], tuple[Vector3, Vector3]]
extent = declare("extent", {Ray: _of_ray, Mover: _of_mover}.get)
"""Return the lower and the upper corner of a ray (its origin twice) or moving box."""


@device
def is_empty(ray: Ray | Mover) -> bool:
    """Return whether no real t is in the range; such a ray's other numbers may be NaN."""
    return not (ray.t_min <= ray.t_max and ray.t_min < np.inf and ray.t_max > -np.inf)
