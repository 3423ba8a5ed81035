"""Paths of rays through a uniform grid by the plain loop of Amanatides and Woo (1987), in float64.

The peer of `Scene.integrate`, `deposit`, `segments` and `nearest`: crossing times are added up, so planes
that are crossed nearly at once may come in the wrong order. Directions have no zeros, and t >= 0.
"""

from typing import Any

import numba
import numpy as np

_compiled = numba.njit(nogil=True, error_model="numpy")


@numba.njit(error_model="numpy", inline="always")
def _start(lower: Any, pitch: float, shape: Any, origin: Any, direction: Any, state: Any) -> Any:
    """Return the range of t in the grid; fill `state`: cells, steps, times of next planes, of a cell."""
    place, step, t_next, t_delta = state
    begin, end = 0.0, np.inf
    for a in range(3):
        one = (lower[a] - origin[a]) / direction[a]
        two = (lower[a] + pitch * shape[a] - origin[a]) / direction[a]
        begin, end = max(begin, min(one, two)), min(end, max(one, two))
    for a in range(3):
        at = int(np.floor((origin[a] + begin * direction[a] - lower[a]) / pitch))
        place[a] = min(max(at, 0), shape[a] - 1)
        step[a] = 1 if direction[a] > 0.0 else -1
        plane = lower[a] + pitch * (place[a] + (step[a] + 1) // 2)
        t_next[a], t_delta[a] = (plane - origin[a]) / direction[a], pitch / abs(direction[a])
    return begin, end


@numba.njit(error_model="numpy", inline="always")
def _next(at: Any, step: Any, t_delta: Any) -> Any:
    """Return the next cell i, j, k and the times at which the ray leaves it by each axis."""
    i, j, k, x, y, z = at
    if x <= y and x <= z:
        return i + step[0], j, k, x + t_delta[0], y, z
    if y <= z:
        return i, j + step[1], k, x, y + t_delta[1], z
    return i, j, k + step[2], x, y, z + t_delta[2]


@numba.njit(error_model="numpy", inline="always")
def _inside(at: Any, shape: Any) -> bool:
    return 0 <= at[0] < shape[0] and 0 <= at[1] < shape[1] and 0 <= at[2] < shape[2]


@numba.njit
def _state() -> Any:
    return np.empty(3, np.int64), np.empty(3, np.int64), np.empty(3), np.empty(3)


@_compiled
def integrate(lower: Any, pitch: float, values: Any, origins: Any, directions: Any, sums: Any) -> None:
    """Write the sum of value times length of each ray."""
    state = place, step, t_next, t_delta = _state()
    for r in range(len(sums)):
        t, end = _start(lower, pitch, values.shape, origins[r], directions[r], state)
        at, total = (place[0], place[1], place[2], t_next[0], t_next[1], t_next[2]), 0.0
        while t < end and _inside(at, values.shape):
            until = min(at[3], at[4], at[5], end)
            total += values[at[0], at[1], at[2]] * (until - t)
            t, at = until, _next(at, step, t_delta)
        sums[r] = total * np.sqrt((directions[r] ** 2).sum())


@_compiled
def deposit(lower: Any, pitch: float, weights: Any, origins: Any, directions: Any, sums: Any) -> None:
    """Add weight times length of each ray to the cells that it passes."""
    state = place, step, t_next, t_delta = _state()
    for r in range(len(weights)):
        t, end = _start(lower, pitch, sums.shape, origins[r], directions[r], state)
        at = place[0], place[1], place[2], t_next[0], t_next[1], t_next[2]
        weight = weights[r] * np.sqrt((directions[r] ** 2).sum())
        while t < end and _inside(at, sums.shape):
            until = min(at[3], at[4], at[5], end)
            sums[at[0], at[1], at[2]] += weight * (until - t)
            t, at = until, _next(at, step, t_delta)


@_compiled
def segments(lower: Any, pitch: float, shape: Any, origins: Any, directions: Any, found: Any) -> None:
    """Write the cells of each ray, numbered in C order, and when it enters each; offsets of the rays."""
    offsets, index, times = found
    state, count = _state(), 0
    place, step, t_next, t_delta = state
    for r in range(len(origins)):
        t, end = _start(lower, pitch, shape, origins[r], directions[r], state)
        at = place[0], place[1], place[2], t_next[0], t_next[1], t_next[2]
        while t < end and _inside(at, shape):
            index[count], times[count] = (at[0] * shape[1] + at[1]) * shape[2] + at[2], t
            t, at, count = min(at[3], at[4], at[5], end), _next(at, step, t_delta), count + 1
        offsets[r + 1] = count


@_compiled
def nearest(lower: Any, pitch: float, occupied: Any, origins: Any, directions: Any, hits: Any) -> None:
    """Write the first occupied cell of each ray, numbered in C order, and its t; -1 and inf for a miss."""
    index, times = hits
    state = place, step, t_next, t_delta = _state()
    _, columns, rows = occupied.shape
    for r in range(len(index)):
        t, end = _start(lower, pitch, occupied.shape, origins[r], directions[r], state)
        at = place[0], place[1], place[2], t_next[0], t_next[1], t_next[2]
        index[r], times[r] = -1, np.inf
        while t < end and _inside(at, occupied.shape):
            if occupied[at[0], at[1], at[2]]:
                index[r], times[r] = (at[0] * columns + at[1]) * rows + at[2], t
                break
            t, at = min(at[3], at[4], at[5], end), _next(at, step, t_delta)
