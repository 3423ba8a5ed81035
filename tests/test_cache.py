"""Compiled code on disk: several processes at once, other versions, damaged files, full disks."""

import os
import pickle
import subprocess
import sys

import pytest
from numba.core.registry import cpu_target

from raybox.bvh import grow
from raybox.kernels import code
from raybox.kernels.cache import Shelf

ONE, OTHER = ("float64", "avx512"), ("float32", "avx512")


@pytest.fixture
def shelf(tmp_path):
    """Give what opens the files of a function as a process of its own would."""
    return lambda stamp="new", base="module.walk-12": Shelf(tmp_path, base, stamp)


def test_what_is_kept_is_given_back(shelf):
    shelf().save(ONE, {"code": b"1"})
    assert shelf().load(ONE) == {"code": b"1"}
    assert shelf().load(OTHER) is None
    assert shelf(base="module.walk-13").load(ONE) is None


def test_processes_that_save_at_once_keep_out_of_each_others_way(shelf, monkeypatch):
    """The second saves in the midst of the first one's saving, wherever that is."""
    dumped = pickle.dumps

    def dump(value):
        monkeypatch.setattr(pickle, "dumps", dumped)
        shelf().save(OTHER, "other")
        assert shelf().load(ONE) is None
        return dumped(value)

    monkeypatch.setattr(pickle, "dumps", dump)
    shelf().save(ONE, "one")
    assert (shelf().load(ONE), shelf().load(OTHER)) == ("one", "other")


def test_code_of_other_versions_is_not_given_and_is_replaced(shelf, tmp_path):
    shelf("old").save(ONE, "old")
    assert shelf().load(ONE) is None
    shelf().save(ONE, "new")
    assert (shelf().load(ONE), shelf("old").load(ONE)) == ("new", None)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("size", [0, 10, -1])
def test_damaged_files_are_compiled_anew(shelf, tmp_path, size):
    shelf().save(ONE, list(range(100)))
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:size])
    assert shelf().load(ONE) is None


def test_two_keys_of_one_name_are_told_apart(shelf, tmp_path):
    shelf().save(ONE, "one")
    (path,) = tmp_path.iterdir()
    path.rename(shelf()._path(OTHER))
    assert shelf().load(OTHER) is None


def test_what_cannot_be_written_is_left_out(shelf, tmp_path):
    shelf()._path(ONE).mkdir()
    shelf().save(ONE, "one")
    assert shelf().load(ONE) is None
    assert [path.name for path in tmp_path.iterdir()] == [shelf()._path(ONE).name]


def test_flush_forgets_a_function_and_no_other(shelf):
    for base in ("module.walk-12", "module.walk-1"):
        shelf(base=base).save(ONE, base)
    shelf(base="module.walk-1").flush()
    assert shelf(base="module.walk-1").load(ONE) is None
    assert shelf().load(ONE) == "module.walk-12"


LOAD = """
import sys
import numpy as np
from numba.core.runtime import rtsys
import raybox as rb
from raybox.bvh import groups, grow
scene = rb.Scene(rb.Boxes([[0, 0, 0], [2, 2, 2]], [[1, 1, 1], [3, 3, 3]]))
print(scene.nearest(rb.Rays(np.full((40, 3), -1.0), np.ones((40, 3)))).t.sum())
print(sum(groups.ask.stats.cache_hits.values()), "numba.np.arrayobj" in sys.modules, rtsys._init)
print(rb.intersect(rb.Rays([[1e-300, 0, 0]] * 2000, [1, 0, 0]), rb.Boxes([1, 0, 0], [2, 1, 1])).index.sum())
"""


def test_who_loads_code_is_spared_what_compiling_needs(tmp_path):
    """But for what takes whole numbers of any length: it holds arrays, for which Numba has to be ready."""
    told = [_run(LOAD, tmp_path) for _ in range(2)]
    assert told == ["40.0\n0 True True\n0\n", "40.0\n1 False False\n0\n"]


def test_code_that_calls_what_is_not_there_is_not_loaded():
    """LLVM would end the process."""
    assert code._make_known(("PyTuple_Size", "NRT_Allocate"), cpu_target.target_context)
    assert not code._make_known(("PyTuple_Size", "no_such_name"), cpu_target.target_context)
    lost = code.Code("lost", b"", (), ("no_such_name",))
    kept = code.Kept(grow.grow.py_func)
    assert kept.rebuild(cpu_target.target_context, (lost, None, None, None, (), ())) is None


def _run(what, cache):
    where = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, "-c", what], env=where, check=True, capture_output=True, text=True
    ).stdout
