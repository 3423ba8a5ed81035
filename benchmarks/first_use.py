"""Times of first calls in new processes, with and without compiled code on disk."""

import compileall
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import raybox
from raybox.bench import machine

# Seconds since the import of raybox began; 20,000 rays are enough to reach every compiled loop.
_CODE = """
import json, time
started = time.perf_counter()
import raybox as rb, numpy as np
def lap(): return time.perf_counter() - started
random = np.random.default_rng(0)
lower = random.random((1000, 3))
laps = {"import": lap()}
scene = rb.Scene(rb.Boxes(lower, lower + 0.01)); laps["Scene"] = lap()
rays = rb.Rays(random.random((20_000, 3)), random.standard_normal((20_000, 3)))
for query in ("nearest", "occluded", "count", "all"):
    getattr(scene, query)(rays); laps[query] = lap()
rb.intersect(rays, rb.Boxes(lower[:1], lower[:1] + 0.01)); laps["intersect"] = lap()
print(json.dumps(laps))
"""


def first_use(repeats: int = 2) -> dict[str, Any]:
    """Return the times of new processes with an empty cache folder, then with the filled one.

    Modules have their byte code, as installed ones do.
    """
    compileall.compile_dir(Path(raybox.__file__).parent, quiet=2)
    compiled, loaded = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            compiled.append(_laps(folder))
            loaded.append(_laps(folder))
    return {"machine": machine.describe(), "compiled": compiled, "loaded": loaded}


def _laps(cache: str) -> dict[str, float]:
    """Return the seconds of each step."""
    done = subprocess.run(
        [sys.executable, "-c", _CODE],
        env=os.environ | {"RAYBOX_CACHE_DIR": cache},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    laps = json.loads(done.stdout)
    marks = [0.0, *laps.values()]
    return {name: after - before for name, before, after in zip(laps, marks, marks[1:], strict=False)}
