"""Sums along rays through a uniform grid by the plain loop of Amanatides and Woo (1987), in float64.

The peer of `Scene.integrate`: crossing times are added up, so planes that are crossed nearly at once may come
in the wrong order.
"""

from typing import Any

import numba
import numpy as np


@numba.njit(nogil=True, error_model="numpy")
def integrate(lower: Any, pitch: float, values: Any, origins: Any, directions: Any, sums: Any) -> None:
    """Write the sum of value times length of each ray, t >= 0, whose directions have no zeros."""
    shape, place, step = values.shape, np.empty(3, np.int64), np.empty(3, np.int64)
    t_next, t_delta = np.empty(3), np.empty(3)
    for r in range(len(sums)):
        begin, end, total = 0.0, np.inf, 0.0
        for a in range(3):
            one = (lower[a] - origins[r, a]) / directions[r, a]
            two = (lower[a] + pitch * shape[a] - origins[r, a]) / directions[r, a]
            begin, end = max(begin, min(one, two)), min(end, max(one, two))
        for a in range(3):
            at = int(np.floor((origins[r, a] + begin * directions[r, a] - lower[a]) / pitch))
            place[a] = min(max(at, 0), shape[a] - 1)
            step[a] = 1 if directions[r, a] > 0.0 else -1
            plane = lower[a] + pitch * (place[a] + (step[a] + 1) // 2)
            t_next[a], t_delta[a] = (plane - origins[r, a]) / directions[r, a], pitch / abs(directions[r, a])
        i, j, k = place
        x, y, z = t_next
        t = begin
        while t < end:
            until = min(x, y, z, end)
            total += values[i, j, k] * (until - t)
            t = until
            if x <= y and x <= z:
                x, i = x + t_delta[0], i + step[0]
                if i < 0 or i >= shape[0]:
                    break
            elif y <= z:
                y, j = y + t_delta[1], j + step[1]
                if j < 0 or j >= shape[1]:
                    break
            else:
                z, k = z + t_delta[2], k + step[2]
                if k < 0 or k >= shape[2]:
                    break
        sums[r] = total * np.sqrt((directions[r] ** 2).sum())
