"""The folder of an unfinished output, beside it: its job, durable writes.

`raybox.io.chunked.journal` appends to one output there; `raybox.distributed.dask.part_folder` collects parts.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

from raybox.errors import RayboxError
from raybox.io import own_files
from raybox.io.checksums import Facts
from raybox.io.chunked.output_lock import is_lock
from raybox.io.chunked.part_files import sync_file
from raybox.io.formats.common import file_error

_SYNC_SECONDS = 0.5


def folder_of(target: Path, suffix: str) -> Path:
    """Return the folder beside an output."""
    place = target.resolve()
    return place.with_name(place.name + suffix)


def parts_folder_of(target: Path) -> Path:
    """Return the folder of an output's parts, which the workers of a cluster write."""
    return folder_of(target, ".raybox-parts")


def has_other_files(folder: Path, manifest: str) -> bool:
    """Return whether a folder without its manifest holds more than a lock and an unfinished manifest."""
    return any(item.name != manifest + ".new" and not is_lock(item.name) for item in folder.iterdir())


def foreign_folder(folder: Path, problem: str) -> RayboxError:
    """Return the error for a folder that is not one of raybox."""
    return file_error(folder, problem, "rename or remove it, or give another output")


def check_same_job(given: Path, folder: Path, before: Facts, now: Facts) -> None:
    """Raise `FileFormatError` if a folder is of another job."""
    before = dict(before)
    if before.get("invalid") == "raise":  # then no ray that is done was invalid
        before["invalid"] = now["invalid"]
    differ = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if differ:
        changes = ", ".join(
            f"{name} {_as_text(before.get(name))} there, {_as_text(now.get(name))} now" for name in differ
        )
        raise file_error(
            given,
            f"another command has started it, in {folder.name} ({changes})",
            "finish that command, or remove the folder, or give another output",
        )


def _as_text(value: object) -> str:
    return "none" if value is None else str(value)


def sync(output: Path) -> None:
    """Wait until a file, or every file of a folder, would survive a crash of the machine."""
    for path in [output] if output.is_file() else output.rglob("*"):
        if path.is_file():
            with own_files.open_own(path) as file:
                sync_file(file.fileno())


@contextmanager
def background_sync(sync_now: Callable[[], None]) -> Iterator[None]:
    """Call a function in a thread from time to time, so that little is left to sync at the end."""
    done = Event()

    def work() -> None:
        while not done.wait(_SYNC_SECONDS):
            with suppress(OSError):  # the last sync raises it again
                sync_now()

    thread = Thread(target=work, name="raybox-sync", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def sync_folder(path: Path) -> None:
    """Make names durable, on systems where a folder can be opened."""
    if os.name == "posix":
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
