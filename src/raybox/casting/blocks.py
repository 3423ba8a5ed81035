"""Blocks of rays: consecutive rows of a file, numbered, read into arrays that are reused."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from raybox.casting import column_kernels
from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Rays
from raybox.geometry.rays import own
from raybox.hits.file_columns import FileRows, Reads
from raybox.io.formats.assembly import build, valid_rows
from raybox.io.formats.columns import RANGES, column_names
from raybox.io.formats.common import FileArrays, Floats, ReadOptions
from raybox.io.formats.tables import Column, RowBlock, Table
from raybox.store.checksum import Checksum
from raybox.validation import Ints

BLOCK = 1 << 20  # rays: as many as the scene sorts at once


class RayFile(NamedTuple):
    """A file of rays, points or boxes that is read block by block."""

    path: Path
    options: ReadOptions
    widths: dict[str, int]
    """Its arrays, and the length of their rows; 0 for t_min and t_max."""
    total: int | None
    """The number of rows; None: unknown before the end."""
    blocks: Callable[[int, int, Sequence[str]], Iterator[RowBlock]]
    """(row, offset, others) -> the rows that begin there and all after them; (0, 0) is the first.

    others: more columns to read.
    """
    block_at: Callable[[int], tuple[int, int] | None]
    """As `Table.block_at`."""
    where: Callable[[str, tuple[int, ...]], str]
    """(array, index) -> the place of a number in the file, for errors."""
    table: Table | None = None
    """None: it is loaded whole, or it is several files."""
    joined: tuple["RayFile", ...] = ()
    """The files, if it is several."""

    @property
    def files(self) -> tuple["RayFile", ...]:
        """The files that are read."""
        return self.joined or (self,)

    def block_count(self, size: int) -> int | None:
        """Return the number of its blocks of `size` rays; None: unknown before the end."""
        return None if self.total is None else -(-self.total // size)

    @property
    def dimension(self) -> int:
        """D, the dimensions of space."""
        return max(self.widths.values())


class Position(NamedTuple):
    """Where a block of rays begins in a file."""

    first: int = 0
    """Its first row."""
    row: int = 0
    """`RowBlock.row` of the rows that hold this row or the one before it."""
    offset: int = 0
    """`RowBlock.offset` of those rows."""


class BlockSpan(NamedTuple):
    """Consecutive blocks that are to be cast."""

    number: int
    """Of the first block."""
    position: Position
    blocks: int | None
    """How many; None: all to the end of the file."""

    @property
    def end(self) -> int | None:
        """The number of the block after it; None: it ends with the file."""
        return None if self.blocks is None else self.number + self.blocks


Buffers = dict[str, Floats]
Others: TypeAlias = list[dict[str, Column]]
"""Columns of consecutive rows, some rows at a time."""


class BlockBuffers:
    """Reused arrays of blocks: fresh pages cost more than writing to them."""

    def __init__(self) -> None:
        self._free: list[Buffers] = []

    def acquire(self, widths: dict[str, int], size: int) -> Buffers:
        """Return arrays of `size` rows."""
        with suppress(IndexError):
            return self._free.pop()
        return {name: np.empty((size, width) if width else size) for name, width in widths.items()}

    def release(self, buffers: Buffers) -> None:
        """Store arrays that are no longer used, for the next block."""
        self._free.append(buffers)


class FileBlock(NamedTuple):
    """A block of rays as it was read; its numbers are not yet checked."""

    number: int
    first: int
    """Its first ray."""
    end: Position
    """Where the next block begins."""
    buffers: Buffers
    """The arrays of its rays, and room for more."""
    fraction: float | None
    """The fraction of the file that ends with it; None: the number of rows is known."""
    is_finite: bool
    """Whether all numbers are, but for t_min and t_max."""
    others: Others
    """Other columns of its rows."""

    @property
    def size(self) -> int:
        """How many rays it has."""
        return self.end.first - self.first

    @property
    def arrays(self) -> dict[str, Floats]:
        """The arrays of its rays."""
        return {name: array[: self.size] for name, array in self.buffers.items()}

    def checksum(self) -> str:
        """Return the checksum of the arrays of its rays."""
        checksum = Checksum()
        for array in self.arrays.values():
            checksum.update(array)
        return checksum.text()


def read(
    source: RayFile, size: int, span: BlockSpan, pool: BlockBuffers, others: Sequence[str] = ()
) -> Iterator[FileBlock]:
    """Yield the blocks of a span, `size` rays each; the last one of the file may have fewer.

    others: more columns to read.
    """
    size = size if source.total is None else min(size, max(1, source.total))
    number, start, end = span.number, span.position, span.end
    filled, buffers, is_finite, columns = 0, pool.acquire(source.widths, size), True, Others()
    last: RowBlock | None = None
    for last in source.blocks(start.row, start.offset, others) if end != number else ():
        used = max(0, span.position.first - last.row)
        while used < last.rows:
            rows = slice(used, used + min(size - filled, last.rows - used))
            is_finite &= _copy_rows(buffers, filled, last, rows)
            columns.append({name: last.columns[name][rows] for name in others})
            filled, used = filled + rows.stop - rows.start, rows.stop
            if filled == size:
                next_start = Position(start.first + size, last.row, last.offset)
                yield FileBlock(number, start.first, next_start, buffers, last.fraction, is_finite, columns)
                number, start = number + 1, next_start
                if number == end:
                    return
                filled, buffers, is_finite, columns = 0, pool.acquire(source.widths, size), True, Others()
    if filled and last:
        next_start = Position(start.first + filled, last.row, last.offset)
        yield FileBlock(number, start.first, next_start, buffers, last.fraction, is_finite, columns)


def _copy_rows(buffers: Buffers, start: int, block: RowBlock, rows: "slice[int, int, None]") -> bool:
    """Copy rows of a reader into buffers; return whether they are finite."""
    all_finite, end = True, start + rows.stop - rows.start
    for name, array in buffers.items():
        names = column_names(name, array.shape[1]) if array.ndim == 2 else [name]
        some: list[Floats] = [np.asarray(block.columns[column][rows]) for column in names]
        words = array[start:end].reshape(end - start, -1).view(np.uint64)
        all_finite &= column_kernels.interleave(places_of(some), words) or name in RANGES
    return all_finite


def places_of(columns: list[Floats]) -> Ints:
    """Return the address of the first number of each column, and how many bytes the next is from it."""
    return np.array([(column.ctypes.data, column.strides[0]) for column in columns], np.int64)


def content_of(source: RayFile, block: FileBlock) -> Rays | FileRows:
    """Return the rays, points or boxes of a block; an error gives the place of a wrong number in the file."""
    first, arrays = block.first, block.arrays
    if "origins" in arrays:
        with suppress(InvalidInput):  # `build` raises it again, with the place in the file
            low, high = (arrays.get(name) for name in RANGES)
            numbers = arrays["origins"], arrays["directions"], low, high
            return own(numbers, source.options.invalid_rays, block.is_finite)
    among = "" if source.total == block.size else f" in {block.size:,} rows"
    raw = FileArrays(
        arrays, lambda name, index: source.where(name, (first + index[0], *index[1:])), among=among
    )
    if source.options.kind != "rays":
        return _file_rows(raw, source, block)
    rays = build(raw, source.path, source.options).geometry
    assert isinstance(rays, Rays)
    return rays


def _file_rows(raw: FileArrays, source: RayFile, block: FileBlock) -> FileRows:
    """Return the points or boxes of a block that break no rule."""
    numbers, arrays = np.arange(block.size), raw.arrays
    valid = valid_rows(raw, source.path, source.options)
    if not valid.all():
        numbers, arrays = numbers[valid], {name: values[valid] for name, values in arrays.items()}
    rows = arrays["points"] if "points" in arrays else Boxes(arrays["lower"], arrays["upper"])
    return FileRows(rows, numbers, block.size)


def example_of(reads: Reads, dimension: int) -> Rays | FileRows:
    """Return one ray, point or box."""
    numbers = np.random.default_rng(0).random((2, 1, dimension))
    if reads == "rays":
        return Rays(*numbers)
    rows = numbers[0] if reads == "points" else Boxes(*np.sort(numbers, axis=0))
    return FileRows(rows, np.arange(1), 1)
