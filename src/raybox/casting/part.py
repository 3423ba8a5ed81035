"""Parts: the results of a block of rays, or of a run of blocks for sums, and the record of each.

A record states all that its part was made of: the job, the checksums of the rays and of the other rows of
each block, and of the part's own bytes. A part counts only if all of that is right; nothing else in the
folder of a cast is trusted. Both files are written under temporary names and renamed.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import Any, BinaryIO, NamedTuple, Self

from raybox.casting.blocks import Position
from raybox.casting.job import SUMS, CastJob
from raybox.errors import FileFormatError
from raybox.io.formats.common import file_error
from raybox.store.checksum import Checksum, Data, as_bytes, blocks_of
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
    """The bytes that one file of all parts gets: from where on, and how many."""

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
        run = "" if len(self.blocks) == 1 else f"-to-{self.end - 1:09}"
        return f"part-{self.number:09}{run}{self.format}"


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


def without_overlaps(parts: Iterable[CastPart]) -> list[CastPart]:
    """Return parts in order that cover no block twice; of those that begin alike, the longest."""
    found, end = list[CastPart](), 0
    for part in sorted(parts, key=lambda part: (part.number, -part.end)):
        if part.number >= end:
            found.append(part)
            end = part.end
    return found


class PartFolders(NamedTuple):
    """The open folders of the parts of a cast, and of their records."""

    parts: Folder
    records: Folder

    def listed(self) -> list[CastPart]:
        """Return the parts with whole records, some of which may cover the same blocks."""
        found = list[CastPart]()
        for name in self.records.names():
            with suppress(FileFormatError, FileNotFoundError):
                found.append(self.records.read_record(name, PART).value)
                if found[-1].name != name:
                    found.pop()
        return found

    def remove_others(self, parts: Collection[CastPart]) -> None:
        """Remove all files but those of some parts: of killed writes, and of parts that do not count."""
        names = {part.name for part in parts}
        for folder in (self.records, self.parts):
            for name in folder.names():
                if name not in names:
                    folder.remove(name)

    def remove(self, part: CastPart) -> None:
        """Remove a part: first what makes it count."""
        self.records.remove(part.name)
        self.parts.remove(part.name)

    def is_whole(self, part: CastPart) -> bool:
        """Return whether the file of a part has its bytes."""
        with suppress(FileNotFoundError), self.parts.open(part.name) as file:
            return PartReader(file, part).checksum() == part.checksum
        return False

    @contextmanager
    def open(self, part: CastPart) -> Iterator["PartReader"]:
        """Yield a part; remove it, and raise `FileFormatError`, if its bytes turn out to be others."""
        with suppress(FileNotFoundError), self.parts.open(part.name) as file:
            reader = PartReader(file, part)
            yield reader
            if reader.checksum() == part.checksum:
                return
        self.remove(part)
        path = self.parts.path / part.name
        raise file_error(path, "is damaged", "cast again: it is written anew")


@contextmanager
def part_folders(folder: Folder, parts: str = PARTS, records: str = RECORDS) -> Iterator[PartFolders]:
    """Yield the folders of parts in the folder of a cast, made if there are none."""
    with folder.subfolder(parts) as opened, folder.subfolder(records) as opened_records:
        yield PartFolders(opened, opened_records)


class PartReader:
    """The bytes of a part; their checksum is computed as they are read, from the first to the last."""

    def __init__(self, file: BinaryIO, part: CastPart) -> None:
        self._file, self._checksum, self._part = file, Checksum(), part

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, `size` at most; all that are left without one."""
        data = self._file.read(size)
        self._checksum.update(data)
        return data

    def blocks(self, size: int, step: int = 1 << 18) -> Iterator[memoryview]:
        """Yield the next `size` bytes, some at a time, each valid until the next ones."""
        for data in blocks_of(self._file, size, step):
            self._checksum.update(data)
            yield data

    def free_pages(self) -> None:
        """Let the system free the memory of the file, which is not read again.

        Else a large output takes the memory of its parts too: the copy of 5 GB took 21 s in place of 4.
        """
        if hasattr(os, "posix_fadvise"):
            with suppress(OSError):
                os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def checksum(self) -> str:
        """Return the checksum of all bytes, those that are not yet read included."""
        for _ in self.blocks(self._part.size + 1):
            pass
        return self._checksum.text()


class PartFile:
    """A part while it is written, under a temporary name; removed at the end of a ``with``, if incomplete."""

    def __init__(self, folders: PartFolders) -> None:
        self._folders, self._name = folders, TEMPORARY + token_hex(6)
        self._file, self._checksum = folders.parts.create(self._name), Checksum()
        self.length = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.closed:
            self._file.abandon()
            with suppress(OSError):  # the first error counts
                self._folders.parts.remove(self._name)

    @property
    def closed(self) -> bool:
        """Whether the part is complete, or removed."""
        return self._file.closed

    def write(self, data: Data) -> int:
        """Append bytes, but none to a part that was removed: Arrow writes a footer when it is collected."""
        raw = as_bytes(data)
        if not self.closed:
            self._checksum.update(raw)
            self.length += self._file.write(raw)
        return len(raw)

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self.length

    def flush(self) -> None:
        """Do nothing, as `close`: Arrow calls both, and `complete` closes the file."""

    close = flush

    def complete(
        self,
        job: CastJob,
        form: str,
        blocks: Sequence[BlockFacts] = (BlockFacts(0, 0, Position(), "", ""),),
        *,
        counts: tuple[int, int] = (0, 0),
        body: tuple[int, int] = (0, 0),
    ) -> CastPart:
        """Give the part its name, then its record; one of a dataset is on the disk before it is renamed.

        blocks: by default, none; counts: of rows and hits.
        """
        made = job.digest, job.options.invalid, tuple(blocks), form
        part = CastPart(*made, *counts, self.length, self._checksum.text(), body)
        if job.is_dataset and form != SUMS:
            self._file.sync()
        self._file.close()
        self._folders.parts.rename(self._name, part.name)
        self._folders.records.write_record(part.name, PART, part)
        return part
