"""Tables block by block: `.npy .npz .parquet .zarr`.

Nothing is mapped into memory: mapped pages count as the process's own until the system reclaims them, and
reading is as fast.
"""

import math
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from raybox.io.chunked.chunks import BLOCK_ROWS, RayFile, RowBlock
from raybox.io.formats import numpy_arrays
from raybox.io.formats.assembly import KINDS, RANGES, choose_columns, choose_kind, column_name, column_names
from raybox.io.formats.common import Floats, ReadOptions, file_error, require
from raybox.io.formats.parquet import (
    BATCH_ROWS,
    batches,
    check_optional_columns,
    floats,
    group_starts,
)
from raybox.validation import Array, Dtype

_BATCH = BATCH_ROWS
_BUFFER = 1 << 18  # bytes that are buffered for each column: without a buffer, a column chunk is read whole
_LOCAL_HEADER = 30  # bytes of the header before a member of an archive
_LENGTHS = 26  # where it has the lengths of the name and of the extra field that follow it


class _ArrayPlace(NamedTuple):
    """An array in a file: where its numbers begin, and its header."""

    start: int
    header: numpy_arrays.Header


def _rows(file: BinaryIO, place: _ArrayPlace, begin: int, end: int) -> Array:
    """Return some rows of an array."""
    (length, *width), fortran, dtype = place.header
    columns = width[0] if width else 1
    if not fortran:
        return _numbers(file, dtype, place.start + begin * columns * dtype.itemsize, (end - begin, *width))
    starts = (place.start + (k * length + begin) * dtype.itemsize for k in range(columns))
    return np.stack([_numbers(file, dtype, start, (end - begin,)) for start in starts], axis=-1)


def _numbers(file: BinaryIO, dtype: Dtype, start: int, shape: tuple[int, ...]) -> Array:
    file.seek(start)
    return np.fromfile(file, dtype, math.prod(shape)).reshape(shape)


def npy(path: Path, options: ReadOptions) -> RayFile:
    """Return the rows of one table of numbers."""
    with path.open("rb") as file:
        header = numpy_arrays.header(file, path.stat().st_size, path, "")
        place = _ArrayPlace(file.tell(), header)
    numpy_arrays.check_numbers(header.dtype, path, "")
    kind = numpy_arrays.table_kind(header.shape, path, options)
    length, width = header.shape
    shapes = numpy_arrays.split(np.empty((0, width)), kind)

    def blocks(row: int, offset: int) -> Iterator[RowBlock]:
        with path.open("rb") as file:
            for start in range(offset, length, BLOCK_ROWS):
                table = _rows(file, place, start, min(length, start + BLOCK_ROWS)).astype(
                    np.float64, copy=False
                )
                yield RowBlock(start, start, len(table), dict(numpy_arrays.split(table, kind)))

    widths = {name: array.shape[1] if array.ndim == 2 else 0 for name, array in shapes.items()}
    return RayFile(
        path, options, widths, length, blocks, lambda name, index: numpy_arrays.cell(name, index, width)
    )


def npz(path: Path, options: ReadOptions) -> RayFile | None:
    """Return the rows of an archive.

    None if it is compressed, or an array has not a row for each ray.
    """
    with zipfile.ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        kind = choose_kind(_kinds(members), path, options) if _kinds(members) else None
        if kind is None or any(info.compress_type for info in members.values()):
            return None
        places = {name: _array_place(path, members[name]) for name in _names(kind) if name in members}
        for name, place in places.items():
            numpy_arrays.check_numbers(place.header.dtype, path, name)
        if not _rows_match(kind, {name: place.header.shape for name, place in places.items()}):
            return None
        if any(place.header.fortran for place in places.values()) or archive.testzip():
            return None  # loaded whole, it raises an error that names the damaged member
    length = places[next(iter(places))].header.shape[0]

    def read(name: str, begin: int, end: int) -> Array:
        with path.open("rb") as file:
            return _rows(file, places[name], begin, end)

    return _from_arrays(
        path, options, {name: place.header.shape for name, place in places.items()}, read, BLOCK_ROWS
    )._replace(total=length)


def _array_place(path: Path, info: zipfile.ZipInfo) -> _ArrayPlace:
    """Return the place of a member that is not compressed."""
    with path.open("rb") as file:
        file.seek(info.header_offset)
        local = file.read(_LOCAL_HEADER)
        name, extra = (int.from_bytes(local[_LENGTHS + k : _LENGTHS + k + 2], "little") for k in (0, 2))
        start = info.header_offset + _LOCAL_HEADER + name + extra
        file.seek(start)
        with zipfile.ZipFile(path) as archive, archive.open(info) as inside:
            header = numpy_arrays.header(inside, info.file_size, path, info.filename)
            return _ArrayPlace(start + inside.tell(), header)


def zarr(path: Path, options: ReadOptions) -> RayFile:
    """Return the rows of a group of arrays."""
    library = require("zarr", "zarr", ".zarr")
    try:
        group = library.open_group(path, mode="r")
    except FileNotFoundError as error:
        raise file_error(path, "holds no Zarr group", "give the folder of a group") from error
    # one by one: of several at a time that it cannot read, zarr prints tracebacks
    found = {name: group.get(name) for name in numpy_arrays.NAMES}
    arrays = {name: array for name, array in found.items() if isinstance(array, library.Array)}
    if not _kinds(arrays):
        raise file_error(path, "has no arrays of rays or points", "name them origins, directions or points")
    kind = choose_kind(_kinds(arrays), path, options)
    arrays = {name: arrays[name] for name in _names(kind) if name in arrays}
    shapes = {name: tuple(array.shape) for name, array in arrays.items()}
    for name, array in arrays.items():
        numpy_arrays.check_numbers(array.dtype, path, name)
    if not _rows_match(kind, shapes):
        sizes = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise file_error(
            path, f"has arrays of shapes {sizes}", "give (N, 3) or (N, 2), and (N,) for t_min and t_max"
        )
    # whole chunks of the arrays: any part of one costs a read of all of it
    step = max(array.chunks[0] for array in arrays.values())
    step *= max(1, BLOCK_ROWS // step)
    return _from_arrays(
        path, options, shapes, lambda name, begin, end: np.asarray(arrays[name][begin:end]), step
    )


def _kinds(members: Iterable[str]) -> list[str]:
    return [kind for kind, needed in KINDS.items() if set(needed) <= set(members)]


def _names(kind: str) -> list[str]:
    return [*KINDS[kind], *(RANGES if kind == "rays" else ())]


def _rows_match(kind: str, shapes: dict[str, tuple[int, ...]]) -> bool:
    """Return whether all arrays have a row for each ray."""
    wide = {shapes[name] for name in KINDS[kind]}
    length, width = next(iter(wide))[0], next(iter(wide))[-1]
    flat = {shapes[name] for name in RANGES if name in shapes}
    return wide == {(length, width)} and width in (2, 3) and flat <= {(length,)}


def _from_arrays(
    path: Path,
    options: ReadOptions,
    shapes: dict[str, tuple[int, ...]],
    read: Callable[[str, int, int], Array],
    step: int,
) -> RayFile:
    """Return the rows of arrays that have a row for each ray.

    Step: rows of a block.
    """
    total = next(iter(shapes.values()))[0]

    def blocks(row: int, offset: int) -> Iterator[RowBlock]:
        for start in range(offset, total, step):
            end = min(total, start + step)
            some: dict[str, Floats] = {
                name: read(name, start, end).astype(np.float64, copy=False) for name in shapes
            }
            yield RowBlock(start, start, end - start, some)

    widths = {name: shape[1] if len(shape) == 2 else 0 for name, shape in shapes.items()}
    return RayFile(path, options, widths, total, blocks, lambda name, index: f"{name}{list(index)}")


def parquet(path: Path, options: ReadOptions) -> RayFile:
    """Return the rows of a Parquet table."""
    library = require("pyarrow.parquet", "io", ".parquet")
    with library.ParquetFile(path) as file:
        kind, names, _ = choose_columns(file.schema_arrow.names, path, options)
        check_optional_columns(file.schema_arrow.names, kind, path)
        metadata, starts = file.metadata, group_starts(file.metadata, path)
    layout = {array: [n for n in column_names(array) if n in names] for array in KINDS[kind]}
    layout |= {name: [name] for name in RANGES if name in names}

    def blocks(row: int, offset: int) -> Iterator[RowBlock]:
        how = {"metadata": metadata, "pre_buffer": False, "buffer_size": _BUFFER}
        with library.ParquetFile(path, **how) as file:
            for group in range(offset, metadata.num_row_groups):
                start = starts[group]
                for batch in batches(file, group, names, (path, starts), _BATCH):
                    columns = {name: floats(batch.column(name), name, path, options, start) for name in names}
                    yield RowBlock(start, group, batch.num_rows, _by_array(columns, layout))
                    start += batch.num_rows

    where = lambda name, index: f"row {index[0]} (the first is 0), column {column_name(name, index)}"  # noqa: E731
    widths = {name: 0 if name in RANGES else len(columns) for name, columns in layout.items()}
    return RayFile(path, options, widths, starts[-1], blocks, where)


def _by_array(
    columns: dict[str, Floats], layout: dict[str, list[str]]
) -> dict[str, Floats | Sequence[Floats]]:
    return {
        name: columns[name] if name in RANGES else [columns[column] for column in parts]
        for name, parts in layout.items()
    }
