"""Triangles, and packets of rays at them: through edges and corners, near them, along them, far away."""

from typing import NamedTuple

import numpy as np

from aim import INF

LANES = 16
WEIGHTS = np.array([(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, 3), (3, 0, 1), (1, 1, 2), (2, 1, 1),
                    (1, 1, 1), (3, -1, 2)])  # fmt: skip


class Bundle(NamedTuple):
    """Rays, sixteen after sixteen."""

    origins: np.ndarray
    directions: np.ndarray
    t_min: np.ndarray
    t_max: np.ndarray


def soup(rng, kind: int, number: int) -> np.ndarray:
    """Return corners (number, 3, 3): any, of shared edges, slivers, flat, in one plane, on a map, tiny."""
    corners = rng.uniform(-1.0, 1.0, (number, 3, 3))
    if kind == 1:  # a grid of points, which many share
        corners = rng.integers(-2, 3, (number, 3, 3)) * 0.5 + rng.choice([0.0, 0.1])
        corners[corners == 0.0] *= rng.choice([1.0, -1.0], np.count_nonzero(corners == 0.0))
    if kind == 2:  # strips: each shares an edge with the one before
        points = np.cumsum(rng.uniform(-0.5, 0.5, (number + 2, 3)), axis=0)
        corners = np.stack([points[k : k + number] for k in range(3)], axis=1)
    if kind == 3:  # slivers, and some without area
        along = rng.uniform(-1.0, 2.0, (number, 1))
        corners[:, 2] = corners[:, 0] + along * (corners[:, 1] - corners[:, 0])
        corners[:, 2] += np.ldexp(rng.uniform(-1.0, 1.0, (number, 3)), rng.integers(-60, -3, (number, 1)))
        corners[::4, 2] = corners[::4, rng.integers(2)]
    if kind == 4:  # in one plane: x = 1/3, or one that rounding bends a little
        bent = rng.integers(-8, 9, (number, 3, 2)) * 0.125
        height = 1 / 3 + bent[..., 0] * rng.choice([0.0, 0.7])
        corners = np.concatenate([height[..., None], bent], axis=2)
    if kind == 5:  # millimetres on a map
        corners = np.ldexp(corners, rng.integers(-7, 4)) + np.array([5e5, 4e6, 100.0])
    if kind == 6:  # tiny ones, far apart
        corners = corners[:, :1] + np.ldexp(corners, -12)
    return corners


def sphere(rings=60) -> np.ndarray:
    """Return the corners of a sphere's triangles."""
    a, b = np.meshgrid(
        np.linspace(0.01, np.pi - 0.01, rings), np.linspace(0, 2 * np.pi, rings), indexing="ij"
    )
    points = np.stack([np.sin(a) * np.cos(b), np.sin(a) * np.sin(b), np.cos(a)], axis=-1)
    one, right, down = points[:-1, :-1], points[:-1, 1:], points[1:, :-1]
    triangles = [np.stack(x, 2) for x in ((one, right, down), (points[1:, 1:], right, down))]
    return np.concatenate(triangles).reshape(-1, 3, 3)


def bundles(rng, corners: np.ndarray, count: int) -> Bundle:
    """Return packets aimed at points of triangles; neighbours differ by little, or not at all."""
    size, parts = np.ptp(corners.reshape(-1, 3), axis=0).max(), []
    for k in range(count):
        one = corners[rng.integers(len(corners))]
        weights = WEIGHTS[rng.integers(len(WEIGHTS), size=LANES if k % 2 else 1)].astype(float)
        goals = np.broadcast_to(weights @ one / weights.sum(axis=1, keepdims=True), (LANES, 3))
        apart = np.ldexp(rng.uniform(-1.0, 1.0, (LANES, 3)), rng.integers(-30, -3)) * size * (k % 3 > 0)
        eye = goals[0] + rng.choice([0.05, 1.0, 2.0, 40.0, 3e3, 1e8]) * size * rng.standard_normal(3)
        if k % 7 == 0:  # in the plane of the triangle, or in line with an edge
            eye = one[0] + (rng.uniform(-3.0, 3.0, 2) * [1.0, k % 2]) @ (one[1:] - one[0])
        if k % 5 < 2:  # where numbers are round, times and touches are exact
            eye, apart = np.round(eye * 16.0) / 16.0, 0.0 * apart
        origins = np.tile(eye, (LANES, 1))
        if k % 4 == 1:
            origins = origins + size * rng.choice([1e-9, 1e-3, 0.05]) * rng.standard_normal((LANES, 3))
        if k % 4 == 3:
            origins = origins + apart
        pace = np.ldexp(rng.choice([1.0, 1.0, 0.7]), rng.integers(-3, 4))
        ways = (goals + apart - origins) * pace
        if k % 11 == 3:
            ways[:, rng.integers(3)] = rng.choice([0.0, -0.0])
        low, high = spans(rng, k, 1.0 / pace)
        parts.append((origins, ways, np.full(LANES, low), np.full(LANES, high)))
    return Bundle(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def spans(rng, k: int, t: float) -> tuple[float, float]:
    """Return a range: most are open, some end or begin at a time, or nearby."""
    near = t * (1.0 + rng.choice([0.0, 0.0, 1.0, -1.0]) * 2.0 ** -rng.integers(18, 53))
    return [(0.0, INF), (0.0, INF), (-INF, INF), (-0.0, near), (near, INF), (-near, 4.0 * near)][k % 6]
