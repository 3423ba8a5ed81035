"""The folder of an output that is begun, beside it: whose it is, who may write, what survives the machine.

`raybox.io.chunked.journal` keeps one file that grows there, `raybox.distributed.dask.part_folder` many that
are whole.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

from raybox.errors import RayboxError
from raybox.io.chunked.part_files import put_away
from raybox.io.formats.common import broken

LOCK = "lock"
_SECONDS = 0.5

Facts = dict[str, Any]


def folder_of(target: Path, ending: str) -> Path:
    """Give the folder beside an output."""
    place = target.resolve()
    return place.with_name(place.name + ending)


def holds_others(folder: Path, told: str) -> bool:
    """Tell whether there is more than a lock and the beginnings of the file that would tell whose it is."""
    return bool({item.name for item in folder.iterdir()} - {LOCK, told + ".new"})


def foreign(folder: Path, problem: str) -> RayboxError:
    """Word that a folder is somebody else's."""
    return broken(folder, problem, "rename or remove it, or give another output")


def compare(given: Path, folder: Path, before: Facts, now: Facts) -> None:
    """Refuse to go on with what another command has begun."""
    before = dict(before)
    if before.get("invalid") == "raise":  # then no ray that is done was invalid
        before["invalid"] = now["invalid"]
    differ = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if differ:
        shown = ", ".join(
            f"{name} {_said(before.get(name))} there, {_said(now.get(name))} now" for name in differ
        )
        raise broken(
            given,
            f"another command has begun it, in {folder.name} ({shown})",
            "finish that command, or remove the folder, or give another output",
        )


def _said(value: Any) -> str:
    return "none" if value is None else str(value)


@contextmanager
def held(target: Path, folder: Path) -> Iterator[None]:
    """Make an output's folder, and keep other processes out of it."""
    folder.mkdir(exist_ok=True)
    with (folder / LOCK).open("w") as lock:
        if not _locked(lock):
            raise broken(target, "another process is writing it", "wait for that one, or give another output")
        yield


def _locked(file: Any) -> bool:
    """Take the lock, which ends with this process however that ends; systems without such locks go on."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def sync(whole: Path) -> None:
    """Wait until a file, or all of a folder's, would survive the machine."""
    for path in [whole] if whole.is_file() else whole.rglob("*"):
        if path.is_file():
            with path.open("r+b") as file:
                put_away(file.fileno())


@contextmanager
def settling(settle: Callable[[], None]) -> Iterator[None]:
    """Have what grows settled on the disk meanwhile: at the end, little is left to wait for."""
    done = Event()

    def work() -> None:
        while not done.wait(_SECONDS):
            with suppress(OSError):  # whoever puts it in its place will be told
                settle()

    thread = Thread(target=work, name="raybox-settle", daemon=True)
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
