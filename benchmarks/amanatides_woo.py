"""Rays through a uniform grid by the plain loop of Amanatides and Woo (1987), in float64: a peer for grids.

Crossing times are added up, so planes that are crossed nearly at once may come in the wrong order. Directions
have no zeros; rays begin at t = 0.
"""

from typing import Any

import numba
import numpy as np

_loop = numba.njit(nogil=True, error_model="numpy")
_part = numba.njit(nogil=True, error_model="numpy", inline="always")


@_part
def _range(lower: Any, pitch: float, shape: Any, o: Any, d: Any) -> Any:
    """Return when a ray enters and leaves the grid."""
    begin, end = 0.0, np.inf
    for a in range(3):
        one, two = (lower[a] - o[a]) / d[a], (lower[a] + pitch * shape[a] - o[a]) / d[a]
        begin, end = max(begin, min(one, two)), min(end, max(one, two))
    return begin, end


@_part
def _axis(lower: float, pitch: float, cells: int, o: float, d: float, begin: float) -> Any:
    """Return place, step, time of the next plane and time between planes, on one axis."""
    place = min(max(int(np.floor((o + begin * d - lower) / pitch)), 0), cells - 1)
    step = 1 if d > 0.0 else -1
    return place, step, (lower + pitch * (place + (step + 1) // 2) - o) / d, pitch / abs(d)


@_loop
def integrate(lower: Any, pitch: float, values: Any, origins: Any, directions: Any, sums: Any) -> None:
    """Write the sum of value times length of each ray."""
    shape = values.shape
    for r in range(len(sums)):
        o, d, total = origins[r], directions[r], 0.0
        t, end = _range(lower, pitch, shape, o, d)
        i, step_x, x, delta_x = _axis(lower[0], pitch, shape[0], o[0], d[0], t)
        j, step_y, y, delta_y = _axis(lower[1], pitch, shape[1], o[1], d[1], t)
        k, step_z, z, delta_z = _axis(lower[2], pitch, shape[2], o[2], d[2], t)
        while t < end:
            until = min(x, y, z, end)
            total += values[i, j, k] * (until - t)
            t = until
            if x <= y and x <= z:
                x, i = x + delta_x, i + step_x
                if i < 0 or i >= shape[0]:
                    break
            elif y <= z:
                y, j = y + delta_y, j + step_y
                if j < 0 or j >= shape[1]:
                    break
            else:
                z, k = z + delta_z, k + step_z
                if k < 0 or k >= shape[2]:
                    break
        sums[r] = total * np.sqrt((d**2).sum())


@_loop
def deposit(lower: Any, pitch: float, rays: Any, weights: Any, per_hit: bool, sums: Any) -> None:
    """Add weight times length, or the weight, of each ray to the cells that it crosses."""
    shape, (origins, directions) = sums.shape, rays
    for r in range(len(origins)):
        o, d = origins[r], directions[r]
        t, end = _range(lower, pitch, shape, o, d)
        i, step_x, x, delta_x = _axis(lower[0], pitch, shape[0], o[0], d[0], t)
        j, step_y, y, delta_y = _axis(lower[1], pitch, shape[1], o[1], d[1], t)
        k, step_z, z, delta_z = _axis(lower[2], pitch, shape[2], o[2], d[2], t)
        weight = weights[r]
        factor = weight * np.sqrt((d**2).sum())
        while t < end:
            until = min(x, y, z, end)
            sums[i, j, k] += weight if per_hit else factor * (until - t)
            t = until
            if x <= y and x <= z:
                x, i = x + delta_x, i + step_x
                if i < 0 or i >= shape[0]:
                    break
            elif y <= z:
                y, j = y + delta_y, j + step_y
                if j < 0 or j >= shape[1]:
                    break
            else:
                z, k = z + delta_z, k + step_z
                if k < 0 or k >= shape[2]:
                    break


@_loop
def nearest(lower: Any, pitch: float, occupied: Any, rays: Any, cells: Any, times: Any) -> None:
    """Write the number of the first occupied cell of each ray, and its time; -1 and inf if there is none."""
    shape, (origins, directions) = occupied.shape, rays
    for r in range(len(origins)):
        o, d = origins[r], directions[r]
        t, end = _range(lower, pitch, shape, o, d)
        i, step_x, x, delta_x = _axis(lower[0], pitch, shape[0], o[0], d[0], t)
        j, step_y, y, delta_y = _axis(lower[1], pitch, shape[1], o[1], d[1], t)
        k, step_z, z, delta_z = _axis(lower[2], pitch, shape[2], o[2], d[2], t)
        cells[r], times[r] = -1, np.inf
        while t < end:
            if occupied[i, j, k]:
                cells[r], times[r] = (i * shape[1] + j) * shape[2] + k, t
                break
            if x <= y and x <= z:
                t, x, i = x, x + delta_x, i + step_x
                if i < 0 or i >= shape[0]:
                    break
            elif y <= z:
                t, y, j = y, y + delta_y, j + step_y
                if j < 0 or j >= shape[1]:
                    break
            else:
                t, z, k = z, z + delta_z, k + step_z
                if k < 0 or k >= shape[2]:
                    break
