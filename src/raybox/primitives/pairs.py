"""Loops over pairs of a ray and a primitive: no tree.

Pair k of a call is ray ``(k // inner) * row + (k % inner) * column`` with primitive
``(k % inner) * step``: every broadcast of rays against rows, without a list of pairs.
"""

from typing import NamedTuple

import numpy as np

from raybox.compiler.decorators import device, inlined
from raybox.compiler.entry_points import entry
from raybox.geometry import MovingBoxRows, PrimitiveRows, RayRows
from raybox.primitives.ray import get_ray, is_empty
from raybox.primitives.table import intersect, normal, prefetch_rows, span, tie, weights
from raybox.validation import Floats, Ints

_AHEAD = 8  # hits


class Pairing(NamedTuple):
    """The ray and the primitive of pair k; see the module's docstring."""

    inner: int
    row: int
    column: int
    step: int


@device
def ray_of(pairing: Pairing, k: int) -> int:
    """Return the number of pair k's ray."""
    return (k // pairing.inner) * pairing.row + (k % pairing.inner) * pairing.column


@inlined
def decide_pair(
    rays: RayRows | MovingBoxRows, rows: PrimitiveRows, pairing: Pairing, k: int, index: Ints, t: Floats
) -> None:
    """Write index (-1: miss) and first contact of pair k."""
    ray = get_ray(rays, ray_of(pairing, k))
    i = (k % pairing.inner) * pairing.step
    index[k] = -1
    t[k] = np.inf
    if not is_empty(ray):
        hit, time = intersect(rows, ray, i)
        if hit:
            index[k] = i
            t[k] = time


@entry
def intersect_pairs(
    rays: RayRows | MovingBoxRows,
    rows: PrimitiveRows,
    pairing: Pairing,
    span_of: tuple[int, int],
    index: Ints,
    t: Floats,
) -> None:
    """Write index (-1: miss) and first contact of the pairs span_of[0] <= k < span_of[1]."""
    for k in range(span_of[0], span_of[1]):
        decide_pair(rays, rows, pairing, k, index, t)


@entry
def spans_of(
    rays: RayRows | MovingBoxRows,
    rows: PrimitiveRows,
    ray_of: Ints,
    index: Ints,
    t_enter: Floats,
    t_exit: Floats,
) -> None:
    """Write where each line enters and leaves the primitive that it hits; NaN for a miss."""
    for k in range(index.size):
        if index[k] < 0:
            t_enter[k] = np.nan
            t_exit[k] = np.nan
        else:
            t_enter[k], t_exit[k] = span(rows, get_ray(rays, ray_of[k]), index[k])


@entry
def normals_of(
    rays: RayRows | MovingBoxRows, rows: PrimitiveRows, ray_of: Ints, index: Ints, normals: Floats
) -> None:
    """Write the unit normal at each first contact; NaN for a miss."""
    for k in range(index.size):
        later = index[min(k + _AHEAD, index.size - 1)]
        if later >= 0:
            prefetch_rows(rows, later)
        if index[k] < 0:
            normals[k, :] = np.nan
        else:
            normals[k, 0], normals[k, 1], normals[k, 2] = normal(rows, get_ray(rays, ray_of[k]), index[k])


@entry
def weights_of(
    rays: RayRows | MovingBoxRows, rows: PrimitiveRows, ray_of: Ints, index: Ints, uv: Floats
) -> None:
    """Write the barycentric weights at each first contact; NaN for a miss."""
    for k in range(index.size):
        if index[k] < 0:
            uv[k, :] = np.nan
        else:
            uv[k, 0], uv[k, 1] = weights(rows, get_ray(rays, ray_of[k]), index[k])


@entry
def write_orders(
    rays: RayRows, rows: PrimitiveRows, ray_of: Ints, first: Ints, second: Ints, orders: Ints
) -> None:
    """Write the order of the exact times, -1, 0 or 1, at which a ray hits two primitives; it hits both."""
    for k in range(ray_of.size):
        orders[k] = tie(rows, get_ray(rays, ray_of[k]), first[k], second[k])
