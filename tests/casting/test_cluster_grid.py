"""Grids on clusters: scenes of them in files, and casts."""

import numpy as np
import pytest

import raybox as rb
from grids import random_grid, random_rays
from raybox.io import manifest, scene_files

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
    grid, met = GRIDS[kind], 0
    scene, rays = rb.Scene(grid), tmp_path / "rays.npz"
    rb.save(rays, random_rays(RNG, grid, 90))
    for query in ("nearest", "segments", "deposit"):
        wanted, found = tmp_path / f"{query}.npy", tmp_path / f"{query}_found.npy"
        rb.cast(scene, rays, wanted, query=query, chunk=20)
        done = rb.cast(scene, rays, found, cluster=cluster, query=query, chunk=20)
        assert found.read_bytes() == wanted.read_bytes()
        met += done.hit_count
    assert met > 60


@pytest.mark.long
@pytest.mark.parametrize("kind", GRIDS)
def test_a_scene_is_read_as_it_was_written(tmp_path, kind):
    grid = GRIDS[kind]
    scene_files.write_scene(tmp_path, rb.Scene(grid, quality="fast"))
    scene = scene_files.read_scene(tmp_path)
    assert repr(scene) == repr(rb.Scene(grid))
    for one, other in zip(scene.geometry.edges, grid.edges, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(scene.geometry.occupied, grid.occupied)
    scene.check()
    rays = random_rays(RNG, grid, 30)
    np.testing.assert_array_equal(scene.all(rays).index, rb.Scene(grid).all(rays).index)


@pytest.mark.parametrize("name", ["x_edges", "z_edges", "occupied"])
def test_damaged_files_are_refused(tmp_path, name):
    scene_files.write_scene(tmp_path, rb.Scene(GRIDS["occupied"]))
    path = tmp_path / f"{name}.npy"
    array = np.load(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 4]))
    with pytest.raises(rb.FileFormatError, match="is damaged: its checksum differs"):
        scene_files.read_scene(tmp_path)
    np.save(path, array[::-1] * (2 if name == "occupied" else 1))  # whole, but no grid
    names = sorted(file.name for file in tmp_path.glob("*.npy"))
    manifest.write(tmp_path / scene_files.FACTS, manifest.read(tmp_path / scene_files.FACTS).facts, names)
    with pytest.raises(rb.FileFormatError, match="holds no valid scene"):
        scene_files.read_scene(tmp_path)


def test_a_grid_of_other_axes(tmp_path):
    scene_files.write_scene(tmp_path, rb.Scene(GRIDS["flat"]))
    names = sorted(file.name for file in tmp_path.glob("*.npy"))
    facts = manifest.read(tmp_path / scene_files.FACTS).facts
    for other in ({"axes": 1}, {"axes": "2"}, {"size": 41}):
        manifest.write(tmp_path / scene_files.FACTS, facts | other, names)
        with pytest.raises(rb.FileFormatError, match="holds no valid scene"):
            scene_files.read_scene(tmp_path)
