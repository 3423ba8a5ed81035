"""The folder of an unfinished output, ``OUT.raybox`` next to it.

==============  =================================================================================
name            holds
==============  =================================================================================
``job``         a record: what determines the output, and the files of rays
``parts``       part files: results of blocks of rays
``results.EXT`` one file joined of parts, and ``joined``, the parts in it
``column-NNN``  of ``.npz`` and ``.zarr``, joined columns
``sums``        of sums, those of the first parts
``group``       of a dataset in Zarr, its chunks
``complete``    of a dataset, its parts while their trailers are removed
``placed``      a record: the complete output, just before it is moved to its place
``lock``        one process at a time
==============  =================================================================================
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from raybox.casting import dataset
from raybox.casting.job import CastJob, job_id
from raybox.casting.join import joined_parts
from raybox.casting.output import Outcome
from raybox.casting.part import PARTS, PartInfo, part_number, read_part
from raybox.casting.place import PLACE_NAME, is_there, moved
from raybox.casting.steps import step
from raybox.casting.sum_output import summed_parts
from raybox.errors import FileFormatError, RayboxError
from raybox.io.formats.common import file_error
from raybox.store.checksum import Facts
from raybox.store.folder import TEMPORARY, Folder
from raybox.store.identity import fingerprint
from raybox.store.lock import is_lock, locked
from raybox.store.record import RecordKind

SUFFIX = ".raybox"
_JOB = "job"


class StoredJob(NamedTuple):
    """What a folder is for."""

    id: str
    facts: Facts
    rays: list[Facts]
    """The fingerprint of each file of rays when the cast began."""


def _parsed(value: Any) -> StoredJob:
    return StoredJob(str(value["id"]), dict(value["facts"]), list(value["rays"]))


JOB = RecordKind("cast", 1, _parsed)


def cast_folder(target: Path) -> Path:
    """Return the folder of an output, while it is unfinished."""
    place = target.resolve()
    return place.with_name(place.name + SUFFIX)


class CastFolder:
    """The open, locked folder of one output."""

    def __init__(self, folder: Folder, given: Path, facts: Facts, rays: Sequence[Path]) -> None:
        self.folder, self._given, self._target = folder, given, given.resolve()
        fingerprints: list[Facts] = [fingerprint(path) for path in rays]
        self._job = StoredJob(job_id(facts, fingerprints), facts, fingerprints)
        self.same_input = True
        self.placed: Outcome | None = None
        """What an earlier call has done, if the complete output is in its place."""

    @property
    def job_id(self) -> str:
        """Of the parts."""
        return self._job.id

    def load(self) -> None:
        """Read the job of the folder, or store it; raise `FileFormatError` for another one."""
        stored, found = self._stored(), moved(self.folder)
        is_same = self.same_input if stored else found is not None and found.job == self._job.id
        if found and is_same and is_there(found, self._target):
            self.placed = Outcome(found.totals, found.totals.rays)
        elif found:  # it was removed since, or the rays are others: what is left is of no use
            self.remove()
            stored, self.same_input = None, True
        if stored:
            self._job = stored
        elif not self.placed:
            self._store()

    def _stored(self) -> StoredJob | None:
        """Read the job of the folder, which must be that of this call; None without one."""
        if self.folder.stat(_JOB) is None:
            own = (PLACE_NAME,)  # it is removed after the job
            if any(
                not is_lock(k) and not k.startswith(TEMPORARY) and k not in own for k in self.folder.names()
            ):
                raise _foreign(self.folder.path, f"exists, but has no {_JOB}")
            return None
        try:
            stored = self.folder.read_record(_JOB, JOB).value
        except FileFormatError as error:
            raise _foreign(self.folder.path, f"has a {_JOB} that is damaged") from error
        self._check_same(stored.facts)
        self.same_input = stored.rays == self._job.rays
        return stored

    def _store(self) -> None:
        self.folder.write_record(_JOB, JOB, self._job._asdict(), durable=True)
        step("job stored")

    def _check_same(self, before: Facts) -> None:
        """Raise `FileFormatError` if the folder is of another job."""
        before, now = dict(before), self._job.facts
        if before.get("invalid") == "raise":  # then no ray that is done was invalid
            before["invalid"] = now["invalid"]
        differ = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        if differ:
            changes = ", ".join(
                f"{name} {_as_text(before.get(name))} there, {_as_text(now.get(name))} now" for name in differ
            )
            raise file_error(
                self._given,
                f"another command has started it, in {self.folder.path.name} ({changes})",
                "finish that command, or remove the folder, or give another output",
            )

    def open_parts(self) -> Folder:
        """Return the folder of the parts; unfinished ones are removed, and those of a dataset whole again."""
        parts = self.folder.subfolder(PARTS)
        for name in parts.names():
            if name.startswith(TEMPORARY):
                parts.remove(name)
        dataset.restore_trailers(self.folder, parts)
        return parts

    def remove(self) -> None:
        """Empty the folder; the records that identify the other files are the last."""
        for name in sorted(self.folder.names(), key=(_JOB, PLACE_NAME).__contains__):
            if not is_lock(name):
                self.folder.remove(name)
                step("file removed")


def stored_rays(folder: CastFolder) -> int | None:
    """Return the number of rays with stored results; None if unreadable."""
    own = folder.folder
    try:
        found = [*joined_parts(own), *summed_parts(own), *(one.value for one in dataset.complete_parts(own))]
        if own.stat(PARTS) is not None:
            with own.subfolder(PARTS) as parts:
                names = [name for name in parts.names() if part_number(name) is not None]
                stored = [read_part(parts, name, folder.job_id, check=False) for name in names]
            found += [one.value for one in stored if one is not None]
    except (OSError, FileFormatError):
        return None
    return sum({part.number: part.rays for part in reversed(found)}.values())


def whole_parts(parts: Folder, job: CastJob) -> dict[int, PartInfo]:
    """Return the parts of a job that are whole, by number; others are removed."""
    found: dict[int, PartInfo] = {}
    for name in parts.names():
        if part_number(name) is None or not name.endswith(job.part_format):
            continue
        stored = read_part(parts, name, job.id, check=True)
        if stored is None:
            parts.remove(name)
        else:
            found[stored.value.number] = stored.value
    return found


@contextmanager
def open_cast(target: Path, facts: Facts, rays: Sequence[Path]) -> Iterator[CastFolder]:
    """Yield the folder of an output, locked."""
    with locked(target, cast_folder(target)) as folder:
        step("folder made")
        cast = CastFolder(folder, target, facts, rays)
        cast.load()
        yield cast


def _foreign(folder: Path, problem: str) -> RayboxError:
    """Return the error for a folder that is not one of raybox."""
    return file_error(folder, problem, "rename or remove it, or give another output")


def _as_text(value: object) -> str:
    return "none" if value is None else str(value)
