"""Where in a file each chunk of rays begins: known for tables, found by reading for the other formats."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path

from raybox.files.common import require
from raybox.stream import chunks
from raybox.stream.chunks import Place, Rooms, Source

Find = Callable[[int], tuple[int, int]]  # from which row on to read for a row, and where that is


def places(source: Source, size: int) -> Iterator[Place]:
    """Give the places of all chunks."""
    find = _FINDERS.get(source.path.suffix.lower())
    if find is None or source.total is None:
        yield from _read(source, size)
        return
    where = find(source.path)
    for first in range(0, source.total, size):
        yield Place(first, *where(first))


def count(source: Source, size: int) -> int | None:
    """Tell how many chunks there are, if the file tells."""
    return None if source.total is None else -(-source.total // size)


def _read(source: Source, size: int) -> Iterator[Place]:
    """Read chunks here, too: text and LAZ do not tell where a row begins."""
    place, rooms = Place(), Rooms()
    for chunk in chunks.read(source, size, place, rooms):
        yield place._replace(digest="")
        place = chunk.after
        rooms.give_back(chunk.room)


def _anywhere(_: Path) -> Find:
    return lambda row: (row, row)


def _row_groups(path: Path) -> Find:
    with require("pyarrow.parquet", "io", ".parquet").ParquetFile(path) as file:
        sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
    starts = [0, *accumulate(sizes)]
    return lambda row: (row, bisect_right(starts, row) - 1)


def _chunks_of_zarr(path: Path) -> Find:
    group = require("zarr", "zarr", ".zarr").open_group(path, mode="r")
    step = max(array.chunks[0] for _, array in group.arrays())
    return lambda row: (row // step * step, row // step * step)


_FINDERS: dict[str, Callable[[Path], Find]] = {
    ".npy": _anywhere,
    ".npz": _anywhere,
    ".pcd": _anywhere,
    ".ply": _anywhere,
    ".las": _anywhere,
    ".laz": _anywhere,
    ".parquet": _row_groups,
    ".zarr": _chunks_of_zarr,
}
