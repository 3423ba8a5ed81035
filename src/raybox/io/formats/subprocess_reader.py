"""Run a reader that a damaged file can crash in a process of its own.

On some damaged files, ifcopenshell 0.9 ends with a segmentation fault, and lazrs 0.8 aborts on a size that it
cannot allocate, or prints the traces of a panic; neither can be caught in the same process.
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
from raybox.io.formats.common import file_error


@contextmanager
def stream_stdout(program: str | Path, path: Path, *arguments: str) -> Iterator[BinaryIO]:
    """Run a Python program, a text or a file, on a file.

    Yield its stdout, to read while it runs; raise with its last line if it fails.
    """
    with tempfile.TemporaryFile() as stderr:
        running = subprocess.Popen(
            [*_command(program, path), *arguments], stdout=subprocess.PIPE, stderr=stderr, env=_environment()
        )
        assert running.stdout
        try:
            yield typed(BinaryIO, running.stdout)
            running.stdout.close()
            if running.wait():
                stderr.seek(0)
                raise _failed(path, running.returncode, stderr.read())
        finally:
            running.kill()
            running.wait()
            running.stdout.close()


def run(program: str, path: Path) -> bytes:
    """Return the stdout of a Python program run on a file.

    Raise with its last line if it fails.
    """
    done = subprocess.run(_command(program, path), capture_output=True, env=_environment(), check=False)
    if done.returncode:
        raise _failed(path, done.returncode, done.stderr)
    return done.stdout


def _command(program: str | Path, path: Path) -> list[str]:
    source = [str(program)] if isinstance(program, Path) else ["-c", program]
    return [sys.executable, "-P", *source, str(path.resolve())]


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUTF8": "1"}


def _failed(path: Path, code: int, stderr: bytes) -> FileFormatError:
    lines = stderr.decode(errors="replace").strip().splitlines()
    problem = lines[-1][:120] if lines and code > 0 else f"it crashed, code {code}"
    return file_error(path, f"its reader fails ({problem})", "check that the file is whole, or save it again")
