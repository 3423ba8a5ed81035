"""Processes of a cast on a cluster that are killed: the scheduler, the client, both, at any step."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import contextmanager

import pytest
from raybox.casting.steps import VARIABLE

import raybox as rb
from clustering import folder_of
from streaming import RAYS, SCENE, content, put
from waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.skipif(os.name != "posix", reason="kills processes by signals")]

CLIENT = """
    import json, sys
    import raybox as rb
    from streaming import SCENE
    scheduler, rays, out = sys.argv[1:4]
    try:
        done = rb.cluster.cast(SCENE, rays, out, cluster=scheduler, chunk=20, **json.loads(sys.argv[4]))
        print(done.resumed)
    except rb.RayboxError as error:
        print(error)
"""


@contextmanager
def process(*command, **environment):
    """Start a process, and end it."""
    path = os.pathsep.join(filter(None, sys.path))
    env = os.environ | {"PYTHONPATH": path} | environment
    started = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


@contextmanager
def scheduler(folder, name):
    """Start a scheduler; yield its address, and its process."""
    file = folder / f"{name}.json"
    command = (sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard")
    with process(*command, "--scheduler-file", str(file)) as started:
        wait_until(lambda: is_written(file), "the scheduler has an address")
        yield json.loads(file.read_text())["address"], started


def is_written(file):
    try:
        return "address" in json.loads(file.read_text())
    except (OSError, ValueError):
        return False


@contextmanager
def cluster_of(folder, name):
    """Start a scheduler and a worker."""
    worker = (sys.executable, "-m", "distributed.cli.dask_worker", "--no-dashboard", "--nthreads", "1")
    with scheduler(folder, name) as (address, process_of), process(*worker, address):
        yield address, process_of


def client(address, rays, out, how=None, **environment):
    code = textwrap.dedent(CLIENT)
    return process(
        sys.executable, "-c", code, address, str(rays), str(out), json.dumps(how or {}), **environment
    )


@pytest.fixture
def rays(tmp_path):
    return put(tmp_path / "rays.npy", RAYS)


@pytest.fixture
def wanted(tmp_path, rays):
    rb.stream.cast(SCENE, rays, out := tmp_path / "wanted.npy", chunk=20)
    return out.read_bytes()


def finish(address, rays, out):
    """Cast again; return the rays that were done before."""
    with client(address, rays, out) as again:
        printed, errors = again.communicate(timeout=300)
    assert printed.strip().isdecimal(), printed + errors
    assert not folder_of(out).exists()
    return int(printed)


STEPS = [
    "folder made",
    "job stored",
    "part joined",
    "part joined:4",
    "prefix synced",
    "prefix stored",
    "part removed:3",
    "output complete",
    "place stored",
    "output placed",
]


def test_a_client_that_is_killed_at_each_step(tmp_path, rays, wanted):
    """Another client continues on the same cluster, to the same bytes."""
    with cluster_of(tmp_path, "one") as (address, _):
        for number, step in enumerate(STEPS):
            out = tmp_path / f"out{number}.npy"
            with client(address, rays, out, **{VARIABLE: step}) as killed:
                killed.communicate(timeout=300)
            assert killed.returncode == -signal.SIGKILL, step
            assert finish(address, rays, out) >= (0 if "made" in step or "stored" in step else 20)
            assert out.read_bytes() == wanted


def test_a_scheduler_that_is_killed(tmp_path, rays, wanted):
    """The client ends with an error that names it; the same command continues on another cluster."""
    out = tmp_path / "out.npy"
    many = tmp_path / "many.npy"
    put(many, RAYS[[0] * 20_000])
    with cluster_of(tmp_path, "one") as (address, process_of), client(address, many, out) as started:
        wait_until((folder_of(out) / "joined").exists, "the cast has begun")
        wait_until(lambda: (folder_of(out) / "joined").stat().st_size > 0, "parts are joined")
        process_of.kill()
        printed, errors = started.communicate(timeout=300)
    assert "start it again" in printed, printed + errors
    assert "the same command continues" in printed
    with cluster_of(tmp_path, "two") as (address, _):
        assert finish(address, many, out) >= 20
    rb.stream.cast(SCENE, many, tmp_path / "alone.npy", chunk=20)
    assert content(out).popitem()[1] == content(tmp_path / "alone.npy").popitem()[1]


def test_what_a_cluster_began_one_machine_finishes(tmp_path, rays, wanted):
    out = tmp_path / "out.npy"
    how = {VARIABLE: "prefix stored"}
    with cluster_of(tmp_path, "one") as (address, _), client(address, rays, out, **how) as killed:
        killed.communicate(timeout=300)
    done = rb.stream.cast(SCENE, rays, out, chunk=20)
    assert done.resumed >= 20
    assert out.read_bytes() == wanted
