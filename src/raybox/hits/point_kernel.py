"""Points of hits, in compiled code that reads each ray once."""

import numpy as np

from raybox.compiler.decorators import inlined
from raybox.compiler.entry_points import entry
from raybox.geometry import RayRows
from raybox.hits.path_length import MODERATE, NORMAL
from raybox.primitives.ray import origin_row
from raybox.validation import Floats, Ints

_LONG = MODERATE**8


@inlined
def _limit(size: float) -> float:
    """Return how long a direction may be for times of this size: beyond, rounded ones are too coarse."""
    if size >= NORMAL:
        return np.inf if size < np.inf else 0.0
    # a time of 0, mostly that of a start inside, is exact but for directions near the largest float
    return _LONG if size == 0.0 else MODERATE


@inlined
def coordinate(origin: float, step: float, t: float) -> float:
    """Return a coordinate of a point; a direction of zero stays, at any t."""
    return origin + (0.0 if step == 0.0 else t * step)


@entry
def write_points(rays: RayRows, ray_of: Ints, hit_id: Ints, t: Floats, points: Floats, inexact: Ints) -> int:
    """Write the point of each hit, (hits, D), NaN for a miss; return how many need exact times.

    inexact: their numbers, with room for all hits.
    """
    found, in_space = 0, points.shape[1] == 3
    for k in range(hit_id.size):
        if hit_id[k] < 0:
            points[k, 0] = points[k, 1] = np.nan
            if in_space:
                points[k, 2] = np.nan
            continue
        r, time = ray_of[k], t[k]
        o = origin_row(rays, r)
        x, y, z = rays.directions[r, 0], rays.directions[r, 1], rays.directions[r, 2]
        u, v = coordinate(rays.origins[o, 0], x, time), coordinate(rays.origins[o, 1], y, time)
        w = coordinate(rays.origins[o, 2], z, time)
        points[k, 0], points[k, 1] = u, v
        if in_space:
            points[k, 2] = w
        if max(abs(x), abs(y), abs(z)) > _limit(abs(time)) or not max(abs(u), abs(v), abs(w)) < np.inf:
            inexact[found] = k
            found += 1
    return found
