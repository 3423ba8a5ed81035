"""Tables piece by piece: `.npy .npz .parquet .zarr`.

Nothing is mapped into memory: pages of a mapping count as the process's own until the system takes them back,
and reading is as fast.
"""

import zipfile
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.errors import FileFormatError
from raybox.io.chunked.chunks import PIECE, Piece, Source
from raybox.io.formats import numpy_arrays
from raybox.io.formats.assembly import KINDS, RANGES, choose, column_of, names_of, plan
from raybox.io.formats.common import Floats, Want, broken, require
from raybox.io.formats.parquet import floats

_BATCH = 1 << 17  # rows of Parquet: a megabyte of each column
_BUFFER = 1 << 18  # bytes that are buffered for each column: without a buffer, a column chunk is read whole
_LOCAL_HEADER, _LENGTHS = (
    30,
    26,
)  # of a member of an archive: its size, where it tells the lengths of what follows


class _Block(NamedTuple):
    """An array in a file: where its numbers begin, and what they are."""

    start: int
    header: numpy_arrays.Header


def _rows(file: BinaryIO, block: _Block, begin: int, end: int) -> NDArray[Any]:
    """Read some rows of an array."""
    (length, *width), fortran, dtype = block.header
    columns = width[0] if width else 1
    if not fortran:
        return _numbers(file, dtype, block.start + begin * columns * dtype.itemsize, (end - begin, *width))
    starts = (block.start + (k * length + begin) * dtype.itemsize for k in range(columns))
    return np.stack([_numbers(file, dtype, start, (end - begin,)) for start in starts], axis=-1)


def _numbers(file: BinaryIO, dtype: np.dtype[Any], start: int, shape: tuple[int, ...]) -> NDArray[Any]:
    file.seek(start)
    return np.fromfile(file, dtype, int(np.prod(shape))).reshape(shape)


def npy(path: Path, want: Want) -> Source:
    """Look at one table of numbers."""
    with path.open("rb") as file:
        header = numpy_arrays.header(file, path.stat().st_size, path, "")
        block = _Block(file.tell(), header)
    numpy_arrays.check_numbers(header.dtype, path, "")
    kind = numpy_arrays.table_kind(header.shape, path, want)
    length, width = header.shape
    shapes = numpy_arrays.split(np.empty((0, width)), kind)

    def pieces(row: int, at: int) -> Iterator[Piece]:
        with path.open("rb") as file:
            for start in range(at, length, PIECE):
                table = _rows(file, block, start, min(length, start + PIECE)).astype(np.float64, copy=False)
                yield Piece(start, start, len(table), dict(numpy_arrays.split(table, kind)))

    widths = {name: array.shape[1] if array.ndim == 2 else 0 for name, array in shapes.items()}
    return Source(
        path, want, widths, length, pieces, lambda name, index: numpy_arrays.cell(name, index, width)
    )


def npz(path: Path, want: Want) -> Source | None:
    """Look at an archive; None if it is compressed, or its arrays are not rows beside rows."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        kind = choose(_kinds(members), path, want) if _kinds(members) else None
        if kind is None or any(info.compress_type for info in members.values()):
            return None
        blocks = {name: _block(path, members[name]) for name in _names(kind) if name in members}
        for name, block in blocks.items():
            numpy_arrays.check_numbers(block.header.dtype, path, name)
        if not _beside(kind, {name: block.header.shape for name, block in blocks.items()}):
            return None
        if any(block.header.fortran for block in blocks.values()) or archive.testzip():
            return None  # who loads it whole says which member is damaged
    length = blocks[next(iter(blocks))].header.shape[0]

    def read(name: str, begin: int, end: int) -> NDArray[Any]:
        with path.open("rb") as file:
            return _rows(file, blocks[name], begin, end)

    return _of_arrays(
        path, want, {name: block.header.shape for name, block in blocks.items()}, read, PIECE
    )._replace(total=length)


def _block(path: Path, info: zipfile.ZipInfo) -> _Block:
    """Find the numbers of a member that is not compressed."""
    with path.open("rb") as file:
        file.seek(info.header_offset)
        local = file.read(_LOCAL_HEADER)
        name, extra = (int.from_bytes(local[_LENGTHS + k : _LENGTHS + k + 2], "little") for k in (0, 2))
        start = info.header_offset + _LOCAL_HEADER + name + extra
        file.seek(start)
        with zipfile.ZipFile(path) as archive, archive.open(info) as inside:
            header = numpy_arrays.header(inside, info.file_size, path, info.filename)
            return _Block(start + inside.tell(), header)


def zarr(path: Path, want: Want) -> Source:
    """Look at a group of arrays."""
    library = require("zarr", "zarr", ".zarr")
    group = library.open_group(path, mode="r")
    held = {name: array for name, array in group.arrays() if name in numpy_arrays.NAMES}
    if not _kinds(held):
        raise broken(path, "has no arrays of rays or points", "name them origins, directions or points")
    kind = choose(_kinds(held), path, want)
    held = {name: held[name] for name in _names(kind) if name in held}
    shapes = {name: tuple(array.shape) for name, array in held.items()}
    for name, array in held.items():
        numpy_arrays.check_numbers(array.dtype, path, name)
    if not _beside(kind, shapes):
        told = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise broken(
            path, f"has arrays of shapes {told}", "give (N, 3) or (N, 2), and (N,) for t_min and t_max"
        )
    # whole chunks of the arrays: what is read of one has to be taken out of all of it
    step = max(array.chunks[0] for array in held.values())
    step *= max(1, PIECE // step)
    return _of_arrays(path, want, shapes, lambda name, begin, end: np.asarray(held[name][begin:end]), step)


def _kinds(members: Any) -> list[str]:
    return [kind for kind, needed in KINDS.items() if set(needed) <= set(members)]


def _names(kind: str) -> list[str]:
    return [*KINDS[kind], *(RANGES if kind == "rays" else ())]


def _beside(kind: str, shapes: dict[str, tuple[int, ...]]) -> bool:
    """Tell whether all arrays have a row for each ray."""
    wide = {shapes[name] for name in KINDS[kind]}
    length, width = next(iter(wide))[0], next(iter(wide))[-1]
    flat = {shapes[name] for name in RANGES if name in shapes}
    return wide == {(length, width)} and width in (2, 3) and flat <= {(length,)}


def _of_arrays(
    path: Path,
    want: Want,
    shapes: dict[str, tuple[int, ...]],
    read: Callable[[str, int, int], NDArray[Any]],
    step: int,
) -> Source:
    """Cut pieces of so many rows out of arrays that stand beside each other."""
    total = next(iter(shapes.values()))[0]

    def pieces(row: int, at: int) -> Iterator[Piece]:
        for start in range(at, total, step):
            end = min(total, start + step)
            some: dict[str, Any] = {
                name: read(name, start, end).astype(np.float64, copy=False) for name in shapes
            }
            yield Piece(start, start, end - start, some)

    widths = {name: shape[1] if len(shape) == 2 else 0 for name, shape in shapes.items()}
    return Source(path, want, widths, total, pieces, lambda name, index: f"{name}{list(index)}")


def parquet(path: Path, want: Want) -> Source:
    """Look at a table's columns."""
    library = require("pyarrow.parquet", "io", ".parquet")
    with library.ParquetFile(path) as file:
        kind, names, _ = plan(file.schema_arrow.names, path, want)
        told = file.metadata
        starts = [0, *accumulate(told.row_group(k).num_rows for k in range(told.num_row_groups))]
    layout = {array: [n for n in names_of(array) if n in names] for array in KINDS[kind]}
    layout |= {name: [name] for name in RANGES if name in names}

    def pieces(row: int, at: int) -> Iterator[Piece]:
        how = {"metadata": told, "pre_buffer": False, "buffer_size": _BUFFER}
        with library.ParquetFile(path, **how) as file:
            for group in range(at, told.num_row_groups):
                start = starts[group]
                for columns in _batches(file, group, names, (path, want), start):
                    rows = len(columns[0])
                    yield Piece(start, group, rows, _laid_out(dict(zip(names, columns, strict=True)), layout))
                    start += rows

    where = lambda name, index: f"row {index[0]} (the first is 0), column {column_of(name, index)}"  # noqa: E731
    widths = {name: 0 if name in RANGES else len(columns) for name, columns in layout.items()}
    return Source(path, want, widths, starts[-1], pieces, where)


def _batches(
    file: Any, group: int, names: list[str], source: tuple[Path, Want], first: int
) -> Iterator[list[Floats]]:
    """Read the columns of a row group some rows at a time; raise `FileFormatError` if it is damaged."""
    path, want = source
    row, end = first, first + file.metadata.row_group(group).num_rows
    batches = file.iter_batches(_BATCH, row_groups=[group], columns=names, use_threads=False)
    while True:
        try:
            batch = next(batches, None)
        except (OSError, ValueError) as error:
            said = str(error).splitlines()[0][:120]
            raise _damaged(path, group, f"cannot be read ({said})") from error
        if batch is None:
            break
        yield [floats(batch.column(name), name, path, want, row) for name in names]
        row += batch.num_rows
    # Arrow ends a column silently at a page whose header is damaged.
    if row != end:
        raise _damaged(path, group, f"holds {row - first:,} of {end - first:,} rows")


def _damaged(path: Path, group: int, problem: str) -> FileFormatError:
    return broken(path, problem, "copy or write it again", f"row group {group}")


def _laid_out(
    columns: dict[str, Floats], layout: dict[str, list[str]]
) -> dict[str, Floats | Sequence[Floats]]:
    return {
        name: columns[name] if name in RANGES else [columns[column] for column in parts]
        for name, parts in layout.items()
    }
