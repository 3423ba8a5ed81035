"""Without Numba, or with NUMBA_DISABLE_JIT=1: what needs a compiler raises one clear error."""

import pytest

from processes import python

SCENE = """
import numpy as np, raybox as rb
lower = np.random.default_rng(0).random((5000, 3))
rb.Scene(rb.Boxes(lower, lower + 0.1)).nearest(rb.Rays(lower, lower))
"""
COMMAND = """
import os, sys
from raybox.cli import main
sys.argv = ["raybox", "cast", "scene.npz", "rays.npz", "-o", "hits.npz"]
import numpy as np, raybox as rb
rows = np.random.default_rng(0).random((5000, 3))
rb.save("scene.npz", rb.Boxes(rows, rows + 0.1))
rb.save("rays.npz", rb.Rays(rows, rows))
main()
"""
HIDDEN = "import sys; sys.modules['numba'] = sys.modules['llvmlite'] = None\n"
NO_JIT = "NUMBA_DISABLE_JIT=1 (environment"
NO_LIBRARY = 'Numba, which compiles them, is not installed: pip install "raybox[jit]"'
EMPTY = "from raybox.compiler import library\nlibrary.library = lambda: library.Library(None, {})\n"
OWN = """
from typing import NamedTuple
from raybox.compiler.entry_points import entry
from raybox.compiler.struct_ref import struct
@struct
class Own(NamedTuple):
    size: int
@entry
def size_of(own):
    return own.size
size_of(Own(1))
"""


def run(code, tmp_path, **environment):
    return python("-c", code, cwd=tmp_path, RAYBOX_LEVEL="jit", **environment)


@pytest.mark.jit
@pytest.mark.parametrize("code", [SCENE, COMMAND])
def test_a_compiler_that_is_turned_off_is_one_clear_error(code, tmp_path):
    ended = run(code, tmp_path, NUMBA_DISABLE_JIT="1")
    assert ended.returncode == (1 if code == SCENE else 2)
    last = ended.stderr.splitlines()[-1]
    assert NO_JIT in last
    assert "Unset it" in last
    assert "During handling" not in ended.stderr
    assert ("Traceback" in ended.stderr) == (code == SCENE)


@pytest.mark.parametrize("code", [SCENE, COMMAND])
def test_neither_library_nor_compiler_is_one_clear_error(code, tmp_path):
    ended = run(HIDDEN + code, tmp_path)
    assert ended.returncode == (1 if code == SCENE else 2)
    assert NO_LIBRARY in ended.stderr.splitlines()[-1]
    assert "During handling" not in ended.stderr


def test_a_primitive_of_a_users_own_names_the_extra(tmp_path):
    """Beside a library of kernels, which here is one of no kernels."""
    ended = run(HIDDEN + EMPTY + OWN, tmp_path)
    assert ended.returncode == 1
    assert 'is compiled by Numba, which is not installed: pip install "raybox[jit]"' in ended.stderr
    assert "During handling" not in ended.stderr


def test_a_combination_that_the_library_lacks_is_the_line_to_add(tmp_path):
    ended = run(HIDDEN + EMPTY + SCENE, tmp_path)
    assert ended.returncode == 1
    assert "lacks this line of kernels.txt: raybox.bvh." in ended.stderr.splitlines()[-1]
