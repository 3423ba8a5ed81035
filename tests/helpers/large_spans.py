"""Boxes and rays farther apart than the largest float."""

import numpy as np

import raybox as rb
from exact import INF

BIG = np.finfo(float).max
LOWER = np.array([[-1e307, -1.2e308], [-1e307, 0.9e308], [-1e307, 0.9e308]])
UPPER = np.array([[1e307, -1.1e308], [1e307, 1e308], [1e307, 1e308]])
FAR_BOX = rb.Boxes(LOWER, UPPER)  # the first box is 2.05e308 below the tree's centre


def numbers(rng, shape):
    """Return numbers of full mantissas up to the largest float, some of them special."""
    power = np.where(rng.random(shape) < 0.5, 1023, rng.integers(1000, 1024, shape))
    found = rng.choice([-1.0, 1.0], shape) * (1 + rng.random(shape)) * 2.0**power
    special = rng.choice([BIG, -BIG, 1e308, -1e308, 2.0**1023, -(2.0**1023), 0.0, 1.0, 1e-300, 5e-324], shape)
    return np.where(rng.random(shape) < 0.2, special, found)


def large_boxes(rng, count, dim, *, endless=True):
    """Return boxes of which most are near one place, ordinary or huge, the others anywhere, thin or not."""
    one, other = numbers(rng, (2, count, dim))
    place = rng.choice([1.0, 1e300]) if rng.random() < 0.2 else numbers(rng, (1, dim))
    bulk = place * (1 - 0.2 * rng.random((count, dim)))
    one = np.where(rng.random((count, 1)) < 0.7, bulk, one)
    other = np.where(rng.random((count, 1)) < 0.8, one * (1 - 0.1 * rng.random((count, dim))), other)
    end = endless & (rng.random((2, count, dim)) < 0.03)
    return np.where(end[0], -INF, np.minimum(one, other)), np.where(end[1], INF, np.maximum(one, other))


def rays_at(rng, count, boxes):
    """Return rays from anywhere to corners, faces and middles of boxes, some of them along an axis."""
    lower, upper = boxes.lower, boxes.upper
    goal = rng.integers(0, len(lower), count)
    low, up = np.clip(lower[goal], -BIG, BIG), np.clip(upper[goal], -BIG, BIG)
    target = np.choose(rng.integers(0, 3, low.shape), [low, up, low / 2 + up / 2])
    origins = np.where(rng.random(low.shape) < 0.3, target, numbers(rng, low.shape))
    parts = rng.choice([2.0, 4.0, 64.0, 2.0**900], (count, 1))
    ways = (target / parts - origins / parts) * rng.choice([1.0, -1.0], (count, 1), p=[0.9, 0.1])
    ways[~ways.any(axis=1), 0] = 1e300
    ends = np.sort(rng.choice([0.0, 0.0, 0.0, 2.0, 4.0, 64.0, -INF, INF, INF, INF], (2, count)), axis=0)
    return rb.Rays(origins, ways, t_min=np.minimum(ends[0], 4.0), t_max=np.maximum(ends[1], 2.0))
