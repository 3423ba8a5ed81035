"""Progress bars on stderr, and casts without one, which do not need the lock of tqdm's bars."""

import os

import pytest

from processes import python

CHILD_KILLED_IN_THE_LOCK = """
import os, signal, sys
from pathlib import Path
import numpy as np
import raybox as rb
from tqdm import tqdm

lock = tqdm.get_lock()
reading, writing = os.pipe()
child = os.fork()
if not child:
    lock.acquire()
    os.write(writing, b"locked")
    signal.pause()
os.read(reading, 6)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)

folder = Path(sys.argv[1])
scene = rb.Scene(rb.Boxes(np.zeros((1, 3)), np.ones((1, 3))))
rays = rb.Rays(np.full((50_000, 3), -1.0), np.ones((50_000, 3)))
rb.save(folder / "rays.npy", rays)
print(scene.nearest(rays).hit.sum(), rb.cast(scene, folder / "rays.npy", folder / "hits.npy").rays)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
def test_a_child_that_was_killed_in_the_lock_of_bars_stops_no_cast(tmp_path):
    done = python("-c", CHILD_KILLED_IN_THE_LOCK, tmp_path, timeout=200)
    assert (done.stdout.split(), done.stderr) == (["50000", "50000"], "")


def test_a_bar_counts_rays():
    script = """
import time
from raybox.threads.progress import progress_bar
for shown in (False, True):
    with progress_bar("rays", 4000, shown=shown) as bar:
        time.sleep(0.6)
        bar.update(3000)
    print(bar.n, bar.total)
"""
    done = python("-c", script)
    assert done.stdout.split() == ["3000", "4000"] * 2
    last = done.stderr.split("\n")[-2]  # of the bar that is shown, and closed
    assert "3.00k/4.00k" in last
