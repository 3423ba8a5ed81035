"""rb.cluster.cast: real worker processes write what one machine writes, byte for byte."""

import asyncio
import pickle
import shutil
import sys
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import raybox as rb
from clustering import Log, both, distributed
from raybox.cli import main
from raybox.distributed.dask import job_plugin, worker, worker_timers
from raybox.distributed.dask.part_folder import running_mark
from streaming import BOXES, ENDINGS, IDS, RAY_QUERIES, RAYS, SCENE, check, get, ids_for, put, results_of
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


def test_many_threads_in_one_process(tmp_path):
    rays = put(tmp_path / "rays.npz", RAYS)
    how = {"n_workers": 1, "threads_per_worker": 6, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**how) as threads:
        both(threads, rays, "parquet", query="all", chunk=3)
        both(threads, rays, "csv", chunk=3, workers=2)


def test_a_split_scene(cluster, tmp_path):
    split = rb.SplitScene(BOXES, parts=8, folder=tmp_path / "scene", memory=20_000)
    for query in sorted({*RAY_QUERIES} - {"integrate"}):  # a scene in parts adds in any order
        how = {"ids": ids_for(query), "query": query}
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
    assert max(map(len, sent)) < 1000
    # a worker that joins while the scene is unloaded may load and unload it after the others
    # and one that was killed by a test before answers with an error until the scheduler has removed it
    wait_until(
        lambda: set(cluster.run(loaded_jobs, on_error="return").values()) == {0}, "workers unload the scene"
    )


def loaded_jobs():
    return len(sys.modules["raybox.distributed.dask.worker"]._LOADED)


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


def test_a_scene_that_is_unloaded_while_it_loads(monkeypatch, tmp_path):
    """The plugin of a worker that joins late is removed before it is set up."""
    loaded, loading, removed = {}, Event(), Event()
    job = worker.WorkerJob("token", tmp_path, *[None] * 10)
    running_mark(tmp_path, "token").touch()

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


@pytest.mark.parametrize("ends", ["before it loads", "while it loads"])
def test_a_plugin_that_dask_removed_before_it_was_added_leaves_no_scene(monkeypatch, tmp_path, ends):
    """Dask calls its `setup` alone then."""
    loaded, loads, timer = {}, [], Timer(10)
    job = worker.WorkerJob("token", tmp_path, *[None] * 10)
    mark = running_mark(tmp_path, "token")

    def load(job, threads):
        loads.append(threads)
        loaded[job.token] = job
        mark.unlink()

    monkeypatch.setattr(job_plugin, "load_job", load)
    monkeypatch.setattr(worker, "_LOADED", loaded)
    if ends == "while it loads":
        mark.touch()
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
        (worker_timers.slow_down, 500),
        (worker_timers.slow_down, 500),
        (worker_timers.restore, 500),
        (worker_timers.restore, 10),
    ):
        change(worker)
        assert times() == [wanted, 2000, 7]
    worker_timers.restore(worker)  # a worker that could not load its scene
    worker_timers.slow_down(object())  # a Dask without these timers
    assert times() == [10, 2000, 7]
