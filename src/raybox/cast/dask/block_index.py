"""Where the blocks of a file of rays begin, so that workers can read each by itself."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from raybox.cast import blocks as ray_blocks
from raybox.cast.blocks import BlockBuffers, BlockSpan, BlockStart, Position, RayFile
from raybox.cast.readers import open_ray_file
from raybox.io.formats.common import require


class ReaderPlace(NamedTuple):
    """Where a reader of a file starts, to read a row: `RowBlock.row` and `RowBlock.offset`."""

    row: int
    offset: int


BlockIndex = Callable[[int], ReaderPlace]
"""From a row."""


def blocks_of(source: RayFile, size: int, spans: Iterable[BlockSpan]) -> Iterator[BlockStart]:
    """Yield the blocks of spans, `size` rays each.

    Text has no index of rows, so files of it are read here.
    """
    index = _index(source)
    for span in spans:
        if index is None or source.total is None:
            yield from _read_blocks(source, size, span)
            continue
        end = -(-source.total // size) if span.blocks is None else span.number + span.blocks
        for number in range(span.number, end):
            yield BlockStart(number, Position(number * size, *index(number * size)))


def block_count(source: RayFile, size: int) -> int | None:
    """Return the number of blocks of a file; None: unknown before the end."""
    return None if source.total is None else -(-source.total // size)


def _read_blocks(source: RayFile, size: int, span: BlockSpan) -> Iterator[BlockStart]:
    """Yield the blocks of a span by reading it here."""
    position, buffers = span.position, BlockBuffers()
    for block in ray_blocks.read(source, size, span, buffers):
        yield BlockStart(block.number, position)
        position = block.end
        buffers.release(block.buffers)


def _index(source: RayFile) -> BlockIndex | None:
    """Return the index of a file, or of several joined; None without."""
    indices = [_INDEX.get(path.suffix.lower()) for path in source.paths]
    if not all(indices):
        return None
    opened = [open_index(path) for open_index, path in zip(indices, source.paths, strict=True) if open_index]
    return _joined(source, opened) if source.parts else opened[0]


def _joined(source: RayFile, indices: list[BlockIndex]) -> BlockIndex:
    """Return the index of joined files, numbered as `raybox.cast.joined_files` does."""
    totals = [open_ray_file(path, source.options).total or 0 for path in source.parts]
    starts = [0, *accumulate(totals)]

    def index(row: int) -> ReaderPlace:
        file = bisect_right(starts, row, hi=len(totals)) - 1
        place = indices[file](row - starts[file])
        return ReaderPlace(place.row + starts[file], place.offset * len(indices) + file)

    return index


def _any_row(_: Path) -> BlockIndex:
    return lambda row: ReaderPlace(row, row)


def _row_groups(path: Path) -> BlockIndex:
    with require("pyarrow.parquet", "io", ".parquet").ParquetFile(path) as file:
        sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
    starts = [0, *accumulate(sizes)]

    def index(row: int) -> ReaderPlace:
        group = bisect_right(starts, row) - 1
        return ReaderPlace(starts[group], group)

    return index


def _zarr_chunks(path: Path) -> BlockIndex:
    group = require("zarr", "zarr", ".zarr").open_group(path, mode="r")
    step = max(array.chunks[0] for _, array in group.arrays())
    return lambda row: ReaderPlace(row // step * step, row // step * step)


_INDEX: dict[str, Callable[[Path], BlockIndex]] = {
    ".npy": _any_row,
    ".npz": _any_row,
    ".pcd": _any_row,
    ".ply": _any_row,
    ".las": _any_row,
    ".laz": _any_row,
    ".parquet": _row_groups,
    ".zarr": _zarr_chunks,
}
