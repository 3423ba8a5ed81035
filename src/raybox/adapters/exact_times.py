"""Exact times and weights of hits in the scene of a mesh, where numbers rounded to float64 do not suffice.

Numbers are rounded once, which keeps their order: two that differ are in exact order, and two that are equal
may still differ exactly.
"""

from collections.abc import Callable

import numpy as np

from raybox.exact import definition
from raybox.geometry import Rays, TriangleRows
from raybox.geometry.mesh import restored
from raybox.geometry.ray_input import INF
from raybox.hits import AllHits
from raybox.primitives import exact_table
from raybox.primitives.pairs import write_orders
from raybox.scene.pairwise import intersect
from raybox.scene.scene import Scene, state_of
from raybox.validation import Bools, Floats, Floats32, Ints

_BEYOND = 2.0**128  # the power of two above float32's largest number, which rounds to infinity


def repeats(hits: AllHits, rays: Rays, scene: Scene, where: Bools | None = None) -> Bools:
    """Return which hits are at the exact time of the hit before, on the same ray.

    where: the hits that are compared; the others are returned as False. None: all.
    """
    repeated = np.zeros(hits.t.size, np.bool_)
    repeated[1:] = (hits.ray[1:] == hits.ray[:-1]) & (hits.t[1:] == hits.t[:-1])
    if where is not None:
        repeated &= where
    (second,) = np.nonzero(repeated)
    if second.size:
        rows, orders = state_of(scene).part.rows, np.empty(second.size, np.int64)
        write_orders(rays._rows(), rows, hits.ray[second], hits.index[second - 1], hits.index[second], orders)
        repeated[second] = orders == 0
    return repeated


def time_sides(rays: Rays, scene: Scene, index: Ints, t: Floats) -> Ints:
    """Return the order of exact times of hits and numbers t: -1, 0 or 1.

    Ray k of `rays`, whose range is not read, hits triangle index[k].
    """
    found = np.zeros(len(index), np.int64)
    (other,) = np.nonzero(~_are_hit(rays, scene, index, (t, t)))
    late = _are_hit(rays[other], scene, index[other], (t[other], INF))
    found[other] = np.where(late, 1, -1)
    return found


def _are_hit(rays: Rays, scene: Scene, index: Ints, span: tuple[Floats, Floats]) -> Bools:
    """Return whether ray k hits triangle index[k] within a span of times."""
    triangles = restored(scene.geometry.vertices, scene.geometry.faces[index])
    return intersect(Rays(rays.origins, rays.directions, t_min=span[0], t_max=span[1]), triangles).hit


def weight_sides(rays: Rays, scene: Scene, index: Ints, which: Ints, weight: Floats) -> Ints:
    """Return the order of exact barycentric weights of hits and numbers: -1, 0 or 1.

    Ray k hits triangle index[k]; which[k]: 0 for the weight of its second corner, 1 for the third's.
    """
    triangles = state_of(scene).part.rows
    assert isinstance(triangles, TriangleRows)
    rows, corners = rays._rows(), triangles.corners[index].tolist()
    found = np.zeros(len(index), np.int64)
    for k, (number, value) in enumerate(zip(which.tolist(), weight.tolist(), strict=True)):
        a, b, c = corners[k]
        exact = definition.triangle_ratios(exact_table.ray_at(rows, k), a, b, c, False)
        assert exact is not None  # as each ray hits its triangle
        order = definition.order(exact[1 + number], value.as_integer_ratio())
        found[k] = (order > 0) - (order < 0)
    return found


def to_float32(values: Floats, sides: Callable[[Ints, Floats], Ints]) -> Floats32:
    """Return exact numbers rounded once to float32, given these rounded once to float64.

    sides: (flat positions, the values there) -> the order of the exact numbers and these, -1, 0 or 1.

    Rounding twice differs from rounding once only where the first ends halfway between two float32. There,
    one step of float64 towards the exact number chooses the float32 on its side.
    """
    with np.errstate(over="ignore", under="ignore"):
        low, high = (np.nextafter(values, end).astype(np.float32) for end in (-np.inf, np.inf))
        limits = [np.clip(end.astype(np.float64), -_BEYOND, _BEYOND) for end in (low, high)]
        (halfway,) = np.nonzero(((low != high) & (0.5 * limits[0] + 0.5 * limits[1] == values)).reshape(-1))
        if halfway.size:
            values = values.copy()
            middle = values.reshape(-1)[halfway]
            side = sides(halfway, middle)
            towards = np.where(side == 0, middle, np.copysign(np.inf, side))
            values.reshape(-1)[halfway] = np.nextafter(middle, towards)
        return values.astype(np.float32)
