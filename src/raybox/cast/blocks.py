"""Blocks of rays: consecutive rows of a file, numbered, read into arrays that are reused."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from raybox.cast import column_kernels
from raybox.errors import InvalidInput
from raybox.geometry import Rays
from raybox.geometry.rays import own
from raybox.io.formats.assembly import build
from raybox.io.formats.columns import RANGES, column_names
from raybox.io.formats.common import FileArrays, Floats, ReadOptions
from raybox.io.formats.tables import Column, RowBlock, Table
from raybox.store.checksum import Checksum
from raybox.validation import Ints

BLOCK = 1 << 20  # rays: as many as the scene sorts at once


class RayFile(NamedTuple):
    """A file of rays or points that is read block by block."""

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


Buffers = dict[str, Floats]
Others = list[dict[str, Column]]
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


class BlockRays(NamedTuple):
    """The rays of a block."""

    number: int
    first: int
    rays: Rays
    end: Position
    """Where the next block begins."""
    checksum: str
    """Of the arrays of the rays."""
    fraction: float | None
    """The fraction of the file that ends with it; None: the number of rows is known."""
    buffers: Buffers
    """The arrays of `rays`."""
    others: Others
    """Other columns of its rows."""


class _BlockArrays(NamedTuple):
    """A block before its rays are checked."""

    buffers: Buffers
    rows: int
    start: Position
    end: Position
    fraction: float | None
    finite: bool
    """Whether all numbers are, but for t_min and t_max."""
    others: Others

    @property
    def arrays(self) -> dict[str, Floats]:
        """The rows that are filled."""
        return {name: array[: self.rows] for name, array in self.buffers.items()}


def read(
    source: RayFile, size: int, span: BlockSpan, buffers: BlockBuffers, others: Sequence[str] = ()
) -> Iterator[BlockRays]:
    """Yield the blocks of a span, `size` rays each; the last one of the file may have fewer.

    others: more columns to read.
    """
    arrays = _read_arrays(source, size, span.position, buffers, others)
    for number, block in enumerate(arrays, span.number):
        first, rays = block.start.first, _rays(source, block)
        found = checksum_of(block.arrays)
        yield BlockRays(number, first, rays, block.end, found, block.fraction, block.buffers, block.others)
        if span.blocks is not None and number + 1 == span.number + span.blocks:
            return


def checksum_of(arrays: dict[str, Floats]) -> str:
    """Return the checksum of the arrays of a block."""
    checksum = Checksum()
    for array in arrays.values():
        checksum.update(array)
    return checksum.text()


def checksums(source: RayFile, size: int) -> Iterator[tuple[str, Position]]:
    """Yield the checksum of each block, unchecked, and where the next one begins."""
    buffers = BlockBuffers()
    for block in _read_arrays(source, size, Position(), buffers):
        yield checksum_of(block.arrays), block.end
        buffers.release(block.buffers)


def _read_arrays(
    source: RayFile, size: int, start: Position, pool: BlockBuffers, others: Sequence[str] = ()
) -> Iterator[_BlockArrays]:
    """Yield blocks, each from as many rows of the reader as it needs."""
    size = size if source.total is None else min(size, max(1, source.total))
    position, filled, buffers, finite = start, 0, pool.acquire(source.widths, size), True
    columns: Others = []
    last: RowBlock | None = None
    for last in source.blocks(start.row, start.offset, others):
        used = max(0, start.first - last.row)
        while used < last.rows:
            rows = slice(used, used + min(size - filled, last.rows - used))
            finite &= _copy_rows(buffers, filled, last, rows)
            columns.append({name: last.columns[name][rows] for name in others})
            filled, used = filled + rows.stop - rows.start, rows.stop
            if filled == size:
                end = Position(position.first + size, last.row, last.offset)
                yield _BlockArrays(buffers, filled, position, end, last.fraction, finite, columns)
                position, filled, buffers, finite = end, 0, pool.acquire(source.widths, size), True
                columns = []
    if filled and last:
        end = Position(position.first + filled, last.row, last.offset)
        yield _BlockArrays(buffers, filled, position, end, last.fraction, finite, columns)


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


def _rays(source: RayFile, block: _BlockArrays) -> Rays:
    """Return the rays of a block.

    An error gives the place of the wrong number in the file.
    """
    first, arrays = block.start.first, block.arrays
    if "origins" in arrays:
        with suppress(InvalidInput):  # `build` raises it again, with the place in the file
            low, high = (arrays.get(name) for name in RANGES)
            return own(
                (arrays["origins"], arrays["directions"], low, high),
                source.options.invalid_rays,
                block.finite,
            )
    among = "" if source.total == block.rows else f" in {block.rows:,} rows"
    raw = FileArrays(
        arrays, lambda name, index: source.where(name, (first + index[0], *index[1:])), among=among
    )
    rays = build(raw, source.path, source.options).geometry
    assert isinstance(rays, Rays)
    return rays
