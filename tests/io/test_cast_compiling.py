"""Compilation ends before the time of a cast begins."""

import os
import subprocess
import sys

import numpy as np
import pytest

import raybox as rb

_CAST = """
import sys
from numba.core import event
import raybox as rb
from raybox.io.chunked import casting

compiled, before_the_time = [], None

class Listener(event.Listener):
    def on_start(self, happening):
        compiled.append(happening.data["dispatcher"].py_func.__name__)
    def on_end(self, happening):
        pass

def compile_cast(*arguments):
    global before_the_time
    compile_before(*arguments)
    before_the_time = len(compiled)

compile_before, casting.compile_cast = casting.compile_cast, compile_cast
event.register("numba:compile", Listener())
scene = rb.Scene(rb.load("boxes.npz"))
rb.stream.cast(scene, sys.argv[1], "out.npy", query=sys.argv[2])
print(before_the_time > 5, compiled[before_the_time:])
"""


@pytest.mark.long
@pytest.mark.parametrize(("rays", "query"), [("rays.npy", "nearest"), ("rays.csv", "deposit")])
def test_nothing_is_compiled_within_the_seconds(tmp_path, rays, query):
    rng = np.random.default_rng(0)
    rb.save(tmp_path / "boxes.npz", rb.Boxes.from_centers(rng.random((300, 3)), 0.1))
    rb.save(tmp_path / rays, rb.Rays(rng.random((5000, 3)), rng.normal(size=(5000, 3))))
    done = subprocess.run(
        [sys.executable, "-c", _CAST, rays, query],
        cwd=tmp_path,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "code")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("True []\n", "")
