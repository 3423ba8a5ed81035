"""Run a reader that a damaged file can crash in a process of its own, so that it takes nobody with it.

Seen while bending files byte by byte: ifcopenshell 0.9 ends with a segmentation fault, lazrs 0.8 aborts on a
size that it cannot allocate, or prints the traces of a panic. None of that can be caught from inside.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from typing import cast as typed

from raybox.errors import FileFormatError
from raybox.io.formats.common import broken


@contextmanager
def piped(program: str, path: Path, *arguments: str) -> Iterator[BinaryIO]:
    """Run a Python program like `run`, and give its stdout to read from while it runs."""
    with tempfile.TemporaryFile() as said:
        running = subprocess.Popen(
            [*_command(program, path), *arguments], stdout=subprocess.PIPE, stderr=said, env=_environment()
        )
        assert running.stdout
        try:
            yield typed(BinaryIO, running.stdout)
            running.stdout.close()
            if running.wait():
                said.seek(0)
                raise _failed(path, running.returncode, said.read())
        finally:
            running.kill()
            running.wait()
            running.stdout.close()


def run(program: str, path: Path) -> bytes:
    """Run a Python program on a file and give what it writes to stdout; if it fails, say its last words."""
    done = subprocess.run(_command(program, path), capture_output=True, env=_environment(), check=False)
    if done.returncode:
        raise _failed(path, done.returncode, done.stderr)
    return done.stdout


def _command(program: str, path: Path) -> list[str]:
    return [sys.executable, "-P", "-c", program, str(path.resolve())]


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUTF8": "1"}


def _failed(path: Path, code: int, stderr: bytes) -> FileFormatError:
    lines = stderr.decode(errors="replace").strip().splitlines()
    said = lines[-1][:120] if lines and code > 0 else f"it crashed, code {code}"
    return broken(path, f"its reader fails ({said})", "check that the file is whole, or save it again")
