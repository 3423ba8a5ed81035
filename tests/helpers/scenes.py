"""Scenes for tests, and their exact hits."""

import numpy as np

import exact
import raybox as rb
from aim import INF, Pairs
from compare import assert_scene


def build(lower, upper) -> rb.Scene:
    scene = rb.Scene(rb.Boxes(lower, upper))
    scene.check()
    return scene


def as_rays(pairs: Pairs) -> rb.Rays:
    return rb.Rays(*pairs[:2], t_min=pairs[2], t_max=pairs[3])


def truth(pairs: Pairs, where=None) -> list[list[exact.Found]]:
    found = list(exact.along(*pairs))
    return found if where is None else [[f for f in row if where[f.index]] for row in found]


def check_scene(pairs: Pairs, **options) -> list[list[exact.Found]]:
    """Assert every query of a new scene against the oracle; return the exact hits."""
    found = truth(pairs)
    assert_scene(build(*pairs[4:]), as_rays(pairs), found, **options)
    return found


def random_scene(seed, n_boxes, n_rays, dim=3, size=0.1) -> Pairs:
    rng = np.random.default_rng(seed)
    lower = rng.uniform(-1, 1, (n_boxes, dim))
    upper = lower + rng.uniform(0, size, (n_boxes, dim))
    origins, goals = rng.uniform(-2, 2, (n_rays, dim)), rng.uniform(-1, 1, (n_rays, dim))
    return Pairs(origins, goals - origins, np.zeros(n_rays), np.full(n_rays, INF), lower, upper)
