"""Processes of a cast on a cluster that are killed: the scheduler, the client, both, at any step."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from pathlib import Path

import pytest

import raybox as rb
from clustering import folder_of, parts_of
from streaming import RAYS, SCENE, content, put
from waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.skipif(os.name != "posix", reason="kills processes by signals")]

CLIENT = """
    import json, sys
    import raybox as rb
    from streaming import SCENE
    from disk_faults import faults, kill
    scheduler, rays, out = sys.argv[1:4]
    try:
        with faults(json.loads(sys.argv[4]), kill):
            done = rb.cast(SCENE, rays, out, cluster=scheduler, chunk=20)
        print(done.resumed)
    except rb.RayboxError as error:
        print(error)
"""


@contextmanager
def process(*command, **environment):
    """Start a process, and end it."""
    path = os.pathsep.join(filter(None, [*sys.path, str(Path(__file__).parents[2] / "benchmarks")]))
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


def client(address, rays, out, killed_at=None):
    code = textwrap.dedent(CLIENT)
    return process(sys.executable, "-c", code, address, str(rays), str(out), json.dumps(killed_at))


@pytest.fixture
def rays(tmp_path):
    return put(tmp_path / "rays.npy", RAYS)


@pytest.fixture
def wanted(tmp_path, rays):
    rb.cast(SCENE, rays, out := tmp_path / "wanted.npy", chunk=20)
    return out.read_bytes()


def finish(address, rays, out):
    """Cast again; return the rays that were done before."""
    with client(address, rays, out) as again:
        printed, errors = again.communicate(timeout=300)
    assert printed.strip().isdecimal(), printed + errors
    assert not folder_of(out).exists()
    return int(printed)


def test_a_client_that_is_killed_at_some_calls(tmp_path, rays, wanted):
    """Another client continues on the same cluster, to the same bytes."""
    with cluster_of(tmp_path, "one") as (address, _):
        kills = 0
        for number in (0, 3, 10, 14, 18, 22, 26, 30, 34, 38):
            out = tmp_path / f"out{number}.npy"
            with client(address, rays, out, number) as killed:
                killed.communicate(timeout=300)
            kills += killed.returncode == -signal.SIGKILL
            assert finish(address, rays, out) >= 0
            assert out.read_bytes() == wanted
        assert kills > 4


def test_a_scheduler_that_is_killed(tmp_path, rays, wanted):
    """The client ends with an error that names it; the same command continues on another cluster."""
    out = tmp_path / "out.npy"
    many = tmp_path / "many.npy"
    put(many, RAYS[[0] * 20_000])
    with cluster_of(tmp_path, "one") as (address, process_of), client(address, many, out) as started:
        wait_until(lambda: len(parts_of(out)) > 2, "parts are written")
        process_of.kill()
        printed, errors = started.communicate(timeout=300)
    assert "start it again" in printed, printed + errors
    assert "the same command continues" in printed
    with cluster_of(tmp_path, "two") as (address, _):
        assert finish(address, many, out) >= 20
    rb.cast(SCENE, many, tmp_path / "alone.npy", chunk=20)
    assert content(out).popitem()[1] == content(tmp_path / "alone.npy").popitem()[1]


def test_what_a_cluster_began_one_machine_finishes(tmp_path):
    many, out = put(tmp_path / "many.npy", RAYS[[0] * 20_000]), tmp_path / "out.npy"
    with cluster_of(tmp_path, "one") as (address, _), client(address, many, out) as started:
        wait_until(lambda: len(parts_of(out)) > 2, "parts are written")
        started.send_signal(signal.SIGKILL)
        started.communicate(timeout=300)
    done = rb.cast(SCENE, many, out, chunk=20)
    assert done.resumed >= 20
    rb.cast(SCENE, many, tmp_path / "alone.npy", chunk=20)
    assert out.read_bytes() == (tmp_path / "alone.npy").read_bytes()
