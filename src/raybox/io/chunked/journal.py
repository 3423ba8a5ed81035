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
from typing import NamedTuple

from raybox.io.chunked import output_folder
from raybox.io.chunked.chunks import Place
from raybox.io.chunked.output_folder import LOCK, Facts

ENDING = ".raybox-part"
_JOURNAL = "journal.json"


def folder_of(target: Path) -> Path:
    """Give the folder of an output's journal."""
    return output_folder.folder_of(target, ENDING)


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
            if output_folder.holds_others(self.folder, _JOURNAL):
                raise output_folder.foreign(self.folder, "is there, but holds no journal")
            return
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            done = Done(**{**told["done"], "place": Place(**told["done"]["place"])})
            asked, found = dict(told["asked"]), told["input"]
        except (ValueError, KeyError, TypeError) as error:
            raise output_folder.foreign(self.folder, "holds a journal that cannot be read") from error
        if not done.place.first:
            self._empty()
            return
        output_folder.compare(self.given, self.folder, asked, self.asked)
        self.done, self.same_input = done, found == self.found
        placed = done.finished and not self.whole.exists()
        if placed and not (self.same_input and self.target.exists()):
            self._empty()  # that output was whole, and this is to be another one
            self.done = Done()

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
        output_folder.sync_folder(self.folder)
        self.done = done

    def place_output(self) -> None:
        """Put the whole output in its place."""
        if self.whole.exists():
            output_folder.sync(self.whole)
            self.save(self.done._replace(finished=True))
            os.replace(self.whole, self.target)
            output_folder.sync_folder(self.target.parent)

    def _empty(self) -> None:
        """Remove what is in the folder, the journal last: without it nobody would know whose the rest is."""
        for item in sorted(self.folder.iterdir(), key=lambda item: item.name == _JOURNAL):
            if item.name == LOCK:
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
        (self.folder / LOCK).unlink(missing_ok=True)
        self.folder.rmdir()


@contextmanager
def opened(target: Path, asked: Facts, found: Facts) -> Iterator[Journal]:
    """Lend the journal of an output to one process at a time; leave nothing where nothing was done."""
    journal = Journal(target, asked, found)
    with output_folder.held(target, journal.folder):
        journal.load()
        try:
            yield journal
        finally:
            if not journal.done.place.first:
                journal.remove()
