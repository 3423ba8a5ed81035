"""Parts: the results of a block of rays, or of a run of blocks for sums, and the record of each.

A record states all that its part was made of: the job, the checksums of the rays and of the other rows of
each block, and of the part's own bytes. A part counts only if all of that is right; nothing else in the
folder of a cast is trusted. Both files are written under temporary names and renamed.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import Any, BinaryIO, NamedTuple

from raybox.casting.blocks import Position
from raybox.errors import FileFormatError
from raybox.io.formats.common import file_error
from raybox.store import checksum
from raybox.store.checksum import Checksum, Data, as_bytes
from raybox.store.folder import TEMPORARY, Folder
from raybox.store.record import RecordKind

PARTS, RECORDS = "parts", "records"
"""The folders of the parts and of their records, in that of the cast."""


class BlockFacts(NamedTuple):
    """A block of rays, and the checksums of what its results are made of."""

    number: int
    first: int
    """Its first ray."""
    end: Position
    """Where the next block begins: its last ray is the one before."""
    rays: str
    """The checksum of its rays."""
    rows: str
    """The checksum of weights and carried columns; empty without them."""

    @property
    def size(self) -> int:
        """How many rays it has."""
        return self.end.first - self.first

    def equals(self, other: "BlockFacts") -> bool:
        """Return whether both are of equal rays and rows, wherever these are in a file."""
        return self._replace(end=Position(self.end.first)) == other._replace(end=Position(other.end.first))


class CastPart(NamedTuple):
    """What a part is made of, and what it holds."""

    job: str
    """`CastJob.digest`."""
    invalid: str
    """How rays with NaN were handled: with "raise", there are none among its rays."""
    blocks: tuple[BlockFacts, ...]
    """Those that it covers, which follow one another: several only of sums."""
    format: str
    """A file extension."""
    rows: int
    hit_count: int
    size: int
    """In bytes."""
    checksum: str
    body: tuple[int, int] = (0, 0)
    """The bytes that a joined file gets: from where on, and how many."""

    @property
    def number(self) -> int:
        """The number of its first block."""
        return self.blocks[0].number

    @property
    def end(self) -> int:
        """The number of the block after it."""
        return self.number + len(self.blocks)

    @property
    def rays(self) -> int:
        """How many rays it has."""
        return sum(block.size for block in self.blocks)

    @property
    def name(self) -> str:
        """Its file name."""
        return part_name(self.number, self.end, self.format)


def part_name(number: int, end: int, form: str) -> str:
    """Return the file name of the part of a block, or of a run of blocks."""
    run = "" if end == number + 1 else f"-to-{end - 1:09}"
    return f"part-{number:09}{run}{form}"


def _parsed(value: Any) -> CastPart:
    """Return the part in a JSON value; raise `TypeError` or `ValueError` for another one."""
    part = CastPart(*value)
    blocks = tuple(BlockFacts(*block)._replace(end=Position(*map(int, block[2]))) for block in part.blocks)
    part = part._replace(blocks=blocks, body=(int(part.body[0]), int(part.body[1])))
    numbers = [part.rows, part.hit_count, part.size, *part.body]
    for k, block in enumerate(blocks):
        numbers += [block.number - blocks[0].number - k, block.first, *block.end]
    if not blocks or any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in numbers):
        raise ValueError("not whole numbers")
    return part


PART = RecordKind("part", 2, _parsed)


class PartFolders(NamedTuple):
    """The open folders of the parts of a cast, and of their records."""

    parts: Folder
    records: Folder

    def close(self) -> None:
        """Close both."""
        self.parts.close()
        self.records.close()

    def listed(self) -> list[CastPart]:
        """Return the parts with whole records, in order; of those that begin alike, the longest first."""
        found = [part for name in self.records.names() if (part := self._record(name))]
        return sorted(found, key=lambda part: (part.number, -part.end))

    def remove_others(self, parts: Collection[CastPart]) -> None:
        """Remove all files but those of some parts: of killed writes, and of parts that do not count."""
        names = {part.name for part in parts}
        for folder in (self.records, self.parts):
            for name in folder.names():
                if name not in names:
                    folder.remove(name)

    def _record(self, name: str) -> CastPart | None:
        with suppress(FileFormatError, FileNotFoundError):
            part = self.records.read_record(name, PART).value
            return part if part.name == name else None
        return None

    def is_whole(self, part: CastPart) -> bool:
        """Return whether the file of a part has its bytes."""
        try:
            with self.parts.open(part.name) as file:
                size = file.seek(0, 2)
                file.seek(0)
                return size == part.size and checksum.of_file(file) == part.checksum
        except FileNotFoundError:
            return False

    def remove(self, part: CastPart) -> None:
        """Remove a part: first what makes it count."""
        self.records.remove(part.name)
        self.parts.remove(part.name)

    @contextmanager
    def open(self, part: CastPart) -> Iterator["PartReader"]:
        """Yield a part; remove it, and raise `FileFormatError`, if its bytes turn out to be others."""
        try:
            with self.parts.open(part.name) as file:
                reader = PartReader(file, part)
                yield reader
                if reader.checksum() == part.checksum:
                    return
        except FileNotFoundError:
            pass
        self.remove(part)
        path = self.parts.path / part.name
        raise file_error(path, "is damaged", "cast again: it is written anew")


class PartReader:
    """The bytes of a part, whose checksum is computed as they are read, from the first to the last."""

    def __init__(self, file: BinaryIO, part: CastPart) -> None:
        self._file, self._checksum, self._part = file, Checksum(), part

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, `size` at most; all that are left without one."""
        data = self._file.read(size)
        self._checksum.update(data)
        return data

    def blocks(self, size: int, step: int = 1 << 20) -> Iterator[bytes]:
        """Yield the next `size` bytes, some at a time."""
        while size and (data := self.read(min(size, step))):
            size -= len(data)
            yield data

    def checksum(self) -> str:
        """Return the checksum of all bytes, those that are not yet read included."""
        for _ in self.blocks(self._part.size + 1):
            pass
        return self._checksum.text()


class PartFile:
    """A part while it is written, under a temporary name."""

    def __init__(self, folders: PartFolders) -> None:
        self._folders, self._name = folders, TEMPORARY + token_hex(6)
        self._file, self._checksum = folders.parts.create(self._name), Checksum()
        self.length = 0

    @property
    def closed(self) -> bool:
        """Whether the part is complete, or discarded."""
        return self._file.closed

    def write(self, data: Data) -> None:
        """Append bytes: an array, or any object with the buffer protocol."""
        raw = as_bytes(data)
        self._checksum.update(raw)
        self.length += self._file.write(raw)

    def complete(self, part: CastPart, *, durable: bool = False) -> CastPart:
        """Give the part its name, then its record; return it with size and checksum.

        durable: it is on the disk before it is renamed.
        """
        part = part._replace(size=self.length, checksum=self._checksum.text())
        if durable:
            self._file.sync()
        self._file.close()
        self._folders.parts.rename(self._name, part.name)
        self._folders.records.write_record(part.name, PART, part)
        return part

    def discard(self) -> None:
        """Close and remove the unfinished part; nothing for a complete one."""
        if not self._file.closed:
            self._file.abandon()
            with suppress(OSError):  # the first error counts
                self._folders.parts.remove(self._name)
