"""Rays and boxes at the limits of float64: the results of every query equal those of Fractions."""

import numpy as np
import pytest

import exact
import raybox as rb
from aim import INF, Pairs
from compare import assert_scene
from scenes import as_rays

TIMES = 4  # copies of each ray, enough for sorting and stream traversal


def powers(rng, low, high, shape):
    return 2.0 ** rng.integers(low, high, shape)


def boxes(rng, n, endless):
    """Return boxes, some with an infinite or huge bound on an axis."""
    center, half = rng.uniform(-1, 1, (n, 3)), rng.uniform(0, 0.2, (n, 3))
    lower, upper = center - half, center + half
    far = rng.random((2, n, 3)) < 0.1
    ends = np.where(rng.random((2, n, 3)) < 0.5, INF, powers(rng, 3, 1000, (2, n, 3)))
    return np.where(far[0] & endless, -ends[0], lower), np.where(far[1] & endless, ends[1], upper)


def slopes(rng, shape):
    """Return directions with components that are 0, tiny or ordinary."""
    ways, kind = rng.normal(size=shape), rng.random(shape)
    ways = np.where(kind < 0.6, np.sign(ways) * powers(rng, -1074, -30, shape), ways)
    ways = np.where(kind < 0.25, 0.0, ways)
    ways[~ways.any(axis=1), 0] = 1.0
    return ways


def ends(rng, n, usual):
    """Return one end of ranges: the usual one, or any float."""
    wild = rng.choice([-1.0, 1.0], n) * powers(rng, -1000, 1000, n)
    return np.where(rng.random(n) < 0.6, usual, np.where(rng.random(n) < 0.3, np.sign(wild) * INF, wild))


def extreme(seed, n_boxes=40, n_rays=300) -> Pairs:
    """Return rays at corners and faces of boxes, near and far, with directions of any length."""
    rng = np.random.default_rng(seed)
    lower, upper = boxes(rng, n_boxes, endless=bool(seed % 2))
    goal = rng.integers(0, n_boxes, n_rays)
    share = np.choose(rng.integers(0, 3, (n_rays, 3)), [0.0, 1.0, rng.random((n_rays, 3))])
    near, far = np.clip(lower[goal], -2, 2), np.clip(upper[goal], -2, 2)
    ways = slopes(rng, (n_rays, 3))
    unit = ways / np.abs(ways).max(axis=1, keepdims=True)
    back = powers(rng, -3, 6, (n_rays, 1)) * np.where(
        rng.random((n_rays, 1)) < 0.2, powers(rng, 0, 1000, (n_rays, 1)), 1.0
    )
    with np.errstate(over="ignore", under="ignore"):
        longer = ways * np.where(rng.random((n_rays, 1)) < 0.4, powers(rng, -900, 900, (n_rays, 1)), 1.0)
    fits = np.isfinite(longer).all(axis=1) & longer.any(axis=1)
    origins = near + (far - near) * share - unit * back
    low, high = ends(rng, n_rays, 0.0), ends(rng, n_rays, INF)
    return Pairs(
        origins, np.where(fits[:, None], longer, ways), np.fmin(low, high), np.fmax(low, high), lower, upper
    )


@pytest.mark.parametrize("seed", range(160, 168))
def test_rays_at_the_limits_of_float64(seed):
    pairs = extreme(seed)
    found = list(exact.along(*pairs))
    hit_rays = sum(bool(row) for row in found)
    assert 60 < hit_rays < 240, hit_rays
    many = Pairs(*(np.concatenate([x] * TIMES) for x in pairs[:4]), *pairs[4:])
    scene = rb.Scene(rb.Boxes(*pairs[4:]))
    assert_scene(scene, as_rays(pairs), found)
    assert_scene(scene, as_rays(many), found * TIMES)
