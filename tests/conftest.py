"""Set up the tests: a code cache of their own, Hypothesis, Ctrl-C, and the folders of tests/ on the path."""

import hashlib
import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent

# Tests share helpers, modules of helpers/, and cases of one another.
sys.path[:0] = [str(folder) for folder in TESTS.iterdir() if folder.is_dir()]
# One cache for all processes that test this checkout, apart from the user's own.
_CHECKOUT = hashlib.sha256(str(TESTS).encode()).hexdigest()[:16]
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"raybox-tests-{_CHECKOUT}"))

# Who was started in the background of a script ignores Ctrl-C, and so would the processes that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("local", deadline=None, suppress_health_check=_QUIET)
settings.register_profile("ci", deadline=None, suppress_health_check=_QUIET, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run all tests, those marked `long` too")


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "core: each layer, query and geometry in two minutes; `pytest -m core`"
    )
    config.addinivalue_line("markers", "long: takes a minute, most of it compilation; runs with --long")


def pytest_collection_modifyitems(config, items):
    """Drop long tests without --long; with it, begin with them: at the end a process would wait for them."""
    dropped = [item for item in items if item.get_closest_marker("long") and not config.option.long]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    long_files = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in long_files)


@pytest.fixture(scope="session")
def local():
    """Lend two worker processes of one thread each; those that are killed come back."""
    distributed = pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    how = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        # LocalCluster gives up a worker that was killed and is not back in 15 s, as on a busy machine.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        distributed.LocalCluster(**how, dashboard_address=None, scheduler_port=0) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def cluster(local):
    """Lend both workers, whatever the last test has done to them: one killed as it starts stays away."""
    from clustering import worker_pids
    from waiting import wait_until

    def are_two():  # Client.wait_for_workers would race with LocalCluster's own list of workers
        return len(worker_pids(local)) >= 2

    try:
        wait_until(are_two, "two workers are there", seconds=15)
    except AssertionError:
        local.cluster.scale(0)
        local.cluster.scale(2)
        wait_until(are_two, "two workers are there again")
    return local


@pytest.fixture
def log(cluster, tmp_path):
    """Give what workers note of their tasks, as lists of words."""
    from clustering import Log

    path = tmp_path / "log"
    cluster.register_plugin(Log(path))
    yield lambda: [line.split() for line in path.read_text().splitlines()]
    cluster.unregister_worker_plugin("log")


@pytest.fixture
def put(tmp_path):
    """Return a function that writes bytes or text to a file, and returns its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
