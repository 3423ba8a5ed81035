"""rb.cast on a cluster: real worker processes write what one machine writes, byte for byte."""

import pickle
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import raybox as rb
from clustering import both, distributed
from grids import random_grid, random_rays
from raybox.cli import main
from streaming import (
    BOXES,
    ENDINGS,
    GROUPS,
    IDS,
    RAY_QUERIES,
    RAYS,
    SCENE,
    WORLDS,
    check,
    content,
    endings_from,
    get,
    ids_for,
    put,
    results_of,
)
from test_cast_geometries import CASES
from waiting import wait_until

# The same bytes


@pytest.mark.parametrize(("query", "source"), zip(RAY_QUERIES, endings_from("npy"), strict=False))
def test_what_one_machine_writes(cluster, tmp_path, query, source):
    rays, met = put(tmp_path / f"rays.{source}", RAYS), 0
    for ending in ENDINGS:
        how = {"query": query, "ids": ids_for(query)}
        found, done = both(cluster, rays, ending, **how)
        assert (done.rays, done.resumed) == (103, 0)
        if ending != "zarr":
            check(found, results_of(SCENE, RAYS, query), ids=how["ids"])
        met += done.hit_count
    assert met > 100


def test_points_and_compressed_rays(cluster, tmp_path):
    np.savez_compressed(tmp_path / "points.npz", points=RAYS.directions)
    both(cluster, tmp_path / "points.npz", "npy", origin=(0.5, 0.5, -2.0))


def test_a_mesh_and_no_rays_and_no_hits(cluster, tmp_path):
    mesh = rb.Scene(rb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]))
    rays = put(tmp_path / "rays.npz", rb.Rays([[0.2, 0.2, -1]] * 5, [[0, 0, 1]] * 5))
    for query in ("nearest", "all"):
        done = rb.cast(mesh, rays, tmp_path / "m.csv", cluster=cluster, query=query, chunk=2)
        assert (done.rays, done.hit_count) == (5, 5)
    away = put(tmp_path / "away.npz", rb.Rays([[9, 9, 9]] * 5, [[1, 0, 0]] * 5))
    none = put(tmp_path / "none.npz", rb.Rays(np.empty((0, 3)), np.empty((0, 3))))
    for ending in ENDINGS:
        for rays in (away, none):
            found, done = both(cluster, rays, ending, query="all", chunk=2)
            assert (done.rays, done.rows) == (len(np.load(rays)["origins"]), 0)
            for path in (found, tmp_path / f"wanted.{ending}"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("case", ["mesh with objects", "several"])
def test_objects_of_every_geometry(cluster, tmp_path, case):
    geometries = CASES[case]
    scene = rb.Scene([*geometries] if len(geometries) > 1 else geometries[0])
    rays = put(tmp_path / "rays.npy", RAYS)
    for query, ending in (("nearest", "csv"), ("all", "parquet"), ("all", "zarr")):
        found, _ = both(cluster, rays, ending, scene=scene, whole=scene, query=query, ids=None)
        assert {"object", "id"} < set(get(found))


GRIDS = {
    "occupied": random_grid("random", np.random.default_rng(21), (5, 4, 6), share=0.6),
    "flat": random_grid("steps", np.random.default_rng(22), (6, 7), share=0.7),
}


@pytest.mark.parametrize("kind", GRIDS)
def test_grids(cluster, tmp_path, kind):
    grid, hit_count = GRIDS[kind], 0
    rays = put(tmp_path / "rays.npz", random_rays(np.random.default_rng(21), grid, 90))
    for query in ("nearest", "segments", "deposit"):
        scene = rb.Scene(grid)
        hit_count += both(cluster, rays, "npy", scene=scene, whole=scene, query=query, ids=None)[1].hit_count
    assert hit_count > 60


CARRIED = {"station": [f"s{k % 5}" for k in range(103)], "pulse": np.arange(103)}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_labels_and_carried_columns(cluster, tmp_path, ending):
    (mesh,) = CASES["mesh with objects"]
    scene, rays = rb.Scene(mesh), put(tmp_path / f"rays.{ending}", RAYS)
    table = pd.read_csv(rays) if ending == "csv" else pd.read_parquet(rays)
    table = table.assign(**CARRIED)
    table.to_csv(rays, index=False) if ending == "csv" else table.to_parquet(rays, row_group_size=17)
    for query in ("nearest", "all"):
        how = {"query": query, "ids": None, "labels": ["all"], "carry": ["pulse", "station"]}
        found, done = both(cluster, rays, ending, scene=scene, whole=scene, **how)
        assert {"speed", "pulse", "station"} <= set(get(found))
        assert done.hit_count > 10


def test_arguments_of_queries(cluster, tmp_path):
    """Values, weights, masks and groups are arrays in files for the workers, also of several geometries."""
    rays, weights = put(tmp_path / "rays.parquet", RAYS), np.random.default_rng(6).random((103, 2)) - 0.2
    np.save(tmp_path / "weights.npy", weights)
    mapped = np.load(tmp_path / "weights.npy", mmap_mode="r")
    for how in (
        {"query": "integrate", "values": np.linspace(1, 2, 40), "ids": None},
        {"query": "deposit", "weights": weights},
        {"query": "deposit", "weights": mapped, "per": "hit", "where": np.arange(40) % 3 > 0},
        {"query": "count", "where": np.arange(40) % 2 == 0, "ids": None},
        {"query": "all", "groups": GROUPS, "scene": WORLDS, "whole": WORLDS},
        {"query": "deposit", "groups": 1, "scene": WORLDS, "whole": WORLDS},
    ):
        for ending in ("npy", "parquet"):
            both(cluster, rays, ending, **how)
    several = rb.Scene([*CASES["several"]])
    where = [None, *[np.arange(len(one)) % 2 == 0 for one in CASES["several"][1:]]]
    both(cluster, rays, "csv", scene=several, whole=several, where=where, ids=None, query="all")


@pytest.mark.parametrize("ending", ["npy", "parquet", "csv", "zarr"])
def test_several_files_of_rays(cluster, tmp_path, ending):
    """Those without an index are read by the client to find where blocks begin."""
    files = [put(tmp_path / f"rays{k}.{ending}", RAYS[k * 31 : (k + 1) * 31]) for k in range(3)]
    out, wanted = tmp_path / "found.npy", tmp_path / "wanted.npy"
    done = rb.cast(SCENE, files, out, cluster=cluster, chunk=20)
    assert (done.rays, rb.cast(SCENE, files, wanted, chunk=20).rays) == (93, 93)
    assert out.read_bytes() == wanted.read_bytes()


def test_datasets(cluster, tmp_path):
    """The folder of the parts is the output."""
    rays = put(tmp_path / "rays.npy", RAYS)
    for form in ("parquet", "zarr"):
        outs = [tmp_path / f"{name}-{form}" for name in ("found", "wanted")]
        done = rb.cast(SCENE, rays, outs[0], cluster=cluster, chunk=20, format=form)
        assert done.rays == rb.cast(SCENE, rays, outs[1], chunk=20, format=form).rays == 103
        assert [*content(outs[0]).values()] == [*content(outs[1]).values()]
        assert not list(tmp_path.glob("*.raybox"))


def test_many_threads_in_one_process(tmp_path):
    rays = put(tmp_path / "rays.npz", RAYS)
    how = {"n_workers": 1, "threads_per_worker": 6, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**how) as threads:
        both(threads, rays, "parquet", query="all", chunk=3)
        both(threads, rays, "csv", chunk=3, workers=2)


def test_workers_unload_the_scene_and_tasks_are_small(cluster, tmp_path, monkeypatch):
    sent = []
    submit = cluster.submit
    monkeypatch.setattr(
        cluster, "submit", lambda *a, **k: sent.append(pickle.dumps(a[1:])) or submit(*a, **k)
    )
    both(cluster, put(tmp_path / "rays.npz", RAYS), "npy")
    assert len(sent) == 6
    assert max(map(len, sent)) < 2000
    # a worker that joins while the scene is unloaded may load and unload it after the others
    # and one that was killed by a test before answers with an error until the scheduler has removed it
    wait_until(
        lambda: set(cluster.run(loaded_jobs, on_error="return").values()) == {0}, "workers unload the scene"
    )


def loaded_jobs():
    return sys.modules["raybox.casting.cluster"].loaded.cache_info().currsize


def test_the_command(cluster, tmp_path):
    rays = put(tmp_path / "rays.parquet", RAYS)
    rb.save(tmp_path / "boxes.csv", BOXES, ids=IDS)
    command = ["cast", f"{tmp_path}/boxes.csv", str(rays), "-o"]
    address = ["--cluster", cluster.scheduler.address]
    done = CliRunner().invoke(main, [*command, f"{tmp_path}/a.csv", *address])
    assert done.exit_code == 0, done.output
    assert "103 rays into a scene of 40" in done.stderr
    assert CliRunner().invoke(main, [*command, f"{tmp_path}/b.csv"]).exit_code == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    done = CliRunner().invoke(main, [*command, "-", *address])
    assert done.exit_code == 2
    assert "Several processes write to a file" in done.stderr
