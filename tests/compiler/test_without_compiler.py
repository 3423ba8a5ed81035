"""With NUMBA_DISABLE_JIT=1, compiled code raises one clear error."""

import os
import subprocess
import sys

import pytest

SCENE = """
import numpy as np, raybox as rb
lower = np.random.default_rng(0).random((5000, 3))
rb.Scene(rb.Boxes(lower, lower + 0.1)).nearest(rb.Rays(lower, lower))
"""
PAIRS = """
import numpy as np, raybox as rb
rows = np.random.default_rng(0).random((5000, 3))
rb.intersect(rb.Rays(rows, rows), rb.Boxes(rows, rows + 0.1))
"""
MESSAGE = "RayboxError: raybox needs Numba's compiler; got NUMBA_DISABLE_JIT=1"


def run(code):
    env = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("code", [SCENE, PAIRS])
def test_compiled_code_raises_one_clear_error(code):
    ended = run(code)
    assert ended.returncode == 1
    assert MESSAGE in ended.stderr.splitlines()[-1]
    assert "During handling" not in ended.stderr
    assert "Unset it" in ended.stderr


def test_the_command_line_says_it_in_one_line(tmp_path):
    code = f"""
import sys
from raybox.cli import main
sys.argv = ["raybox", "cast", "scene.npz", "rays.npz", "-o", "hits.npz"]
import os, numpy as np, raybox as rb
os.chdir({str(tmp_path)!r})
rows = np.random.default_rng(0).random((5000, 3))
rb.save("scene.npz", rb.Boxes(rows, rows + 0.1))
rb.save("rays.npz", rb.Rays(rows, rows))
main()
"""
    ended = run(code)
    assert ended.returncode != 0
    assert "Traceback" not in ended.stderr
    assert "NUMBA_DISABLE_JIT=1" in ended.stderr
