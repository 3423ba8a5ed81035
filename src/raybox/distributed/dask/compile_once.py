"""Compile a query once on a machine, whatever the number of worker processes."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from raybox.errors import FileFormatError
from raybox.io import own_files
from raybox.io.chunked.file_lock import NoLocks, try_lock
from raybox.io.chunked.small_scene import run_in_small_scene

_SECONDS = 120.0  # to wait for another process that compiles


def compile_query(query: str, dimension: int, kind: str) -> None:
    """Compile a query, or load its code.

    One process of this machine at a time.

    kind: what the scene is made of, "boxes", "grid" or "mesh".
    """
    with _one_process():
        run_in_small_scene(query, dimension, kind)


@contextmanager
def _one_process() -> Iterator[None]:
    """Lock out other processes of this machine and user, on systems with such locks."""
    user = os.getuid() if os.name == "posix" else "user"  # elsewhere, each user has a temporary folder
    try:
        file = own_files.open_own(Path(tempfile.gettempdir()) / f"raybox-{user}.lock")
    except (OSError, FileFormatError):  # then several compile
        yield
        return
    with file:
        until = time.monotonic() + _SECONDS
        with suppress(NoLocks, OSError):
            while time.monotonic() < until and not try_lock(file.fileno()):
                time.sleep(0.05)
        yield
