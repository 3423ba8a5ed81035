"""rb.cluster.cast with killed workers, interrupted casts, damaged parts, or an unusable cluster."""

import asyncio
import os
import re
import shutil
import signal
import sys
import time
from collections import Counter
from importlib import import_module
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest

import raybox as rb
from clustering import both, distributed, folder_of, interrupted, parts_of, worker_pids
from raybox.casting import cluster as connection
from raybox.casting.caster import BlockCaster
from streaming import IDS, RAYS, SCENE, put
from waiting import wait_until

pytestmark = pytest.mark.long

# Workers die


def many_rays(tmp_path, number=60_000):
    rng = np.random.default_rng(2)
    return put(tmp_path / "rays.npy", rb.Rays(rng.random((number, 3)) - 0.5, rng.normal(size=(number, 3))))


def kill(cluster, out, parts_written, after=20, every=False):
    """Kill a worker, or all of them, as soon as `after` parts exist."""
    before = worker_pids(cluster)
    wait_until(lambda: count_done(out) >= after, f"{after} parts are written")
    parts_written.append(count_done(out))
    for pid in before[: None if every else 1]:
        os.kill(pid, signal.SIGKILL)


def count_done(out):
    """Return how many parts were written."""
    return len(parts_of(out))


@pytest.mark.parametrize("every", [False, True], ids=["one", "all"])
def test_workers_that_are_killed(cluster, log, tmp_path, every):
    rays, parts_written = many_rays(tmp_path), []
    out = tmp_path / "found.parquet"
    killer = Thread(target=kill, args=(cluster, out, parts_written), kwargs={"every": every})
    killer.start()
    _, done = both(cluster, rays, "parquet", query="all", chunk=200)
    killer.join()
    assert 20 <= parts_written[0] < 300, "killed too late to matter"
    assert done.rays == 60_000
    began = Counter(line[1] for line in log() if line[0] == "executing")
    again = [task for task, times in began.items() if times > 1]
    assert len(again) < 10, "more tasks ran again than workers were running or had not reported"
    setups = 4 if every else 3  # one may join only after the cast
    wait_until(lambda: sum(line[0] == "setup" for line in log()) >= setups, "workers come back")
    assert sum(line[0] == "setup" for line in log()) == setups


def test_tasks_of_a_cast_that_has_ended_are_not_done_again(cluster, tmp_path, log, monkeypatch):
    """Their futures still exist when a worker dies."""
    futures, submit = [], cluster.submit
    monkeypatch.setattr(cluster, "submit", lambda *a, **k: futures.append(submit(*a, **k)) or futures[-1])
    both(cluster, put(tmp_path / "rays.npz", RAYS), "npy")
    assert len(futures) == 6
    assert not {future.key for future in futures} & set(cluster.futures)
    lines = len(log())
    for pid in worker_pids(cluster):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: [line for line in log()[lines:] if line[0] == "setup"], "a worker comes back")
    cluster.gather([cluster.submit(abs, number, pure=False) for number in range(8)])
    assert not [line for line in log()[lines:] if line[0] == "executing"]


def test_a_worker_that_dies_in_the_first_second(cluster, tmp_path):
    """It is no worker without raybox, and the disk is not full."""
    os.kill(worker_pids(cluster)[0], signal.SIGKILL)
    assert both(cluster, put(tmp_path / "rays.npz", RAYS), "npy")[1].rays == 103


# Interrupted and resumed


def test_files_that_a_killed_client_left_are_no_obstacle(cluster, tmp_path):
    rays, out = put(tmp_path / "rays.parquet", RAYS), tmp_path / "found.npy"
    interrupted(cluster, rays, out)
    left = folder_of(out) / "new-files-0123456789ab"
    shutil.copytree(folder_of(out) / "parts", left)
    assert both(cluster, rays, "npy")[1].resumed >= 20


def test_what_is_there_is_not_done_again(cluster, tmp_path, log):
    rays = put(tmp_path / "rays.parquet", RAYS)
    there = interrupted(cluster, rays, tmp_path / "found.parquet", query="all")
    assert len(there) >= 3
    assert not (tmp_path / "found.parquet").exists()
    lines = len(log())
    _, done = both(cluster, rays, "parquet", query="all", workers=2)
    assert done.resumed == sum(3 if name.startswith("part-000000005") else 20 for name in there)
    assert len([line for line in log()[lines:] if line[0] == "executing"]) == 6 - len(there)


def test_wrong_rays_end_it_and_parts_are_stored(cluster, tmp_path):
    origins = np.array(RAYS.origins)
    origins[71, 1] = np.nan
    np.savez(tmp_path / "rays.npz", origins=origins, directions=RAYS.directions)
    rays, out = tmp_path / "rays.npz", tmp_path / "found.csv"
    with pytest.raises(rb.FileFormatError) as caught:
        rb.cast(SCENE, rays, out, cluster=cluster, chunk=20, ids=IDS)
    text = str(caught.value)
    assert "nan is not a finite number" in text
    assert "origins[71, 1]" in text
    assert "are done and stored in found.csv.raybox; the same command continues from there" in text
    assert "\n" not in text
    _, done = both(cluster, rays, "csv", invalid="miss")
    assert done.resumed >= 20
    csv = put(tmp_path / "rays.csv", RAYS)
    csv.write_text(csv.read_text().replace("\n", "\nnan,0,0,1,0,0,0,1\n", 1))
    with pytest.raises(rb.FileFormatError, match="line 2, column origin_x"):
        rb.cast(SCENE, csv, tmp_path / "o.csv", cluster=cluster, chunk=20)


def test_wrong_rays_among_those_of_a_task(cluster, tmp_path):
    """Parts before them are collected."""
    rng = np.random.default_rng(3)
    origins, directions = rng.random((6000, 3)), rng.normal(size=(6000, 3))
    origins[45, 1] = np.nan
    rays, out = tmp_path / "rays.npz", tmp_path / "found.npy"
    np.savez(rays, origins=origins, directions=directions)
    with pytest.raises(rb.FileFormatError, match=r"origins\[45, 1\]"):
        rb.cast(SCENE, rays, out, cluster=cluster, chunk=20, ids=IDS)
    assert "part-000000002.rows" not in {path.name for path in parts_of(out)}
    assert both(cluster, rays, "npy", invalid="miss")[1].resumed >= 40


def fail(*_):
    raise ZeroDivisionError("of all things")


def break_down():
    from raybox.casting.caster import BlockCaster

    BlockCaster.sound, BlockCaster.write_part = BlockCaster.write_part, fail


def mend():
    from raybox.casting.caster import BlockCaster

    BlockCaster.write_part = BlockCaster.sound


def test_a_task_that_breaks_down(cluster, tmp_path):
    rays = many_rays(tmp_path, 600)
    try:
        cluster.run(break_down)
        text = (
            r"blocks of rays cannot be cast on the cluster \(ZeroDivisionError: of all things\); see the logs"
        )
        with pytest.raises(rb.RayboxError, match=text):
            rb.cast(SCENE, rays, tmp_path / "found.npy", cluster=cluster, chunk=20, ids=IDS)
    finally:
        cluster.run(mend)
    assert both(cluster, rays, "npy")[1].rays == 600


def test_a_client_that_is_closed(cluster, tmp_path):
    """Dask closes one that does not reach its scheduler again."""
    client = distributed.Client(cluster.scheduler.address, set_as_default=False)
    client.close()
    rays, text = many_rays(tmp_path, 20), r"the scheduler does not answer any more \(.+\); start it again"
    with pytest.raises(rb.RayboxError, match=text):
        rb.cast(SCENE, rays, tmp_path / "found.npy", cluster=client)


def test_a_scheduler_that_is_lost_before_the_client_knows(cluster, tmp_path, monkeypatch):
    """The result of a task is an error of the connection, while the client's status is that of before."""

    def lost(*_):
        raise distributed.comm.CommClosedError("Stream is closed")

    rays = many_rays(tmp_path, 20)
    with monkeypatch.context() as patch:
        patch.setattr(distributed.Future, "result", lost)
        with pytest.raises(rb.RayboxError, match=r"scheduler at \S+ does not answer any more \(Stream is c"):
            rb.cast(SCENE, rays, tmp_path / "found.npy", cluster=cluster, chunk=20, ids=IDS)
    assert both(cluster, rays, "npy")[1].rays == 20


# Sums


def read_first_block_late(gate):
    """Let the task of the first block wait until a file exists."""
    read = BlockCaster.unchanged = BlockCaster.read

    def late(caster, span):
        if span.number == 0:
            wait_until(gate.exists, "the first block may be read")
        return read(caster, span)

    BlockCaster.read = late


def read_all_blocks():
    BlockCaster.read = BlockCaster.unchanged


def test_sums_on_the_disk_are_four_at_most(cluster, tmp_path):
    """Also while the first task runs longer than the others, whose sums cannot be merged."""
    rays, gate, counts, ended = many_rays(tmp_path, 600), tmp_path / "gate", [], Event()
    parts = folder_of(tmp_path / "found.npy") / "parts"

    def count():
        changed = time.monotonic()
        while not ended.is_set():
            counts.append(len([*parts.glob("*.sums")]))
            if counts[-1] not in counts[-2:-1]:
                changed = time.monotonic()
            if counts[-1] > 4 or (counts[-1] > 1 and time.monotonic() > changed + 2):
                gate.touch()

    counter = Thread(target=count)
    try:
        cluster.run(read_first_block_late, gate)
        counter.start()
        assert both(cluster, rays, "npy", query="deposit")[1].rays == 600
    finally:
        ended.set()
        counter.join()
        cluster.run(read_all_blocks)
    assert 2 <= max(counts) <= 4


@pytest.mark.parametrize("end", ["Ctrl-C", "invalid rays"])
def test_sums_of_an_interrupted_cast_are_merged(cluster, tmp_path, monkeypatch, end):
    """Also if the first call permits no invalid rays, and the second does."""
    rng, out, merged, merge = np.random.default_rng(3), tmp_path / "found.npy", [], connection.merge
    origins, directions = rng.random((600, 3)) - 0.5, rng.normal(size=(600, 3))
    if end == "Ctrl-C":
        interrupted(cluster, put(tmp_path / "rays.npy", rb.Rays(origins, directions)), out, query="deposit")
    else:
        origins[450, 1] = np.nan
        np.save(tmp_path / "rays.npy", np.hstack([origins, directions]))
        with pytest.raises(rb.FileFormatError, match="is not a finite number"):
            rb.cast(SCENE, tmp_path / "rays.npy", out, cluster=cluster, chunk=20, ids=IDS, query="deposit")
    (first,) = (path.name for path in parts_of(out) if path.name.startswith("part-000000000"))

    def recorded(job, sums, folders, parts):
        merged.extend(part.name for part in parts)
        return merge(job, sums, folders, parts)

    monkeypatch.setattr(connection, "merge", recorded)
    _, done = both(cluster, tmp_path / "rays.npy", "npy", query="deposit", invalid="miss")
    assert done.resumed >= 60
    assert first in merged


# Unusable clusters


def test_no_scheduler_and_no_cluster(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "SECONDS", 0.3)
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "out.npy"
    with pytest.raises(
        rb.RayboxError, match=r"no scheduler is reachable at tcp://127\.0\.0\.1:1; .* start one"
    ):
        rb.cast(SCENE, rays, out, cluster="tcp://127.0.0.1:1")
    with pytest.raises(rb.InvalidInput, match=r"cluster must be an address like .*; got int"):
        rb.cast(SCENE, rays, out, cluster=3)
    how = {"n_workers": 0, "processes": False, "dashboard_address": None}
    with (
        distributed.LocalCluster(**how) as empty,
        pytest.raises(rb.RayboxError, match="has no workers; start some"),
    ):
        rb.cast(SCENE, rays, out, cluster=empty)
    assert not list(tmp_path.glob("out*"))


def test_dask_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(rb.RayboxError, match=r"not installed; run: pip install 'raybox\[cluster\]'"):
        rb.cast(SCENE, put(tmp_path / "rays.npz", RAYS), tmp_path / "out.npy", cluster="x")


def hide():
    sys.hidden = {name: sys.modules.pop(name) for name in [*sys.modules] if name.startswith("raybox")}
    sys.modules["raybox"] = None


def show():
    sys.modules.update(sys.hidden)


def change(name, value):
    module, _, name = name.rpartition(".")
    setattr(import_module(module), name, value)


def test_workers_without_raybox_or_with_another(cluster, tmp_path):
    rays, out = many_rays(tmp_path, 20), tmp_path / "found.npy"
    try:
        cluster.run(hide)
        text = rf"worker tcp\S+ has no raybox; install raybox {re.escape(rb.__version__)} there"
        with pytest.raises(rb.RayboxError, match=text):
            rb.cast(SCENE, rays, out, cluster=cluster)
    finally:
        cluster.run(show)
    try:
        cluster.run(change, "raybox.casting.cluster.__version__", "0.0.7")
        here = re.escape(connection.code_version())
        text = rf"worker tcp\S+ has raybox 0\.0\.7 .+, the client {here}; install the same, and restart it"
        with pytest.raises(rb.RayboxError, match=text):
            rb.cast(SCENE, rays, out, cluster=cluster)
    finally:
        cluster.run(change, "raybox.casting.cluster.__version__", rb.__version__)
    assert not list(tmp_path.glob("found*"))
    assert both(cluster, rays, "npy")[1].rays == 20


def test_an_asynchronous_client(cluster, tmp_path):
    async def cast(address, rays):
        async with distributed.Client(address, asynchronous=True, set_as_default=False) as client:
            with pytest.raises(rb.InvalidInput, match="cluster must not be an asynchronous Client"):
                rb.cast(SCENE, rays, tmp_path / "found.npy", cluster=client)

    asyncio.run(cast(cluster.scheduler.address, many_rays(tmp_path, 20)))


def wait_for(path):
    wait_until(path.exists, f"{path} is there")


def test_an_output_that_workers_do_not_see(cluster, tmp_path):
    """The files of the cast are renamed before a worker can open them."""
    rays, out, gate = many_rays(tmp_path, 20), tmp_path / "found.npy", tmp_path / "gate"
    files = folder_of(out) / "files"
    waiting = [cluster.submit(wait_for, gate, workers=[one], pure=False) for one in cluster.nthreads()]

    def rename():
        wait_for(files)
        files.rename(files.with_name("renamed"))
        gate.touch()

    renaming = Thread(target=rename)
    renaming.start()
    text = rf"worker tcp\S+ does not see {re.escape(str(files))}; rays and output must be in folders that all"
    with pytest.raises(rb.RayboxError, match=text):
        rb.cast(SCENE, rays, out, cluster=cluster)
    renaming.join()
    cluster.gather(waiting)


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="needs a name that means two folders")
def test_rays_that_workers_do_not_see(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    many_rays(tmp_path, 20)
    text = r"worker tcp\S+ does not see /proc/self/cwd/rays\.npy; .+ all machines share"
    with pytest.raises(rb.RayboxError, match=text):
        rb.cast(SCENE, "/proc/self/cwd/rays.npy", tmp_path / "found.npy", cluster=cluster)
