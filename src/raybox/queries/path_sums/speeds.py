"""Directions' lengths, and directions of other sizes scaled, so that no length over- or underflows."""

from typing import Any, NamedTuple

import numpy as np

from raybox.compiler.entry_points import entry
from raybox.geometry import GridRows, RayRows
from raybox.primitives.ray import origin_row
from raybox.queries.path_sums.listed import ScaledRays, near_one
from raybox.validation import Floats, Ints, freeze

_LARGEST = 2.0**500  # of coordinates, for rays that stay as they are
_LOWEST, _HIGHEST = 2.0**-20, 2.0**20  # of the largest component of their directions


@entry
def _write_speeds(rays: Any, speeds: Any) -> int:
    """Write the lengths of directions, NaN for rays that must be scaled; return how many these are."""
    others = 0
    o, d = rays.origins, rays.directions
    for k in range(speeds.size):
        x, y, z = d[k, 0], d[k, 1], d[k, 2]
        i = origin_row(rays, k)
        way, place = max(abs(x), abs(y), abs(z)), max(abs(o[i, 0]), abs(o[i, 1]), abs(o[i, 2]))
        speeds[k] = np.sqrt(x * x + y * y + z * z)
        if not (_LOWEST < way < _HIGHEST and place < _LARGEST):
            speeds[k] = np.nan
            others += 1
    return others


class TimedRays(NamedTuple):
    """Rays whose times are accurate, the lengths of their directions, and the other rays."""

    rays: RayRows
    speeds: Floats
    lost: Ints
    """rays that scaling would change; their ranges in `rays` are empty"""


def with_speeds(rays: RayRows, grid: GridRows) -> TimedRays:
    """Return rays, some of their directions scaled by powers of two, and the lengths of these directions.

    A ray is scaled or not whatever the others are: so are the bits of its times.
    """
    lost = np.empty(0, np.int64)
    speeds = np.empty(len(rays.directions))
    edges = grid.x_edges, grid.y_edges, grid.z_edges
    if max(abs(one[k]) for one in edges for k in (0, -1)) < _LARGEST:
        count = _write_speeds(rays, speeds)
    else:
        speeds[:], count = np.nan, len(speeds)
    if count:
        others = np.flatnonzero(np.isnan(speeds))
        rays, unscaled = _scaled(rays, others)
        lost = others[unscaled]
        with np.errstate(over="ignore"):
            speeds[others] = np.sqrt(np.square(rays.directions[others]).sum(axis=1))
    freeze(speeds)
    return TimedRays(rays, speeds, lost)


def _scaled(rays: RayRows, numbers: Ints) -> ScaledRays:
    """Return rays of which some are scaled; the range of one that stays as it was is empty."""
    count = len(rays.directions)
    if len(numbers) == count:
        scaled, unscaled = near_one(rays)
        directions, t_min, t_max = scaled.directions, scaled.t_min, scaled.t_max.copy()
    else:
        bounds = [np.broadcast_to(t, count) for t in (rays.t_min, rays.t_max)]
        of_some = rays.directions[numbers], bounds[0][numbers], bounds[1][numbers]
        scaled, unscaled = near_one(RayRows(rays.origins[:0], *of_some))
        directions, t_min, t_max = rays.directions.copy(), bounds[0].copy(), bounds[1].copy()
        directions[numbers], t_min[numbers], t_max[numbers] = scaled.directions, scaled.t_min, scaled.t_max
    t_max[numbers[unscaled]] = -np.inf
    made = rays._replace(directions=directions, t_min=t_min, t_max=t_max)
    freeze(*made)
    return ScaledRays(made, unscaled)
