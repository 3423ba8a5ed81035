"""How the tests run: a test that ends its process, and the reasons of skipped tests at the end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import needs

ROOT = Path(__file__).parents[1]
DYING = """
import os

import pytest

def test_before():
    pass

def test_ends_its_process():
    os._exit(3)

@pytest.mark.parametrize("k", range(4))
def test_behind(k):
    pass
"""
SKIPPED = """
import pytest

from needs import package

def test_linter():
    package("mypy_of_nobody")

@pytest.mark.parametrize("k", range(2))
def test_table(k):
    pytest.importorskip("table_of_nobody.reader")
"""
WITHOUT = 'from needs import package\n\npackage("nothing_of_nobody")\n'


def run(folder, *options):
    """Run the tests of a folder as those of the repository; return the exit status and the lines printed."""
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-p", "conftest", *options]
    done = subprocess.run(
        [*command, "--color=no", str(folder)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def test_a_process_that_dies_costs_its_test_and_reasons_of_skips_come_last(tmp_path):
    pytest.importorskip("xdist")
    files = {"dying": DYING, "skipped": SKIPPED, "without": WITHOUT, "without_too": WITHOUT}
    for name, text in files.items():
        (tmp_path / f"test_{name}.py").write_text(text)
    status, lines = run(tmp_path, "-n", "1")
    assert status == pytest.ExitCode.TESTS_FAILED
    assert [line for line in lines if "crashed while running" in line and "ends_its_process" in line]
    assert "1 failed, 5 passed, 5 skipped" in lines[-1]
    assert lines[-4:-1] == [
        "skipped: 2 files: needs nothing_of_nobody",
        "skipped: 2 tests: needs table_of_nobody",
        "skipped: 1 test: needs mypy_of_nobody",
    ]


EXTRAS = {"ifcopenshell": "ifc", "mypy": "lint", "sphinx": "docs", "playwright": "browser", "polars": None}


@pytest.mark.parametrize("package", EXTRAS)
def test_a_skip_names_the_extra_that_installs_the_package(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(pytest.skip.Exception) as skipped:
        needs.package(package)
    extra = EXTRAS[package]
    assert str(skipped.value) == f"needs {f'raybox[{extra}]' if extra else package}"
