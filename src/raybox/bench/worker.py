"""A process for each measurement, bound to as many cores as it has threads before any thread starts.

``python -m raybox.bench.worker`` reads a spec (JSON) on stdin and writes the result (JSON) on stdout.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def run_apart(job: Callable[..., Any], how: dict[str, Any], *, threads: int) -> Any:
    """Return the result of a module's function, run in a process on so many cores."""
    order = json.dumps({"module": job.__module__, "job": job.__name__, "how": how, "threads": threads})
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        input=order,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},  # it imports the same modules
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{job.__name__} ended with exit code {done.returncode}; its output is above")
    return json.loads(done.stdout.splitlines()[-1])


def bind(threads: int) -> None:
    """Bind this process and its threads to so many cores."""
    if hasattr(os, "sched_setaffinity"):
        usable = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, usable[-threads:])
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TBB_NUM_THREADS"):
        os.environ[name] = str(threads)


def main() -> None:
    """Run the job read from stdin, and write its result to stdout; output goes to stderr."""
    order = json.load(sys.stdin)
    out = os.dup(1)
    os.dup2(2, 1)
    bind(order["threads"])
    result = getattr(import_module(order["module"]), order["job"])(**order["how"])
    with os.fdopen(out, "w") as stdout:
        stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
