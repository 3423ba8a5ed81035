"""Row blocks of a file, put together to chunks of one size."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.errors import InvalidInput
from raybox.geometry import Rays
from raybox.geometry.rays import own
from raybox.io.chunked import column_kernels
from raybox.io.formats.assembly import build
from raybox.io.formats.columns import RANGES, column_names
from raybox.io.formats.common import FileArrays, Floats, ReadOptions
from raybox.io.formats.tables import RowBlock
from raybox.validation import Ints

CHUNK = 1 << 20  # rays: as many as the scene sorts at once


class RayFile(NamedTuple):
    """A file of rays or points that is read block by block."""

    path: Path
    options: ReadOptions
    widths: dict[str, int]
    """Its arrays, and the length of their rows; 0 for t_min and t_max."""
    total: int | None
    """The number of rows; None: unknown before the end."""
    blocks: Callable[[int, int], Iterator[RowBlock]]
    """(row, offset) -> the block that begins there and all after it; (0, 0) is the first."""
    where: Callable[[str, tuple[int, ...]], str]
    """(array, index) -> the place of a number in the file, for errors."""
    parts: tuple[Path, ...] = ()
    """The files, if it is several joined."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are read."""
        return self.parts or (self.path,)

    @property
    def dimension(self) -> int:
        """D, the dimensions of space."""
        return max(self.widths.values())


class Position(NamedTuple):
    """Where a chunk begins."""

    first: int = 0
    """Its first row."""
    row: int = 0
    """`RowBlock.row` of the block that holds this row or the one before it."""
    offset: int = 0
    """`RowBlock.offset` of that block."""
    checksum: str = ""
    """Of all rows before."""


Buffers = dict[str, Floats]
Checksums = dict[str, NDArray[np.uint64]]
"""Of each array so far, one number."""


class ChunkBuffers:
    """Reused arrays of chunks: fresh pages cost more than writing to them."""

    def __init__(self) -> None:
        self._free: list[Buffers] = []

    def acquire(self, widths: dict[str, int], size: int) -> Buffers:
        """Return arrays of `size` rows."""
        if self._free:
            return self._free.pop()
        return {name: np.empty((size, width) if width else size) for name, width in widths.items()}

    def release(self, buffers: Buffers) -> None:
        """Store arrays that are no longer used, for the next chunk."""
        self._free.append(buffers)


class Chunk(NamedTuple):
    """Consecutive rays of a file."""

    first: int
    rays: Rays
    end: Position
    """Where the next chunk begins."""
    fraction: float | None
    """The fraction of the file that ends with it; None: the number of rows is known."""
    buffers: Buffers
    """The arrays of `rays`."""


class _ChunkArrays(NamedTuple):
    """A chunk before its rays are checked."""

    buffers: Buffers
    rows: int
    start: Position
    end: Position
    fraction: float | None
    finite: bool
    """Whether all numbers are, but for t_min and t_max."""


def read(source: RayFile, size: int, start: Position, buffers: ChunkBuffers) -> Iterator[Chunk]:
    """Yield the chunks of `size` rays from a position on."""
    for chunk in _read_arrays(source, size, start, buffers):
        yield Chunk(chunk.start.first, _rays(source, chunk), chunk.end, chunk.fraction, chunk.buffers)


def position_of_row(source: RayFile, size: int, row: int) -> Position | None:
    """Return the position of a row, with the checksum of all before it; None: no chunk begins there."""
    position, buffers = Position(), ChunkBuffers()
    for chunk in _read_arrays(source, size, Position(), buffers):
        position = chunk.end
        buffers.release(chunk.buffers)
        if position.first >= row:
            break
    return position if position.first == row else None


def _read_arrays(source: RayFile, size: int, start: Position, pool: ChunkBuffers) -> Iterator[_ChunkArrays]:
    """Yield chunks, each from as many blocks as it needs."""
    size = size if source.total is None else min(size, max(1, source.total))
    position, filled, buffers = start, 0, pool.acquire(source.widths, size)
    checksums, finite = _checksums_at(start, source), True

    def chunk_to(block: RowBlock) -> _ChunkArrays:
        checksum = " ".join(f"{total[0]:016x}" for total in checksums.values())
        end = Position(position.first + filled, block.row, block.offset, checksum)
        return _ChunkArrays(buffers, filled, position, end, block.fraction, finite)

    for block in source.blocks(start.row, start.offset):
        used = max(0, start.first - block.row)
        while used < block.rows:
            more = min(size - filled, block.rows - used)
            finite &= _copy_rows(buffers, filled, block, slice(used, used + more), checksums)
            filled, used = filled + more, used + more
            if filled == size:
                chunk = chunk_to(block)
                yield chunk
                position, filled, buffers, finite = chunk.end, 0, pool.acquire(source.widths, size), True
        last = block
    if filled:
        yield chunk_to(last)


def _checksums_at(position: Position, source: RayFile) -> Checksums:
    """Return the checksum of each array up to a position, an array of one number."""
    totals = [int(total, 16) for total in position.checksum.split()] or [0] * len(source.widths)
    return {name: np.array([total], np.uint64) for name, total in zip(source.widths, totals, strict=True)}


def _copy_rows(
    buffers: Buffers, start: int, block: RowBlock, rows: "slice[int, int, None]", checksums: Checksums
) -> bool:
    """Copy rows of a block into buffers, and update the checksums; return whether they are finite."""
    all_finite, end = True, start + rows.stop - rows.start
    for name, array in buffers.items():
        names = column_names(name, array.shape[1]) if array.ndim == 2 else [name]
        some: list[Floats] = [np.asarray(block.columns[column][rows]) for column in names]
        words, checksum = array[start:end].reshape(end - start, -1).view(np.uint64), checksums[name]
        finite = column_kernels.interleave(places_of(some), words, checksum)
        all_finite &= finite or name in RANGES
    return all_finite


def places_of(columns: list[Floats]) -> Ints:
    """Return the address of the first number of each column, and how many bytes the next is from it."""
    return np.array([(column.ctypes.data, column.strides[0]) for column in columns], np.int64)


def _rays(source: RayFile, chunk: _ChunkArrays) -> Rays:
    """Return the rays of a chunk.

    An error gives the place of the wrong number in the file.
    """
    first = chunk.start.first
    arrays = {name: array[: chunk.rows] for name, array in chunk.buffers.items()}
    if "origins" in arrays:
        with suppress(InvalidInput):  # `build` raises it again, with the place in the file
            o, d, low, high = (arrays.get(name) for name in ("origins", "directions", *RANGES))
            assert o is not None
            assert d is not None
            return own((o, d, low, high), source.options.invalid, chunk.finite)
    number = len(next(iter(arrays.values())))
    among = "" if source.total == number else f" in {number:,} rows"
    raw = FileArrays(
        arrays, lambda name, index: source.where(name, (first + index[0], *index[1:])), among=among
    )
    rays = build(raw, source.path, source.options).geometry
    assert isinstance(rays, Rays)
    return rays
