"""The journal of an output: its job and its progress, in a folder beside the output until that is complete.

``OUT.raybox-part`` holds ``journal.json``, the results so far, and a lock. Results are appended first; then
the journal is written under a new name, which replaces the old one. So all that the journal lists is on the
disk, and the call that resumes truncates the files to it.

The journal ends with a checksum of itself, and lists one of each part file. The call that resumes compares
both, so it reads the results so far once.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from raybox.io import checksums, own_files
from raybox.io.checksums import Facts
from raybox.io.chunked import output_folder
from raybox.io.chunked.chunks import Position
from raybox.io.chunked.output_lock import is_lock, locked

_SUFFIX = ".raybox-part"
_JOURNAL = "journal.json"


def folder_of(target: Path) -> Path:
    """Return the folder of an output's journal."""
    return output_folder.folder_of(target, _SUFFIX)


class CastProgress(NamedTuple):
    """How far a cast is.

    Where the next chunk begins, and totals of all before it.
    """

    position: Position = Position()
    rows: int = 0
    hit_count: int = 0
    lengths: dict[str, int] = {}  # noqa: RUF012 - a default that is never written to
    """Bytes of each part file."""
    checksums: dict[str, int | None] = {}  # noqa: RUF012
    """Of the bytes of each part file."""
    output: Facts = {}  # noqa: RUF012
    """What identifies the complete output, stored before it is moved to its place."""


class Journal:
    """The folder of one output.

    job: what determines the results; fingerprint: of the file of rays.
    """

    def __init__(self, target: Path, job: Facts, fingerprint: Facts) -> None:
        self.given, self.target = target, target.resolve()
        self.folder = folder_of(target)
        self.job, self.fingerprint = job, fingerprint
        self.same_input = True
        self.progress = CastProgress()
        self.is_placed = False
        """Whether the complete output is in its place."""

    @property
    def output(self) -> Path:
        """Where the output is assembled."""
        return self.folder / f"results{self.target.suffix.lower()}"

    def load(self) -> None:
        """Read the progress of the same job.

        Raise for a folder of another one.
        """
        path = self.folder / _JOURNAL
        if not path.exists():
            if output_folder.has_other_files(self.folder, _JOURNAL):
                raise output_folder.foreign_folder(self.folder, "exists, but has no journal")
            return
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            position = Position(**stored["progress"]["position"])
            progress = CastProgress(**{**stored["progress"], "position": position})
            job, fingerprint, checksum = dict(stored["job"]), stored["input"], stored.pop("checksum")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise output_folder.foreign_folder(self.folder, "has a journal that cannot be read") from error
        if checksum != checksums.of_facts(stored):
            raise output_folder.foreign_folder(self.folder, "has a journal that is damaged")
        if not progress.position.first:
            self.remove()
            return
        output_folder.check_same_job(self.given, self.folder, job, self.job)
        self.progress, self.same_input = progress._replace(output={}), fingerprint == self.fingerprint
        if progress.output and not self.output.exists():
            self._load_placed(progress.output)

    def _load_placed(self, output: Facts) -> None:
        """Note that the output is in its place; forget all if it is another one, or of other rays."""
        there = self.target.exists() and checksums.content_facts(self.target)
        self.is_placed = self.same_input and there == output
        if not self.is_placed:
            self.remove()
            self.progress = CastProgress()

    def save(self, progress: CastProgress | None = None) -> None:
        """Write the progress, so that it survives a crash of the machine."""
        progress = progress or self.progress
        stored: Facts = {"job": self.job, "input": self.fingerprint}
        stored["progress"] = {**progress._asdict(), "position": progress.position._asdict()}
        stored["checksum"] = checksums.of_facts(stored)
        new = self.folder / (_JOURNAL + ".new")
        with own_files.open_new(new) as file:
            file.write(json.dumps(stored, indent=1).encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self.folder / _JOURNAL)
        output_folder.sync_folder(self.folder)
        self.progress = progress

    def place_output(self) -> None:
        """Move the complete output to its place."""
        output_folder.sync(self.output)
        self.save(self.progress._replace(output=checksums.content_facts(self.output)))
        os.replace(self.output, self.target)
        output_folder.sync_folder(self.target.parent)

    def remove(self) -> None:
        """Remove the files of the folder, the journal last.

        The journal identifies the others.
        """
        for item in sorted(self.folder.iterdir(), key=lambda item: item.name == _JOURNAL):
            if not is_lock(item.name):
                own_files.remove(item)


@contextmanager
def open_journal(target: Path, job: Facts, fingerprint: Facts) -> Iterator[Journal]:
    """Yield the journal of an output, locked.

    Its folder is removed if nothing is done.
    """
    journal = Journal(target, job, fingerprint)
    with locked(target, journal.folder):
        journal.load()
        try:
            yield journal
        finally:
            if not journal.progress.position.first:
                journal.remove()
