"""One ray, as jitted code passes it about: a tuple of numbers, in registers."""

from typing import Any, NamedTuple

import numpy as np

from raybox.kernels.jit import device


class Ray(NamedTuple):
    """The points o + t d with t_min <= t <= t_max; origin, direction: tuples of three."""

    origin: Any
    direction: Any
    t_min: float
    t_max: float


@device
def get_ray(rays: Any, i: int) -> Ray:
    """Take ray i out of a `RayRows`; a range given once serves every ray."""
    o = rays.origins
    d = rays.directions
    return Ray(
        (o[i, 0], o[i, 1], o[i, 2]),
        (d[i, 0], d[i, 1], d[i, 2]),
        rays.t_min[i if rays.t_min.size > 1 else 0] + 0.0,  # -0.0 becomes 0.0
        rays.t_max[i if rays.t_max.size > 1 else 0],
    )


@device
def is_empty(ray: Ray) -> bool:
    """Tell whether no real t is in the range; such a ray's other numbers may be NaN."""
    return not (ray.t_min <= ray.t_max and ray.t_min < np.inf and ray.t_max > -np.inf)
