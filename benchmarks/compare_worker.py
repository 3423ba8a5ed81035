"""A worker process of `compare.py`: runs requests on its tree, both ways as lines of JSON."""

import json
import os
import resource
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

import finer
import raybox as rb
import street
from compare_actions import ACTIONS, Given, Task
from compare_data import save_geometry

MOST_STORED = 8  # containers of one scene
_state: dict[str, Any] = {"scene": "", "stored": {}, "task": None}


def prepare(case: dict[str, Any]) -> dict[str, str]:
    """Set a case up, run it once, and return checksums of its result.

    Containers of other scenes are removed first.
    """
    if _state["scene"] != case["files"]["geometry"]:
        _state.update(scene=case["files"]["geometry"], stored={}, task=None)
    while len(_state["stored"]) > MOST_STORED:
        del _state["stored"][next(key for key in _state["stored"] if key != "scene")]
    task = ACTIONS[case["action"]](Given(case["files"], case["options"], _state["stored"]))
    _state["task"] = task
    state = task.before()
    return task.digest(task.call(state))


def cpu_seconds() -> float:
    """Return the processor time of all threads, and of processes that ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


CLOCKS = {"wall": time.perf_counter, "cpu": cpu_seconds}


def measure(calls: int, name: str) -> float:
    """Return the seconds of so many calls by this clock, without their preparation."""
    task: Task = _state["task"]
    clock, seconds = CLOCKS[name], 0.0
    for _ in range(calls):
        state = task.before()
        start = clock()
        result = task.call(state)
        seconds += clock() - start
        del result, state
    return seconds


def convert(source: str, target: str, name: str) -> list[str]:
    """Convert a real file for `compare_data`; return its paths, for a street also those of rays."""
    if not Path(source).is_dir():
        geometry = rb.load(source, boxes=source.endswith(".json") and not name.endswith("-triangles"))
        if isinstance(geometry, rb.Mesh) and not name.endswith("-triangles"):
            mesh = finer.subdivided(geometry) if name.endswith("-finer") else geometry
            geometry = rb.Boxes.of_triangles(mesh.vertices, mesh.faces)
        return [_arrays_of(geometry, Path(target))]
    made = Path(target).with_suffix("")
    street.make(Path(source), made)
    beams = rb.load(made / "beams.npz", kind="rays").reshape(-1)
    rays = Path(f"{made}.beams.npz")
    np.savez(rays, origins=beams.origins, directions=beams.directions)
    return [_arrays_of(rb.load(made / "cuboids.npz"), Path(target)), str(rays)]


def _arrays_of(geometry: Any, target: Path) -> str:
    names = ("vertices", "faces") if isinstance(geometry, rb.Mesh) else ("lower", "upper")
    save_geometry(target, [{name: getattr(geometry, name) for name in names}])
    return str(target)


def version() -> str:
    return str(rb.__file__)


REQUESTS = {"prepare": prepare, "measure": measure, "convert": convert, "version": version}


def main() -> None:
    """Serve requests until there are no more; what libraries print goes to stderr."""
    with os.fdopen(os.dup(1), "w") as replies:
        os.dup2(2, 1)
        for line in sys.stdin:
            name, arguments = json.loads(line)
            try:
                reply: dict[str, Any] = {"value": REQUESTS[name](*arguments)}
            except Exception as error:
                reply = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
            print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
