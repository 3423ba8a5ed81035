"""Run a reader that a damaged file can crash in a process of its own.

On some damaged files, ifcopenshell 0.9 ends with a segmentation fault, and lazrs 0.8 aborts on a size that it
cannot allocate, or prints the traces of a panic; neither can be caught in the same process.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from typing import cast as typed

from raybox.errors import FileFormatError
from raybox.io.formats.common import file_error

OUT_OF_TIME = "it does not end in time"
_SIGXCPU = -getattr(signal, "SIGXCPU", 0)
_CLASS = re.compile(r"^[\w.]*(Error|Exception)\b:? *")


class ProcessEnded(FileFormatError):
    """A reader's process ended before its work."""

    problem = ""
    """the text of its exception, or `OUT_OF_TIME`; "" for a crash"""


@contextmanager
def stream_stdout(program: str | Path, path: Path, *arguments: str) -> Iterator[BinaryIO]:
    """Run a Python program, a text or a file, on a file; yield its stdout, and raise if it fails."""
    source = [str(program)] if isinstance(program, Path) else ["-c", program]
    command = [sys.executable, "-P", *source, str(path.resolve()), *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUTF8": "1"}
    with tempfile.TemporaryFile() as stderr:
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, env=environment)
        assert running.stdout
        try:
            yield typed(BinaryIO, running.stdout)
            running.stdout.close()
            if running.wait():
                stderr.seek(0)
                raise _ended(path, running.returncode, stderr.read().decode(errors="replace"))
        finally:
            running.kill()
            running.wait()
            running.stdout.close()


def _ended(path: Path, code: int, stderr: str) -> ProcessEnded:
    """Return the error for a process that failed, with the text of its exception."""
    lines = stderr.strip().splitlines()
    problem = _CLASS.sub("", lines[-1])[:120] if lines and code > 0 else ""
    if code == _SIGXCPU or any(line.startswith("Timeout (") for line in lines):  # of faulthandler
        problem = OUT_OF_TIME
    text, way_out = problem or f"it crashed, code {code}", "check that the file is whole, or save it again"
    error = ProcessEnded(str(file_error(path, f"its reader fails ({text})", way_out)))
    error.problem = problem
    return error
