"""Set up tests and pages: a code cache of their own, Hypothesis, Ctrl-C, and the folders of tests/."""

import hashlib
import os
import re
import signal
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent / "tests"
# Tests share helpers, modules of helpers/, and cases of one another.
sys.path[:0] = [str(folder) for folder in TESTS.iterdir() if folder.is_dir()]
# One cache for all processes that test this checkout, apart from the user's own.
_CHECKOUT = hashlib.sha256(str(TESTS).encode()).hexdigest()[:16]
os.environ.setdefault("RAYBOX_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"raybox-tests-{_CHECKOUT}"))

# Who was started in the background of a script ignores Ctrl-C, and so would the processes that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("local", deadline=None, suppress_health_check=_QUIET)
settings.register_profile("ci", deadline=None, suppress_health_check=_QUIET, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# Modules without examples, which doctest cannot import where a package is missing.
collect_ignore = ["docs/conf.py", "src/raybox/io/formats/ifc_products.py"]


HAS_NUMBA = find_spec("numba") is not None
NEEDS_NUMBA = "needs Numba"


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run all tests, those marked `long` too")
    parser.addoption(
        "--needs-numba",
        help="without Numba: write the names of tests that need it to a file; with Numba: run these alone",
    )
    parser.addoption("--write-passed", metavar="FILE", help="write the names of the tests that passed")
    parser.addoption(
        "--without", metavar="FILE", help="leave out the tests that passed in another run, but for the core"
    )


def pytest_configure(config):
    config.addinivalue_line("markers", "jit: compiles kernels of its own, for which Numba is needed")
    config.addinivalue_line(
        "markers", "core: each layer, query, geometry and fast path in two minutes; `pytest -m core`"
    )
    config.addinivalue_line(
        "markers", "long: takes many seconds and guards what seldom changes; runs with --long"
    )


def _names(path):
    """Return the lines of a file; none without a path."""
    return set(Path(path).read_text(encoding="utf-8").splitlines()) if path else set()


def _write_names(path, names):
    Path(path).write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")


def pytest_collection_modifyitems(config, items):
    """Drop long tests without --long; with it, begin with them: at the end a process would wait for them."""
    path = config.option.needs_numba if HAS_NUMBA else None
    alone, passed = _names(path), _names(config.option.without)

    def is_dropped(item):
        is_other = path and not alone & {item.nodeid, item.nodeid.partition("::")[0]}
        has_passed = item.nodeid in passed and not item.get_closest_marker("core")
        return is_other or has_passed or (item.get_closest_marker("long") and not config.option.long)

    dropped = [item for item in items if is_dropped(item)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if not is_dropped(item)]
    long_files = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in long_files)


def pytest_runtest_setup(item):
    if item.get_closest_marker("jit") and not HAS_NUMBA:
        pytest.skip(NEEDS_NUMBA)


def pytest_sessionfinish(session):
    """Write which tests passed, and which need Numba; fail if others are skipped: no run would have them."""
    option = session.config.option
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and option.write_passed:
        _write_names(option.write_passed, {report.nodeid for report in reporter.stats.get("passed", [])})
    if reporter and option.needs_numba and not HAS_NUMBA:
        skipped = reporter.stats.get("skipped", [])
        names = {report.nodeid for report in skipped if NEEDS_NUMBA in str(report.longrepr)}
        _write_names(option.needs_numba, names)
        if {report.nodeid for report in skipped} - names:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config, log):
    from crash_scheduler import CrashScheduling

    return CrashScheduling(config, log) if config.option.dist == "loadfile" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    """Write last why tests and whole files were skipped, a line for each reason."""
    yield
    names = defaultdict(set)
    for report in terminalreporter.stats.get("skipped", []):
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        reason = re.sub(r"^could not import '([\w-]+).*", r"needs \1", reason)
        names["test" if isinstance(report, pytest.TestReport) else "file", reason].add(report.nodeid)
    for (kind, reason), skipped in sorted(names.items(), key=lambda item: -len(item[1])):
        terminalreporter.write_line(f"skipped: {len(skipped)} {kind}{'s' * (len(skipped) > 1)}: {reason}")


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


@pytest.fixture(scope="module")
def browser():
    """Return a browser; while it runs, this thread has an event loop, so that it ends with its module."""
    from browser import CHROMIUM, chromium
    from needs import package

    package("playwright")
    package("ifcopenshell")  # for the scene of the house
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    with chromium() as made:
        yield made


@pytest.fixture(autouse=True)
def needs_of_examples(request, tmp_path, monkeypatch):
    """Change to a folder with the files that a page loads; skip examples without their package."""
    doctest = getattr(request.node, "dtest", None)
    if doctest is None:
        return
    import file_samples
    import real_data
    from needs import package

    text = "".join(example.source for example in doctest.examples)
    for name, words in (("ifcopenshell", '"house.ifc"'), ("scipy", ".to_sparse(")):
        if words in text:
            package(name)
    files = {"house.ifc": real_data.HOUSE, "city.city.json": real_data.CITY}
    files["town.city.json"] = file_samples.CASES / "j30_town.city.json"
    loaded = [name for name in files if f'rb.load("{name}"' in text]
    for name in loaded:
        (tmp_path / name).symlink_to(files[name])
    if loaded:
        monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def thousands_are_sorted(monkeypatch):
    """Sort more than 1,024 rays, so that tests of thousands test streams and packets; users' go one by one.

    A module may replace this fixture.
    """
    from sorting import sort_more_than

    sort_more_than(monkeypatch, 1024)


@pytest.fixture
def put(tmp_path):
    """Return a function that writes bytes or text to a file, and returns its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def in_thread():
    """Return a function that calls another in a thread, and returns a future of its result."""
    with ThreadPoolExecutor() as pool:
        yield pool.submit
