"""Run a reader that a damaged file can crash in a process of its own, so that it takes nobody with it.

Seen while bending files byte by byte: ifcopenshell 0.9 ends with a segmentation fault, lazrs 0.8 aborts on a
size that it cannot allocate, or prints the traces of a panic. None of that can be caught from inside.
"""

import os
import subprocess
import sys
from pathlib import Path

from raybox.files.common import broken


def run(program: str, path: Path) -> bytes:
    """Run a Python program on a file and give what it writes to stdout; if it fails, say its last words."""
    command = [sys.executable, "-P", "-c", program, str(path.resolve())]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUTF8": "1"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        said = lines[-1][:120] if lines and done.returncode > 0 else f"it crashed, code {done.returncode}"
        raise broken(path, f"its reader fails ({said})", "check that the file is whole, or save it again")
    return done.stdout
