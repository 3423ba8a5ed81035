"""Part files: the results of one block of rays, with a trailer that says which.

A part is the bytes of its format and, after them, a record: its job, number and rays, and the checksum of the
bytes. A part is written under a temporary name and renamed, so whoever finds one can tell whether it is whole
and right. None is waited for on its way to the disk: after a crash of the machine, its checksum differs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO, NamedTuple

from raybox.casting.blocks import Position
from raybox.casting.steps import step
from raybox.io.formats.common import file_error
from raybox.store import record
from raybox.store.checksum import Checksum, Data, as_bytes
from raybox.store.folder import TEMPORARY, Folder
from raybox.store.record import BrokenRecord, RecordKind, Trailer

PARTS = "parts"
"""The folder of the parts, in that of the cast."""


class PartInfo(NamedTuple):
    """What a part says about itself."""

    job: str
    """Of `CastJob.id`."""
    number: int
    first: int
    """Its first ray."""
    end: Position
    """Where the next block begins: its last ray is the one before."""
    format: str
    """A file extension."""
    rows: int
    hit_count: int
    rays_checksum: str
    body: tuple[int, int] = (0, 0)
    """The bytes that a joined file gets: from where on, and how many."""

    @property
    def rays(self) -> int:
        """How many rays it has."""
        return self.end.first - self.first

    @property
    def name(self) -> str:
        """Its file name."""
        return part_name(self.number, self.format)


def _parsed(value: Any) -> PartInfo:
    """Return the part in a JSON value; raise `TypeError` or `ValueError` for another one."""
    part = PartInfo(*value)
    part = part._replace(end=Position(*map(int, part.end)), body=(int(part.body[0]), int(part.body[1])))
    numbers = (part.number, part.first, *part.end, part.rows, part.hit_count, *part.body)
    if any(isinstance(number, bool) or not isinstance(number, int) or number < 0 for number in numbers):
        raise ValueError("not whole numbers")
    return part


PART = RecordKind("part", 1, _parsed)


def part_name(number: int, form: str) -> str:
    """Return the file name of a part."""
    return f"part-{number:09}{form}"


def part_number(name: str) -> int | None:
    """Return the number of the part with a file name; None for other files."""
    number = name.removeprefix("part-").partition(".")[0]
    return int(number) if name.startswith("part-") and number.isdecimal() else None


def read_part(folder: Folder, name: str, job: str, *, check: bool) -> Trailer[PartInfo] | None:
    """Return the trailer of a part of a job; None if it is missing, damaged, or not the one of this name.

    check: whether its bytes are read, too. Raise `FileFormatError` for a link.
    """
    try:
        with folder.open(name) as file:
            trailer = record.read_trailer(PART, file, check=check)
    except (FileNotFoundError, BrokenRecord):
        return None
    return trailer if (trailer.value.job, trailer.value.name) == (job, name) else None


class PartSource(NamedTuple):
    """The open file of a part, and its trailer."""

    file: BinaryIO
    trailer: Trailer[PartInfo]


@contextmanager
def open_part(folder: Folder, part: PartInfo, *, check: bool) -> Iterator[PartSource]:
    """Yield a part, at the start of its file; remove a damaged one, and raise `FileFormatError`.

    check: whether its bytes are compared with their checksum first.
    """
    try:
        with folder.open(part.name) as file:
            trailer = record.read_trailer(PART, file, check=check)
            if trailer.value != part:
                raise BrokenRecord("is another part")
            yield PartSource(file, trailer)
    except (FileNotFoundError, BrokenRecord) as error:
        folder.remove(part.name)
        path, problem = folder.path / part.name, f"is damaged ({error})"
        raise file_error(path, problem, "cast again: it is written anew") from error


class PartFile:
    """A part while it is written, under a temporary name."""

    def __init__(self, folder: Folder, number: int) -> None:
        self._folder, self.number, self._name = folder, number, TEMPORARY + token_hex(6)
        self._file, self._checksum = folder.create(self._name), Checksum()
        self.length = 0

    @property
    def folder(self) -> Path:
        """Of the parts."""
        return self._folder.path

    @property
    def closed(self) -> bool:
        """Whether the part is complete, or discarded."""
        return self._file.closed

    def write(self, data: Data) -> None:
        """Append bytes: an array, or any object with the buffer protocol."""
        raw = as_bytes(data)
        self._checksum.update(raw)
        self.length += self._file.write(raw)

    def complete(self, part: PartInfo) -> PartInfo:
        """Append the trailer, and give the part its name."""
        record.append_trailer(PART, part, self._file, self._checksum.text())
        self._file.close()
        step("part written")
        self._folder.rename(self._name, part.name)
        step("part named")
        return part

    def discard(self) -> None:
        """Close and remove the unfinished part; nothing for a complete one."""
        if not self._file.closed:
            self._file.close()
            self._folder.remove(self._name)
