"""Ranges of t at the ends of floats: no query warns, and a range without a real t hits nothing."""

import warnings

import numpy as np
import pytest

import raybox as rb

INF, LARGEST, DENORMAL = np.inf, np.finfo(float).max, 5e-324
EMPTY = [(INF, INF), (-INF, -INF)]
RANGES = [*EMPTY, (-INF, INF), (LARGEST, INF), (-LARGEST, LARGEST), (DENORMAL, DENORMAL), (-LARGEST, -1.0)]
ORIGINS = [[-1, 0.25, 0.25], [0.5, 0, 0], [LARGEST, 0.5, 0], [DENORMAL, 0, 0]]
DIRECTIONS = [[1, 0, 0], [0, 0, 0], [1e308, 0, 0], [DENORMAL, 0, 0], [1, 1e-320, -1e300]]
GEOMETRIES = {
    "boxes": rb.Boxes([[0, -1, -1], [2, -1, -1]], [[1, 1, 1], [3, 1, 1]]),
    "endless": rb.Boxes([[-INF, 0, 0]], [[INF, 1, 1]]),
    "grid": rb.Grid.uniform([0, -1, -1], 1.0, (3, 2, 2)),
    "mesh": rb.Mesh([[1, -9, -9], [1, 9, -9], [1, 0, 9]], [[0, 1, 2]]),
}
GEOMETRIES["list"] = [GEOMETRIES["boxes"], GEOMETRIES["mesh"]]


def rays_of(low, high):
    origins, directions = np.array(ORIGINS)[:, None], np.array(DIRECTIONS)[None]
    shape = np.broadcast_shapes(origins.shape, directions.shape)[:-1]
    return rb.Rays(origins, directions, t_min=np.full(shape, low), t_max=np.full(shape, high))


def all_fields(hits):
    """Compute everything that follows from hits."""
    for name in ("t", "t_enter", "t_exit", "points", "normals", "distances", "lengths"):
        getattr(hits, name, None)
    return hits


@pytest.mark.core
@pytest.mark.parametrize("limits", RANGES, ids=str)
@pytest.mark.parametrize("kind", GEOMETRIES)
def test_no_query_warns(kind, limits):
    scene, rays, is_empty = rb.Scene(GEOMETRIES[kind]), rays_of(*limits), limits in EMPTY
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counts = scene.count(rays)
        nearest = all_fields(scene.nearest(rays))
        assert nearest.hit.tolist() == scene.occluded(rays).tolist() == (counts > 0).tolist()
        assert len(all_fields(scene.all(rays)).index) == counts.sum()
        assert all_fields(scene.first(rays, 2)).hit.sum() == np.minimum(counts, 2).sum()
        if kind in ("mesh", "list"):
            return
        total, each = scene.integrate(rays), scene.deposit(rays)
        assert scene.deposit(rays, per="hit", reproducible=True).shape == each.shape
        if kind != "endless" or is_empty:
            fixed = scene.deposit(rays, reproducible=True)
            np.testing.assert_allclose(fixed, each, rtol=1e-9)
        assert not np.isnan(total).any()
    if is_empty:
        assert not counts.any()
        assert not total.any()
        assert not each.any()


def test_an_empty_range_bounds_no_sum():
    """Sums in fixed point need a bound of each term; a ray of an empty range has none."""
    scene = rb.Scene(GEOMETRIES["endless"])
    for low, high in EMPTY:
        rays = rb.Rays([[0, 0.5, 0.5]] * 2, [1, 0, 0], t_min=[low, 0], t_max=[high, 2])
        assert scene.deposit(rays, reproducible=True).tolist() == [2.0]


def test_distances_of_misses_of_long_directions():
    """They need no exact time: a cell of number -1 has none."""
    for kind in ("grid", "boxes"):
        rays = rb.Rays([[-1, 9, 0], [-1, 0, 0]], [[1e308, 0, 0], [1e300, 0, 0]])
        assert rb.Scene(GEOMETRIES[kind]).nearest(rays).distances.tolist() == [INF, 1.0]
