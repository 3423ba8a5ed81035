"""rb.cluster.cast: real worker processes write what one machine writes, byte for byte."""

import asyncio
import pickle
import shutil
import sys
from threading import Event
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import raybox as rb
from clustering import Log, both, distributed
from raybox.casting.dask import job_plugin, worker
from raybox.cli import main
from streaming import (
    BOXES,
    ENDINGS,
    IDS,
    RAY_QUERIES,
    RAYS,
    SCENE,
    check,
    content,
    get,
    ids_for,
    put,
    results_of,
)
from test_cast_geometries import CASES
from waiting import wait_until

# The same bytes


@pytest.mark.parametrize("query", RAY_QUERIES)
def test_what_one_machine_writes(cluster, tmp_path, query):
    rays, met = put(tmp_path / "rays.parquet", RAYS), 0
    for ending in ENDINGS:
        how = {"query": query, "ids": ids_for(query)}
        found, done = both(cluster, rays, ending, **how)
        assert (done.rays, done.resumed) == (103, 0)
        if ending != "zarr":
            check(found, results_of(SCENE, RAYS, query), ids=how["ids"])
        met += done.hit_count
    assert met > 100


@pytest.mark.parametrize("source", ENDINGS)
def test_rays_of_every_format(cluster, tmp_path, source):
    both(cluster, put(tmp_path / f"rays.{source}", RAYS), "npy", chunk=10)


def test_points_and_compressed_rays(cluster, tmp_path):
    np.savez_compressed(tmp_path / "points.npz", points=RAYS.directions)
    both(cluster, tmp_path / "points.npz", "npy", origin=(0.5, 0.5, -2.0))


def test_a_mesh_and_no_rays_and_no_hits(cluster, tmp_path):
    mesh = rb.Scene(rb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]))
    rays = put(tmp_path / "rays.npz", rb.Rays([[0.2, 0.2, -1]] * 5, [[0, 0, 1]] * 5))
    for query in ("nearest", "all"):
        done = rb.cluster.cast(mesh, rays, tmp_path / "m.csv", cluster=cluster, query=query, chunk=2)
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
    """Values, weights and masks are arrays in files for the workers, also those of several geometries."""
    rays, weights = put(tmp_path / "rays.parquet", RAYS), np.random.default_rng(6).random((103, 2)) - 0.2
    np.save(tmp_path / "weights.npy", weights)
    mapped = np.load(tmp_path / "weights.npy", mmap_mode="r")
    for how in (
        {"query": "integrate", "values": np.linspace(1, 2, 40), "ids": None},
        {"query": "deposit", "weights": weights},
        {"query": "deposit", "weights": mapped, "per": "hit", "where": np.arange(40) % 3 > 0},
        {"query": "count", "where": np.arange(40) % 2 == 0, "ids": None},
    ):
        for ending in ("npy", "parquet"):
            both(cluster, rays, ending, **how)
    several = rb.Scene([*CASES["several"]])
    where = [None, *[np.arange(len(one)) % 2 == 0 for one in CASES["several"][1:]]]
    both(cluster, rays, "csv", scene=several, whole=several, where=where, ids=None, query="all")


def test_sums_do_not_depend_on_the_blocks(cluster, tmp_path):
    rays = put(tmp_path / "rays.npy", RAYS)
    sums = []
    for chunk in (7, 20, 200):
        found, _ = both(cluster, rays, "npy", query="deposit", chunk=chunk)
        sums.append(np.load(found)["deposit"].tobytes())
    assert len(set(sums)) == 1
    assert np.count_nonzero(np.load(found)["deposit"]) > 20


@pytest.mark.parametrize("ending", ["npy", "parquet", "csv", "zarr"])
def test_several_files_of_rays(cluster, tmp_path, ending):
    """Those without an index are read by the client to find where blocks begin."""
    files = [put(tmp_path / f"rays{k}.{ending}", RAYS[k * 31 : (k + 1) * 31]) for k in range(3)]
    out, wanted = tmp_path / "found.npy", tmp_path / "wanted.npy"
    done = rb.cluster.cast(SCENE, files, out, cluster=cluster, chunk=20)
    assert (done.rays, rb.stream.cast(SCENE, files, wanted, chunk=20).rays) == (93, 93)
    assert out.read_bytes() == wanted.read_bytes()


def test_datasets(cluster, tmp_path):
    """The folder of the parts is the output."""
    rays = put(tmp_path / "rays.npy", RAYS)
    for form in ("parquet", "zarr"):
        outs = [tmp_path / f"{name}-{form}" for name in ("found", "wanted")]
        done = rb.cluster.cast(SCENE, rays, outs[0], cluster=cluster, chunk=20, format=form)
        assert done.rays == rb.stream.cast(SCENE, rays, outs[1], chunk=20, format=form).rays == 103
        assert [*content(outs[0]).values()] == [*content(outs[1]).values()]
        assert not list(tmp_path.glob("*.raybox"))


def test_many_threads_in_one_process(tmp_path):
    rays = put(tmp_path / "rays.npz", RAYS)
    how = {"n_workers": 1, "threads_per_worker": 6, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**how) as threads:
        both(threads, rays, "parquet", query="all", chunk=3)
        both(threads, rays, "csv", chunk=3, workers=2)


def test_a_split_scene(cluster, tmp_path):
    split = rb.SplitScene(BOXES, parts=8, folder=tmp_path / "scene", memory=20_000)
    for query in [*sorted({*RAY_QUERIES} - {"integrate"}), "deposit"]:  # that adds in any order
        how = {"ids": IDS if query == "deposit" else ids_for(query), "query": query}
        both(cluster, put(tmp_path / "rays.npz", RAYS), "parquet", scene=split, **how)
    rb.stream.cast(split, tmp_path / "rays.npz", tmp_path / "alone.parquet", query="all", chunk=20)


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
    return len(sys.modules["raybox.casting.dask.worker"]._LOADED)


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
    assert "A cluster writes to a file" in done.stderr


# Timers of workers


class Watch(Log):
    """Logs the intervals of a worker's timers when it starts a task."""

    name = "watch"

    def setup(self, worker):
        self.worker = worker

    def transition(self, key, start, finish, **_):
        if "raybox" in str(key) and finish == "executing":
            self.write(*intervals(self.worker))


def intervals(dask_worker):
    return [dask_worker.periodic_callbacks[name].callback_time for name in ("profile", "tick")]


def has_fast_timers(cluster):
    found = cluster.run(intervals, on_error="return").values()
    return all(isinstance(each, list) and max(each) < 100 for each in found)


def test_timers_are_slow_while_a_scene_is_loaded(cluster, tmp_path):
    wait_until(lambda: has_fast_timers(cluster), "no scene is loaded")
    cluster.register_plugin(Watch(tmp_path / "watch"))
    both(cluster, put(tmp_path / "rays.npz", RAYS), "npy")
    cluster.unregister_worker_plugin("watch")
    assert set((tmp_path / "watch").read_text().splitlines()) == {"500.0 500.0"}
    wait_until(lambda: has_fast_timers(cluster), "the timers are restored")


class Timer:
    def __init__(self, milliseconds):
        self.callback_time = milliseconds


def job_in(folder):
    """Return a job whose files are in a folder."""
    return worker.WorkerJob("token", SimpleNamespace(folder=folder), None, 1, worker.code_version())


def test_a_scene_that_is_unloaded_while_it_loads(monkeypatch, tmp_path):
    """The plugin of a worker that joins late is removed before it is set up."""
    loaded, loading, removed, job = {}, Event(), Event(), job_in(tmp_path)
    job.files.mkdir()

    def load(job, threads):
        loading.set()
        assert removed.wait(60)
        loaded[job.token] = job

    monkeypatch.setattr(job_plugin, "load_job", load)
    monkeypatch.setattr(worker, "_LOADED", loaded)
    timer = Timer(10)
    dask_worker = SimpleNamespace(state=SimpleNamespace(nthreads=1), periodic_callbacks={"tick": timer})
    plugin = job_plugin.make_plugin(job)

    async def join_and_leave():
        joining = asyncio.create_task(plugin.setup(dask_worker))
        await asyncio.to_thread(loading.wait, 60)
        plugin.teardown(dask_worker)
        removed.set()
        await joining

    asyncio.run(join_and_leave())
    assert not loaded
    assert timer.callback_time == 10
    plugin = job_plugin.make_plugin(job)
    asyncio.run(plugin.setup(dask_worker))
    assert list(loaded) == ["token"]
    assert timer.callback_time == 500
    plugin.teardown(dask_worker)
    assert not loaded
    assert timer.callback_time == 10


def test_the_scene_of_a_killed_client_is_unloaded_when_the_next_is_loaded(monkeypatch, tmp_path):
    """Its plugin was never removed; another client has removed its files."""
    monkeypatch.setattr(worker, "LoadedJob", lambda job, _: SimpleNamespace(job=job))
    monkeypatch.setattr(worker, "_LOADED", {})
    killed, running, following = (job_in(tmp_path)._replace(token=token) for token in ("a", "b", "c"))
    for job in (killed, running, following):
        job.files.mkdir()
    worker.load_job(killed, 1)
    worker.load_job(running, 1)
    killed.files.rmdir()
    worker.load_job(following, 1)
    assert list(worker._LOADED) == ["b", "c"]


@pytest.mark.parametrize("ends", ["before it loads", "while it loads"])
def test_a_plugin_that_dask_removed_before_it_was_added_leaves_no_scene(monkeypatch, tmp_path, ends):
    """Dask calls its `setup` alone then."""
    loaded, loads, timer, job = {}, [], Timer(10), job_in(tmp_path)

    def load(job, threads):
        loads.append(threads)
        loaded[job.token] = job
        job.files.rmdir()

    monkeypatch.setattr(job_plugin, "load_job", load)
    monkeypatch.setattr(worker, "_LOADED", loaded)
    if ends == "while it loads":
        job.files.mkdir()
    dask_worker = SimpleNamespace(state=SimpleNamespace(nthreads=1), periodic_callbacks={"tick": timer})
    asyncio.run(job_plugin.make_plugin(job).setup(dask_worker))
    assert len(loads) == (ends == "while it loads")
    assert not loaded
    assert timer.callback_time == 10


def test_timers_are_restored_with_the_last_scene():
    class Worker:
        def __init__(self, **timers):
            self.periodic_callbacks = timers

    worker = Worker(profile=Timer(10), tick=Timer(2000), worker_timers=Timer(7))

    def times():
        return [timer.callback_time for timer in worker.periodic_callbacks.values()]

    for change, wanted in (
        (job_plugin.slow_down, 500),
        (job_plugin.slow_down, 500),
        (job_plugin.restore, 500),
        (job_plugin.restore, 10),
    ):
        change(worker)
        assert times() == [wanted, 2000, 7]
    job_plugin.restore(worker)  # a worker that could not load its scene
    job_plugin.slow_down(object())  # a Dask without these timers
    assert times() == [10, 2000, 7]
