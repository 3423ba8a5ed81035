"""Adversarial rays against planes and triangles, built backwards as in families.py."""

from typing import NamedTuple

import numpy as np

from aim import FINE, FULL, GRID, INF, coin, column, numbers, spans


class PlanePairs(NamedTuple):
    """Rays and planes, row by row."""

    origins: np.ndarray
    directions: np.ndarray
    t_min: np.ndarray
    t_max: np.ndarray
    normals: np.ndarray
    offsets: np.ndarray


class TrianglePairs(NamedTuple):
    """Rays and triangles, row by row; corners (n, 3, 3)."""

    origins: np.ndarray
    directions: np.ndarray
    t_min: np.ndarray
    t_max: np.ndarray
    corners: np.ndarray


def _through(rng, kind, point):
    """Return rays through the points, at t = 1, 1/2, 1/3, 1/5 or 1/7, and ranges."""
    n, dim = point.shape
    many = column(rng, n, 1.0, 2.0, 3.0, 5.0, 7.0)
    start, free = numbers(rng, kind, dim), numbers(rng, kind, dim)
    directions = np.where(kind == FULL, free, (point - start) * many)
    directions = np.where(coin(rng, (n, 1), 0.1), -directions, directions)
    origins = np.where(kind == FULL, point - free / many, start)
    return origins, directions, *spans(rng, 1 / many[:, 0])


def planes(seed: int, n: int, dim: int = 3) -> PlanePairs:
    """Return planes hit at the end of a range or from behind, parallel to rays, or missed."""
    rng = np.random.default_rng([seed, dim])
    kind = column(rng, n, GRID, FULL)
    point, normals = numbers(rng, kind, dim), numbers(rng, kind, dim)
    normals[:, 0] = np.where((normals == 0).all(axis=1), 1.0, normals[:, 0])
    offsets = (point * normals).sum(axis=1)  # exact on the grid
    origins, directions, low, high = _through(rng, kind, point)
    along = np.zeros_like(point)
    along[:, 0], along[:, 1] = -normals[:, 1], normals[:, 0]
    directions = np.where(coin(rng, (n, 1), 0.15), along, directions)
    return PlanePairs(origins, directions, low, high, normals, offsets)


def triangles(seed: int, n: int) -> TrianglePairs:
    """Return triangles hit inside, on edges, at vertices, an ulp off; parallel and flat ones."""
    rng = np.random.default_rng([seed, 3])
    kind = column(rng, n, GRID, FINE, FULL)
    corners = np.stack([np.round(numbers(rng, kind) * 2.0**48) * 2.0**-48 for _ in "abc"], axis=1)
    weights = np.array(
        [(1, 0, 0), (0, 1, 0), (0, 0, 1), (2, 2, 0), (0, 1, 3), (3, 0, 1), (1, 1, 2), (2, 1, 1)]
    )
    share = weights[rng.integers(0, len(weights), n)]
    share = share / share.sum(axis=1, keepdims=True)
    origins, directions, low, high = _through(rng, kind, (corners * share[:, :, None]).sum(axis=1))
    edge = corners[:, 1] - corners[:, 0]
    directions = np.where(coin(rng, (n, 1), 0.05), edge, directions)
    ulp = coin(rng, (n, 3), 0.1) & coin(rng, (n, 1))
    return TrianglePairs(np.where(ulp, np.nextafter(origins, INF), origins), directions, low, high, corners)
