"""Casts of grids on clusters."""

import numpy as np
import pytest

import raybox as rb
from grids import random_grid, random_rays

RNG = np.random.default_rng(21)
GRIDS = {
    "occupied": random_grid("random", RNG, (5, 4, 6), share=0.6),
    "full": random_grid("integers", RNG, (3, 4, 5)),
    "flat": random_grid("steps", RNG, (6, 7), share=0.7),
}


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    how = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**how) as made, distributed.Client(made) as client:
        yield client


@pytest.mark.parametrize("kind", GRIDS)
def test_workers_write_what_one_machine_writes(cluster, tmp_path, kind):
    grid, hit_count = GRIDS[kind], 0
    scene, rays = rb.Scene(grid), tmp_path / "rays.npz"
    rb.save(rays, random_rays(RNG, grid, 90))
    for query in ("nearest", "segments", "deposit"):
        wanted, found = tmp_path / f"{query}.npy", tmp_path / f"{query}_found.npy"
        rb.cast(scene, rays, wanted, query=query, chunk=20)
        done = rb.cast(scene, rays, found, cluster=cluster, query=query, chunk=20)
        assert found.read_bytes() == wanted.read_bytes()
        hit_count += done.hit_count
    assert hit_count > 60
