"""Where raybox's own linking fails, Numba compiles alone: one warning, the same bits."""

import os
import platform
import subprocess
import sys
import warnings
from pathlib import Path

import llvmlite
import numba
import numpy as np
import pytest
from numba import _dynfunc
from numba.core import config
from numba.core.codegen import CodeLibrary

from core_cases import every_result
from fallback import NAMES
from raybox.compiler import backend, plain_backend, probe
from test_code_cache import COUNT, DISK, _count, engine  # noqa: F401  # a fixture

RUNNER = Path(__file__).parents[1] / "helpers" / "fallback.py"
VERSIONS = (
    f"Numba {numba.__version__}, llvmlite {llvmlite.__version__} and Python {platform.python_version()}"
)


@pytest.mark.long
def test_the_core_has_the_same_bits_where_a_name_is_missing(tmp_path):
    """Without optimization: LLVM then takes half the time, and the bits are the same."""
    command = [sys.executable, str(RUNNER), "numba.core.caching:_Cache", str(tmp_path / "results.npz")]
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_OPT": "0"}
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    warning, *rest = ended.stdout.splitlines()
    assert warning.startswith(f"raybox cannot link and store compiled code with {VERSIONS} (")
    assert "ImportError: cannot import name '_Cache'" in warning
    assert f"{len(NAMES)} passed" in rest[-1]
    assert not any(line.startswith("raybox cannot") for line in rest)
    own, plain = every_result(NAMES), np.load(tmp_path / "results.npz")
    assert sorted(own) == sorted(plain)
    assert len(own) > 20
    for name, array in own.items():
        assert array.dtype == plain[name].dtype, name
        assert array.tobytes() == plain[name].tobytes(), name


@pytest.fixture
def unchosen(monkeypatch, tmp_path):
    """Choose anew, with nothing stored."""
    monkeypatch.setattr(backend, "_CHOSEN", [])
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))


def test_the_probe_passes_when_compiled_and_when_loaded(unchosen, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert backend.choose() is probe.LINKED
        monkeypatch.setattr(backend, "_CHOSEN", [])
        monkeypatch.setattr(probe, "reload", None)  # what is loaded needs no further check
        assert backend.choose() is probe.LINKED


FAILURES = {
    "compile": lambda patch: patch.delattr(_dynfunc, "make_function"),
    "store": lambda patch: patch.delattr(CodeLibrary, "_get_compiled_object"),
    "load": lambda patch: patch.delattr(CodeLibrary, "_set_compiled_object"),
    "value": lambda patch: patch.setattr(probe, "_SUM_OF_SQUARES", 8.0),
    "word": lambda patch: patch.setattr(probe, "_SUM_OF_WORDS", 46),
}


@pytest.mark.parametrize("stage", FAILURES)
def test_a_failure_of_any_stage_leads_to_numba_with_one_warning(stage, unchosen, monkeypatch):
    with monkeypatch.context() as patch:
        FAILURES[stage](patch)
        with pytest.warns(RuntimeWarning, match="raybox cannot link and store") as caught:
            assert backend.choose() is plain_backend.PLAIN
    assert len(caught) == 1
    reason = {"value": "ArithmeticError: the probe computes 7.875, not 8.0", "word": "computes 45, not 46"}
    assert reason.get(stage, "AttributeError") in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert backend.choose() is plain_backend.PLAIN


PLAIN = """
import warnings, numba.core.caching
warnings.simplefilter("ignore")
del numba.core.caching._Cache
"""
HITS = (
    "(entry,) = engine.count.dispatcher.dispatchers.values()\nprint(sum(entry.stats.cache_hits.values()))\n"
)
PLAIN_COUNT = (
    PLAIN + COUNT.partition("print")[0] + "print(engine.count(disk.Disk(near=1, far=2), 10))\n" + HITS
)


def test_numba_loads_what_it_stored_until_a_users_file_changes(engine):  # noqa: F811
    """The primitive's file, and one that it imports: Numba's own key covers the loop's file alone."""
    assert [_count(engine, PLAIN_COUNT) for _ in range(2)] == ["10\n0\n", "10\n1\n"]
    (engine / "disk.py").write_text(DISK.replace("return HIT\n", "return 2 * HIT\n"))
    assert [_count(engine, PLAIN_COUNT) for _ in range(2)] == ["20\n0\n", "20\n1\n"]
    (engine / "hits.py").write_text("HIT = 2\n")
    assert _count(engine, PLAIN_COUNT) == "40\n0\n"


def test_numba_loads_no_code_of_another_kernel(engine):  # noqa: F811
    """Of a file that neither the loop's file nor the struct's imports."""
    other = "from disk import *\n@device\ndef crosses(disk, i):\n    return 3\n"
    (engine / "other.py").write_text(other)
    both = PLAIN_COUNT.replace("engine, disk\n", "engine, disk, other\n")
    script = both.replace("] = disk", "] = other")
    assert [_count(engine, text) for text in (both, script)] == ["10\n0\n", "30\n0\n"]
    (engine / "other.py").write_text(other.replace("3", "4"))
    assert [_count(engine, script) for _ in range(2)] == ["40\n0\n", "40\n1\n"]


def test_numba_stores_no_kernels_that_no_file_shows(engine):  # noqa: F811
    closure = "= type('', (), {'crosses': disk.make(int(sys.argv[1]))})\n"
    script = "import sys\n" + PLAIN_COUNT.replace("= disk\n", closure)
    assert [_count(engine, script, str(n)) for n in (1, 2)] == ["10\n0\n", "20\n0\n"]
    assert not list(engine.rglob("*.nb?"))


def test_entries_compile_where_numba_has_no_folder(unchosen, monkeypatch, tmp_path):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "file" / "folder"))
    (tmp_path / "file").write_text("")
    count = plain_backend.PlainEntry(_twice, {"nogil": True})
    assert (count(2), count(2.5)) == (4, 5.0)


def _twice(x):
    return x + x
