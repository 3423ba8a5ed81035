"""What was asked and how far it is done: a folder beside the output, until the output is whole.

``OUT.raybox-part`` holds ``journal.json``, the growing answers, and a lock. Answers are appended first and
noted in the journal after that, under a new name that then takes the old one's place: what the journal tells
is there, whatever happened meanwhile, and what it does not tell is cut off by who resumes.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from raybox.errors import RayboxError
from raybox.files.common import broken
from raybox.stream.chunks import Place

ENDING = ".raybox-part"
_JOURNAL, _LOCK = "journal.json", "lock"

Facts = dict[str, Any]


def folder_of(target: Path) -> Path:
    """Give the folder of an output's journal."""
    place = target.resolve()
    return place.with_name(place.name + ENDING)


class Done(NamedTuple):
    """How far the work is done: where the next chunk begins, and what came before it."""

    place: Place = Place()
    rows: int = 0
    met: int = 0
    files: dict[str, int] = {}  # noqa: RUF012 - a default that nobody writes to
    finished: bool = False


class Journal:
    """The folder of one output."""

    def __init__(self, target: Path, asked: Facts, found: Facts) -> None:
        self.given, self.target = target, target.resolve()
        self.folder = folder_of(target)
        self.asked, self.found = asked, found
        self.same_input = True
        self.done = Done()

    @property
    def whole(self) -> Path:
        """Where the output is put together."""
        return self.folder / f"answers{self.target.suffix.lower()}"

    def load(self) -> None:
        """Take up what the same command has left; refuse what another one has."""
        path = self.folder / _JOURNAL
        if not path.exists():
            if {item.name for item in self.folder.iterdir()} - {_LOCK, _JOURNAL + ".new"}:
                raise self._foreign("is there, but holds no journal")
            return
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            done = Done(**{**told["done"], "place": Place(**told["done"]["place"])})
            asked, found = dict(told["asked"]), told["input"]
        except (ValueError, KeyError, TypeError) as error:
            raise self._foreign("holds a journal that cannot be read") from error
        if not done.place.first:
            self._empty()
            return
        self._compare(asked)
        self.done, self.same_input = done, found == self.found
        placed = done.finished and not self.whole.exists()
        if placed and not (self.same_input and self.target.exists()):
            self._empty()  # that output was whole, and this is to be another one
            self.done = Done()

    def _compare(self, asked: Facts) -> None:
        now = dict(self.asked)
        if asked.get("invalid") == "raise":  # then no ray that is done was invalid
            asked["invalid"] = now["invalid"]
        differ = [name for name in {**asked, **now} if asked.get(name) != now.get(name)]
        if differ:
            shown = ", ".join(
                f"{name} {_said(asked.get(name))} there, {_said(now.get(name))} now" for name in differ
            )
            raise broken(
                self.given,
                f"another command has begun it, in {self.folder.name} ({shown})",
                "finish that command, or remove the folder, or give another output",
            )

    def _foreign(self, problem: str) -> RayboxError:
        return broken(self.folder, problem, "rename or remove it, or give another output")

    def save(self, done: Done | None = None) -> None:
        """Note what is done, so that it survives the machine."""
        done = done or self.done
        told = {"asked": self.asked, "input": self.found}
        told["done"] = {**done._asdict(), "place": done.place._asdict()}
        new = self.folder / (_JOURNAL + ".new")
        with new.open("w", encoding="utf-8") as file:
            json.dump(told, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self.folder / _JOURNAL)
        sync_folder(self.folder)
        self.done = done

    def place_output(self) -> None:
        """Put the whole output in its place."""
        if self.whole.exists():
            for path in [self.whole] if self.whole.is_file() else self.whole.rglob("*"):
                sync(path)
            self.save(self.done._replace(finished=True))
            os.replace(self.whole, self.target)
            sync_folder(self.target.parent)

    def _empty(self) -> None:
        """Remove what is in the folder, the journal last: without it nobody would know whose the rest is."""
        for item in sorted(self.folder.iterdir(), key=lambda item: item.name == _JOURNAL):
            if item.name == _LOCK:
                continue
            if item.is_dir():
                shutil.rmtree(item)
            else:
                item.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder."""
        if not self.folder.exists():
            return
        self._empty()
        (self.folder / _LOCK).unlink(missing_ok=True)
        self.folder.rmdir()


def _said(value: Any) -> str:
    return "none" if value is None else str(value)


@contextmanager
def opened(target: Path, asked: Facts, found: Facts) -> Iterator[Journal]:
    """Lend the journal of an output to one process at a time; leave nothing where nothing was done."""
    journal = Journal(target, asked, found)
    journal.folder.mkdir(exist_ok=True)
    with (journal.folder / _LOCK).open("w") as lock:
        if not locked(lock):
            raise broken(target, "another process is writing it", "wait for that one, or give another output")
        journal.load()
        try:
            yield journal
        finally:
            if not journal.done.place.first:
                journal.remove()


def locked(file: Any) -> bool:
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


def sync(path: Path) -> None:
    """Wait until a file would survive the machine."""
    if path.is_file():
        with path.open("r+b") as file:
            os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Make names durable, on systems where a folder can be opened."""
    if os.name == "posix":
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
